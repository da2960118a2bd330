"""KBHit tells which key has been pressed. Without a keyboard (a pipe, the background) it reports none."""
from __future__ import annotations

import atexit
import os
import sys
from typing import Any


class KBHit:
    """`kbhit()` tells whether a key was pressed, `getch()` takes it. Keys are not echoed until `set_normal_term()`, or the
    end."""

    def __init__(self) -> None:
        self._terminal: Any = None
        if os.name != "nt" and _in_foreground():
            import termios

            self._fd = sys.stdin.fileno()
            self._terminal = termios.tcgetattr(self._fd)
            keys = termios.tcgetattr(self._fd)
            keys[3] &= ~(termios.ICANON | termios.ECHO)  # keys arrive at once and are not echoed; Ctrl-C stays a signal
            termios.tcsetattr(self._fd, termios.TCSANOW, keys)
            atexit.register(self.set_normal_term)

    def set_normal_term(self) -> None:
        if self._terminal is not None and _in_foreground():
            import termios

            termios.tcsetattr(self._fd, termios.TCSANOW, self._terminal)
        self._terminal = None

    def kbhit(self) -> bool:
        if os.name == "nt":
            import msvcrt

            return bool(msvcrt.kbhit())  # type: ignore[attr-defined, unused-ignore]
        if self._terminal is None or not _in_foreground():
            return False
        import select

        return bool(select.select([self._fd], [], [], 0)[0])

    def getch(self) -> str:
        """Returns the key that was pressed, "" if there is none."""
        if not self.kbhit():
            return ""
        if os.name == "nt":
            import msvcrt

            return str(msvcrt.getwch())  # type: ignore[attr-defined, unused-ignore]
        return os.read(self._fd, 1).decode(errors="replace")


def _in_foreground() -> bool:
    """Whether this process is in the foreground of its terminal. The system stops a process that reads in the background."""
    try:
        fd = sys.stdin.fileno()
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return False
