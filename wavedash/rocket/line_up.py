"""Line-ups: who drives which car in which arena. The driver of a seat changes only where an episode begins.

A line-up takes the place of a task's action parser. The environment's own policy, in training the learner's, drives the cars
whose number in `LineUp.seats` is POLICY: they follow its parsed actions. Players drive all other cars, whose rows are inactive:
nothing is learned from them.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

import gymnasium
import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.rocket.parts import Action, Player
from wavedash.rocket.state import CONTROLS, GameState

POLICY = 0
"""The number of the environment's own policy in `LineUp.seats`; players are counted from 1"""


class LineUp(Action):
    """`players` take part in the last `share` of the arenas, at least in one. Each answers for all cars there in one batched
    call, and the cars that it drives are picked out. `seed`: of the numbers that `drawn` returns."""

    games: Tensor
    """[n]: episodes that began in each of the n arenas with players"""
    seats: Tensor
    """[E, C]: who drives each car"""
    chosen: Tensor
    """[E, C, 8]: the last controls of every car, no matter who drives it"""

    def __init__(self, action: Action, players: Sequence[Player], share: float = 1.0, seed: int = 0) -> None:
        if not players or not 0.0 < share <= 1.0:
            raise UserError(f"a line-up needs a player and a share of the arenas above 0 and up to 1, not {len(players)} "
                            f"players in {share}")
        self.action, self.share, self.seed = action, share, seed
        self.players = nn.ModuleList(players)
        self.space, self.ticks, self.delay = action.space, action.ticks, action.delay
        for player in players:
            check_timing(player, self.ticks, self.delay)

    def bind(self, state: GameState) -> None:
        self.action.bind(state)
        first = state.arenas - max(1, round(self.share * state.arenas))
        self.where = slice(first, state.arenas)
        """The arenas with players"""
        self.shared = state.part(self.where)
        for player in self._drivers():
            player.bind(self.shared)
        device = state.device
        self.arena = torch.arange(first, state.arenas, device=device)
        self.register_buffer("games", torch.zeros_like(self.arena))
        self.register_buffer("seats", torch.full((state.arenas, state.seats), POLICY, device=device))
        self.register_buffer("chosen", torch.zeros(state.arenas, state.seats, len(CONTROLS), device=device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.action.begin(state, mask)
        mine = mask[self.where]
        self.games += mine
        seats = self.seats[self.where]
        seats.copy_(torch.where(mine.unsqueeze(-1), self.sit(self.shared.cars.team), seats))
        self.chosen.masked_fill_(mask.view(-1, 1, 1), 0.0)
        for player in self._drivers():
            player.begin(self.shared, mine)

    def mask(self, state: GameState) -> Tensor | None:
        return self.action.mask(state)

    def of_policy(self) -> Tensor:
        return self.seats == POLICY

    def generators(self) -> list[torch.Generator]:
        return [*self.action.generators(), *(stream for player in self._drivers() for stream in player.generators())]

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        own = self.action.parse(action, state)
        seats, controls = self.seats[self.where].unsqueeze(-1), own[self.where]
        for number, player in enumerate(self._drivers(), 1):
            controls = torch.where(seats == number, player.drive(self.shared, self.chosen[self.where]), controls)
        self.chosen.copy_(own)
        self.chosen[self.where] = controls
        return self.chosen

    def _drivers(self) -> list[Player]:
        return cast("list[Player]", list(self.players))

    @abstractmethod
    def sit(self, team: Tensor) -> Tensor:
        """[n, C]: who drives each car in the next episode of the n arenas with players; `team` [n, C] of the cars. Only rows of
        arenas that begin an episode now are used. All randomness must come from `drawn`, so that a resumed run draws the same.
        """

    def drawn(self) -> Tensor:
        """[n]: a random number from 0 to 1 for the current episode of each arena. It is a hash of the numbers of arena and
        episode, so it needs no other state and can be drawn inside a CUDA graph."""
        word = 2**32 - 1
        x = (self.seed * 0x27D4EB2F + self.arena * 0x9E3779B1 + self.games * 0x85EBCA77) & word
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finalizer of MurmurHash3
            x = ((x ^ (x >> shift)) * factor) & word
        return (x ^ (x >> 16)).double() / 2**32


class Duel(LineUp):
    """The first player against the second: blue in one half of the arenas, orange in the other."""

    def __init__(self, first: Player, second: Player, ticks: int, delay: int) -> None:
        super().__init__(NoAction(ticks, delay), [first, second])

    def sides(self) -> Tensor:
        """[E]: the team of the first player."""
        return self.arena % 2

    def sit(self, team: Tensor) -> Tensor:
        return torch.where(team == self.sides().unsqueeze(-1), 1, 2)


class Opponents(LineUp):
    """In a share of the arenas one of the players drives a whole team, and the policy the other. The player is drawn for every
    episode by `weights` [K], which may change at any time; the sides alternate from episode to episode."""

    weights: Tensor

    def __init__(self, action: Action, players: Sequence[Player], share: float = 1.0, seed: int = 0,
                 weights: Sequence[float] | None = None) -> None:
        super().__init__(action, players, share, seed)
        given = [1.0] * len(players) if weights is None else list(weights)
        if len(given) != len(players) or min(given) < 0 or not sum(given) > 0:
            raise UserError(f"a weight of 0 or more is needed for each of {len(players)} players, and one above 0, not {given}")
        self.register_buffer("weights", torch.tensor(given, dtype=torch.float64), persistent=False)

    def bind(self, state: GameState) -> None:
        self.to(state.device)
        super().bind(state)

    def sit(self, team: Tensor) -> Tensor:
        below = self.weights.cumsum(0)
        player = torch.searchsorted(below, self.drawn() * below[-1], right=True).clamp(max=len(self.players) - 1) + 1
        side = (self.arena + self.games) % 2
        return torch.where(team == side.unsqueeze(-1), player.unsqueeze(-1), POLICY)


class NoAction(Action):
    """The action parser of arenas in which players drive all cars: it has one action, which does nothing."""

    space = gymnasium.spaces.Discrete(1)

    def __init__(self, ticks: int, delay: int) -> None:
        self.ticks, self.delay = ticks, delay

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        return torch.zeros(state.arenas, state.seats, len(CONTROLS), device=state.device)


def check_timing(player: Player, ticks: int, delay: int) -> None:
    """Raises UserError if the player was trained with another `ticks` or `delay` than the arenas have."""
    for what, its, here in (("ticks", player.ticks, ticks), ("delay", player.delay, delay)):
        if its is not None and its != here:
            raise UserError(f"{player} was trained with {what}={its} of its action parser, the arenas have {what}={here}: all "
                            "players of an arena decide at the same ticks, and their decisions take effect equally late. "
                            "Let it play against somebody with the same ticks and delay")
