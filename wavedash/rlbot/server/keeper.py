"""Keeper: the process between the match server and a bot's program. It ends the program, and what this has started, when the
server ends or closes its pipe, also if the server was killed.

It is run as a script of its own and imports nothing of the package, so that it starts at once.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress


def main(command: str) -> None:
    program = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL,
                               process_group=None if sys.platform == "win32" else 0)
    threading.Thread(target=_end_with_server, args=(program.pid,), daemon=True).start()
    code = program.wait()
    _end(program.pid)
    if code < 0:
        os.kill(os.getpid(), -code)  # the server sees which signal it was
    os._exit(as_exit_code(code))


def as_exit_code(code: int) -> int:
    """The same as a C int. Windows counts crashes from 3 thousand million on: 0xC0000005 is an access violation."""
    return code - 2**32 if code >= 2**31 else code


def _end_with_server(pid: int) -> None:
    sys.stdin.buffer.read()  # nothing comes; it ends when the server's end of the pipe is closed
    _end(pid)


def _end(pid: int) -> None:
    """Ends the program and what is left of what it has started."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], check=False, capture_output=True)
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # its group, whose first one it is


if __name__ == "__main__":
    main(sys.argv[1])
