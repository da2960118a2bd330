"""`log.txt` holds everything the package logs during a run, and the traceback if the run fails."""
from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Self

from wavedash.ppo.listener import Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

PACKAGE = logging.getLogger("wavedash")


class LogFile(Listener):
    """Takes what the package logs from the moment it is made, so that the preparation of the run is in the file too."""

    def __init__(self, path: Path, early: Iterable[logging.LogRecord] = ()):
        """`early` is what was logged before there was a file: see `EarlyMessages`."""
        self._handler: logging.Handler = logging.NullHandler()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handler = _SteadyHandler(path, encoding="utf-8")
        except OSError as error:
            PACKAGE.warning("%s cannot be written (%s): this run has no log file. Make room on that disk, or move away what is "
                            "in its place", path, error)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        for record in early:
            self._handler.handle(record)
        PACKAGE.addHandler(self._handler)
        self._level_before = PACKAGE.level
        PACKAGE.setLevel(logging.DEBUG)  # handlers have levels of their own; the file takes all

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if error is not None:
            PACKAGE.debug("the run ended with an error", exc_info=error)
        PACKAGE.removeHandler(self._handler)
        PACKAGE.setLevel(self._level_before)
        with contextlib.suppress(OSError):  # the last messages did not fit on the disk
            self._handler.close()


class EarlyMessages(logging.Handler):
    """Keeps what the package logs while a run is being prepared, for its log file. Messages still appear where they would
    appear without this handler."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        PACKAGE.removeHandler(self)

    def start(self) -> None:
        """Keeps messages from now on, also once more after `stop`."""
        PACKAGE.addHandler(self)

    def stop(self) -> list[logging.LogRecord]:
        """Returns what was kept since the last call, and keeps no more: the log file takes over."""
        PACKAGE.removeHandler(self)
        records, self.records = self.records, []
        return records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        # Python prints warnings itself only while there is no handler at all, which this one must not change.
        last_resort = logging.lastResort
        if PACKAGE.handlers == [self] and not logging.root.handlers and last_resort and record.levelno >= last_resort.level:
            last_resort.handle(record)


# WatchedFileHandler begins a deleted file anew. It does not work on Windows, which deletes no open file anyway.
_Handler = logging.FileHandler if os.name == "nt" else WatchedFileHandler


class _SteadyHandler(_Handler):  # type: ignore[misc, valid-type]
    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # its folder was deleted
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Does nothing. The original prints a traceback per message, which floods the console when the disk is full."""
