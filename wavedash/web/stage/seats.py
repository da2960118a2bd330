"""Parts of the task that a stage plays: who sits where, how games begin, and the last moment before the next one begins."""
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wavedash.rocket.driver import Pace, PatientDriver, common_pace
from wavedash.rocket.endings import Goal
from wavedash.rocket.line_up import LineUp
from wavedash.rocket.parts import Action, Observation, Player, Start
from wavedash.rocket.state import Events, GameState
from wavedash.rocket.task import Task
from wavedash.web.stage.human import Human

LONGEST_STEP = 4
"""Ticks of the longest step: a human feels longer ones"""
USUAL = Pace(8, 1)
"""The pace of two scripts"""


class StageTask(Task):
    """A task without kernels: to compile them would take longer than to play."""

    def _use_kernels(self, state: GameState) -> None:
        pass


class Sides(LineUp):
    """One player drives blue, another orange. A human can take and leave any seat at any time."""

    def __init__(self, pace: Pace, blue: Player, orange: Player) -> None:
        self.human = Human()
        super().__init__(pace, [blue, orange, self.human])
        self.drivers = nn.ModuleList(PatientDriver(player, pace) for player in (blue, orange, self.human))
        self.taken: set[int] = set()
        """Seats of humans"""

    def bind(self, state: GameState) -> None:
        super().bind(state)
        for team, player in enumerate(self.players[:2]):
            player.take_slots((state.cars.team[0] == team).nonzero().view(1, -1))

    def sit(self, team: Tensor) -> Tensor:
        seats = team + 1
        for car in self.taken:
            seats[:, car] = 3
        return seats

    def take(self, car: int) -> None:
        self.taken.add(car)
        self._sit_now()

    def leave(self, car: int) -> None:
        self.taken.discard(car)
        self.human.let_go(car)
        self._sit_now()

    def _sit_now(self) -> None:
        self.seats.copy_(self.sit(self.shared.cars.team))

    def share_view(self, observation: Observation, action: Action) -> None:
        """The arena has no policy of its own whose view could be shared."""


class StageStart(Start):
    """The usual start; the next game begins from `placed`, if that is there."""

    def __init__(self, usual: Start) -> None:
        self.usual = usual
        self.placed: GameState | None = None

    def bind(self, state: GameState) -> None:
        self.usual.bind(state)

    def write(self, state: GameState, generator: torch.Generator) -> None:
        self.usual.write(state, generator)
        if self.placed is not None:  # the store is used from its beginning
            state.memory[0].copy_(self.placed.memory[0])


class Moment(Goal):
    """A goal ends the game. `moment` is the state after the last step, also where the arena has begun another game since."""

    moment: GameState

    def bind(self, state: GameState) -> None:
        self.moment = state.clone()

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        self.moment.copy_(state)
        return super().__call__(state, previous, events)


def pace_of(players: Sequence[Player]) -> Pace:
    """The pace of an arena in which all of them can play. Scripts take over the pace of a policy that plays."""
    paces = [USUAL.of(player) for player in players if player.ticks is not None]
    for script in (player for player in players if player.ticks is None):
        script.ticks, script.delay = paces[0] if paces else USUAL
    paces = paces or [USUAL]
    return common_pace([*paces, Pace(LONGEST_STEP, min(pace.delay for pace in paces))])
