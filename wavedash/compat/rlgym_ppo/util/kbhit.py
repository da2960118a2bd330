"""KBHit: has a key been pressed, and which? Where there is no keyboard to ask (a pipe, the background), none ever is."""
from __future__ import annotations

import atexit
import os
import sys
from typing import Any


class KBHit:
    """`kbhit()` tells whether a key waits, `getch()` takes it. Keys are not echoed until `set_normal_term()`, or the end."""

    def __init__(self) -> None:
        self._terminal: Any = None
        if os.name != "nt" and _in_front():
            import termios

            self._fd = sys.stdin.fileno()
            self._terminal = termios.tcgetattr(self._fd)
            keys = termios.tcgetattr(self._fd)
            keys[3] &= ~(termios.ICANON | termios.ECHO)  # every key at once and unseen; Ctrl-C stays a signal
            termios.tcsetattr(self._fd, termios.TCSANOW, keys)
            atexit.register(self.set_normal_term)

    def set_normal_term(self) -> None:
        if self._terminal is not None and _in_front():
            import termios

            termios.tcsetattr(self._fd, termios.TCSANOW, self._terminal)
        self._terminal = None

    def kbhit(self) -> bool:
        if os.name == "nt":
            import msvcrt

            return bool(msvcrt.kbhit())  # type: ignore[attr-defined, unused-ignore]
        if self._terminal is None or not _in_front():
            return False
        import select

        return bool(select.select([self._fd], [], [], 0)[0])

    def getch(self) -> str:
        """The key that waits, "" if none does."""
        if not self.kbhit():
            return ""
        if os.name == "nt":
            import msvcrt

            return str(msvcrt.getwch())  # type: ignore[attr-defined, unused-ignore]
        return os.read(self._fd, 1).decode(errors="replace")


def _in_front() -> bool:
    """Whether this process reads from the terminal it was started in. The system stops one in the background that tries."""
    try:
        fd = sys.stdin.fileno()
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return False
