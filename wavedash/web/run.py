"""Run: a run folder as the page sees it, with what was read of it the last time."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wavedash.config import RunConfig
from wavedash.errors import UserError
from wavedash.runs.folder import RunFolder
from wavedash.runs.links import is_plain


@dataclass
class Run:
    """A run folder, and what was read of it the last time."""

    id: str
    folder: RunFolder
    title: str
    seen: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def cached(self, what: str, stamp: Any, read: Callable[[], Any]) -> Any:
        """Returns what was read when the stamp was the same, else what is read now."""
        if what not in self.seen or self.seen[what][0] != stamp:
            self.seen[what] = (stamp, read())
        return self.seen[what][1]

    def config(self) -> RunConfig | None:
        """The configuration, read as data: nothing that it names is run. None: it cannot be read."""
        return self.cached("config", stamp_of(self.folder.config), lambda: read_config(self.folder.config))


def stamp_of(*paths: Path) -> tuple[Any, ...]:
    """Changes whenever one of the files or folders does."""
    found: list[Any] = []
    for path in paths:
        try:
            facts = os.stat(path)
            found.append((facts.st_mtime_ns, facts.st_size, facts.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


def read_config(path: Path) -> RunConfig | None:
    """A configuration as data. None: it cannot be read."""
    from wavedash.config_file import load_config

    if not is_plain(path):
        return None
    try:
        return load_config(str(path))
    except (UserError, OSError, ValueError):
        return None


def kind_name(config: RunConfig | None) -> str:
    """`rocket`, `walk` or `other`."""
    if config is None:
        return "other"
    return next((name for name in ("rocket", "walk") if getattr(config.env, name, None) is not None), "other")


def team_size(config: RunConfig | None) -> int | None:
    """How many cars a team had in training. Only the kind of Rocket League is asked: others may be somebody else's code."""
    if config is None or kind_name(config) != "rocket":
        return None
    from wavedash.envs.kinds import kind_of

    try:
        return kind_of(config.env).team_size(config.env)
    except (UserError, ValueError):
        return None
