"""Warnings of the package on the console of a script that has set up no logging of its own."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

PACKAGE = logging.getLogger("wavedash")


@contextmanager
def warnings_on_console() -> Iterator[None]:
    """Entered before the run's log file listens: Python shows warnings by itself only while nobody does."""
    if PACKAGE.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    PACKAGE.addHandler(handler)
    try:
        yield
    finally:
        PACKAGE.removeHandler(handler)
