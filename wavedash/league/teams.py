"""Teams of different players: one player per seat, and how strong each of them is, by openskill.

A team is named by its players, `A+B`. Games of whole teams say little about one player; if players play in changing line-ups,
openskill (Plackett and Luce's model, https://openskill.me) estimates a skill for each of them from the results of their teams.
Unlike the ratings of wavedash/league/ratings.py these depend on the order of the games.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.league.games import Game
from wavedash.rocket.parts import Player
from wavedash.rocket.state import GameState

JOINED_BY = "+"


class Team(Player):
    """A player for whole teams that gives the first car of a team to the first of its players, the second to the second, and
    so on."""

    def __init__(self, players: Sequence[Player]) -> None:
        paces = {(player.ticks, player.delay) for player in players if player.ticks is not None}
        if len(paces) > 1:
            raise UserError(f"{' and '.join(map(str, players))} cannot play in one team: their action parsers have different "
                            f"ticks and delays, {' and '.join(map(str, sorted(paces)))}")
        if paces:
            self.ticks, self.delay = paces.pop()
        self.players = nn.ModuleList(players)

    def bind(self, state: GameState) -> None:
        per_team = state.seats // 2
        if len(self.players) != per_team:
            raise UserError(f"a team of {len(self.players)} players cannot play with {per_team} cars per team")
        orange = int((state.cars.team[0] == 1).sum())
        if orange != per_team:
            raise UserError(f"a team of different players cannot play {state.seats - orange}v{orange}: both sides need "
                            "equally many cars")
        self.seat = torch.arange(state.seats, device=state.device) % per_team  # [C], counted in each team
        for player in self._players():
            player.bind(state)

    def take_slots(self, rows: Tensor) -> None:
        of_teams = rows.view(len(rows), -1, len(self.players))
        for seat, player in enumerate(self._players()):
            player.take_slots(of_teams[:, :, seat])  # a view, which changes with `rows`

    def begin(self, state: GameState, mask: Tensor) -> None:
        for player in self._players():
            player.begin(state, mask)

    def next_game(self, state: GameState, mask: Tensor) -> None:
        for player in self._players():
            player.next_game(state, mask)

    def generators(self) -> list[torch.Generator]:
        return [stream for player in self._players() for stream in player.generators()]

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        controls = torch.zeros_like(chosen)
        for seat, player in enumerate(self._players()):
            controls = torch.where((self.seat == seat).view(1, -1, 1), player.drive(state, chosen), controls)
        return controls

    def _players(self) -> list[Player]:
        return cast("list[Player]", list(self.players))


class Skill(NamedTuple):
    """What openskill knows about a player. Everybody begins at 25 with a deviation of 8.33."""

    mean: float
    deviation: float
    games: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, of a normal distribution."""
        return self.mean - 1.96 * self.deviation, self.mean + 1.96 * self.deviation


def line_up(name: str, size: int) -> list[str]:
    """The players of a team of so many cars by its name. `C++ Bot` is one player, whose name has the sign in it."""
    players = name.split(JOINED_BY)
    return players if len(players) == size and all(players) else [name]


def rate_line_ups(games: Iterable[Game]) -> dict[str, Skill]:
    """The skills of all players of teams, the strongest first, from games in the order they were played. A player that has
    several seats in a game learns from it once, the mean of its seats. UserError: openskill is not installed."""
    try:
        from openskill.models import PlackettLuce
    except ImportError as error:
        raise UserError("ratings of players in mixed teams need openskill: pip install -e \".[teams]\"") from error
    model = PlackettLuce()
    skills: dict[str, tuple[float, float]] = {}
    played: dict[str, int] = {}
    for game in games:
        teams = [line_up(name, game.size) for name in (game.blue, game.orange)]
        seats = [[model.rating(*skills.get(player, (None, None))) for player in team] for team in teams]
        after = model.rate(seats, ranks=[game.orange_goals > game.blue_goals, game.blue_goals > game.orange_goals])
        rated = [(player, new) for team, news in zip(teams, after, strict=True) for player, new in zip(team, news, strict=True)]
        for player in {player for player, _ in rated}:
            mine = [new for name, new in rated if name == player]
            skills[player] = (sum(new.mu for new in mine) / len(mine), sum(new.sigma for new in mine) / len(mine))
            played[player] = played.get(player, 0) + 1
    order = sorted(skills, key=lambda player: -skills[player][0])
    return {player: Skill(*skills[player], played[player]) for player in order}
