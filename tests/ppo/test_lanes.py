"""Lanes of any environment: metrics and episodes are counted apart, and the same is learned as without them.

The reference is NumPy over everything that the environment gave. Several processes: `test_ranks.py`, case `lanes`.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.frame_stack import FrameStackEnv
from wavedash.envs.vec_env import EnvError, Step
from wavedash.ppo.collector import MOST_LANES
from wavedash.ppo.learner import Learner

T, N, NAMES = 16, 12, ("first", "second")
ITERATIONS = 3


class Lanes(TapeEnv):
    """Rows change their lane where an episode ends. Some rows are inactive in some steps. `skill` is measured in the lane
    `second` only, and `attempt/trick` is decided now and then."""

    def __init__(self, names: Sequence[str] = NAMES, only_main: bool = False) -> None:
        dice = np.random.default_rng(0)
        steps = ITERATIONS * T
        ended = torch.from_numpy(dice.random((steps, N)) < 0.15)
        cut = torch.from_numpy(dice.random((steps, N)) < 0.5)
        active = torch.from_numpy(dice.random((steps, N)) < 0.9)
        super().__init__(torch.from_numpy(dice.normal(size=(steps, N, 3))).float(),
                         torch.from_numpy(dice.integers(-8, 9, (steps, N)) / 4).float(), ended & ~cut, ended & cut, active,
                         spaces.Discrete(2))
        lane = torch.from_numpy(dice.integers(0, 3, (steps, N)))
        for t in range(1, steps):
            lane[t] = torch.where(ended[t - 1], lane[t], lane[t - 1])
        self.lane, self.names = torch.zeros_like(lane) if only_main else lane, names
        trick = torch.from_numpy(dice.integers(0, 2, (steps, N))).float()
        skill = torch.from_numpy(dice.integers(0, 9, (steps, N)) / 2).float()
        self.tape = {
            "speed": torch.from_numpy(dice.integers(0, 9, (steps, N)) / 2).float(),
            "skill": skill if not names else torch.where(self.lane == 2, skill, torch.nan),
            "attempt/trick": torch.where(torch.from_numpy(dice.random((steps, N)) < 0.2), trick, torch.nan),
            "episode/success": torch.from_numpy(dice.integers(0, 2, (steps, N))).float(),
        }

    @property
    def lanes(self) -> Sequence[str]:
        return self.names

    def step(self, action: torch.Tensor) -> Step:
        t = self.played % len(self.obs)
        metrics = {name: x[t].clone() for name, x in self.tape.items()}
        return super().step(action)._replace(metrics=metrics, lane=self.lane[t].clone() if self.names else None)


def learner_of(env: TapeEnv | FrameStackEnv) -> Learner:
    return learner_over(env, run_config({"rollout_steps": T, "minibatch_size": T * N, "epochs": 1}))


def mean(x: np.ndarray, where: np.ndarray) -> float | None:
    return float(x[where].mean()) if where.any() else None


def expected(env: Lanes, number: int, iteration: int) -> dict[str, float | None]:
    """Everything about one lane in one iteration, by the end of its name."""
    now = slice(iteration * T, (iteration + 1) * T)
    reward, active = env.reward.numpy(), env.active.numpy()
    done = (env.terminated | env.truncated).numpy()
    returns, lengths = np.zeros_like(reward), np.zeros_like(reward)
    total, steps = np.zeros(N), np.zeros(N)
    for t in range(len(reward)):
        total, steps = total + reward[t] * active[t], steps + active[t]
        returns[t], lengths[t] = total, steps
        goes_on = active[t] & ~done[t]
        total, steps = total * goes_on, steps * goes_on
    here = (env.lane.numpy() == number) & active
    found = {"reward": mean(reward[now], here[now]), "return": mean(returns[now], (here & done)[now]),
             "length": mean(lengths[now], (here & done)[now]), "share": here[now].sum() / active[now].sum()}
    for name, tape in env.tape.items():
        values = tape.numpy()
        where = here & ~np.isnan(values) & (done if name.startswith("episode/") else True)
        found[name] = mean(values[now], where[now])
    return found


def test_metrics_of_lanes_are_what_numpy_counts() -> None:
    env = Lanes()
    learner = learner_of(env)
    window: list[float] = []
    for iteration in range(ITERATIONS):
        metrics = learner.iterate().metrics
        for number, lane in enumerate((None, *NAMES)):
            for name, value in expected(env, number, iteration).items():
                prefix = f"lane/{lane}/" if lane else "rollout/" if name in ("reward", "return", "length") else "env/"
                if lane is None and name == "share":
                    continue
                if value is None:
                    assert prefix + name not in metrics, prefix + name
                else:
                    assert metrics[prefix + name] == pytest.approx(value, rel=1e-5, abs=1e-6), prefix + name
        assert metrics["rollout/steps"] == env.active[iteration * T:(iteration + 1) * T].sum(), "all rows are learned from"
        window += [metrics["recent/return"]]
    assert "env/skill" not in metrics and "lane/first/skill" not in metrics and "lane/second/skill" in metrics
    assert metrics["lane/first/attempt/trick"] != metrics["env/attempt/trick"], "they are told apart"
    assert len(set(window)) == ITERATIONS


def test_the_recent_episodes_are_those_of_the_main_task() -> None:
    env = Lanes()
    learner = learner_of(env)
    for _ in range(ITERATIONS):
        metrics = learner.iterate().metrics
    done = (env.terminated | env.truncated) & env.active
    in_main, everywhere = done & (env.lane == 0), done
    assert metrics["recent/count"] == in_main.sum() < everywhere.sum()
    assert learner.episodes == everywhere.sum()
    success = env.tape["episode/success"][in_main].mean()
    assert metrics["recent/success"] == pytest.approx(float(success), rel=1e-6)


def test_lanes_change_nothing_in_what_is_learned_and_an_empty_one_nothing_in_the_metrics() -> None:
    plain, split, empty = (learner_of(env) for env in (Lanes(()), Lanes(), Lanes(only_main=True)))
    for _ in range(ITERATIONS):
        without, _, unused = (learner.iterate().metrics for learner in (plain, split, empty))
    for learner in (split, empty):
        for name, x in plain.policy.state_dict().items():
            assert torch.equal(learner.policy.state_dict()[name], x), name
    without = {name: x for name, x in without.items() if name != "env/skill"}  # it is measured in a lane
    assert {name: x for name, x in unused.items() if not name.startswith("lane/")} == without
    assert {name: x for name, x in unused.items() if name.startswith("lane/")} == dict.fromkeys(
        (f"lane/{lane}/share" for lane in NAMES), 0.0)


def test_more_lanes_than_a_byte_can_tell_apart_are_refused() -> None:
    names = [f"lane{number}" for number in range(MOST_LANES + 1)]
    assert learner_of(Lanes(names[:-1])).iterate().metrics["lane/lane254/share"] == 0
    with pytest.raises(EnvError, match="256 lanes, and 255 is the most"):
        learner_of(Lanes(names))


def test_lanes_go_through_frames_that_are_stacked() -> None:
    env = FrameStackEnv(Lanes(), 2)
    assert tuple(env.lanes) == NAMES
    metrics = learner_of(env).iterate().metrics
    assert metrics["lane/first/speed"] == pytest.approx(expected(Lanes(), 1, 0)["speed"])


def test_counting_lanes_reads_nothing_on_the_host() -> None:
    from tests.rocket.no_host_sync import NoHostSync

    learner = learner_of(Lanes())
    learner.iterate()
    rollout = learner.buffer.next_slot()
    env = learner.env
    learner.collector.may_sync = False  # as on a GPU
    steps = [env.step(torch.zeros(N, dtype=torch.int64)) for _ in range(3)]
    shard = learner.collector.shards[0]
    shard.t, shard.out = 0, rollout.each_step(shard.rows)
    with torch.no_grad(), NoHostSync():
        for step in steps:
            learner.collector._store(shard, step, rollout)
            shard.t += 1
