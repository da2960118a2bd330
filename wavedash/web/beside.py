"""The page beside a training: `wavedash train ... --page` serves it from a process of its own.

The two share nothing but a pipe. The training writes into it what to serve, and then holds it open: when it ends, for whatever
reason, the system closes the pipe, and the page ends. The training never waits for the page, which may fail, stall or be killed
at any time.
"""
from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from wavedash.errors import UserError

START_SECONDS = 15.0
"""How long a training waits for the address of its page before it begins without"""
END_SECONDS = 10.0
"""A page that has not ended so long after its training ends by force"""
NICE = 5
"""The level of nice of the page; that of the game is lower still"""

log = logging.getLogger(__name__)


class PageBeside:
    """The page of a training that this process does. `link` is its address, with the token."""

    def __init__(self, host: str = "127.0.0.1", port: int | None = None, token: str | None = None, extra: Path | None = None,
                 trust: bool = False, trainer: int | None = None) -> None:
        """Starts the process. `extra`: the folder of the run, where it is known already. UserError: what was asked for cannot
        be served by anybody; everything else that fails is a line of the log. `trainer`: the process that trains, if it is not
        this one."""
        from wavedash.web.serve import chosen_token

        asked = {"host": host, "port": port, "token": chosen_token(host, token), "trainer": trainer or os.getpid(),
                 "extra": None if extra is None else str(extra.absolute()), "trust": trust}
        self.link: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._told = threading.Event()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=_environment(), **_of_its_own())
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self._fail(f"{error.strerror or error}")
            return
        threading.Thread(target=self._attend, args=(self._process,), daemon=True, name="the page").start()

    def wait(self, seconds: float = START_SECONDS) -> str | None:
        """The address, as soon as it is known. None: there is no page, and the log says why."""
        if not self._told.wait(seconds):
            self._fail(f"it has not started within {seconds:g} seconds")
        return self.link

    @property
    def pid(self) -> int | None:
        """The process of the page, if there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """Ends the page, without waiting for it."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Takes the address, and says when the page is gone."""
        assert process.stdout is not None
        said: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            said = json.loads(process.stdout.readline())
        self.link = said.get("link")
        if self.link is None:
            self._fail(str(said.get("error") or f"its process ended ({process.wait()})"))
            return
        self._told.set()
        code = process.wait()
        if self._process is not None:
            log.warning("the page has ended (%d); the run goes on. To open another one: wavedash watch", code)

    def _fail(self, why: str) -> None:
        log.warning("the page could not be started: %s. The run goes on without; to open it later: wavedash watch", why)
        self._told.set()


def _of_its_own() -> dict[str, Any]:
    """Returns what makes the signals of the terminal pass by a process: Ctrl-C is for the training, whose end ends the page."""
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
    # No session of its own: Linux may schedule sessions instead of processes, and the page would get half of the machine.
    return {"process_group": 0}


def _environment() -> dict[str, str]:
    """The environment with the path of this process, so that the page imports the same package and finds the same code."""
    paths = [str(Path(__file__).parents[2]), *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def main() -> None:
    """The process of the page: says where it serves, or why it does not, and serves until the pipe is closed."""
    try:
        asked = json.loads(sys.stdin.buffer.readline())
        served, link = _prepare(asked)
    except (UserError, ImportError, OSError, ValueError) as error:
        _say({"error": str(error)})
        return
    _say({"link": link})
    threading.Thread(target=_end_with_training, args=(served,), daemon=True).start()
    served.run()


def _prepare(asked: dict[str, Any]) -> tuple[Any, str]:
    from wavedash.web.app import make_app
    from wavedash.web.games import Trained
    from wavedash.web.library import Library
    from wavedash.web.players import Players
    from wavedash.web.priority import be_nice
    from wavedash.web.serve import Served, address, bind

    be_nice(NICE)
    bound = bind(asked["host"], asked["port"])
    players = Players(Library(extra=asked["extra"] and Path(asked["extra"]), trust=asked["trust"]))
    trained = Trained(players, asked["trainer"])
    app = make_app(players, asked["token"], asked["host"], trained.run, trained.game)
    return Served(app, bound), address(bound, asked["host"], asked["token"])


def _say(line: dict[str, Any]) -> None:
    """Writes the only line of output; from then on there is none, so that nothing waits for a reader."""
    with suppress(OSError):
        print(json.dumps(line), flush=True)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _end_with_training(served: Any) -> None:
    with suppress(OSError):
        while sys.stdin.buffer.read(4096):
            pass
    served.stop()
    threading.Event().wait(END_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
