"""Whole matches through the match server, one after the other: what `wavedash rlbot serve` plays."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wavedash.errors import UserError
from wavedash.evaluate.results import utc_now
from wavedash.league.games import Game, GamesFile
from wavedash.league.match import Terms, names_of
from wavedash.league.players import Entrant
from wavedash.league.rlbot_games import SIMULATOR, seats_of
from wavedash.recordings.order import Order
from wavedash.rlbot.server.bot_file import BotFile
from wavedash.rlbot.server.program import USUAL_PATIENCE, Patience
from wavedash.rlbot.server.referee import Referee, WholeMatch
from wavedash.rlbot.server.serving import Manner, Outcome, play_match
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.recording.events import TEAMS
from wavedash.seeding import stream_seed

if TYPE_CHECKING:
    from wavedash.cli.progress import Shown

USUAL_PORT = 23234
"""RLBot's own, where bots look for the server that are told nothing"""


@dataclass(frozen=True)
class Serving:
    """How matches are served."""

    matches: int = 1
    minutes: float = 5.0
    overtime: float = 5.0
    """Its longest, in minutes"""
    countdown: float = 3.0
    seed: int = 1
    deterministic: bool = True
    latency: int = 1
    real_time: bool = False
    port: int = 0
    patience: Patience = USUAL_PATIENCE
    record: Order | None = None


def serve_matches(entrants: Sequence[Entrant], size: int | None, serving: Serving, out: Path,
                  progress: Shown | None = None) -> Iterator[str]:
    """Plays matches, appends each result to the file `out`, and yields what there is to say of it. UserError: the file cannot
    be written; it is found out before anything is played."""
    blue, orange = entrants
    terms = Terms(serving.matches, (SIMULATOR,), seed=serving.seed, deterministic=serving.deterministic)
    terms = terms.for_entrants(entrants, size)
    names = names_of(blue, orange)
    file = GamesFile(out)
    seeds = [stream_seed(serving.seed, "serve", number) % 2**31 for number in range(serving.matches)]
    _check_port(entrants, serving.port)
    _check_new(file, names, seeds)
    _add(file, [])
    for number, seed in enumerate(seeds):
        seats = [seat for team, entrant in enumerate(entrants) for seat in seats_of(entrant, team, terms)]
        referee = WholeMatch(60 * serving.minutes, 60 * serving.overtime, serving.countdown)
        manner = Manner(seed, None, serving.latency, serving.real_time, serving.port, serving.patience, serving.record)
        text = f"match {number + 1} of {serving.matches}: {names[0]} against {names[1]}"
        show = progress(text, "the clock") if progress else None

        def tell(referee: Referee, show=show) -> None:  # type: ignore[no-untyped-def]
            if show is not None:
                assert isinstance(referee, WholeMatch)
                show(min(1.0, referee.clock / referee.length))

        outcome = play_match(seats, referee, manner, tell)
        seconds = round(sum(result.seconds for result in outcome.results), 3)
        yield report_of(names, outcome, referee)  # first of all: if the file cannot be written any more, the result is there
        _add(file, [Game(utc_now(), 0, *names, terms.size, *outcome.goals, seconds, SIMULATOR, seed)])


def started_by_hand(entrants: Sequence[Entrant]) -> list[BotFile]:
    """Bots without a run_command."""
    return [member.bot for entrant in entrants for member in entrant.members or (entrant,)
            if member.bot is not None and not member.bot.command]


def _check_port(entrants: Sequence[Entrant], port: int) -> None:
    """A bot that is started by hand must know where to connect."""
    for bot in started_by_hand(entrants) if not port else ():
        raise UserError(f"{bot.path} has no run_command, so you start it by hand: use --port {USUAL_PORT}, RLBot's own, where "
                        "it looks for the server")


def _check_new(file: GamesFile, names: tuple[str, str], seeds: Sequence[int]) -> None:
    """Refuses matches that the file has: they would count twice."""
    if any(game.seed in seeds and {game.blue, game.orange} == set(names) for game in file.read()):
        raise UserError(f"{file.path} already has matches of {names[0]} and {names[1]} with this seed, which would be the same "
                        "again and count twice: use another --seed, or another file with --out")


def _add(file: GamesFile, games: Sequence[Game]) -> None:
    try:
        file.add(games)
    except OSError as error:
        raise UserError(f"cannot write {file.path}: {error.strerror or error}; name another file with --out") from error


def report_of(names: tuple[str, str], outcome: Outcome, referee: Referee) -> str:
    """Says what there is to say of a match."""
    blue, orange = outcome.goals
    seconds = sum(result.seconds for result in outcome.results)
    # Packets count and not play: countdowns take time too, and in real time the speed is that of the clock.
    speed = outcome.ticks / TICK_RATE / outcome.wall_seconds if outcome.wall_seconds else 0.0
    after = " after overtime" if referee.overtime else ""
    return "\n".join([f"{names[0]} {blue} : {orange} {names[1]}{after}",
                      f"  {seconds / 60:.1f} minutes of play at {speed:.1f} times real time, touches {outcome.touches[0]} : "
                      f"{outcome.touches[1]}", *(f"  {TEAMS[conduct.team]}, {conduct}" for conduct in outcome.conduct)])
