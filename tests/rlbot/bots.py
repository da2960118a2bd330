"""Exported bots that several tests play with, each made once."""
from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from wavedash.bench.rlbot.policies import Exported, exported


@cache
def folder_of_bots() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="wavedash-bots-")


@cache
def bot_of(name: str) -> Exported:
    """The policy of this name as a bot."""
    return exported(name, Path(folder_of_bots().name, name))
