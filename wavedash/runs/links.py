"""Links inside a run folder are refused: what is written into the folder must stay in it.

A run folder may be reached through links (`runs` on another disk). But a link inside one can lead anywhere if somebody else has
packed the folder, and a resumed run appends to its files and replaces them.
"""
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from wavedash.errors import UserError


class LinkError(UserError):
    """There is a link where only plain files and folders may be; the message names it and what to do."""


def refuse_links(folder: Path) -> None:
    """Raises LinkError if anything inside the folder is a link, at any depth."""
    for path in _links_in(folder):
        raise LinkError(f"{path} is a link (to {_target(path)}), and what a run writes must stay in its folder. Put a copy of "
                        "what it points to in its place, or remove the link; then try again")


def not_following(path: str, flags: int) -> int:
    """Is an opener for `open` that refuses links, where the system can: one may have appeared since `refuse_links`."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def plain_file(path: str, flags: int) -> int:
    """Is an opener for `open` that refuses links and whatever is no plain file: a pipe would make its reader wait for ever."""
    opened = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    return opened


def is_plain(path: Path) -> bool:
    """Whether there is a file that is neither a link nor a pipe nor anything else."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _links_in(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            with suppress(FileNotFoundError):  # a run that is training may remove it meanwhile
                if is_link(entry.stat(follow_symlinks=False)):
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    yield from _links_in(Path(entry.path))


def is_link(facts: os.stat_result) -> bool:
    """Whether the result of `lstat` is that of a symbolic link, or of a junction of Windows."""
    junction = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)
    return stat.S_ISLNK(facts.st_mode) or (junction is not None and getattr(facts, "st_reparse_tag", 0) == junction)


def _target(path: Path) -> str:
    try:
        return ascii(os.readlink(path))[1:-1]
    except OSError:
        return "somewhere"
