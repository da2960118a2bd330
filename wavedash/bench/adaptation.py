"""Series of games against the same opponent: whether a player with memory scores more in later games than in the first.

    wavedash bench adaptation [PLAYER ...] [--against NAME] [--games N] [--series N] [--simulator rocketsim|warp] [--stochastic]

A PLAYER is one that `wavedash match` takes. It plays every series twice: with its memory kept from game to game and, as the
control, with its memory cleared between games. A won game is worth 100 points, one without a goal 50. What a later game brings
more than the first one of its series is computed for each series; series are independent of each other, so the 95 % interval of
the mean is valid if they are not too few. A player adapts if this is greater with its memory kept than with its memory cleared.

Two more players take part, to test the benchmark itself. The late starter stands still in the first game that it remembers, so
it must gain where its memory is kept, and only there. The champion has no memory: all its games must be the same both ways.
"""
from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from wavedash.errors import UserError
from wavedash.evaluate.matches import SECONDS, arenas_of
from wavedash.evaluate.results import PlayedGame
from wavedash.evaluate.shares import Sample, Share
from wavedash.league.frozen import FrozenPolicies
from wavedash.league.match import SIMULATORS, Terms, play_players
from wavedash.league.players import Entrant, distinct_names, find_entrant
from wavedash.league.teams import Team
from wavedash.rocket.parts import Player
from wavedash.rocket.players import Defender
from wavedash.rocket.state import GameState
from wavedash.seeding import stream_seed

LATE_STARTER = "wavedash.bench.adaptation:LateStarter"
CONTROLS = (LATE_STARTER, "champion")
OPPONENTS = ("idle", "chaser", "defender")

FEWEST = 24
"""Series below which there is no verdict: the points of so few games are not distributed normally, as the interval supposes"""

Games = Sequence[PlayedGame]
"""The games of one series, in the order that they were played"""


