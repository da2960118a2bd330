"""Line-ups: who drives which car in which arena. The driver of a seat changes only where an episode begins, so it stays for all
games of a series.

The environment's own policy, in training the learner's, drives the cars whose number in `LineUp.seats` is POLICY: they follow
its parsed actions. Players drive all other cars, whose rows are inactive: nothing is learned from them.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn

from wavedash.envs.obs import Obs, map_obs
from wavedash.errors import UserError
from wavedash.rocket.driver import Driver, Pace
from wavedash.rocket.parts import Action, Observation, Player
from wavedash.rocket.state import GameState
from wavedash.tasks.part import Part

POLICY = 0
"""The number of the environment's own policy in `LineUp.seats`; players, or their slots, are counted from 1"""


class LineUp(Part):
    """`players` take part in the last `room` of the arenas, at least in one. Each answers in one batched call, for all cars
    there or for its own, and the cars that it drives are picked out. `pace`: ticks and delay of the arenas, those of the task's
    action parser; `seed`: of the numbers that `drawn` returns."""

    holds_parts = True
    games: Tensor
    """[n]: episodes that began in each of the n arenas with players"""
    seats: Tensor
    """[E, C]: who drives each car"""
    viewers: Sequence[Player] = ()
    """Players that see what the policy sees"""

    def __init__(self, pace: Action | Pace, players: Sequence[Player], room: float = 1.0, seed: int = 0) -> None:
        if not players or not 0.0 < room <= 1.0:
            raise UserError(f"a line-up needs a player and a share of the arenas above 0 and up to 1, not {len(players)} "
                            f"players in {room}")
        self.room, self.seed = room, seed
        self.drivers = nn.ModuleList(Driver(player, Pace(pace.ticks, pace.delay)) for player in players)
        last = list(accumulate(player.slots for player in players))
        self.slots = last[-1]
        """Opponents that play at the same time, over all players"""
        self.numbers = [range(end - player.slots + 1, end + 1) for end, player in zip(last, players, strict=True)]
        """The numbers of each player in `seats`, one for each of its slots"""

    @property
    def players(self) -> list[Player]:
        return [driver.player for driver in self._drivers()]

    def bind(self, state: GameState) -> None:
        self.to(state.device)
        first = state.arenas - self.arenas_with_players(state.arenas)
        self.where = slice(first, state.arenas)
        """The arenas with players"""
        self.shared = state.part(self.where)
        self.arena = torch.arange(first, state.arenas, device=state.device)
        for number, driver in enumerate(self._drivers(), 1):
            driver.where = self.arenas_of(number)
            driver.bind(state)
        self.register_buffer("games", torch.zeros_like(self.arena))
        self.register_buffer("seats", torch.full(state.shape, POLICY, device=state.device))

    def arenas_with_players(self, arenas: int) -> int:
        """How many of so many arenas have players."""
        return max(1, round(self.room * arenas))

    def arenas_of(self, number: int) -> slice:
        """The arenas in which this player takes part: by default all arenas with players."""
        return self.where

    def count(self, ended: Tensor) -> None:
        """Is called where games ended, in the arenas of `ended` [E], before others begin there."""

    def begin(self, state: GameState, mask: Tensor) -> None:
        mine = mask[self.where]
        self.games += mine
        seats = self.seats[self.where]
        seats.copy_(torch.where(mine.unsqueeze(-1), self.sit(self.shared.cars.team), seats))
        for driver in self._drivers():
            driver.begin(state, mask)

    def next_game(self, state: GameState, mask: Tensor) -> None:
        """Is called where the next game of a series begins, in the arenas of `mask` [E]: everybody keeps the seat."""
        for driver in self._drivers():
            driver.next_game(state, mask)

    def of_policy(self) -> Tensor:
        """[E, C]: the cars that follow the policy's actions. In a run that was resumed without one of its players, these are
        also that player's cars, up to the end of the episode."""
        return (self.seats == POLICY) | (self.seats > self.slots)

    def share_view(self, observation: Observation, action: Action) -> None:
        """Is called once after `bind` with the parts through which the policy sees the arenas and acts."""
        self.viewers = [driver.player for driver in self._drivers()
                        if driver.keeps_pace and driver.player.shares_view(observation, action)]

    def see(self, seen: Obs) -> None:
        """Is called before every step with what all cars see, [E * C, ...]. Players with the same view need not observe."""
        seats = self.seats.shape[1]
        for driver in self._drivers():
            if driver.player in self.viewers:
                rows = slice(driver.where.start * seats, driver.where.stop * seats)
                driver.player.see(map_obs(lambda x, rows=rows: x[rows], seen))

    def generators(self) -> list[torch.Generator]:
        return [stream for player in self.players for stream in player.generators()]

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        """[E, C, 8]: `parsed`, the controls of the policy, where it drives, and those of players for the other cars. `chosen`
        [E, C, 8]: the last controls of every car, no matter who drives it."""
        controls = parsed.clone()
        for numbers, driver in zip(self.numbers, self._drivers(), strict=True):
            here, mine = controls[driver.where], _within(self.seats[driver.where].unsqueeze(-1), numbers)
            here.copy_(torch.where(mine, driver.drive(chosen[driver.where], mine), here))
        return controls

    def _drivers(self) -> list[Driver]:
        return cast("list[Driver]", list(self.drivers))

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
    """The first player against the others, each of which has a block of the arenas, all of one even size. The first player is
    blue in one half of a block, orange in the other."""

    def __init__(self, pace: Action | Pace, first: Player, *others: Player) -> None:
        super().__init__(pace, [first, *others])

    def bind(self, state: GameState) -> None:
        super().bind(state)
        self.opponent = 2 + self.arena // self._block()  # [E]
        self.rest(torch.zeros_like(self.arena, dtype=torch.bool))

    def arenas_of(self, number: int) -> slice:
        return self.where if number == 1 else slice((number - 2) * self._block(), (number - 1) * self._block())

    def rest(self, arenas: Tensor) -> None:
        """Tells every player which cars are its own: all that it drives but those in these arenas [E], whose games do not
        matter until it is called again. This is a host sync."""
        driven = torch.where(arenas.unsqueeze(-1), POLICY, self.sit(self.shared.cars.team))  # in every episode
        for number, player in enumerate(self.players, 1):
            mine = (driven[self.arenas_of(number)] == number).flatten()
            player.take_slots(mine.nonzero().view(1, -1))

    def share_view(self, observation: Observation, action: Action) -> None:
        """The arenas have no policy of their own: players share the view of the first one."""
        view = self.players[0].view
        if view is not None:
            super().share_view(*view)

    def see(self, seen: Obs) -> None:
        """Does nothing: what the arenas' own policy would see is of no use to players."""

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        if self.viewers:
            first = self._drivers()[0]
            super().see(first.player.observe(first.state, chosen))
        return super().drive(parsed, chosen)

    def sides(self) -> Tensor:
        """[E]: the team of the first player."""
        return self.arena % 2

    def sit(self, team: Tensor) -> Tensor:
        return torch.where(team == self.sides().unsqueeze(-1), 1, self.opponent.unsqueeze(-1))

    def _block(self) -> int:
        """The number of arenas of each other player."""
        return len(self.arena) // (len(self.drivers) - 1)


