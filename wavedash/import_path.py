"""Modules are searched among installed packages first, then in the current folder, but never in a run folder.

A user's reward or environment is usually in the current folder, so that folder is searched. It comes last: a file that happens
to have the name of an installed package must not replace it. A run folder may come from anybody: it holds data, and nothing in
it is imported, even if it is the current folder.

This file imports only what Python has loaded already, because it runs before everything else.
"""
from __future__ import annotations

import os
import sys

MANIFEST = "manifest.json"


def drop_first_folder() -> None:
    """Removes the current folder from the beginning of the path, where `python -m` puts it."""
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(os.getcwd()):
        del sys.path[0]


def append_current_folder() -> None:
    """Appends the current folder to the path, unless it is there already (PYTHONPATH) or inside a run folder."""
    here = os.getcwd()
    if here not in sys.path and not in_run_folder():
        sys.path.append(here)


def in_run_folder() -> bool:
    """Whether the current folder is a run folder or inside one."""
    folder = os.path.realpath(os.getcwd())
    while not is_run_folder(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True


def is_run_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder holds a configuration and checkpoints (`best/step-000000001000/manifest.json`), or is a milestone, a
    checkpoint with a configuration of its own."""
    if not os.path.lexists(os.path.join(folder, "config.yaml")):
        return False
    stores = _folders(folder)
    return any(os.path.lexists(os.path.join(checkpoint, MANIFEST))
               for checkpoint in (folder, *stores, *(checkpoint for store in stores for checkpoint in _folders(store))))


def child_environment() -> dict[str, str]:
    """Returns environment variables for `python -P -m module`, so that it searches modules where this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _folders(folder: str | os.PathLike[str]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []
