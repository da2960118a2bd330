"""Drivers: a player whose own steps are longer than those of its arenas acts as it would in its own steps."""
from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from wavedash.errors import UserError
from wavedash.rocket.driver import Driver, Pace, common_pace
from wavedash.rocket.parts import Player
from wavedash.rocket.state import GameState

BEFORE = -1.0
"""The controls with which a car begins an episode."""
PACES = [Pace(ticks, delay) for ticks in (1, 2, 3, 4, 6, 8, 12) for delay in range(ticks + 1)]


class Counts(Player):
    """Its n-th decision in an episode is to set all controls to n."""

    decisions: Tensor

    def __init__(self, ticks: int | None = None, delay: int | None = None) -> None:
        self.ticks, self.delay = ticks, delay
        self.shown = torch.empty(0)

    def __str__(self) -> str:
        return "the counter"

    def bind(self, state: GameState) -> None:
        self.register_buffer("decisions", torch.zeros(state.arenas, device=state.device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.decisions.masked_fill_(mask, 0.0)

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        self.shown = chosen.clone()
        self.decisions += 1
        return self.decisions.view(-1, 1, 1).expand(*state.shape, 8)


def arenas(count: int = 1) -> GameState:
    state = GameState.empty(count, 2)
    state.cars.controls.fill_(BEFORE)
    return state


def driver_of(player: Player, pace: Pace, state: GameState) -> Driver:
    driver = Driver(player, pace)
    driver.bind(state)
    driver.begin(state, torch.ones(state.arenas, dtype=torch.bool))
    return driver


def at_its_own(pace: Pace, ticks: int) -> list[float]:
    """The reference: the controls in force in each tick of an episode. Decision n, from 1, is made at tick (n - 1) * ticks and
    takes effect `delay` ticks later."""
    return [BEFORE if tick < pace.delay else 1.0 + (tick - pace.delay) // pace.ticks for tick in range(ticks)]


def in_force(driver: Driver, pace: Pace, ticks: int) -> list[float]:
    """The controls in force if arenas step at `pace`: for the first `delay` ticks of a step, those of the step before."""
    told, chosen, mine = [BEFORE], torch.zeros(1, 2, 8), torch.ones(1, 2, 1, dtype=torch.bool)
    for _ in range(ticks // pace.ticks + 1):
        chosen = driver.drive(chosen, mine).clone()
        assert (chosen == chosen[0, 0, 0]).all()
        told.append(float(chosen[0, 0, 0]))
    return [told[(tick - pace.delay) // pace.ticks + 1] for tick in range(ticks)]


@pytest.mark.slow
@pytest.mark.parametrize("first", [pace for pace in PACES if pace.ticks in (4, 8)], ids=str)
def test_in_steps_that_suit_both_each_of_two_players_keeps_its_own_pace(first):
    for second in PACES:
        pace = common_pace([first, second])
        for own in (first, second):
            driver = driver_of(Counts(*own), pace, arenas())
            assert in_force(driver, pace, 40) == at_its_own(own, 40), f"{own} in arenas of {pace}"


def can_play(own: Pace, pace: Pace) -> bool:
    try:
        Driver(Counts(*own), pace)
    except UserError:
        return False
    return True


def test_no_longer_steps_would_suit_both():
    for first, second in product([Pace(8, 1), Pace(8, 7), Pace(12, 0), Pace(4, 4)], PACES):
        chosen = common_pace([first, second])
        suit = [ticks for ticks in range(1, 13) for delay in range(ticks + 1)
                if can_play(first, Pace(ticks, delay)) and can_play(second, Pace(ticks, delay))]
        assert chosen.ticks == max(suit), f"{first} and {second}"


def test_one_player_alone_steps_at_its_own_pace_and_nothing_is_held_for_it():
    for pace in PACES:
        assert common_pace([pace]) == pace == common_pace([pace, pace])
        assert driver_of(Counts(*pace), pace, arenas()).state_dict().keys() == {"player.decisions"}


def test_arenas_begin_episodes_in_the_middle_of_a_decision():
    """Each goes on from its own beginning, and the player's memory of the others stays."""
    own, pace, generator = Pace(8, 5), Pace(2, 1), torch.Generator().manual_seed(0)
    state = arenas(16)
    player = Counts(*own)
    driver = driver_of(player, pace, state)
    since = torch.zeros(16, dtype=torch.int64)
    for _ in range(200):
        told = driver.drive(torch.zeros(16, 2, 8), torch.ones(16, 2, 1, dtype=torch.bool))[:, 0, 0]
        made = since * pace.ticks  # ticks of the episode at this step, whose controls take effect one tick later
        expected = [at_its_own(own, tick + 2)[-1] for tick in made.tolist()]
        assert told.tolist() == expected
        since += 1
        begins = torch.rand(16, generator=generator) < 0.07
        since.masked_fill_(begins, 0)
        driver.begin(state, begins)
    assert since.unique().numel() > 5


def test_a_player_sees_what_it_decided_last_even_if_that_is_not_in_force_yet():
    player = Counts(8, 8)
    driver, mine = driver_of(player, Pace(4, 0), arenas()), torch.tensor([[[True], [False]]])
    told, others = torch.zeros(1, 2, 8), torch.full((1, 2, 8), 7.0)
    seen = []
    for step in range(6):
        driver.drive(torch.where(mine, told, others), mine)
        if step % 2 == 0:
            seen.append((float(player.shown[0, 0, 0]), float(player.shown[0, 1, 0])))
    assert seen == [(0.0, 7.0), (1.0, 7.0), (2.0, 7.0)], "its own car, and the other one"


def test_a_player_without_a_pace_decides_in_every_step_of_the_arenas():
    for pace in (Pace(8, 1), Pace(4, 3)):
        driver = driver_of(Counts(), pace, arenas())
        assert in_force(driver, pace, 40) == at_its_own(pace, 40)


@pytest.mark.parametrize(("own", "pace", "words"), [
    ((12, 1), Pace(8, 1), "the counter was trained with ticks=12 of its action parser, the arenas have ticks=8: it can play "
     "where the ticks of the arenas divide 12"),
    ((4, 1), Pace(8, 1), "the counter was trained with ticks=4 of its action parser, the arenas have ticks=8"),
    ((8, 2), Pace(8, 1), "the counter was trained with delay=2 of its action parser, the arenas have delay=1: its decisions "
     "can only take effect with those of the arenas or whole steps of 8 ticks later"),
    ((8, 0), Pace(8, 8), "delay=0 of its action parser, the arenas have delay=8"),
])
def test_a_player_that_cannot_keep_its_pace_is_refused(own, pace, words):
    with pytest.raises(UserError, match=words):
        Driver(Counts(*own), pace)


class CountsAll(Counts):
    """It remembers one number for all arenas."""

    def bind(self, state: GameState) -> None:
        self.register_buffer("decisions", torch.zeros(1))


def test_a_memory_that_is_not_kept_by_arena_is_refused_at_another_pace():
    Driver(CountsAll(8, 1), Pace(8, 1)).bind(arenas(3))
    with pytest.raises(UserError, match=r"buffer 'decisions' must be the 3 arenas, but the buffer is \[1\]"):
        Driver(CountsAll(8, 1), Pace(4, 1)).bind(arenas(3))


def test_a_driver_has_no_host_sync():
    state = arenas(4)
    driver = driver_of(Counts(8, 5), Pace(4, 1), state)
    chosen, mine, begins = torch.zeros(4, 2, 8), torch.ones(4, 2, 1, dtype=torch.bool), torch.arange(4) == 2
    with NoHostSync():
        for _ in range(3):
            driver.drive(chosen, mine)
            driver.begin(state, begins)
