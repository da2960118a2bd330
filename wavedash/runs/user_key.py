"""A secret of this user, which distinguishes run folders that this user started from those of others.

It is made when it is first needed and never leaves the machine. A user who copies a run folder to another machine needs
`--trust` there once, or copies the secret too.
"""
from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

HOME = "WAVEDASH_HOME"
"""The environment variable that names another folder for files of this user"""
BYTES = 32


def user_folder() -> Path:
    """Returns the folder of files of this user that belong to no run."""
    if named := os.environ.get(HOME):
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError as error:
        raise OSError(f"{error}; set {HOME} to a folder of yours") from error
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "wavedash"


def user_key() -> bytes:
    """Returns the secret, which is made if there is none yet. OSError: it can neither be read nor made."""
    path = user_folder() / "key"
    if not path.exists():
        _make(path)
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except ValueError as error:
        raise OSError(f"{path} is damaged; remove it, and a new one is made") from error
    if len(key) != BYTES:
        raise OSError(f"{path} is damaged ({len(key)} bytes instead of {BYTES}); remove it, and a new one is made")
    return key


def _make(path: Path) -> None:
    """Writes the secret under another name first, then links it: of several processes the first wins, and none sees a part of
    it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".key-{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):
            _link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if not path.exists():
            os.rename(draft, path)
