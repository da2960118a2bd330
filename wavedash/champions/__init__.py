"""The champions that ship: trained policies, each in a folder of its own beside this file.

    champion            the Rocket League bot for the teams at hand, else that of 1v1
    champion-1v1        that of 1v1
    champion-walk       the robot that walks by the heights of the ground around it
    champion-walk-see   the robot that walks by what its depth camera sees

Each folder holds a policy (config.yaml, policy.safetensors in 16 bits, state.json) and its card (card.yaml): how it was
trained, and how it plays or walks. docs/league.md and docs/walking.md say how one is packed.
"""
from __future__ import annotations

import re
from pathlib import Path

from wavedash.errors import UserError

FOLDER = Path(__file__).parent
NAME = "champion"
WALKERS = ("walk", "walk-see")
"""The champions that walk; all others play Rocket League"""
TEAMS = re.compile(r"([1-4])v\1")
"""The others are called by the size of their teams"""


def is_champion(name: str | Path) -> bool:
    """Whether a name means a champion, one that ships or not."""
    return str(name) == NAME or re.fullmatch(rf"{NAME}-(\dv\d|{'|'.join(WALKERS)})", str(name)) is not None


def modes() -> list[str]:
    """The sizes of teams for which a champion ships: `1v1`, ..."""
    return [name for name in _shipped() if TEAMS.fullmatch(name)]


def walkers() -> list[str]:
    """Returns those of `WALKERS` that ship."""
    return [name for name in WALKERS if name in _shipped()]


def champion_names() -> list[str]:
    """All names of champions that play Rocket League."""
    return [NAME, *(f"{NAME}-{mode}" for mode in modes())]


def champion_folder(name: str | Path, teams: int | None = None) -> Path:
    """Returns the folder of a champion. `teams` is how many cars a team has where it is to play; None: not known."""
    mode = str(name).removeprefix(NAME).removeprefix("-") or f"{teams or 1}v{teams or 1}"
    if mode not in (found := _shipped()):
        there = ", ".join(f"{NAME}-{each}" for each in found)
        raise UserError(f"no champion for {mode} ships with this version; there is {there or 'none'}")
    return FOLDER / mode


def _shipped() -> list[str]:
    return sorted(path.parent.name for path in FOLDER.glob("*/policy.safetensors"))
