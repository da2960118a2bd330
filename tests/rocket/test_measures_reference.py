"""Every measure says the same as plain Python does car by car, in random games with mechanics in them, whichever side a car
plays on; its memory is saved; and it neither reads a tensor on the host nor changes the game."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.rocket import measured_games as hand_made
from tests.rocket.measure_reference import REFERENCE, Car
from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.reward_states import scene
from wavedash.rocket import names
from wavedash.rocket.parts import Measure
from wavedash.rocket.state import GameState

ARENAS, STEPS, TICKS = 24, 120, 8


def moments(name: str) -> list[GameState]:
    """States of one arena that matter to a measure, with hits and without, and some that do not."""
    hit, rival = hand_made.touch(), hand_made.touch(1)
    own = {
        "turtle": [*[hand_made.ROOF] * 12, hand_made.AIR, hand_made.still(hand_made.on_its_roof, hand_made.demolished())],
        "wall": [hand_made.still(hand_made.ball(place, velocity), *hits) for place in (hand_made.AT_WALL, (3800.0, 0.0, 800.0))
                 for velocity in (hand_made.TO_GOAL, hand_made.ALONG, hand_made.BACK) for hits in ((), (), (hit,), (rival,))],
        "dribble": [*[hand_made.carried(hit)] * 6, *[hand_made.carried()] * 10, hand_made.carried(height=200.0),
                    hand_made.carried(height=260.0), hand_made.carried(aside=115.0), hand_made.LOST],
        "air_dribble": [*[hand_made.aloft(hit)] * 2, *[hand_made.aloft()] * 3, hand_made.aloft(rival),
                        hand_made.aloft(height=200.0)],
        "flip_reset": [*[hand_made.above_ball(hand_made.used)] * 2, hand_made.above_ball(hit), hand_made.above_ball(),
                       *(hand_made.above_ball(hand_made.flipping(ticks), *hits) for ticks in (2, 6) for hits in ((), (hit,)))],
        "jump_challenge": [hand_made.duel(*hits, velocity=velocity) for hits in ((), (), (hit,), (rival,), (hit, rival))
                           for velocity in (hand_made.UP_FIELD, hand_made.DOWN_FIELD)],
    }[name]
    return [*own, *own, *own, hand_made.WHEELS]


def games(name: str, seed: int, steps: int = STEPS) -> tuple[list[GameState], Tensor]:
    """Random games of such moments, a little different each time, and where episodes begin, [T, E]. A moment lasts for some
    steps, in every tenth arena the states are random, and every second arena is seen from the other side."""
    dice = torch.Generator().manual_seed(seed)
    pool = moments(name)
    memory = torch.cat([state.memory for state in pool])
    now = torch.randint(len(pool), (ARENAS,), generator=dice)
    states = []
    for step in range(steps):
        another = torch.rand(ARENAS, generator=dice) < torch.linspace(0.05, 0.6, ARENAS)
        now = torch.where(another, torch.randint(len(pool), (ARENAS,), generator=dice), now)
        state = GameState.over(memory[now].clone(), 2)
        for body in (state.ball, state.cars):
            body.position.add_(10 * torch.randn(body.position.shape, generator=dice))
        state.ball.velocity.add_(100 * torch.randn(ARENAS, 3, generator=dice))
        random = scene(ARENAS, 1, 1, seed * STEPS + step)
        state.copy_(random, torch.arange(ARENAS) % 10 == 9)
        state.game.goal.copy_(torch.where(torch.rand(ARENAS, generator=dice) < 0.02, 0, -1))
        state.copy_(state.mirrored(), torch.arange(ARENAS) % 2 == 1)
        state.game.tick.fill_(100 + TICKS * step)
        ago = 1 + torch.randint(TICKS, (ARENAS, 2), generator=dice)
        state.cars.ball_hit_tick.copy_(torch.where(state.events.touches > 0, 100 + TICKS * step - ago, -1))
        states.append(state)
    return states, torch.rand(steps, ARENAS, generator=dice) < 0.01


def bound(name: str, states: list[GameState]) -> Measure:
    measure: Measure = names.make("measure", name)
    measure.bind(states[0])
    measure.begin(states[0], torch.ones(states[0].arenas, dtype=torch.bool))
    return measure


def outcomes(measure: Measure, states: list[GameState], begins: Tensor) -> Tensor:
    """[T - 1, E, C]: -1 where nothing was decided, 0 for a failure, 1 for a success."""
    said = []
    for previous, state, begin in zip(states, states[1:], begins[1:], strict=False):
        outcome = measure(state, previous, state.events)
        said.append(torch.where(outcome.over, outcome.success.int(), -1))
        measure.begin(state, begin)
    return torch.stack(said)


def expected(name: str, states: list[GameState], begins: Tensor) -> Tensor:
    said = torch.full((STEPS - 1, ARENAS, 2), -1, dtype=torch.int32)
    for arena in range(ARENAS):
        cars = [[Car(state, arena, seat) for seat in range(2)] for state in states]
        for seat in range(2):
            reference = REFERENCE[name]()
            reference.begin(cars[0][seat])
            for step in range(1, STEPS):
                decided = reference.step(cars[step][seat], cars[step - 1][seat], cars[step][1 - seat])
                if decided is not None:
                    said[step - 1, arena, seat] = int(decided)
                if begins[step, arena]:
                    reference.begin(cars[step][seat])
    return said


@pytest.mark.parametrize("name", names.shipped("measure"))
def test_every_measure_says_what_plain_python_says(name: str) -> None:
    states, begins = games(name, seed=1)
    measured = outcomes(bound(name, states), states, begins)
    present = torch.stack([state.cars.present for state in states[1:]])
    reference = expected(name, states, begins)
    differ = ((measured != reference) & present).nonzero()
    assert not len(differ), f"first at step, arena, seat {differ[0].tolist()}"
    assert ((reference == 1) & present).sum() >= 5 and ((reference == 0) & present).sum() >= 5, "the games show both"


@pytest.mark.parametrize("name", names.shipped("measure"))
def test_a_measure_treats_sides_alike_and_goes_on_where_it_was_saved(name: str) -> None:
    states, begins = games(name, seed=2)
    memory = [state.memory.clone() for state in states]
    whole = bound(name, states)
    said = outcomes(whole, states, begins)
    assert all(torch.equal(state.memory, before) for state, before in zip(states, memory, strict=True)), "it only looks"

    other_side = [state.mirrored() for state in states]
    assert torch.equal(outcomes(bound(name, other_side), other_side, begins), said)

    some = torch.randperm(ARENAS, generator=torch.Generator().manual_seed(0))[:5]
    alone = [GameState.over(state.memory[some].contiguous(), 2) for state in states]
    assert torch.equal(outcomes(bound(name, alone), alone, begins[:, some]), said[:, some]), "arenas know nothing of each other"

    half = STEPS // 2
    first = bound(name, states)
    early = outcomes(first, states[:half + 1], begins[:half + 1])
    resumed = names.make("measure", name)
    resumed.bind(states[0])
    resumed.load_state_dict(first.state_dict())
    assert torch.equal(torch.cat([early, outcomes(resumed, states[half:], begins[half:])]), said)
    forgetful = outcomes(bound(name, states[half:]), states[half:], begins[half:])
    assert not torch.equal(forgetful, said[half:]), "what was saved matters"
    assert all(torch.equal(x, y) for x, y in zip(resumed.state_dict().values(), whole.state_dict().values(), strict=True))


def test_measures_cause_no_host_sync() -> None:
    for name in names.shipped("measure"):
        states, begins = games(name, seed=3, steps=3)
        measure = bound(name, states)
        with NoHostSync():
            for previous, state, begin in zip(states, states[1:], begins[1:], strict=False):
                measure(state, previous, state.events)
                measure.begin(state, begin)
