"""The text files of an exported bot: what RLBot reads (bot.toml, loadout.toml), what builds it for a bot pack (bob.toml, the
spec of PyInstaller), and what its user reads."""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from wavedash.rlbot.car_bodies import BODY_OF_HITBOX

PACKAGE = "wavedash_bot"
"""The package of the bot's code in its folder"""
REQUIREMENTS = ("numpy>=1.26", "rlbot==2.0.0b56")
COLORS = (35, 33)
"""Team colors of blue and orange among the game's swatches"""


@dataclass(frozen=True)
class Bot:
    """What users see of a bot."""

    name: str
    developer: str
    description: str
    hitbox: str
    tags: tuple[str, ...]
    """Words that RLBot's GUI sorts bots by, such as 1v1 and teamplay"""

    @property
    def project(self) -> str:
        """The name as one word, for files and ids."""
        return slug(self.name)

    @property
    def agent_id(self) -> str:
        return f"{slug(self.developer)}/{self.project}"


def slug(text: str) -> str:
    """Letters, digits and dashes of a text, in lower case."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()) or "bot"


def texts(bot: Bot, source: str) -> dict[str, str]:
    """The text files by name. `source`: which policy plays."""
    return {"bot.toml": _bot_toml(bot), "loadout.toml": _loadout(bot.hitbox), "run.py": _run(bot),
            "requirements.txt": "\n".join(REQUIREMENTS) + "\n", "bob.toml": _bob(bot), f"{bot.project}.spec": _spec(bot),
            "README.md": _readme(bot, source)}


def _toml(value: str | Sequence[str]) -> str:
    """A string or a list of strings in TOML, whose basic strings escape as JSON's do."""
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _bot_toml(bot: Bot) -> str:
    return f"""#:schema https://rlbot.org/schemas/agent.json
[settings]
agent_id = {_toml(bot.agent_id)}
name = {_toml(bot.name)}
loadout_file = "loadout.toml"
logo_file = "logo.png"
run_command = "python run.py"
run_command_linux = "python3 run.py"

[details]
description = {_toml(bot.description)}
developer = {_toml(bot.developer)}
language = "python"
tags = {_toml(bot.tags)}
"""


def _loadout(hitbox: str) -> str:
    return "\n".join(f"[{team}_loadout]\nteam_color_id = {color}\ncar_id = {BODY_OF_HITBOX[hitbox]}\n"
                     for team, color in zip(("blue", "orange"), COLORS, strict=True))


def _run(bot: Bot) -> str:
    return f'''"""Starts the bot. RLBot runs this file; what the bot does is in the folder {PACKAGE}."""
import os
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # the network is small: more threads would only take cores from the game

from {PACKAGE}.run import main

if __name__ == "__main__":
    main(Path(__file__).resolve().parent, {bot.agent_id!r})
'''


def _bob(bot: Bot) -> str:
    return f"""[[config]]
project_name = {_toml(bot.project)}
bot_configs = ["bot.toml"]

[config.builder_config]
builder_type = "pyinstaller"
entry_file = {_toml(bot.project + ".spec")}
"""


def _spec(bot: Bot) -> str:
    return f"""# PyInstaller: pyinstaller {bot.project}.spec writes dist/{bot.project}, one program without Python
a = Analysis(
    ["run.py"],
    pathex=["."],
    datas=[("settings.json", "."), ("weights.npz", ".")],
    hiddenimports=["{PACKAGE}.run"],
    excludes=["torch", "tkinter"],
)
exe = EXE(PYZ(a.pure), a.scripts, a.binaries, a.datas, name={bot.project!r}, console=True)
"""


def _readme(bot: Bot, source: str) -> str:
    return f"""# {bot.name}

A bot for RLBot v5, trained and exported with Wavedash. Its policy is `{source}`.

1. Install Python 3.11 or newer, then in this folder: `python -m pip install -r requirements.txt`
2. Start RLBot's GUI, add this folder, and put the bot on a team; or name its `bot.toml` in a `match.toml`:

```toml
[rlbot]
launcher = "Steam"          # or "Epic"

[match]
game_mode = "Soccar"
game_map_upk = "Stadium_P"

[[cars]]
config_file = "bot.toml"
team = "blue"

[[cars]]
type = "Human"
team = "orange"
```

The bot decides as in training: same observation, same ticks between decisions, same delay. `loadout.toml` has a car with the
hitbox that it was trained with ({bot.hitbox}); change colors and items there, and the car only for one with this hitbox.

For a bot pack, `bob.toml` and `{bot.project}.spec` build one program of it: `pip install pyinstaller`, then
`pyinstaller {bot.project}.spec`.
"""
