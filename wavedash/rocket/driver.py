"""Driver: a player in its arenas, which keeps the ticks and delay of its own task.

Arenas step at one pace, in training that of the learner. A player that decides less often, or whose decisions take effect
later, keeps its own pace if that is a whole number of their steps.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.parts import Player
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.tasks.part import Part


class Pace(NamedTuple):
    """When decisions are made and when they take effect, in ticks of physics."""

    ticks: int
    """Ticks from one decision to the next"""
    delay: int
    """Ticks from a decision to its effect"""

    def of(self, player: Player) -> Pace:
        """The pace of a player in arenas of this pace: its own, or that of the arenas if it has none."""
        return Pace(self.ticks if player.ticks is None else player.ticks, self.delay if player.delay is None else player.delay)


def common_pace(paces: Sequence[Pace]) -> Pace:
    """The pace of arenas with the longest steps in which players of all these paces can play."""
    soonest = min(pace.delay for pace in paces)
    ticks = math.gcd(*(pace.ticks for pace in paces), *(pace.delay - soonest for pace in paces))
    return Pace(ticks, (soonest - 1) % ticks + 1 if soonest else 0)


class Driver(Part):
    """A player in the arenas `where`, which step at the pace `arenas`."""

    steps: Tensor
    """[n]: steps of the game so far"""
    decided: Tensor
    """[n, C, 8]: the last decision"""
    in_force: Tensor
    """[n, C, 8]: the last decision that has taken effect"""

    def __init__(self, player: Player, arenas: Pace) -> None:
        self.player = player
        self.every, self.late = _steps_of(player, arenas)
        """Steps from one decision to the next, and by how many steps later than in the arenas a decision takes effect"""
        self.keeps_pace = (self.every, self.late) == (1, 0)
        self.where = slice(None)

    def bind(self, state: GameState) -> None:
        self.state = state.part(self.where)
        self.player.bind(self.state)
        if not self.keeps_pace:
            self._check_memory()
            shape, device = (*self.state.shape, len(CONTROLS)), state.device
            self.register_buffer("steps", torch.zeros(shape[0], dtype=torch.int64, device=device))
            self.register_buffer("decided", torch.zeros(shape, device=device))
            self.register_buffer("in_force", torch.zeros(shape, device=device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        """`mask` [E] covers all arenas, not only those of this player."""
        self.player.begin(self.state, mask[self.where])
        self._begin_pace(mask[self.where])

    def next_game(self, state: GameState, mask: Tensor) -> None:
        """The next game of a series begins in the arenas of `mask` [E]."""
        begin = self.player.begin if self.player.forgets else self.player.next_game
        begin(self.state, mask[self.where])
        self._begin_pace(mask[self.where])

    def _begin_pace(self, mine: Tensor) -> None:
        if not self.keeps_pace:
            cars = mine.view(-1, 1, 1)
            self.steps.masked_fill_(mine, 0)
            self.decided.masked_fill_(cars, 0.0)
            self.in_force.copy_(torch.where(cars, self.state.cars.controls, self.in_force))

    def drive(self, chosen: Tensor, mine: Tensor) -> Tensor:
        """[n, C, 8]: the controls of this step. `chosen` [n, C, 8]: the last controls of every car; `mine` [n, C, 1]: the cars
        that the player drives."""
        if self.keeps_pace:
            return self.player.drive(self.state, chosen)
        if self.late == self.every:  # a decision takes effect when the next one is made
            self._take_effect()
        self._decide(torch.where(mine, self.decided, chosen))
        if self.late < self.every:
            self._take_effect()
        self.steps += 1
        return self.in_force

    def _decide(self, chosen: Tensor) -> None:
        """Calls the player for all arenas; where it does not decide now, its answer is dropped and its memory restored."""
        decides = self.steps % self.every == 0
        memory = self.player.state_dict()
        before = {name: x.clone() for name, x in memory.items()}
        decision = self.player.drive(self.state, chosen)
        for name, x in memory.items():
            x.copy_(torch.where(_like(decides, x), x, before[name]))
        self.decided.copy_(torch.where(_like(decides, decision), decision, self.decided))

    def _take_effect(self) -> None:
        since = self.steps - self.late
        now = (since >= 0) & (since % self.every == 0)
        self.in_force.copy_(torch.where(_like(now, self.decided), self.decided, self.in_force))

    def _check_memory(self) -> None:
        for name, x in self.player.state_dict().items():
            if x.shape[:1] != (self.state.arenas,):
                raise UserError(f"{self.player} decides at another pace than its arenas, so what it remembers is kept arena by "
                                f"arena: the first dimension of its buffer {name!r} must be the {self.state.arenas} arenas, "
                                f"but the buffer is {list(x.shape)}")


class PatientDriver(Driver):
    """A driver in one arena that asks its player only when that decides."""

    def _decide(self, chosen: Tensor) -> None:
        if int(self.steps[0]) % self.every == 0:
            super()._decide(chosen)


def _like(mask: Tensor, x: Tensor) -> Tensor:
    """A mask [n] that broadcasts over x [n, ...]."""
    return mask.view(-1, *(1,) * (x.dim() - 1))


def _steps_of(player: Player, arenas: Pace) -> tuple[int, int]:
    """Steps from one decision of the player to the next, and how many steps later than in the arenas each takes effect."""
    own = arenas.of(player)
    every, rest = divmod(own.ticks, arenas.ticks)
    if rest:
        raise UserError(f"{player} was trained with ticks={own.ticks} of its action parser, the arenas have "
                        f"ticks={arenas.ticks}: it can play where the ticks of the arenas divide {own.ticks}")
    late, rest = divmod(own.delay - arenas.delay, arenas.ticks)
    if rest or late < 0:
        raise UserError(f"{player} was trained with delay={own.delay} of its action parser, the arenas have "
                        f"delay={arenas.delay}: its decisions can only take effect with those of the arenas or whole steps of "
                        f"{arenas.ticks} ticks later")
    return every, late
