"""Where modules are looked for: in what is installed first, then where the user stands, but never in a run folder.

A reward or environment of one's own lies in the folder where one works, so that folder is searched. It comes last: a file that
happens to have the name of an installed package must not take its place. And a run folder may come from anybody: what lies in
it is data, which is not imported because a user has gone there to look at it.

Imports nothing but what Python has loaded already, because it runs before anything else is imported.
"""
from __future__ import annotations

import os
import sys

MANIFEST = "manifest.json"


def forget_first_folder() -> None:
    """`python -m` puts the current folder before all others."""
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(os.getcwd()):
        del sys.path[0]


def look_here_last() -> None:
    """The current folder comes last, unless it is in the path already (PYTHONPATH) or inside a run folder."""
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
    """Whether a configuration lies there beside checkpoints (`best/step-000000001000/manifest.json`)."""
    if not os.path.lexists(os.path.join(folder, "config.yaml")):
        return False
    return any(os.path.lexists(os.path.join(checkpoint, MANIFEST))
               for store in _folders(folder) for checkpoint in (store, *_folders(store)))


def of_a_child() -> dict[str, str]:
    """Environment variables for `python -P -m module`: it looks where this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _folders(folder: str | os.PathLike[str]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []
