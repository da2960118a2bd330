"""Line-ups: who drives which car in which arena. The driver of a seat changes only where an episode begins.

The environment's own policy, in training the learner's, drives the cars whose number in `LineUp.seats` is POLICY: they follow
its parsed actions. Players drive all other cars, whose rows are inactive: nothing is learned from them.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.rocket.driver import Driver, Pace
from wavedash.rocket.parts import Action, Player
from wavedash.rocket.state import GameState
from wavedash.tasks.part import Part

POLICY = 0
"""The number of the environment's own policy in `LineUp.seats`; players are counted from 1"""


class LineUp(Part):
    """`players` take part in the last `share` of the arenas, at least in one. Each answers for all cars there in one batched
    call, and the cars that it drives are picked out. `pace`: ticks and delay of the arenas, those of the task's action parser;
    `seed`: of the numbers that `drawn` returns."""

    holds_parts = True
    games: Tensor
    """[n]: episodes that began in each of the n arenas with players"""
    seats: Tensor
    """[E, C]: who drives each car"""

    def __init__(self, pace: Action | Pace, players: Sequence[Player], share: float = 1.0, seed: int = 0) -> None:
        if not players or not 0.0 < share <= 1.0:
            raise UserError(f"a line-up needs a player and a share of the arenas above 0 and up to 1, not {len(players)} "
                            f"players in {share}")
        self.share, self.seed = share, seed
        self.drivers = nn.ModuleList(Driver(player, Pace(pace.ticks, pace.delay)) for player in players)

    @property
    def players(self) -> list[Player]:
        return [driver.player for driver in self._drivers()]

    def bind(self, state: GameState) -> None:
        self.to(state.device)
        first = state.arenas - max(1, round(self.share * state.arenas))
        self.where = slice(first, state.arenas)
        """The arenas with players"""
        self.shared = state.part(self.where)
        self.arena = torch.arange(first, state.arenas, device=state.device)
        for number, driver in enumerate(self._drivers(), 1):
            driver.where = self.arenas_of(number)
            driver.bind(state)
        self.register_buffer("games", torch.zeros_like(self.arena))
        self.register_buffer("seats", torch.full(state.shape, POLICY, device=state.device))

    def arenas_of(self, number: int) -> slice:
        """The arenas in which this player takes part: by default all arenas with players."""
        return self.where

    def begin(self, state: GameState, mask: Tensor) -> None:
        mine = mask[self.where]
        self.games += mine
        seats = self.seats[self.where]
        seats.copy_(torch.where(mine.unsqueeze(-1), self.sit(self.shared.cars.team), seats))
        for driver in self._drivers():
            driver.begin(state, mask)

    def of_policy(self) -> Tensor:
        """[E, C]: the cars that follow the policy's actions. In a run that was resumed without one of its players, these are
        also that player's cars, up to the end of the episode."""
        return (self.seats == POLICY) | (self.seats > len(self.drivers))

    def generators(self) -> list[torch.Generator]:
        return [stream for player in self.players for stream in player.generators()]

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        """[E, C, 8]: `parsed`, the controls of the policy, where it drives, and those of players for the other cars. `chosen`
        [E, C, 8]: the last controls of every car, no matter who drives it."""
        controls = parsed.clone()
        for number, driver in enumerate(self._drivers(), 1):
            here, mine = controls[driver.where], self.seats[driver.where].unsqueeze(-1) == number
            here.copy_(torch.where(mine, driver.drive(chosen[driver.where], mine), here))
        return controls

    def _drivers(self) -> list[Driver]:
        return cast("list[Driver]", list(self.drivers))

    @abstractmethod
    def sit(self, team: Tensor) -> Tensor:
        """[n, C]: who drives each car in the next episode of the n arenas with players; `team` [n, C] of the cars. Only rows of
        arenas that begin an episode now are used. All randomness must come from `drawn`, so that a resumed run draws the same.
        """

    def opposed(self, team: Tensor, player: Tensor) -> Tensor:
        """For `sit`: a player [n] drives a whole team, and the policy the other. Sides alternate from episode to episode."""
        side = (self.arena + self.games) % 2
        return torch.where(team == side.unsqueeze(-1), player.unsqueeze(-1), POLICY)

    def drawn(self) -> Tensor:
        """[n]: a random number from 0 to 1 for the current episode of each arena. It is a hash of the numbers of arena and
        episode, so it needs no other state and can be drawn inside a CUDA graph."""
        word = 2**32 - 1
        x = (self.seed * 0x27D4EB2F + self.arena * 0x9E3779B1 + self.games * 0x85EBCA77) & word
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finalizer of MurmurHash3
            x = ((x ^ (x >> shift)) * factor) & word
        return (x ^ (x >> 16)).double() / 2**32


