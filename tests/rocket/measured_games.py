"""Games for the tests of measures, written state by state, and what a measure says about them."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from tests.rocket.reward_states import game
from wavedash.rocket.parts import Measure
from wavedash.rocket.state import GameState

TICKS = 8
UPSIDE_DOWN = torch.diag(torch.tensor([1.0, -1.0, -1.0]))
Change = Callable[[GameState], None]


def still(*changes: Change, blue: int = 1, orange: int = 1) -> GameState:
    """A state of one arena: cars stand in the middle of the field, far below the ball unless `changes` say otherwise."""
    state = game(blue, orange)
    state.ball.position.copy_(torch.tensor([[0.0, 3000.0, 93.0]]))
    state.cars.position[..., 0] = torch.arange(blue + orange) * 500.0
    state.cars.position[..., 2] = 17.0
    state.cars.ball_hit_tick.fill_(-1)
    for change in changes:
        change(state)
    return state


def ball(position: Sequence[float], velocity: Sequence[float] = (0.0, 0.0, 0.0)) -> Change:
    def change(state: GameState) -> None:
        state.ball.position.copy_(torch.tensor([position]))
        state.ball.velocity.copy_(torch.tensor([velocity]))
    return change


def touch(seat: int = 0, ticks_ago: int = 1) -> Change:
    """The car hits the ball, last so many ticks before the end of the step."""
    def change(state: GameState) -> None:
        state.events.touches[:, seat] = 1
        state.cars.ball_hit_tick[:, seat] = -1 - ticks_ago  # `play` turns it into a tick of the clock
    return change


def flies(position: Sequence[float], seat: int = 0) -> Change:
    def change(state: GameState) -> None:
        state.cars.position[:, seat] = torch.tensor(position)
        state.cars.on_ground[:, seat] = False
    return change


def drives(position: Sequence[float], seat: int = 0) -> Change:
    def change(state: GameState) -> None:
        state.cars.position[:, seat] = torch.tensor(position)
    return change


def demolished(seat: int = 0) -> Change:
    def change(state: GameState) -> None:
        state.cars.is_demoed[:, seat] = True
    return change


def play(make: Callable[[], Measure], states: Sequence[GameState], ticks: int = TICKS, seat: int = 0,
         begins: Sequence[int] = ()) -> list[tuple[int, bool]]:
    """(step, success) of every attempt of a car that was decided. The episode begins with the first state, others with the
    states numbered in `begins`. The game seen from the other side must say the same."""
    said = [_play(make(), [seen(state) for state in states], ticks, seat, begins)
            for seen in (GameState.clone, GameState.mirrored)]
    assert said[0] == said[1], "a measure treats blue and orange alike"
    return said[0]


def _play(measure: Measure, states: Sequence[GameState], ticks: int, seat: int,
          begins: Sequence[int]) -> list[tuple[int, bool]]:
    for step, state in enumerate(states):
        state.game.tick.fill_(100 + ticks * step)
        hit = state.cars.ball_hit_tick
        hit.copy_(torch.where(hit < -1, state.game.tick.unsqueeze(-1) + hit + 1, hit))
    measure.bind(states[0])
    measure.begin(states[0], torch.tensor([True]))
    decided = []
    for step in range(1, len(states)):
        if step in begins:
            measure.begin(states[step], torch.tensor([True]))
            continue
        outcome = measure(states[step], states[step - 1], states[step].events)
        assert not (outcome.success & ~outcome.over).any()
        if outcome.over[0, seat]:
            decided.append((step, bool(outcome.success[0, seat])))
    return decided


def on_its_roof(state: GameState) -> None:
    state.cars.on_ground[:, 0] = False
    state.cars.has_contact[:, 0] = True
    state.cars.contact_normal[:, 0, 2] = 1.0
    state.cars.rotation[:, 0] = UPSIDE_DOWN


WHEELS, ROOF, AIR = still(), still(on_its_roof), still(flies([0.0, 0.0, 60.0]))


AT_WALL = (3990.0, 0.0, 800.0)
TO_GOAL, ALONG, BACK = (-940.0, 1200.0, 300.0), (0.0, 1500.0, 300.0), (-900.0, -1200.0, 0.0)
AFTER = still(ball((3000.0, 2000.0, 800.0), TO_GOAL))


def carried(*changes: Change, height: float = 131.0, aside: float = 20.0) -> GameState:
    return still(drives([0.0, 0.0, 17.0]), ball((aside, 0.0, 17.0 + height)), *changes)


LOST = still(ball((600.0, 0.0, 93.0)))


def aloft(*changes: Change, height: float = 900.0) -> GameState:
    return still(flies([0.0, 0.0, height]), ball((100.0, 0.0, height + 100.0)), *changes)


GAP = [aloft()] * 3
"""32 ticks from hit to hit: more than 0.2 s"""


def above_ball(*changes: Change, gap: float = 130.0) -> GameState:
    """The car flies above the ball, wheels down, its flip used."""
    state = still(flies([0.0, 0.0, 1000.0]), ball((0.0, 0.0, 1000.0 - gap)))
    state.cars.has_jumped[:, 0] = True
    for change in changes:
        change(state)
    return state


def used(state: GameState) -> None:
    state.cars.has_flipped[:, 0] = True
    state.cars.flip_time[:, 0] = 1.0


def flipping(ticks: int) -> Change:
    def change(state: GameState) -> None:
        state.cars.has_flipped[:, 0] = True
        state.cars.is_flipping[:, 0] = True
        state.cars.flip_time[:, 0] = ticks / 120
    return change


UP_FIELD, DOWN_FIELD = (0.0, 700.0, 0.0), (0.0, -700.0, 0.0)


def duel(*changes: Change, velocity: tuple[float, float, float] = (0.0, 0.0, 0.0), height: float = 300.0) -> GameState:
    return still(flies([0.0, -150.0, 250.0]), flies([0.0, 150.0, 250.0], 1), ball((0.0, 0.0, height), velocity), *changes)
