"""The process of a bot's program: started by its command, stopped with all that it started, and the end of what it printed."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

REMEMBERED = 40
"""Lines of output that are kept"""
LONGEST_LINE = 500


class BotProcess:
    """A started program. Its output is read and forgotten but for the last lines, so it can neither block nor fill a disk."""

    def __init__(self, command: str, folder: Path, variables: Mapping[str, str]) -> None:
        """`command` is given to the shell, as RLBot does. `python` means the Python of this process, unless the command says
        where another one is. UserError: the shell could not be started."""
        here = str(Path(sys.executable).parent)
        environment = {**os.environ, **variables, "PATH": os.pathsep.join([here, os.environ.get("PATH", "")])}
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if sys.platform == "win32" else {"process_group": 0}
        self._process = subprocess.Popen(command, shell=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **group)  # type: ignore[call-overload]
        self._lines: deque[str] = deque(maxlen=REMEMBERED)
        self._reader = threading.Thread(target=self._read, name=f"output of {command}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    def exit_code(self, within: float = 0.0) -> int | None:
        """None: it runs, and does not end within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within)
        code: int | None = self._process.returncode
        return code

    def last_words(self, lines: int = 8) -> str:
        """The last lines that it printed."""
        self._reader.join(0.2 if self.exit_code() is not None else 0.0)
        return "\n".join(list(self._lines)[-lines:])

    def stop(self, grace: float) -> None:
        """Waits so many seconds for it to end, then ends it and all processes that it started."""
        self.exit_code(within=grace)
        self._kill_all()
        self.exit_code(within=5.0)

    def _kill_all(self) -> None:
        import psutil  # comes with rlbot

        with suppress(psutil.Error):
            for child in psutil.Process(self.pid).children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
        if sys.platform == "win32":
            self._process.kill()
        else:  # its group also has those whose parents have ended
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(LONGEST_LINE):
            self._lines.append(line.decode(errors="replace").rstrip())