class Duel(LineUp):
    """The first player against the others, each of which has a block of the arenas, all of one even size. The first player is
    blue in one half of a block, orange in the other."""

    def __init__(self, pace: Action | Pace, first: Player, *others: Player) -> None:
        super().__init__(pace, [first, *others])

    def bind(self, state: GameState) -> None:
        super().bind(state)
        self.opponent = 2 + self.arena // self._block()  # [E]

    def arenas_of(self, number: int) -> slice:
        return self.where if number == 1 else slice((number - 2) * self._block(), (number - 1) * self._block())

    def sides(self) -> Tensor:
        """[E]: the team of the first player."""
        return self.arena % 2

    def sit(self, team: Tensor) -> Tensor:
        return torch.where(team == self.sides().unsqueeze(-1), 1, self.opponent.unsqueeze(-1))

    def _block(self) -> int:
        """The number of arenas of each other player."""
        return len(self.arena) // (len(self.drivers) - 1)


class Opponents(LineUp):
    """In a share of the arenas one of the players drives a whole team, and the policy the other. The player is drawn for every
    episode by `weights` [K], which may change during a run; `self_play` is the weight of episodes in which the policy drives
    both teams. Every player answers in all of these arenas, so K of them cost K times as much as one; see `OpponentsApart`."""

    settings = ("weights", "self_play")
    _chances: Tensor

    def __init__(self, pace: Action | Pace, players: Sequence[Player], share: float = 1.0, seed: int = 0,
                 weights: Sequence[float] | None = None, self_play: float = 0.0) -> None:
        super().__init__(pace, players, share, seed)
        self.weights: Sequence[float] = [1.0] * len(players) if weights is None else weights
        self.self_play = self_play
        self.register_buffer("_chances", torch.zeros(1 + len(players), dtype=torch.float64), persistent=False)
        self.write_settings()

    def write_settings(self) -> None:
        chances = [self.self_play, *self.weights]
        if len(chances) != len(self._chances) or min(chances) < 0 or not sum(chances) > 0:
            raise UserError(f"a weight of 0 or more is needed for each of {len(self.drivers)} players, and one above 0, not "
                            f"{list(self.weights)} with self_play={self.self_play}")
        for tensor, chance in zip(self._chances, chances, strict=True):
            tensor.fill_(chance)

    def sit(self, team: Tensor) -> Tensor:
        below = self._chances.cumsum(0)
        player = torch.searchsorted(below, self.drawn() * below[-1], right=True).clamp(max=len(self.drivers))
        return self.opposed(team, player)


class OpponentsApart(LineUp):
    """As `Opponents`, but each player has a block of the arenas to itself, so any number of players costs as much as one. The
    opponent of a block changes when its player takes over the weights of another policy, see `FrozenPolicy.play_as`."""

    def bind(self, state: GameState) -> None:
        super().bind(state)
        if len(self.arena) < len(self.drivers):
            raise UserError(f"{len(self.drivers)} players apart need an arena each, but a share of {self.share:g} of "
                            f"{state.arenas} arenas is {len(self.arena)}")
        sizes = torch.tensor([block.stop - block.start for block in map(self.arenas_of, range(1, len(self.drivers) + 1))])
        self.player = torch.arange(1, len(sizes) + 1).repeat_interleave(sizes).to(state.device)

    def arenas_of(self, number: int) -> slice:
        first, last = (self.where.start + len(self.arena) * end // len(self.drivers) for end in (number - 1, number))
        return slice(first, last)

    def sit(self, team: Tensor) -> Tensor:
        return self.opposed(team, self.player)
