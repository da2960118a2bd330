"""Lanes on a GPU: no host sync in a step, and a captured step follows lanes, weights and endings that change after the
capture."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.sim.test_env_cuda import actions_of, captured_step, env_of
from wavedash.assembly import assembled
from wavedash.config import RocketConfig
from wavedash.config_file import load_config
from wavedash.ppo.graphs import WARM_UP
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.live import change_tasks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

LANES = ("env.rocket.lanes={turtle: {share: 0.1, most: 0.3, starts: {turtle: 1}, rewards: {recovery: 1}, "
         "endings: {recovered: {}, time_out: {seconds: 1}}, measures: [turtle]}, mechanics: {share: 0.2, starts: {wall: 1, "
         "air_dribble: 1, flip_reset: 1, jump_challenge: 1, dribble: 1}, measures: [wall, air_dribble, flip_reset, "
         "jump_challenge, dribble]}}")
MEASURES = "env.rocket.measures=[turtle]"


def changed(env: RocketEnv) -> RocketConfig:
    """Other shares, weights and endings, and another zero-sum share."""
    config = load_config("rocket-1v1", [LANES, MEASURES]).env.rocket
    assert config is not None
    given = config.model_dump()
    given["lanes"]["turtle"] |= {"share": 0.3, "rewards": {"recovery": 5.0}}
    given["lanes"]["turtle"]["endings"]["recovered"] = None
    given |= {"endings": {"goal": None, "time_out": {"seconds": 0.5}}, "zero_sum": 0.5}
    return RocketConfig.model_validate(given)


def outcome(env: RocketEnv, step) -> list[torch.Tensor]:
    kept = (step.obs["obs"], step.reward, step.terminated, step.truncated, step.lane, *step.metrics.values())
    return [x.clone().nan_to_num(-9) for x in (*kept, env._shards[0].state.memory, env.tasks[0].lanes.lane)]


def test_a_captured_step_with_lanes_is_the_step_also_after_a_change() -> None:
    plain, captured = env_of(LANES, MEASURES), env_of(LANES, MEASURES)
    actions = actions_of(plain, 80)
    for env in (plain, captured):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
    for t in range(2, 80):
        if t == 40:
            for env in (plain, captured):
                change_tasks(env.tasks, changed(env))
                env.prepare()
        torch.cuda.set_sync_debug_mode("error")
        try:
            step = plain.step(actions[t])
            action.copy_(actions[t])
            graph.replay()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        for x, y in zip(outcome(plain, step), outcome(captured, result), strict=True):
            assert torch.equal(x, y), t
    lane = captured.tasks[0].lanes.lane
    assert lane is not None and int((lane == 1).sum()) == round(0.3 * len(lane)), "the share has changed"


def test_iterations_that_replay_graphs_count_lanes_as_those_that_do_not() -> None:
    settings = ["env.count=256", LANES, MEASURES, "device=cuda", "ppo.rollout_steps=16", "ppo.minibatch_size=2048",
                "rating=null", "policy.hidden=[32]", "env.rocket.endings={goal: {}, time_out: {seconds: 1}}"]
    said = []
    for graphs in ("true", "false"):
        with assembled(load_config("rocket-1v1", [*settings, f"graphs={graphs}"])) as learner:
            learner.start()
            said.append([learner.iterate().metrics for _ in range(WARM_UP + 3)])
    for with_graphs, without in zip(*said, strict=True):
        names = {name for name in without if name.startswith(("lane/", "env/", "rollout/", "recent/"))}
        assert names and any(name.startswith("lane/mechanics/attempt/") for name in names)
        for name in names:
            assert with_graphs[name] == pytest.approx(without[name], rel=1e-4, abs=1e-5), name
