"""Frame stacking against Gymnasium's own wrapper, environment by environment; ends of episodes, shards, pictures and resume."""
from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Tensor

from tests.envs.toy_envs import Counter, DictObs
from tests.ppo.learners import learner_over, run_config
from tests.ppo.test_exact_resume import differences, saved
from wavedash.config import EnvConfig
from wavedash.envs.frame_stack import FrameStackEnv, joined
from wavedash.envs.gymnasium.vector import GymnasiumVectorEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.make import make_env
from wavedash.envs.pool import WorkerPool
from wavedash.envs.vec_env import Obs, Step, VecEnv

FRAMES = 3
CARTPOLE = partial(gymnasium.make, "CartPole-v1")


def stacked_by_gymnasium():
    return gymnasium.wrappers.FlattenObservation(gymnasium.wrappers.FrameStackObservation(CARTPOLE(), FRAMES))


def actions(steps: int, rows: int) -> Tensor:
    return torch.randint(2, (steps, rows), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_observe_what_gymnasiums_wrapper_returns_over_whole_episodes(workers):
    """This holds for the last observation of an episode too, which the critic evaluates."""
    env = make_env(EnvConfig(id="CartPole-v1", count=4, workers=workers, frame_stack=FRAMES))
    reference = LocalVecEnv(stacked_by_gymnasium, 4)
    try:
        assert torch.equal(env.reset(seed=5), reference.reset(seed=5))
        ends = 0
        for action in actions(80, 4):
            mine, theirs = env.step(action), reference.step(action)
            for name in ("obs", "final_obs", "reward", "terminated", "truncated", "active"):
                assert torch.equal(getattr(mine, name), getattr(theirs, name)), name
            assert (mine.final_obs is mine.obs) == (theirs.final_obs is theirs.obs)
            ends += int(mine.terminated.sum())
        assert ends > 4
        assert env.observation_space == reference.observation_space
    finally:
        env.close()


def test_shards_are_stacked_apart():
    env, together = (FrameStackEnv(WorkerPool(CARTPOLE, 4, workers=2, groups=groups), FRAMES) for groups in (2, 1))
    try:
        env.reset(seed=5)
        together.reset(seed=5)
        for action in actions(30, 4):
            expected = together.step(action)
            for group, rows in enumerate(env.groups):
                env.send(group, action[rows])
            for _ in env.groups:
                group, step = env.recv()
                assert torch.equal(step.obs, expected.obs[env.groups[group]])
    finally:
        env.close()
        together.close()


@pytest.mark.parametrize(("shape", "result"), [
    ((), (3,)), ((4,), (12,)), ((2, 3), (18,)), ((8, 9), (8, 9, 3)), ((8, 9, 3), (8, 9, 9)), ((2, 8, 9), (8, 9, 6)),
])
def test_vectors_go_side_by_side_and_pictures_get_more_channels(shape, result):
    frames = torch.arange(float(2 * FRAMES * int(np.prod(shape)))).view(2, FRAMES, *shape)
    seen = joined(frames, shape)
    assert seen.shape == (2, *result)
    if len(result) == 3:
        channels = result[2] // FRAMES
        picture = {2: lambda x: x.unsqueeze(-1), 3: lambda x: x if shape[2] <= 4 else x.movedim(0, -1)}[len(shape)]
        for k in range(FRAMES):
            assert torch.equal(seen[1, ..., k * channels : (k + 1) * channels], picture(frames[1, k]))
    else:
        assert torch.equal(seen, frames.reshape(2, -1))


def test_a_dictionary_is_stacked_by_key_but_for_its_action_mask():
    plain, env = LocalVecEnv(DictObs, 3), FrameStackEnv(LocalVecEnv(DictObs, 3), 2)
    first, seen = plain.reset(seed=4), env.reset(seed=4)
    first = {key: x.clone() for key, x in first.items()}
    assert torch.equal(seen["flat"], torch.cat([first["flat"], first["flat"]], -1))
    second, seen = (e.step(torch.ones(3, dtype=torch.int64)).obs for e in (plain, env))
    assert torch.equal(seen["flat"], torch.cat([first["flat"], second["flat"]], -1))
    assert torch.equal(seen["kind"], torch.cat([first["kind"], second["kind"]], -1))
    assert torch.equal(seen["action_mask"], second["action_mask"])
    assert isinstance(env.observation_space, spaces.Dict)
    for key, space in env.observation_space.items():
        assert tuple(seen[key].shape[1:]) == space.shape and space.dtype == np.asarray(seen[key]).dtype, key


@pytest.mark.parametrize("mode", AutoresetMode)
def test_an_episode_begins_without_frames_of_the_one_before_in_every_autoreset_mode(mode):
    """`Counter` counts up from a random number, so that frames of one episode are consecutive."""
    env = FrameStackEnv(GymnasiumVectorEnv(SyncVectorEnv([partial(Counter, truncates=True)] * 3, autoreset_mode=mode)), FRAMES)
    width = env.env.observation_space.shape[0]
    env.reset(seed=0)
    ended = begun = 0
    for _ in range(40):
        step = env.step(torch.zeros(3, dtype=torch.int64))
        done = step.terminated | step.truncated
        for row in range(3):
            for obs, counts in ((step.final_obs, bool(step.active[row])), (step.obs, not done[row])):
                if counts:
                    assert consecutive(obs[row].view(FRAMES, width)), (mode, obs[row])
        ended += int(done.sum())
        begun += int((step.obs.view(3, FRAMES, width)[:, 0] == step.obs.view(3, FRAMES, width)[:, 1]).all(-1).sum())
    assert ended > 3 and begun > 3


def consecutive(frames: Tensor) -> bool:
    """Each frame is that of the next step, or the first of an episode repeated."""
    steps = frames[:, 1].tolist()  # Counter's second number is the step
    return all(b == a + 1 or b == a == 0 for a, b in pairwise(steps))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_resumes_exactly_with_frames_of_before(workers):
    config = run_config({"rollout_steps": 13, "epochs": 2, "normalize_obs": True},
                        env={"id": "CartPole-v1", "count": 4, "workers": workers, "frame_stack": FRAMES})
    envs: list[VecEnv] = []

    def begin(started: bool):
        envs.append(make_env(config.env))
        return learner_over(envs[-1], config, started)

    try:
        whole, first, second = begin(True), begin(True), begin(False)
        metrics = [whole.iterate().metrics for _ in range(4)]
        for _ in range(2):
            first.iterate()
        state = saved(first)
        second.load_state(*state)
        second.start()
        assert [second.iterate().metrics for _ in range(2)] == metrics[2:]
        assert differences(whole, second) == set()
        lost = begin(False)  # the control: without its frames the run goes on differently
        lost.load_state({**state[0], "env": {k: x for k, x in state[0]["env"].items() if "frame_stack" not in k}}, state[1])
        assert not torch.equal(lost.collector.shards[0].obs, first.collector.shards[0].obs)
    finally:
        for env in envs:
            env.close()


class Dropping(VecEnv):
    """An environment of which one row does not come back to where it was saved."""

    num_rows, observation_space, action_space = 2, spaces.Box(-9, 9, (1,)), spaces.Discrete(2)

    def __init__(self):
        self.now = torch.zeros(2, 1)

    def reset(self, seed: int | None = None) -> Obs:
        return self.now.clone()

    def step(self, action: Tensor) -> Step:
        self.now += 1
        never, obs = torch.zeros(2, dtype=torch.bool), self.now.clone()
        return Step(obs, torch.zeros(2), never, never, obs, ~never, {})

    def save_state(self) -> dict[str, Tensor]:
        return {"now": self.now.clone()}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        self.now = torch.stack([state["now"][0], torch.tensor([-5.0])])
        return self.now.clone()


def test_a_row_whose_episode_was_dropped_on_resume_begins_with_its_own_frames():
    env = FrameStackEnv(Dropping(), FRAMES)
    env.reset()
    for _ in range(4):
        env.step(torch.zeros(2))
    again: Any = FrameStackEnv(Dropping(), FRAMES)
    assert again.load_state(env.save_state()).tolist() == [[2.0, 3.0, 4.0], [-5.0, -5.0, -5.0]]


def test_a_state_saved_before_a_rollout_does_not_change_with_it():
    env = FrameStackEnv(LocalVecEnv(CARTPOLE, 2), FRAMES)
    env.reset(seed=0)
    for action in actions(9, 2):
        env.step(action)
    saved_then = {name: x.clone() for name, x in env.save_state().items()}
    kept = env.keep_state()
    for action in actions(9, 2):
        env.step(action)
    assert saved_then.keys() == kept().keys() and all(torch.equal(x, kept()[name]) for name, x in saved_then.items())


def test_an_environment_that_cannot_be_saved_cannot_with_frames_either():
    env = FrameStackEnv(GymnasiumVectorEnv(SyncVectorEnv([CARTPOLE])), 2)
    env.reset(seed=0)
    assert env.save_state() == {}


def test_frames_make_motion_visible():
    """CartPole without velocities cannot be balanced from one frame; two frames show that the pole falls."""
    positions = [{"tests.envs.test_frame_stack:Positions": {}}]
    env = make_env(EnvConfig(id="CartPole-v1", count=2, wrappers=positions, frame_stack=2))
    env.reset(seed=0)
    for _ in range(3):
        obs = env.step(torch.tensor([0, 1])).obs
    moved = obs.view(2, 2, 2).diff(dim=1).squeeze(1)  # [row, (cart, pole)]
    assert moved[0, 0] < 0 < moved[1, 0] and moved[0, 1] > 0 > moved[1, 1]


class Positions(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(-5.0, 5.0, (2,), np.float32)

    def observation(self, observation):
        return observation[[0, 2]]


class WithTask(VecEnv):
    """It has a task and a random stream, for which a listener and a CUDA graph ask."""

    num_rows = 1
    observation_space, action_space = spaces.Box(0.0, 1.0, (1,)), spaces.Discrete(2)
    tasks, generators = ("the task",), (torch.Generator(),)

    def reset(self, seed: int | None = None) -> Obs:
        return torch.zeros(1, 1)

    def step(self, action: Tensor) -> Step:
        raise NotImplementedError


def test_tasks_and_random_streams_are_reached_through_the_stack():
    assert FrameStackEnv(WithTask(), FRAMES).tasks == ("the task",)
    assert FrameStackEnv(WithTask(), FRAMES).generators == WithTask.generators
