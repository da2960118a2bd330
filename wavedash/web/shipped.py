"""Names of the scripts and starts that ship with Rocket League, without its packages in the process of the server.

To know them, torch is imported, which takes a second and 300 MB. So a process of its own looks, once, when somebody asks.
"""
from __future__ import annotations

import json
import multiprocessing
import signal
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

SECONDS = 120.0
"""How long the process may take, on a slow disk"""


class UnaskedError(Exception):
    """The names could not be asked for this time."""


def shipped(kind: str) -> list[str]:
    """The names of all parts of a kind: `player` or `start`. None are known where the packages are not installed."""
    try:
        return list(_all()[kind])
    except UnaskedError:
        return []


@cache
def _all() -> dict[str, list[str]]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_tell, args=(theirs,), name="wavedash-names", daemon=True)
    try:
        process.start()
        theirs.close()
        if not ours.poll(SECONDS):
            raise UnaskedError
        found: Any = json.loads(ours.recv_bytes(1 << 20))
        return {kind: [str(name) for name in found[kind]] for kind in ("player", "start")}
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise UnaskedError from error
    finally:
        ours.close()
        if process.pid is not None:
            process.kill()
            process.join()


def _tell(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks
    from wavedash.errors import UserError

    found: dict[str, list[str]] = {"player": [], "start": []}
    try:
        from wavedash.rocket import names

        found = {kind: sorted(names.shipped(kind)) for kind in found}
    except (ImportError, UserError):
        pass
    connection.send_bytes(json.dumps(found).encode())
