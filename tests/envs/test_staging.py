"""Staging: a device receives what the environments wrote, and they what the policy chose, however late the copies run."""
from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Tensor

from tests.envs.toy_envs import Acts, Counter, DictObs, Succeeds, Teams
from tests.envs.traces import random_actions, record, same
from wavedash.envs.gymnasium.vector import GymnasiumVectorEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.obs import named_tensors
from wavedash.envs.staging import Staging
from wavedash.envs.vec_env import Step, VecEnv

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CPU = torch.device("cpu")
MILLISECOND = 2_000_000
"""Roughly so many cycles of a GPU."""


def fields(seed: int) -> list[np.ndarray]:
    """Arrays of every type, and of sizes that leave gaps."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-100, 100, (3, 5, 7))
    return [numbers.astype(np.float32), numbers[0, 0, :3] > 0, numbers[..., 0].astype(np.uint8), numbers[0].astype(np.int64),
            numbers[0, 0].astype(np.int8), numbers[1].astype(np.float64), numbers[0, 0, :0]]


def equal(tensors: list[Tensor], arrays: list[np.ndarray]) -> bool:
    return all(t.cpu().numpy().dtype == a.dtype and np.array_equal(t.cpu().numpy(), a)
               for t, a in zip(tensors, arrays, strict=True))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_fields_of_every_type_arrive_as_copies_of_their_own(device):
    staging = Staging(torch.device(device), np.zeros(4, np.float32), fields(0))
    sent = [staging.send(fields(seed)) for seed in range(5)]
    assert all(equal(tensors, fields(seed)) for seed, tensors in enumerate(sent))
    assert equal(staging.send(fields(7)[:3]), fields(7)[:3]), "the first fields alone"
    action = staging.receive(torch.arange(4, dtype=torch.float64, device=device) / 3)
    assert action.dtype == np.float32 and np.array_equal(action, (np.arange(4) / 3).astype(np.float32))


def staged(env: Any) -> VecEnv:
    """The environment stays on the CPU, but its data takes the path that leads to a device."""
    if isinstance(env, GymnasiumVectorEnv):
        env._staging = env._make_staging()
    else:
        for rows in (env._rows, *env._group_rows):
            rows.__dict__["_staging"] = Staging(CPU, rows._action.numpy(), rows._fields[True])
    return env


def vectorised(mode: AutoresetMode, make=Counter, device="cpu") -> GymnasiumVectorEnv:
    return GymnasiumVectorEnv(SyncVectorEnv([make] * 4, autoreset_mode=mode), device)


class Told(Counter):
    """It observes the count as a dictionary."""

    observation_space = gymnasium.spaces.Dict({"count": Counter.observation_space})

    def observe(self):
        return {"count": super().observe()}


ENVS = {
    "local": partial(LocalVecEnv, Counter, 4), "local dict": partial(LocalVecEnv, DictObs, 4),
    "local teams": partial(LocalVecEnv, Teams, 2), "local success": partial(LocalVecEnv, Succeeds, 4),
    "continuous": partial(LocalVecEnv, partial(Acts, gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)), 4),
    **{f"vector {mode.name}": partial(vectorised, mode) for mode in AutoresetMode},
    "vector dict": partial(vectorised, AutoresetMode.SAME_STEP, Told),
}


@pytest.mark.parametrize("name", ENVS)
def test_staged_environments_return_the_same_as_views_of_their_arrays(name):
    plain, other = ENVS[name](), staged(ENVS[name]())
    first, second = (named_tensors(env.reset(seed=1)) for env in (plain, other))
    assert all(torch.equal(first[key], second[key]) for key in first)
    actions = random_actions(plain, 40, 2)
    assert same(record(plain, actions), record(other, actions))
    kept = [other.step(action) for action in actions]
    assert same([flat(step) for step in kept], record(plain, actions)), "later steps leave earlier ones alone"
    assert any(step.final_obs is not step.obs for step in kept) and any(step.final_obs is step.obs for step in kept)
    assert kept[-1].metrics.keys() == plain.step(actions[0]).metrics.keys()


def flat(step: Step) -> dict[str, Tensor]:
    every = {**named_tensors(step.obs, "obs"), **named_tensors(step.final_obs, "final"), **step._asdict()}
    return {name: x.cpu() for name, x in every.items() if isinstance(x, Tensor)}


# --- on a GPU --------------------------------------------------------------------------------------------------------


def played_late(env: VecEnv, actions: list[Tensor]) -> list[dict[str, Tensor]]:
    """Steps with actions that are on the host already, while the device is busy: nothing holds the environments up, so they
    would overwrite what is still to be copied if they could."""
    steps = []
    for t, action in enumerate(actions):
        torch.cuda._sleep(t % 4 * 3 * MILLISECOND)
        steps.append(env.step(action))
    return [flat(step) for step in steps]


@needs_cuda
@pytest.mark.parametrize("name", ENVS)
def test_a_buffer_is_not_written_over_while_its_copy_is_under_way(name):
    plain, there = ENVS[name](), ENVS[name](device="cuda")
    plain.reset(seed=1), there.reset(seed=1)
    actions = random_actions(plain, 40, 2)
    assert same(played_late(there, actions), record(plain, actions))


class Never:
    """An event that is never waited for."""

    def record(self, stream: torch.cuda.Stream) -> None:
        pass

    def synchronize(self) -> None:
        pass


@needs_cuda
def test_without_waiting_a_buffer_would_be_written_over(monkeypatch):
    """This is the control of the test above."""
    plain, there = LocalVecEnv(Counter, 4), LocalVecEnv(Counter, 4, device="cuda")
    plain.reset(seed=1), there.reset(seed=1)
    there._rows._staging._sent = Never()
    actions = random_actions(plain, 40, 2)
    assert not same(played_late(there, actions), record(plain, actions))


def played_by_the_device(env: VecEnv, actions: list[Tensor]) -> list[dict[str, Tensor]]:
    """The device has yet to compute the actions when they are handed over."""
    coming, action, steps = torch.stack(actions).cuda(), torch.zeros_like(actions[0], device="cuda"), []
    torch.cuda.synchronize()
    for t in range(len(actions)):
        torch.cuda._sleep(t % 4 * 3 * MILLISECOND)
        action.copy_(coming[t])
        steps.append(env.step(action))
    return [flat(step) for step in steps]


@needs_cuda
@pytest.mark.parametrize("name", ENVS)
def test_an_action_is_waited_for(name):
    plain, there = ENVS[name](), ENVS[name](device="cuda")
    plain.reset(seed=1), there.reset(seed=1)
    actions = random_actions(plain, 40, 2)
    assert same(played_by_the_device(there, actions), record(plain, actions))


@needs_cuda
def test_an_action_that_is_not_waited_for_would_be_seen():
    """This is the control of the test above."""
    plain, there = LocalVecEnv(Counter, 4), LocalVecEnv(Counter, 4, device="cuda")
    plain.reset(seed=1), there.reset(seed=1)
    assert there._rows._staging is not None
    there._rows._staging._arrived = Never()
    actions = random_actions(plain, 40, 2)
    assert not same(played_by_the_device(there, actions), record(plain, actions))


@needs_cuda
@pytest.mark.parametrize("make", [Counter, DictObs, partial(gymnasium.make, "CartPole-v1")])
def test_shards_of_a_pool_are_staged_on_their_own(pool, make):
    """The shards take 40 steps at different times; together they equal one process."""
    here, there = LocalVecEnv(make, 6), pool(make, 6, 3, groups=2, device="cuda")
    here.reset(seed=1), there.reset(seed=1)
    actions = random_actions(here, 40, 2)
    coming, steps = torch.stack(actions).cuda(), [[], []]
    ready = [0, 1]
    while any(len(taken) < 40 for taken in steps):
        for group in ready:
            torch.cuda._sleep(len(steps[group]) % 3 * MILLISECOND)
            there.send(group, coming[len(steps[group]), there.groups[group]].clone())
        group, step = there.recv()
        steps[group].append(step)
        ready = [group] if len(steps[group]) < 40 else []
    halves = [[flat(step) for step in taken] for taken in steps]
    for first, second, expected in zip(*halves, record(here, actions), strict=True):
        # If no episode of a shard ended, its final observation is its observation, where the whole may differ.
        for name in ("reward", "terminated", "truncated", "active", *(key for key in first if key.startswith("obs"))):
            assert torch.equal(torch.cat([first[name], second[name]]), expected[name]), name
        ended = expected["terminated"] | expected["truncated"]
        for name in (key for key in first if key.startswith("final")):
            assert torch.equal(torch.cat([first[name], second[name]])[ended], expected[name][ended]), name
