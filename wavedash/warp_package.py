"""Warp, an optional dependency that runs our kernels: how it is started, and how a compilation is announced."""
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

COMPILE_SECONDS = 1.5
"""A kernel that takes longer to load is being compiled: from the cache it takes some tenths of a second"""


def start_warp(runs: str, install: str) -> None:
    """Starts Warp without its greeting, and without its warning about a missing driver where there is no GPU. The error of a
    missing package says what it `runs` and what to `install`."""
    try:
        import warp
    except ImportError as error:
        raise UserError(f"Warp, which runs {runs}, is not installed ({error}). Install it with: {install}") from error
    warp.config.log_level = warp.LOG_WARNING
    with nullcontext() if torch.cuda.is_available() else _without_stderr():
        warp.init()  # type: ignore[no-untyped-call]


@contextmanager
def log_if_compiling(what: str, device: str, after: float = COMPILE_SECONDS) -> Iterator[None]:
    """Wraps the loading of kernels, and logs a line if they have to be compiled."""
    import warp

    folder = Path(warp.config.kernel_cache_dir or "")
    warning = Timer(after, log.warning, (
        "compiling %s for %s: about a minute, once on this machine (kept in %s)", what, device, folder))
    warning.daemon = True
    warning.start()
    try:
        yield
    finally:
        warning.cancel()


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Silences C code too, which writes to the file descriptor; Warp has no option for that."""
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
