"""Games in which an RLBot bot takes part: they are played through the match server."""
from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wavedash.errors import UserError

if TYPE_CHECKING:
    from wavedash.league.games import Game
    from wavedash.league.match import Terms
    from wavedash.league.players import Entrant


class Faults(NamedTuple):
    """What went wrong with the bots of a team."""

    crashes: int
    """Bots that crashed or hung"""
    missed: int
    """Inputs that did not come in time"""

    def plus(self, crashes: int, missed: int) -> Faults:
        return Faults(self.crashes + crashes, self.missed + missed)


def is_bot(name: str) -> bool:
    """Whether a user means an RLBot bot by this: its file is called `bot.toml` or `*.bot.toml`."""
    return Path(name).name == "bot.toml" or name.endswith(".bot.toml")


def bot_name(path: Path) -> str:
    """The name in the file of a bot. UserError: it is none."""
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8")).get("settings", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"cannot read the bot {path}: {error}. Name the bot.toml of an RLBot v5 bot") from error
    name = settings.get("name") if isinstance(settings, dict) else None
    return name if isinstance(name, str) and name.strip() else path.parent.name


def play_rlbot_game(sides: tuple[Entrant, Entrant], names: tuple[str, str], terms: Terms,
                    seed: int) -> tuple[Game, tuple[Faults, Faults]]:
    """Plays one game, blue first. A bot that crashes or hangs has no input from then on, and the game goes on. Also what went
    wrong with the bots of either side."""
    from wavedash.evaluate.results import utc_now
    from wavedash.league.games import Game

    server = _server()
    rules = server.MatchRules(seconds=terms.seconds, seed=seed)
    outcome = server.play_match(*(_seats(server, entrant, terms.size) for entrant in sides), rules)
    goals = (int(outcome.blue_goals), int(outcome.orange_goals))
    game = Game(utc_now(), 0, *names, terms.size, *goals, round(float(outcome.seconds), 3), "rocketsim", seed)
    seats = list(outcome.seats)
    return game, (_faults(seats[: terms.size]), _faults(seats[terms.size :]))


def _seats(server: Any, entrant: Entrant, size: int) -> list[Any]:
    return [server.SeatSpec(str(member.bot) if member.bot is not None else member.asked)
            for member in entrant.members or (entrant,) * size]


def _faults(seats: Sequence[Any]) -> Faults:
    return Faults(sum(bool(seat.crashed or seat.hung) for seat in seats), sum(int(seat.missing) for seat in seats))


def _server() -> Any:
    """The match server. UserError: this version of the package has none."""
    try:
        return import_module("wavedash.rlbot.server")
    except ModuleNotFoundError as error:
        raise UserError(f"RLBot bots are played through the match server, which cannot be loaded: {error}. Install a version "
                        "of wavedash that has it, with pip install \"wavedash[rlbot]\"") from error
