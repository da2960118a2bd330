"""The champions that ship: one trained policy for each size of teams, in a folder of its own beside this file.

    champion          the one for the teams at hand, else that of 1v1
    champion-1v1      that of 1v1

Each folder holds a policy (config.yaml, policy.safetensors in 16 bits, state.json) and its card (card.yaml): how it was
trained, and how it plays. docs/league.md says how one is packed.
"""
from __future__ import annotations

import re
from pathlib import Path

from wavedash.errors import UserError

FOLDER = Path(__file__).parent
NAME = "champion"


def is_champion(name: str | Path) -> bool:
    """Whether a name means a champion, one that ships or not."""
    return re.fullmatch(r"champion(-\dv\d)?", str(name)) is not None


def modes() -> list[str]:
    """The sizes of teams for which a champion ships: `1v1`, ..."""
    return sorted(path.parent.name for path in FOLDER.glob("*/policy.safetensors"))


def champion_names() -> list[str]:
    """All names of champions."""
    return [NAME, *(f"{NAME}-{mode}" for mode in modes())]


def champion_folder(name: str | Path, teams: int | None = None) -> Path:
    """Returns the folder of a champion. `teams` is how many cars a team has where it is to play; None: not known."""
    mode = str(name).removeprefix(NAME).lstrip("-") or f"{teams or 1}v{teams or 1}"
    if mode not in modes():
        raise UserError(f"no champion for {mode} ships with this version; there is {', '.join(champion_names()[1:]) or 'none'}")
    return FOLDER / mode
