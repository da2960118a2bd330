"""Cleaner: takes out of an export what tells about the machine and the user: absolute paths, names of users and hosts.

A run folder holds no absolute path where it can be helped, but configurations, names of players and texts of events are what
users typed. What is left of a path is its last part, so that two players remain two.
"""
from __future__ import annotations

import getpass
import os
import platform
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wavedash.recordings import Recording
from wavedash.runs.links import plain_file
from wavedash.runs.plain import from_json

GONE = "…"
"""What stands for something that was taken out"""
PART = r"[^\s/\\\"'`<>|:*?,;()\[\]{}]+"
ABSOLUTE = re.compile(
    rf"(?<![\w.~{GONE}:/\\-])(?:file:/*)?(?:[A-Za-z]:[\\/]+|\\\\+|/)(?P<way>(?:{PART}[\\/]+)+)(?P<last>{PART})?[\\/]*")
"""An absolute path of any system, of at least two parts: `and/or` and `m/s` are none"""
HOMES = {"home", "users", "documents and settings"}
"""Folders whose subfolders are named after users"""


class Cleaner:
    """Cleans texts and everything that holds some. The same text always becomes the same."""

    def __init__(self, run: Path) -> None:
        """`run`: the folder of the run, whose files tell on which machines it was trained, and by whom."""
        known = {run.absolute(): run.name, run.resolve(): run.name, Path.cwd(): ".", **_home()}
        self._places = [(re.compile(rf"(?<![\w.~/\\-]){_spelled(path)}(?![\w-])"), name)
                        for path, name in sorted(known.items(), key=lambda item: -len(str(item[0]))) if len(path.parts) > 1]
        hosts = {name for name in (socket.gethostname(), platform.node(), *_hosts(run)) if name}
        users = {*_user()}
        self._people = [re.compile(rf"[\w.+-]+@(?:{'|'.join(map(re.escape, sorted(hosts)))})(?![\w-])"),
                        re.compile(rf"(?<=\bon )(?:{'|'.join(map(re.escape, sorted(hosts)))})(?![\w-])")] if hosts else []
        self._people += [re.compile(rf"(?<![\w.-]){re.escape(user)}@[\w.-]+") for user in sorted(users)]

    def text(self, text: str) -> str:
        for place, name in self._places:
            text = place.sub(name, text)
        text = ABSOLUTE.sub(_last_part, text)
        for person in self._people:
            text = person.sub(GONE, text)
        return text

    def value(self, value: Any) -> Any:
        """The same with clean texts, also as keys. Keys that have become the same get numbers."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            cleaned: dict[Any, Any] = {}
            for key, item in value.items():
                name = _free(self.value(key), cleaned) if isinstance(key, str) else key
                cleaned[name] = self.value(item)
            return cleaned
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def recording(self, recording: Recording) -> Recording:
        """The same recording with a clean header."""
        header = dict(recording.header)
        ground = {key: header["scene"][key] for key in ("heights",) if key in header["scene"]}  # numbers that look like text
        kept = {"format", "record", "actions"}
        clean = {key: item if key in kept else self.value(item) for key, item in header.items()}
        clean["scene"] = {**clean["scene"], **ground}
        return Recording(clean, recording.layout, recording.records)


def _last_part(found: re.Match[str]) -> str:
    parts = [part for part in re.split(r"[\\/]+", found["way"]) if part]
    if found["last"] is None:
        parts, last = parts[:-1], parts[-1]
    else:
        last = found["last"]
    is_user = bool(parts) and parts[-1].lower() in HOMES
    return GONE if is_user or not parts else f"{GONE}/{last}"


def _free(name: str, taken: Iterable[str]) -> str:
    """A name that nobody has yet."""
    known, free, number = set(taken), name, 2
    while free in known:
        free, number = f"{name} ({number})", number + 1
    return free


def _spelled(path: Path) -> str:
    """A pattern of a path with either separator, each perhaps doubled, as in YAML."""
    return r"[\\/]+".join(re.escape(part.strip("\\/")) for part in path.parts)


def _home() -> dict[Path, str]:
    with suppress(RuntimeError, OSError):
        return {Path.home(): "~"}
    return {}


def _user() -> list[str]:
    with suppress(Exception):  # where the user has no name
        return [getpass.getuser()]
    return []


def _hosts(run: Path) -> set[str]:
    """Names of the machines on which the run was trained."""
    found = set()
    with suppress(OSError), open(run / "env.jsonl", "rb", opener=plain_file) as file:
        for line in file:
            with suppress(ValueError):
                row = from_json(line)
                if isinstance(row, dict) and isinstance(row.get("host"), str):
                    found.add(row["host"])
    with suppress(OSError), open(run / "events.jsonl", "rb", opener=plain_file) as file:
        for line in file:
            with suppress(ValueError):
                row = from_json(line)
                by = row.get("by") if isinstance(row, dict) else None
                if isinstance(by, str) and "@" in by:  # `page` and files have no machine
                    found.add(by.rpartition("@")[2].strip())
    return {name for name in found if name and os.sep not in name}
