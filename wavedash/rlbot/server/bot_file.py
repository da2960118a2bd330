"""Bot files: what a `bot.toml` says, read by RLBot's own parser."""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.rlbot.car_bodies import HITBOX_OF_BODY, USUAL
from wavedash.rlbot.package import flat

USUAL_NAME = "bot.toml"


@dataclass(frozen=True)
class BotFile:
    """A bot that can be started."""

    path: Path
    name: str
    agent_id: str
    root: Path
    """The working directory of its program"""
    command: str
    """What starts its program; empty: its user starts it by hand"""
    hivemind: bool
    """One program drives all cars of a team that have this bot"""
    loadouts: tuple[Any, Any]
    """RLBot's `PlayerLoadout` as blue and as orange, or None"""

    def hitbox(self, team: int) -> str:
        loadout = self.loadouts[team]
        return USUAL if loadout is None else HITBOX_OF_BODY.get(loadout.car_id, USUAL)


def find_bot_file(name: str) -> Path | None:
    """The file that a user means by the path of a `bot.toml` or `*.bot.toml`, or by a folder with a bot.toml; None: no bot is
    meant."""
    path = Path(name)
    if path.name == USUAL_NAME or name.endswith(f".{USUAL_NAME}"):
        return path
    return path / USUAL_NAME if (path / USUAL_NAME).is_file() else None


def _printable(text: str) -> str:
    """The same in one line and without control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def read_bot_file(path: Path) -> BotFile:
    """Reads a bot.toml and the loadout that it names. UserError: it describes no bot that could be started."""
    fb = flat()  # a missing package is answered by name
    from rlbot.config import ConfigParsingException, load_player_config

    try:
        bot, as_orange = (load_player_config(path, team).variety for team in (0, 1))
    except (OSError, ValueError, OverflowError, tomllib.TOMLDecodeError, ConfigParsingException) as error:
        raise UserError(f"cannot read the bot {path}: {error}. Name the bot.toml of an RLBot v5 bot") from error
    assert isinstance(bot, fb.CustomBot) and isinstance(as_orange, fb.CustomBot)
    if not bot.agent_id:
        raise UserError(f"{path} has no agent_id in [settings], by which its program is recognised: add "
                        'agent_id = "your-name/your-bot"')
    if not Path(bot.root_dir).is_dir():
        raise UserError(f"{path} names the root_dir {bot.root_dir}, which is no folder: correct it")
    if "\0" in bot.run_command + bot.agent_id:
        raise UserError(f"{path} has a zero byte in its run_command or agent_id: correct it")
    return BotFile(path, _printable(bot.name) or path.parent.name, bot.agent_id, Path(bot.root_dir), bot.run_command.strip(),
                   bot.hivemind, (bot.loadout, as_orange.loadout))