class LateStarter(Defender):
    """The positive control: it stands still in the first game of a series, and defends and attacks in all others."""

    seen: Tensor
    """[E]: games of the series that it remembers"""

    def bind(self, state: GameState) -> None:
        self.register_buffer("seen", torch.zeros(state.arenas, dtype=torch.int64, device=state.device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.seen.masked_fill_(mask, 0)

    def next_game(self, state: GameState, mask: Tensor) -> None:
        self.seen += mask

    def controls(self, state: GameState) -> Tensor:
        return super().controls(state) * (self.seen > 0).view(-1, 1, 1)


@dataclass(frozen=True)
class SeriesPlayed:
    """The series of a player, against one opponent or several."""

    series: Sequence[Games]

    def goal_share(self, game: int) -> Share:
        """The share of all goals in this game of every series, counted from 0, that the player scored."""
        scored = sum(games[game].scored for games in self.series)
        return Share(scored, scored + sum(games[game].conceded for games in self.series))

    @property
    def gains(self) -> list[float]:
        """How many points of 100 a later game of each series brought more than its first one."""
        return [sum(map(points, games[1:])) / len(games[1:]) - points(games[0]) for games in self.series]


class Found(NamedTuple):
    """What was found out about a player."""

    name: str
    remembers: bool
    """Whether it can remember anything of a game in the next one"""
    kept: Mapping[str, SeriesPlayed]
    """By opponent, with its memory kept from game to game"""
    cleared: Mapping[str, SeriesPlayed]
    """The same with its memory cleared"""

    @property
    def adaptation(self) -> Sample:
        """Returns by how many points the gain of each series is greater with memory kept."""
        kept, cleared = (together(ways).gains for ways in (self.kept, self.cleared))
        return Sample([one - other for one, other in zip(kept, cleared, strict=True)])

    @property
    def verdict(self) -> str:
        low, high = self.adaptation.interval
        if not self.remembers:
            same = "all its games are" if self.kept == self.cleared else "but not all its games are, which is a mistake,"
            return f"{self.name} has no memory that outlasts a game: {same} the same both ways"
        if len(self.adaptation.values) < FEWEST:
            return (f"no verdict about {self.name}: {len(self.adaptation.values)} series are too few for the interval to be "
                    f"trusted, it takes {FEWEST} or more (--series)")
        seen = "adapts" if low > 0.0 else "plays worse for what it remembers" if high < 0.0 else "is not seen to adapt"
        return f"{self.name} {seen}: with its memory kept it gains {_text(self.adaptation)} points more than with it cleared"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench adaptation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("players", nargs="*", metavar="PLAYER")
    parser.add_argument("--against", action="append", metavar="NAME",
                        help=f"may be repeated; by default {', '.join(OPPONENTS)}")
    parser.add_argument("--games", type=int, default=5, help="of a series")
    parser.add_argument("--series", type=int, default=64, help="against each opponent, half of them as orange")
    parser.add_argument("--simulator", choices=SIMULATORS, default="rocketsim")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a game without a goal ends after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stochastic", action="store_true", help="policies sample their actions, as in training")
    parser.add_argument("--no-controls", action="store_true", help="leave out the late starter and the champion")
    options = parser.parse_args(arguments)
    if options.games < 2 or options.series < 1:
        raise UserError("a series needs two games or more, and at least one series: raise --games and --series")
    asked = [*options.players, *(() if options.no_controls else CONTROLS)]
    if not asked:
        raise UserError("there is nobody to play: name a player, or leave out --no-controls")
    players, opponents = ([find_entrant(name) for name in group] for group in (asked, options.against or OPPONENTS))
    terms = Terms(options.series * options.games, (options.simulator,), seconds=options.seconds, seed=options.seed,
                  deterministic=not options.stochastic).for_entrants([*players, *opponents], None)
    for player in players:
        found = measure(player, opponents, terms, options.games)
        show(found, f"{found.name}: {options.series} series of {options.games} games against each opponent in "
                    f"{options.simulator}, {terms.size}v{terms.size}, {options.seconds:g} s or one goal each")


def measure(player: Entrant, opponents: Sequence[Entrant], terms: Terms, games: int) -> Found:
    """Plays all series of a player both ways, with the same seed. `terms.games`: of all its series against one opponent;
    `games`: of one series."""
    names = distinct_names(opponents).values()
    kept, cleared = (dict(zip(names, map(SeriesPlayed, play(player, opponents, terms, games, forgets)), strict=True))
                     for forgets in (False, True))
    name = "the late starter" if player.asked == LATE_STARTER else player.name
    return Found(name, remembers(player.player()), kept, cleared)


def play(player: Entrant, opponents: Sequence[Entrant], terms: Terms, games: int, forgets: bool) -> list[list[Games]]:
    """The series against each opponent. `forgets`: the memory of the player, not of the opponents, is cleared between games."""
    first, *seconds = (entrant.player(terms.deterministic, stream_seed(terms.seed, "player", index))
                       for index, entrant in enumerate([player, *opponents]))
    first.forgets = forgets
    (simulator,) = terms.simulators
    results = play_players(arenas_of(terms.size, simulator, terms.hitbox), first, seconds, terms.games, seed=terms.seed,
                           device=terms.device, limit=terms.seconds, series=games)
    return [[result.played[start:start + games] for start in range(0, len(result.played), games)] for result in results]


def remembers(player: Player) -> bool:
    """Whether the player can remember anything of a game in the next one of its series."""
    if isinstance(player, Team):
        return any(remembers(cast("Player", member)) for member in player.players)
    if isinstance(player, FrozenPolicies):
        return bool(player.actors.initial_memory(1))
    return type(player).next_game is not Player.next_game


def points(game: PlayedGame) -> float:
    """The result of a game in points of 100."""
    return 50.0 * (1 + game.scored - game.conceded)


def together(series: Mapping[str, SeriesPlayed]) -> SeriesPlayed:
    """The series against all opponents."""
    return SeriesPlayed([games for played in series.values() for games in played.series])


def show(found: Found, title: str) -> None:
    """Prints goal shares by game, and gains."""
    games = len(next(iter(found.kept.values())).series[0])
    table = Table(title=title, title_justify="left")
    for column in ("memory", "against", *(f"game {game}" for game in range(1, games + 1)), "later - first, points of 100"):
        table.add_column(column, justify="left" if column in ("memory", "against") else "right")
    for memory, ways in (("kept", found.kept), ("cleared", found.cleared)):
        for opponent, played in {**ways, "all": together(ways)}.items():
            shares = (played.goal_share(game) for game in range(games))
            table.add_row(memory, opponent, *map(_share, shares), _text(Sample(played.gains)), end_section=opponent == "all")
    table.add_row("kept - cleared", "all", *[""] * games, _text(found.adaptation))
    console = Console(width=150, highlight=False)
    console.print(table)
    console.print(found.verdict, soft_wrap=True)


def _share(share: Share) -> str:
    goals = f"{share.hits}:{share.cases - share.hits}"
    return f"{100 * share.value:.1f} % ({goals})" if share.cases else goals


def _text(sample: Sample) -> str:
    low, high = sample.interval
    return f"{sample.mean:+.1f} ({low:+.1f} to {high:+.1f})"
