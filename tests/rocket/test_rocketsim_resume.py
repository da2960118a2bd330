"""Saved games of RocketSim go on bit for bit, and the log says that one does not only where that is so."""
from __future__ import annotations

import random
import sys

import pytest
import torch

from tests.rocket.test_rocketsim import assert_same, chase, make, scene  # noqa: F401 (make is a fixture)
from wavedash.rocket.rocketsim import car_order
from wavedash.rocket.rocketsim.car_order import add_cars, enlarge_car_set, share_a_bucket
from wavedash.rocket.rocketsim.package import rocketsim

WARNING = "games differ when they are played again"


def play(sims, steps):
    """Plays the same steps in all simulators; the first one chooses the controls."""
    for step in steps:
        controls = chase(sims[0], step)
        for sim in sims:
            sim.step(controls, ticks=8, delay=step % 3)


def used(sim):
    """A simulator that has played other games."""
    play([sim], range(500, 510))
    return sim


@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (3, 3)])
def test_games_go_on_bit_for_bit_whenever_they_have_begun(make, blue, orange, caplog):  # noqa: F811
    """Arena 0 is new, arena 1 was placed during the game, arena 2 right before it is saved, arena 3 rests, arena 4 has rested.
    Arenas that were placed differ from where their last games would lead, which is no reason for a warning."""
    sim, other, control = (make(5, blue, orange) for _ in range(3))
    numbers = torch.arange(5)
    play([sim], range(10))
    sim.state.ball.position[1] = torch.tensor([0.0, 0.0, 900.0])
    sim.place(numbers == 1)
    sim.rest(numbers >= 3)
    play([sim], range(10, 20))
    sim.rest(numbers == 3)
    sim.state.ball.position[2] = torch.tensor([500.0, 0.0, 900.0])
    sim.place(numbers == 2)
    saved = {name: x.clone() for name, x in sim.save().items()}
    used(other).load(saved)
    assert WARNING not in caplog.text
    assert_same(sim.state, other.state)
    other.rest(numbers == 3)
    play([sim, other], range(20, 30))
    assert_same(sim.state, other.state)
    saved["controls"][:, 0] = 0.0
    used(control).load(saved)
    assert f"1 of 5 {WARNING}" in caplog.text, "the control: a game that is not the saved one is noticed"


@pytest.mark.parametrize("steps", [0, 10])
def test_new_arenas_go_on_bit_for_bit(make, steps, caplog):  # noqa: F811
    """They begin with a kick-off without having been placed."""
    sim, other = make(2, 2, 2), make(2, 2, 2)
    play([sim], range(steps))
    used(other).load(sim.save())
    play([sim, other], range(steps, steps + 10))
    assert_same(sim.state, other.state)
    assert WARNING not in caplog.text


def test_a_checkpoint_from_before_beginnings_were_saved_goes_on_too(make):  # noqa: F811
    sim, other = make(2, 1, 1), make(2, 1, 1)
    scene(sim, {"position": (0.0, 0.0, 900.0)}, {})
    play([sim], range(5))
    scene(sim, {"position": (0.0, 0.0, 900.0)}, {})
    saved = sim.save()
    del saved["begins"]
    other.load(saved)
    play([sim, other], range(5, 10))
    assert_same(sim.state, other.state)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere sets of C++ have other buckets")
def test_rocketsim_iterates_over_cars_in_the_order_in_which_they_were_added():
    """RocketSim's own kick-off shows the order: it gives each car the next spot. Cars of another arena come and go, so that
    addresses vary. The control, cars that are added one by one, is repeated until addresses have made a difference."""
    rs, dice = rocketsim(), random.Random(0)
    arena, other = rs.Arena(rs.GameMode.SOCCAR), rs.Arena(rs.GameMode.THE_VOID)
    enlarge_car_set(arena)
    kinds, others = [(0, rs.CarConfig(0))] * 5, [other.add_car(0)]

    def spots(cars):
        arena.reset_kickoff(1)
        found = tuple(car.get_state().pos.as_tuple() for car in cars)
        for car in reversed(cars):
            arena.remove_car(car)
        if len(others) < dice.randrange(100):
            others.append(other.add_car(0))
        else:
            other.remove_car(others.pop(dice.randrange(len(others))))
        return found

    trials, alone, shared = 0, set(), 0
    while len(alone) < 3 and trials < 20_000:
        trials += 1
        cars = [arena.add_car(*kind) for kind in kinds]
        shared += share_a_bucket(cars)
        alone.add(spots(cars))
    assert len(alone) >= 3 and shared >= 2
    assert len({spots(add_cars(arena, kinds)) for _ in range(trials)}) == 1


def test_cars_that_were_added_again_play_the_same_games(make, monkeypatch):  # noqa: F811
    """Most cars are refused once or several times, as if they shared a bucket. They lie on top of each other, where the order
    in which their contacts are solved shows."""
    expected, ours, dice, refused = make(6, 3, 3), make(6, 3, 3), random.Random(0), []

    def share_or_chance(cars):
        refused.append(share_a_bucket(cars) or dice.random() < 0.7)
        return refused[-1]

    for sim in (expected, ours):
        if sim is ours:
            monkeypatch.setattr(car_order, "share_a_bucket", share_or_chance)
        play([sim], range(10))
        scene(sim, {"position": (0.0, 2000.0, 300.0)}, {
            seat: {"position": (40.0 * seat, 0.0, 20.0 + 45.0 * seat), "velocity": (500.0, 100.0 * seat, 0.0)}
            for seat in range(6)})
        play([sim], range(10, 30))
    assert sum(refused) > 6
    assert not any(share_a_bucket(arena._all_cars) for sim in (expected, ours) for arena in sim._batch._arenas)
    if sys.platform == "linux":
        assert_same(ours.state, expected.state)
