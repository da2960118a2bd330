"""The process of a bot's program: started by its command, stopped with all that it started, and the end of what it printed."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from wavedash.rlbot.server import keeper

REMEMBERED = 4096
"""Bytes of output that are kept"""
TO_BE_KILLED = 5.0
"""Seconds after which a program that is being ended is given up"""
NOT_TEXT = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\n\x20-\x7e\xa0-\U0010ffff]")
"""Codes that color a terminal, and control characters"""


class BotProcess:
    """A started program. Its output is read and forgotten but for the end, so it can neither block nor fill a disk."""

    def __init__(self, command: str, folder: Path, variables: Mapping[str, str]) -> None:
        """`command` is given to the shell, as RLBot does. `python` means the Python of this process, unless the command says
        where another one is."""
        here = str(Path(sys.executable).parent)
        environment = {**os.environ, **variables, "PATH": os.pathsep.join([here, os.environ.get("PATH", "")])}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, command], cwd=folder, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
            process_group=None if sys.platform == "win32" else 0)  # Ctrl-C is the server's
        self._end = b""
        self._reader = threading.Thread(target=self._read, name=f"output of {command}", daemon=True)
        self._reader.start()

    def exit_code(self, within: float = 0.0) -> int | None:
        """None: it runs, and does not end within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within)
        return self._process.returncode

    def last_words(self, lines: int = 8) -> str:
        """The last lines that it printed."""
        self._reader.join(0.2 if self.exit_code() is not None else 0.0)
        return "\n".join(NOT_TEXT.sub("", self._end.decode(errors="replace")).strip().splitlines()[-lines:])

    def end(self) -> None:
        """Asks its keeper to end it, with all processes that it started."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Ends it, and waits until that is done."""
        self.end()
        if self.exit_code(within=TO_BE_KILLED) is None:
            self._process.kill()
            self.exit_code(within=TO_BE_KILLED)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while data := self._process.stdout.read(1 << 16):
            self._end = (self._end + data)[-REMEMBERED:]
