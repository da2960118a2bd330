"""The rewards for mechanics notice in steps of 8 ticks what happens in RocketSim tick by tick."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from wavedash.rocket.geometry import rotation
from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards import FlipReset, Recovery, Wavedash
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.state import CONTROLS, GameState

pytest.importorskip("RocketSim")
TICKS = 8
THROTTLE, PITCH, JUMP = (CONTROLS.index(name) for name in ("throttle", "pitch", "jump"))


def watch(
    sim: RocketSimSimulator, reward: Reward, drive: Callable[[float, GameState, Tensor], None], steps: int,
    happens: Callable[[GameState, GameState], Tensor],
) -> tuple[Tensor, Tensor]:
    """Plays from the written state. Returns [E] the sum of the reward, and how often it happened, counted every tick."""
    state = sim.state
    everywhere = torch.ones(state.arenas, dtype=torch.bool)
    sim.place(everywhere)
    reward.bind(state)
    reward.begin(state, everywhere)
    controls = torch.zeros(state.arenas, state.seats, len(CONTROLS))
    paid, happened = torch.zeros(state.arenas), torch.zeros(state.arenas)
    for step in range(steps):
        controls.zero_()
        drive(step * TICKS / 120, state, controls)
        before = state.clone()
        for _ in range(TICKS):
            tick_before = state.clone()
            sim.step(controls, 1)
            happened += happens(state, tick_before)[:, 0]
        paid += reward(state, before, state.events)[:, 0]
    return paid, happened


@pytest.fixture(scope="module")
def played() -> Iterator[tuple[RocketSimSimulator, GameState]]:
    """Building arenas takes longer than playing in them, so they are built once."""
    sim = RocketSimSimulator(16, 1, 0)
    yield sim, sim.state.clone()
    sim.close()


@pytest.fixture
def sim(played: tuple[RocketSimSimulator, GameState]) -> RocketSimSimulator:
    """16 arenas with one car each and the ball far away."""
    sim, kickoff = played
    sim.state.copy_(kickoff)
    sim.state.ball.position.copy_(torch.tensor([3000.0, 4000.0, 93.15]))
    return sim


def test_wavedashes_are_paid_and_other_landings_are_not(sim: RocketSimSimulator) -> None:
    """The car jumps, lifts its nose for a while, and flips forward at some height on the way down."""
    heights, lifts = torch.tensor([30.0, 50.0, 70.0, 110.0]), torch.tensor([0.05, 0.15, 0.2, 0.3])
    height, lift = torch.cartesian_prod(heights, lifts).unbind(-1)
    cars = sim.state.cars
    cars.position.copy_(torch.tensor([0.0, -3000.0, 17.0]))
    cars.rotation.copy_(rotation(torch.full((16, 1), math.pi / 2)))
    cars.velocity.copy_(torch.tensor([0.0, 500.0, 0.0]))
    flipped = torch.zeros(16, dtype=torch.bool)

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        nonlocal flipped
        controls[..., THROTTLE] = 1
        controls[..., JUMP] = float(time < 0.05)
        controls[:, 0, PITCH] = 0.5 * ((time > 0.05) & (time < 0.05 + lift))
        flips = ~flipped & (state.cars.position[:, 0, 2] < height) & (state.cars.velocity[:, 0, 2] < 0) & (time > 0.35)
        controls[flips, 0, JUMP], controls[flips, 0, PITCH] = 1, -1
        flipped = flipped | flips

    def happens(now: GameState, before: GameState) -> Tensor:
        return now.cars.on_ground & before.cars.is_flipping & (before.cars.flip_time < 0.3)

    paid, happened = watch(sim, Wavedash(), drive, 26, happens)
    assert 6 <= happened.count_nonzero() < 16
    assert ((paid > 0.5) == (happened > 0)).all()
    assert (paid[happened == 0] == 0).all()


def test_flip_resets_are_paid(sim: RocketSimSimulator) -> None:
    """A car without a flip meets a resting ball with its wheels: from above, or upside down from below; or with its roof."""
    gap, speed, roll, way = torch.cartesian_prod(
        torch.tensor([150.0, 230.0]), torch.tensor([400.0, 1500.0]), torch.tensor([0.0, math.pi]), torch.tensor([-1.0, 1.0]),
    ).unbind(-1)
    ball, cars = sim.state.ball, sim.state.cars
    ball.position.copy_(torch.tensor([0.0, 0.0, 1000.0]))
    cars.position[:, 0] = torch.stack([0 * gap, 0 * gap, 1000 + way * gap], -1)
    cars.velocity[:, 0, 2] = -way * speed
    cars.rotation.copy_(rotation(torch.zeros(16, 1), 0.0, roll.unsqueeze(-1)))
    cars.on_ground.fill_(False)
    cars.wheel_contact.fill_(False)
    cars.has_jumped.fill_(True)
    cars.has_flipped.fill_(True)
    cars.air_time.fill_(2.0)
    cars.air_time_since_jump.fill_(1.8)
    cars.flip_time.fill_(1.0)

    def happens(now: GameState, before: GameState) -> Tensor:
        return before.cars.has_flipped & ~now.cars.has_flipped & (now.cars.position[..., 2] > 300)

    paid, happened = watch(sim, FlipReset(), lambda time, state, controls: None, 8, happens)
    assert 6 <= happened.count_nonzero() < 16
    assert (paid == happened).all()


def test_getting_off_the_roof_is_paid(sim: RocketSimSimulator) -> None:
    """Cars lie on their roofs; every second one jumps."""
    cars = sim.state.cars
    cars.position.copy_(torch.tensor([0.0, 0.0, 60.0]))
    cars.rotation.copy_(rotation(torch.zeros(16, 1), 0.0, math.pi))
    cars.on_ground.fill_(False)
    cars.wheel_contact.fill_(False)

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        controls[::2, 0, JUMP] = float(1.0 < time < 1.1)

    def happens(now: GameState, before: GameState) -> Tensor:
        return now.cars.on_ground & ~before.cars.on_ground

    paid, happened = watch(sim, Recovery(), drive, 40, happens)
    assert happened.tolist() == [1, 0] * 8
    assert paid.tolist() == [0, -1] * 8  # they fell on their roofs first
