"""The memory layout of a state, and whole games in which each stage of a tick is a launch, as on a GPU."""
from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from tests.rocket.test_env import ends_after, random_actions
from wavedash.config_file import load_config
from wavedash.envs.errors import EnvError
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.observations.columns import Columns
from wavedash.rocket.parts import Start
from wavedash.rocket.shard import ROLLOUTS
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.state import PIECE, GameState
from wavedash.rocket.task import Task

ARENAS, BLUE, ORANGE = 40, 2, 2
SEATS = BLUE + ORANGE


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal bit for bit, NaN included."""
    if one.dtype == torch.float32:
        one, other = (x.contiguous().view(torch.int32) for x in (one, other))
    return torch.equal(one, other)


# --- the state -------------------------------------------------------------------------------------------------------


def test_a_field_lies_where_its_bytes_are():
    state = random_state(ARENAS, BLUE, ORANGE, 0)
    memory = state.memory.numpy().view(np.uint8)
    for part, name, dtype, shape, offset, stride in GameState.layout(SEATS):
        kind = np.dtype(str(dtype).removeprefix("torch."))
        seen = getattr(getattr(state, part), name)
        for e, seat in product(range(ARENAS), range(SEATS if stride else 1)):
            first = offset + seat * stride
            there = memory[e, first : first + prod(shape) * kind.itemsize].view(kind).reshape(shape)
            assert np.array_equal((seen[e, seat] if stride else seen[e]).numpy(), there, equal_nan=True), (part, name, e, seat)


@pytest.mark.parametrize("seats", range(1, 9))
def test_parts_are_aligned_for_loads_of_a_gpu(seats):
    first = {}
    for part, _, _, _, offset, stride in GameState.layout(seats):
        first.setdefault(part, (offset, stride))
    assert all(offset % PIECE == 0 and stride % PIECE == 0 for offset, stride in first.values())
    assert GameState.record_bytes(seats) % PIECE == 0


def test_columns_are_the_fields():
    state = random_state(ARENAS, BLUE, ORANGE, 0)
    moves = Columns(state, "ball", "position", "velocity")(state)
    assert torch.equal(moves, torch.cat([state.ball.position, state.ball.rotation.flatten(1), state.ball.velocity], -1))
    assert torch.equal(Columns(state, "cars", "boost", "handbrake")(state)[..., 1], state.cars.boost_time)
    flags = Columns(state, "cars", "wheel_contact", "present")(state)
    wheels = torch.cat([state.cars.wheel_contact, state.cars.present.unsqueeze(-1)], -1)
    assert flags.shape == (ARENAS, SEATS, 2, 4) and torch.equal(flags.flatten(2)[..., :5], wheels)


# --- whole games -----------------------------------------------------------------------------------------------------

PAID = "env.rocket.rewards={goal: 10, touch: 1, touch_height: 1, in_air: 0.5, save_boost: 1, boost_pickup: 1, demo: 1}"
"""Rewards without square roots and starts without sines, so that both are equal to the bit."""
STARTS = "env.rocket.starts={kickoff: 1, random: 2, turtle: 1, 'tests.rocket.test_layouts:OnTheRoof': 2}"
TASKS = {
    "advanced_obs_plus": ("env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}", PAID),
    "default_obs": ("env.rocket.observation=default_obs", "env.rocket.action={lookup_table: {sticky: 2}}", PAID),
}


class OnTheRoof(Start):
    """A kick-off, but with the ball on the first car, so that something happens."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.position.copy_(state.cars.position[:, 0] + torch.tensor([0.0, 0.0, 140.0]))


def env_of(by_stage: bool, *overrides: str, arenas: int = 100) -> RocketEnv:
    rocket = load_config("rocket-1v1", [ends_after(15), STARTS, *overrides]).env.rocket
    return RocketEnv([WarpSimulator(arenas, 1, 1, by_stage=by_stage)], lambda: Task.configured(rocket))


def numbers_of(env: RocketEnv, step) -> dict[str, Tensor]:
    """Everything that a step returns, and the states after it."""
    arenas = env._shards[0]
    seen = {name: getattr(step, name) for name in ("reward", "terminated", "truncated", "active")}
    seen |= {f"obs.{name}": x for name, x in step.obs.items()} | {f"last.{name}": x for name, x in step.final_obs.items()}
    seen |= {f"state.{name}": getattr(arenas, name).memory for name in ("state", "previous", "fresh")} | {"used": arenas.used}
    return {name: x.clone() for name, x in (seen | step.metrics).items()}


def unequal(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name, x in one.items() if not same(x, other[name])]


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", [True, False], ids=["with host syncs", "without"])
@pytest.mark.parametrize("task", TASKS)
def test_an_environment_that_launches_stage_by_stage_is_the_same_to_the_bit(task, synchronous):
    """Without `synchronous`, arenas step without a host sync, as on a GPU."""
    env, staged = (env_of(by_stage, *TASKS[task]) for by_stage in (False, True))
    staged._shards[0].on_host = synchronous
    assert all(torch.equal(x, y) for x, y in zip(env.reset(1).values(), staged.reset(1).values(), strict=True))
    ended, touched = 0, 0
    for t, action in enumerate(random_actions(env, 90)):
        expected = env.step(action)
        if not synchronous:
            with NoHostSync():
                step = staged.step(action)
        else:
            step = staged.step(action)
        assert unequal(numbers_of(staged, step), numbers_of(env, expected)) == [], t
        ended += int((expected.terminated | expected.truncated).sum())
        touched += int((expected.metrics["per_minute/touches"] > 0).sum())
    assert ended > 100 and touched > 20
    before = staged._shards[0].fresh.memory.clone()
    for _ in range(ROLLOUTS + 1):
        staged.prepare()
    assert torch.equal(staged._shards[0].fresh.memory, before) == synchronous


@pytest.mark.parametrize("saves_by_stage", [False, True])
def test_a_saved_environment_goes_on_stage_by_stage_or_whole(saves_by_stage):
    task = TASKS["advanced_obs_plus"]
    env, other = env_of(saves_by_stage, *task), env_of(not saves_by_stage, *task)
    env.reset(2)
    actions = random_actions(env, 50)
    for action in actions[:20]:
        env.step(action)
    other.load_state(env.save_state())
    for action in actions[20:]:
        assert unequal(numbers_of(other, other.step(action)), numbers_of(env, env.step(action))) == []
    assert torch.equal(env.save_state()["0.simulator.records"], other.save_state()["0.simulator.records"])


@pytest.mark.parametrize("by_stage", [False, True])
def test_records_in_bytes_are_refused(by_stage):
    env = env_of(by_stage)
    env.reset(0)
    saved = env.save_state()
    for name in ("0.fresh", "0.simulator.records"):
        with pytest.raises(EnvError, match=r"set env\."):
            env.load_state({**saved, name: saved[name].view(torch.uint8)})
