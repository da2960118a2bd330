"""Warp, started without a word. It is an optional dependency, started before anything else of this package is imported."""
from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Timer

import torch

from wavedash.errors import UserError

log = logging.getLogger(__name__)

INSTALL = "pip install 'wavedash[rocket]'"
COMPILES = 1.5
"""Seconds after which loading a kernel must be compiling it: from the cache it takes some tenths of one"""


def start_warp() -> None:
    """Warp without its greeting, and without its complaint about a missing driver where there is no GPU."""
    try:
        import warp
    except ImportError as error:
        raise UserError(f"Warp, which runs our simulator, is not installed ({error}). Install it with: {INSTALL}. Or take the "
                        "other simulator: env.rocket.simulator=rocketsim") from error
    warp.config.log_level = warp.LOG_WARNING
    with nullcontext() if torch.cuda.is_available() else _without_stderr():
        warp.init()  # type: ignore[no-untyped-call]


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Around the loading of a kernel: says so if it has to be compiled."""
    import warp

    folder = Path(warp.config.kernel_cache_dir or "")
    line = Timer(COMPILES, log.warning, (
        "compiling the simulator for %s: about a minute, once on this machine (kept in %s)", what, folder))
    line.daemon = True
    line.start()
    try:
        yield
    finally:
        line.cancel()


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Silences C code too, which writes to the descriptor; no option of Warp's reaches that."""
    try:
        kept = os.dup(2)
    except OSError:  # a program without a console
        yield
        return
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
