"""Bot files: what a `bot.toml` says, read by RLBot's own parser."""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.rlbot.car_bodies import HITBOX_OF_BODY, USUAL
from wavedash.rlbot.package import flat


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


def is_bot_file(name: str) -> bool:
    """Whether a user means an RLBot bot by this: its file is called `bot.toml` or `*.bot.toml`."""
    return Path(name).name == "bot.toml" or name.endswith(".bot.toml")


def read_bot_file(path: Path) -> BotFile:
    """Reads a bot.toml and the loadout that it names. UserError: it describes no bot that could be started."""
    fb = flat()  # a missing package is answered by name
    from rlbot.config import ConfigParsingException, load_player_config

    try:
        bot, as_orange = (load_player_config(path, team).variety for team in (0, 1))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ConfigParsingException) as error:
        raise UserError(f"cannot read the bot {path}: {error}. Name the bot.toml of an RLBot v5 bot") from error
    assert isinstance(bot, fb.CustomBot) and isinstance(as_orange, fb.CustomBot)
    if not bot.agent_id:
        raise UserError(f"{path} has no agent_id in [settings], by which its program is recognised: add "
                        'agent_id = "your-name/your-bot"')
    if not Path(bot.root_dir).is_dir():
        raise UserError(f"{path} names the root_dir {bot.root_dir}, which is no folder: correct it")
    return BotFile(path, bot.name.strip() or path.parent.name, bot.agent_id, Path(bot.root_dir), bot.run_command.strip(),
                   bot.hivemind, (bot.loadout, as_orange.loadout))
