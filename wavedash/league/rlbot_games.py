"""Games in which an RLBot bot takes part: they are played through the match server, which starts the bots' programs."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wavedash.errors import UserError
from wavedash.evaluate.matches import Progress, nudged_kickoff
from wavedash.evaluate.results import MatchResult, PlayedGame, Score
from wavedash.recordings.order import Order
from wavedash.rlbot.server.arena import Seat
from wavedash.rlbot.server.program import Conduct
from wavedash.rlbot.server.referee import FirstGoals, Referee, WholeMatch
from wavedash.rlbot.server.serving import Manner, play_match
from wavedash.seeding import stream_seed

if TYPE_CHECKING:
    from wavedash.league.match import Terms
    from wavedash.league.players import Entrant

SIMULATOR = "rocketsim"
"""Where the match server plays"""


class Faults(NamedTuple):
    """What went wrong with the bots of a team."""

    crashes: int
    """Bots that crashed or hung"""
    missed: int
    """Packets without an answer"""

    def plus(self, crashes: int, missed: int) -> Faults:
        return Faults(self.crashes + crashes, self.missed + missed)


@dataclass(frozen=True)
class BotMatch:
    """Games through the match server."""

    result: MatchResult
    conduct: tuple[Sequence[Conduct], Sequence[Conduct]]
    """How the programs of the first entrant and of the second behaved, in the order that they were started"""

    @property
    def faults(self) -> tuple[Faults, Faults]:
        first, second = (Faults(sum(one.failed for one in side), sum(one.missed for one in side))
                         for side in self.conduct)
        return first, second


def needs_server(terms: Terms, *entrants: Entrant) -> bool:
    """Whether games of these entrants are played through the match server. UserError: they cannot be."""
    bots = [member.bot for entrant in entrants for member in entrant.members or (entrant,) if member.bot is not None]
    if not bots and terms.minutes is None:
        return False
    by_hand = next((bot for bot in bots if not bot.command), None)
    if by_hand is not None:
        raise UserError(f"{by_hand.path} has no run_command: a bot that you start by hand plays with wavedash rlbot serve "
                        "--port 23234")
    if tuple(terms.simulators) != (SIMULATOR,):
        raise UserError("RLBot bots and whole matches are played in RocketSim: leave out --simulator")
    return True


def seats_of(entrant: Entrant, team: int, terms: Terms) -> list[Seat]:
    """The cars of an entrant. Each has a player or a program of its own."""
    members = entrant.members or (entrant,) * terms.size
    return [Seat(team, member.name, member.bot, member.bot.hitbox(team)) if member.bot is not None else
            Seat(team, member.name, member.player(terms.deterministic, stream_seed(terms.seed, "player", 10 * team + place)),
                 terms.hitbox)
            for place, member in enumerate(members)]


def play_through_server(first: Entrant, second: Entrant, terms: Terms, progress: Progress | None = None,
                        record: Order | None = None) -> BotMatch:
    """Plays `terms.games` games, the first half of them with the first entrant as blue. Games are those of all matches, up to
    the first goal; with `terms.minutes` they are whole matches."""
    played: list[PlayedGame] = []
    conduct: tuple[list[Conduct], list[Conduct]] = ([], [])
    touches, share = [0, 0], 0.0

    def show(referee: Referee) -> None:
        if progress is not None:
            progress(share + len(referee.results) / terms.games)

    games = -(-terms.games // 2), terms.games // 2
    for side, count in enumerate(games):
        sides = (first, second) if side == 0 else (second, first)
        for number, referee in enumerate(_referees(terms, count)):
            seats = [seat for team, entrant in enumerate(sides) for seat in seats_of(entrant, team, terms)]
            manner = Manner(stream_seed(terms.seed, "kick-offs", 1000 * side + number), nudged_kickoff(),
                            patience=terms.patience, record=record)
            outcome = play_match(seats, referee, manner, show)
            share += len(outcome.results) / terms.games
            played += [PlayedGame(side, result.goals[side], result.goals[1 - side], result.seconds)
                       for result in outcome.results]
            for team in (0, 1):
                conduct[team ^ side].extend(one for one in outcome.conduct if one.team == team)
                touches[team ^ side] += outcome.touches[team]
    minutes = sum(game.seconds for game in played) / 60
    score = Score(len(played), sum(game.scored for game in played), sum(game.conceded for game in played),
                  touches[0] / minutes, touches[1] / minutes, minutes)
    return BotMatch(MatchResult(score, played, terms.size, SIMULATOR, terms.stream), conduct)


def _referees(terms: Terms, games: int) -> list[Referee]:
    """One for each match that makes up so many games."""
    if terms.minutes is None:
        return [FirstGoals(games, terms.seconds)] if games else []
    return [WholeMatch(60 * terms.minutes, countdown=0.5, celebration=0.1) for _ in range(games)]

