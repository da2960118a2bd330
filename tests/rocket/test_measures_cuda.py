"""Measures on a GPU: no host sync, and a captured step reports what the step reports."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.sim.test_env_cuda import actions_of, captured_step, env_of
from tests.rocket.test_measures_metrics import ALL, STARTS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_captured_step_with_measures_reports_the_same_attempts_without_a_host_sync() -> None:
    plain, captured = env_of(ALL, STARTS), env_of(ALL, STARTS)
    actions = actions_of(plain, 60)
    for env in (plain, captured):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
    seen = {name: 0 for name in result.metrics if name.startswith("attempt/")}
    for t in range(2, 60):
        torch.cuda.set_sync_debug_mode("error")
        try:
            expected = plain.step(actions[t]).metrics
            action.copy_(actions[t])
            graph.replay()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert result.metrics.keys() == expected.keys()
        for name, x in expected.items():
            assert torch.equal(result.metrics[name].nan_to_num(-9), x.nan_to_num(-9)), name
            if name in seen:
                seen[name] += int((~x.isnan()).sum())
    assert len(seen) == 7 and min(seen["attempt/turtle"], seen["attempt/dribble"], seen["attempt/air_dribble"]) > 0
