"""Shows warnings of the package on the console of a script that has not set up logging."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

PACKAGE = logging.getLogger("wavedash")


@contextmanager
def warnings_on_console() -> Iterator[None]:
    """Prints warnings while a run has a log file: Python prints them itself only while there is no handler."""
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
