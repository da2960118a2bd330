"""Games in which an RLBot bot takes part: they are played through the match server."""
from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
