"""Everything around physics runs without a host sync, as a CUDA graph needs it: found on a CPU, by the operations that torch is
asked for."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from tests.rocket.no_host_sync import NoHostSync
from tests.walk.robots import make_env
from tests.walk.test_exact_resume import EVERYTHING
from wavedash.walk.endings import OffTile
from wavedash.walk.env import WalkEnv
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.names import PARTS
from wavedash.walk.sensors.depth import DepthImages


def as_on_a_gpu(**options: Any) -> WalkEnv:
    """An environment that does all work in every step. Physics may sync: on a GPU another simulator computes it."""
    env = make_env(6, **{**EVERYTHING, **options})
    env.on_host = False
    return env


@pytest.fixture(autouse=True)
def _physics_may_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def freed(method: Any) -> Any:
        def call(self: Any, *args: Tensor) -> Any:
            with _disable_current_modes():
                return method(self, *args)

        return call

    for name in ("step", "place", "push"):
        monkeypatch.setattr(MujocoSimulator, name, freed(getattr(MujocoSimulator, name)))
    monkeypatch.setattr(DepthImages, "_list_wanted", freed(DepthImages._list_wanted))  # called on a CPU only


def run(env: WalkEnv, steps: int = 8) -> int:
    ended = 0
    for _ in range(steps):
        action = torch.zeros(6, 12)
        with NoHostSync():
            step = env.step(action)
        ended += int((step.terminated | step.truncated).sum())
        assert step.final_obs is not step.obs
    return ended


def test_a_step_with_everything_in_it_needs_no_host_sync() -> None:
    env = as_on_a_gpu(endings={"fallen": {}, "off_tile": {}, "time_out": {"seconds": 0.06}})
    env.reset(0)
    assert run(env) >= 6, "episodes end and begin"


def test_every_reward_needs_no_host_sync() -> None:
    env = as_on_a_gpu(rewards=dict.fromkeys(PARTS.shipped("reward"), 1.0), reward_floor=0)
    env.reset(0)
    run(env, 2)


def test_a_host_sync_in_a_part_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    env = as_on_a_gpu()
    env.reset(0)
    call = OffTile.__call__
    monkeypatch.setattr(OffTile, "__call__", lambda self, state, *args: call(self, state, *args) if state.yaw.sum() else None)
    with pytest.raises(AssertionError, match="reads a tensor on the host"):
        run(env)


def test_work_that_nobody_needs_is_skipped_on_the_host_without_a_difference() -> None:
    """Where nothing random is drawn, both ways give the same bits."""
    quiet = {"randomize": {}, "observation": {"proprioception": {}, "commands": {}, "scandots": {}}, "curriculum": False,
             "starts": {"stand": {"turn": 0.0, "shift": 0.0, "joints": 0.0, "speed": 0.0}},
             "commands": {"ahead": {"turn": 0.0}}}
    on_host, everything = make_env(6, **{**EVERYTHING, **quiet}), as_on_a_gpu(**quiet)
    for env in (on_host, everything):
        env.reset(0)
    everything.task.levels.level.copy_(on_host.task.levels.level)
    generator = torch.Generator().manual_seed(0)
    for _ in range(80):
        action = 2 * torch.rand(6, 12, generator=generator) - 1
        one, other = on_host.step(action), everything.step(action)
        assert torch.equal(one.reward, other.reward) and torch.equal(one.terminated, other.terminated)
        for obs, its in ((one.obs, other.obs), (one.final_obs, other.final_obs)):
            assert isinstance(obs, dict) and isinstance(its, dict)
            assert all(torch.equal(x, its[key]) for key, x in obs.items())
