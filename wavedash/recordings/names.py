"""Names of the files of recordings: when they were made, and what is in them."""
from __future__ import annotations

import re
from datetime import UTC, datetime

from wavedash.recordings.file import SUFFIX


def stamp() -> str:
    """The time, so that names sort by it: 20261116-150405-123456."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")


def file_name(title: str, made: str) -> str:
    """A name for a file that any system takes. `made` is a `stamp`, perhaps with a number behind it."""
    return f"{made}-{plain(title)}{SUFFIX}"


def plain(title: str) -> str:
    """The letters and digits of a title."""
    return re.sub(r"[^A-Za-z0-9@._-]+", "-", title)[:80].strip("-.")