class Opponents(LineUp):
    """In about `share` of the arenas an opponent drives a whole team and the policy the other. Every slot of the players is an
    opponent; slots are numbered from 0, player by player, and each has equally many of these arenas.

    `share` may change during a run, up to `most`: so many arenas, the last ones, are set aside. Where no opponent plays in one
    of them, all cars are the policy's. A change counts where episodes begin.

    Where episodes end at the same step, those arenas exchange their places at random among themselves. So who plays where is
    drawn anew at ends of episodes, and still every slot has the same number of arenas at any time: the networks of a player's
    slots are one batched call of a fixed shape. Sides alternate from episode to episode of an arena."""

    settings = ("share",)
    in_play: Tensor
    """[]: in so many places of each slot, the first ones, its opponent plays"""
    place: Tensor
    """[n]: the place of each arena: place // arenas per slot is its slot"""
    rows: Tensor
    """[slots, arenas per slot * cars of a team]: the cars that each slot drives, as arena * C + seat among the n arenas"""
    void: Tensor
    """[n]: the current episode counts for nobody, because another opponent took the slot during it"""
    results: Tensor
    """[slots, 3]: games that the policy won, drew and lost against each slot since they were last cleared"""

    def __init__(self, pace: Action | Pace, players: Sequence[Player], share: float = 1.0, seed: int = 0,
                 most: float | None = None) -> None:
        super().__init__(pace, players, share if most is None else most, seed)
        self.share = share

    def bind(self, state: GameState) -> None:
        teams = [(state.cars.team[0] == team).nonzero().squeeze(-1) for team in (0, 1)]
        if len(teams[0]) != len(teams[1]):
            raise UserError(f"opponents drive a whole team, now blue and now orange, so both teams need equally many cars, not "
                            f"{len(teams[0])}v{len(teams[1])}")
        self.arenas, self.on_host = state.arenas, state.device.type == "cpu"
        super().bind(state)
        self.per_slot = len(self.arena) // self.slots
        """Arenas per slot"""
        self.register_buffer("in_play", torch.zeros((), dtype=torch.int64, device=state.device), persistent=False)
        self.write_settings()
        self.seats_of_team = torch.stack(teams)  # [2, T]
        self.first_row = (self.arena - self.where.start).unsqueeze(-1) * state.seats
        self.register_buffer("place", self.arena - self.where.start)
        self.register_buffer("rows", torch.zeros(self.slots, self.per_slot * len(teams[0]), dtype=torch.int64,
                                                 device=state.device))
        self.register_buffer("void", torch.zeros_like(self.arena, dtype=torch.bool))
        self.register_buffer("results", torch.zeros(self.slots, 3, dtype=torch.int64, device=state.device))
        self._write_rows()
        for numbers, player in zip(self.numbers, self.players, strict=True):
            player.take_slots(self.rows[numbers.start - 1:numbers.stop - 1])

    def arenas_with_players(self, arenas: int) -> int:
        taken = self.slots * self._per_slot(self.room)
        if taken > arenas:
            raise UserError(f"each of the {self.slots} slots for opponents needs an arena in every group of arenas, but a "
                            f"group has {arenas}: raise env.count, set env.groups=1, or set opponents.slots={arenas} or fewer. "
                            "Arenas of one team size are a group too")
        return taken

    @property
    def arenas_in_play(self) -> int:
        """How many arenas have opponents, once every episode has begun with the current share."""
        return self.slots * self._per_slot(self.share)

    def write_settings(self) -> None:
        if not 0.0 <= self.share <= self.room:
            raise UserError(f"opponents cannot play in {self.share:g} of the arenas: {self.room:g} are set aside for them")
        self.in_play.fill_(self._per_slot(self.share))

    def _per_slot(self, share: float) -> int:
        """How many arenas of each slot make up this share, at least one unless it is 0."""
        return max(1, round(share * self.arenas / self.slots)) if share else 0

    def begin(self, state: GameState, mask: Tensor) -> None:
        mine = mask[self.where]
        self._exchange_places(mine)
        self.void.copy_(torch.where(mine, self.shared.game.tick != 0, self.void))  # it was not seen from its beginning
        super().begin(state, mask)
        self._write_rows()

    def sit(self, team: Tensor) -> Tensor:
        plays = (self.place % self.per_slot < self.in_play).unsqueeze(-1) & (team == self.sides().unsqueeze(-1))
        return torch.where(plays, self.slot_of_arena().unsqueeze(-1) + 1, POLICY)

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        """On a CPU opponents are not inferred while none of them plays; on a GPU that would need a host sync."""
        if self.on_host and self.share == 0 and bool((self.seats == POLICY).all()):
            return parsed
        return super().drive(parsed, chosen)

    def sides(self) -> Tensor:
        """[n]: the team that the opponent drives, if one plays."""
        return (self.arena + self.games) % 2

    def slot_of_arena(self) -> Tensor:
        """[n]: the slot of each arena."""
        return self.place // self.per_slot

    def count(self, ended: Tensor) -> None:
        against = (self.seats[self.where] != POLICY).any(-1)
        counted = ended[self.where] & against & ~self.void
        score, side = self.shared.game.score, self.sides().unsqueeze(-1)
        lead = (score.gather(1, 1 - side) - score.gather(1, side)).squeeze(-1)
        outcome = 1 - lead.sign()  # 0: won, 1: drawn, 2: lost
        self.results.view(-1).index_add_(0, 3 * self.slot_of_arena() + outcome, counted.long())

    def clear_results(self) -> None:
        self.results.zero_()

    def exchange(self, slot: int, policy: Any) -> None:
        """Another policy, or a `state_dict` of one, plays in a slot from the next step on, also in the middle of episodes:
        these count for nobody, and what the slot remembers of them is cleared. Weights are copied in place, so captured CUDA
        graphs see them; there is no host sync if they are on the device of the arenas."""
        if not 0 <= slot < self.slots:
            raise UserError(f"there is no slot {slot}: {self.slots} are counted from 0")
        numbers, player = next((numbers, player) for numbers, player in zip(self.numbers, self.players, strict=True)
                               if slot + 1 in numbers)
        player.exchange(slot + 1 - numbers.start, policy)
        self.forget_games(slot)

    def forget_games(self, slot: int) -> None:
        """Somebody else has a slot from now on: its current episodes count for nobody."""
        self.void.logical_or_(self.slot_of_arena() == slot)

    def _exchange_places(self, mine: Tensor) -> None:
        """Permutes the places of the arenas `mine` [n] at random among themselves."""
        order = torch.where(mine, self.drawn(), 2.0).argsort(stable=True)  # these arenas come first, in random order
        rank = (mine.cumsum(0) - 1).clamp_(min=0)
        self.place.copy_(torch.where(mine, self.place[order[rank]], self.place))

    def _write_rows(self) -> None:
        cars = self.first_row + self.seats_of_team[self.sides()]  # [n, T]
        self.rows.view(cars.shape).index_copy_(0, self.place, cars)


def _within(seats: Tensor, numbers: range) -> Tensor:
    if len(numbers) == 1:
        return seats == numbers.start
    return (seats >= numbers.start) & (seats < numbers.stop)
