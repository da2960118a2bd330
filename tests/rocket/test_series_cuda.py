"""Series on a GPU: a captured step counts games as the step does."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.sim.test_env_cuda import actions_of, captured_step, env_of, outcome

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_captured_step_of_a_series_is_the_step() -> None:
    """Games have about 10 steps, and an episode two of them."""
    settings = ("env.rocket.games=2", "env.rocket.endings={goal: {}, time_out: {seconds: 0.66}}")
    plain, captured = env_of(*settings), env_of(*settings)
    actions = actions_of(plain, 60)
    for env in (plain, captured):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
    ended = 0
    for t in range(2, 60):
        if t % 10 == 0:
            plain.prepare()
            captured.prepare()
        expected = outcome(plain, plain.step(actions[t]))
        action.copy_(actions[t])
        graph.replay()
        for ours, theirs in zip(outcome(captured, result), expected, strict=True):
            assert torch.equal(ours, theirs)
        assert torch.equal(captured.tasks[0].series.played, plain.tasks[0].series.played)
        ended += int((result.truncated | result.terminated).sum())
    assert 2 * plain.num_rows < ended < 4 * plain.num_rows
