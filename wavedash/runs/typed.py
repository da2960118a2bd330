"""Paths in commands that are printed for users, who copy them."""
from __future__ import annotations

import re
from pathlib import Path

PLAIN = re.compile(r"[\w./\\:@+,~-]+")
"""What no shell, of Linux or Windows, takes apart"""


def typed(path: Path | str) -> str:
    """Returns a path as it is typed in a command: in quotes where it has a space or the like."""
    return str(path) if PLAIN.fullmatch(str(path)) else f'"{path}"'
