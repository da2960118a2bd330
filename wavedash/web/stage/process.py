"""The process of a stage: it plays in real time, obeys commands, and ends when the server is gone.

It is started by the spawn method: `Process(target=main, args=(connection, json))`. The server closes its copy of the stage's
end of the connection after the start, so that each side sees when the other is gone.
"""
from __future__ import annotations

import importlib
import json
import math
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from wavedash.errors import UserError
from wavedash.web.priority import be_nice
from wavedash.web.stage.base import Out, Stage
from wavedash.web.stage.protocol import receive_command

ROCKET = "wavedash.web.stage.rocket:RocketStage"
SPEEDS = (0.1, 8.0)
LATE = 0.2
"""Seconds that a stage may be late before it gives up catching up: so a slow machine plays slowly, without a backlog"""
MOST_COMMANDS = 64
"""Commands that are obeyed between two steps: so a flood of them does not stop the game"""


def main(connection: Connection, asked: str) -> None:
    """Plays until the server closes the connection. `asked`: a JSON object, see `Stage`."""
    out = Out(connection)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the server
        be_nice(10)
        try:
            out.status("starting", "loading the players")
            stage = make_stage(json.loads(asked), out)
            try:
                Transport(stage, connection).run()
            finally:
                stage.close()
        except (EOFError, ConnectionError):
            raise
        except UserError as error:
            out.status("failed", str(error))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            out.status("failed", "the stage stopped: " + traceback.format_exception_only(error)[-1].strip())
    except (EOFError, OSError):
        return  # the server is gone
    finally:
        connection.close()


def make_stage(asked: Mapping[str, Any], out: Out) -> Stage:
    """The stage of the kind of environments that the players come from; scripts play Rocket League."""
    import torch

    from wavedash.envs.kinds import kind_of

    torch.set_num_threads(1)  # a game is small, and a training may need the other cores
    env = _environment(asked)
    module, _, name = (ROCKET if env is None else kind_of(env).stage(env)).partition(":")
    stage: Stage = getattr(importlib.import_module(module), name)(asked, out)
    return stage


def _environment(asked: Mapping[str, Any]) -> Any:
    """The environment that the first player with a run was trained in; None: there are scripts only."""
    from wavedash.rocket import names
    from wavedash.runs.find import resolve_policy
    from wavedash.runs.folder import RunError
    from wavedash.runs.trust import run_config

    for player in (asked.get("blue"), asked.get("orange")):
        if isinstance(player, str) and player not in names.shipped("player"):
            with suppress(RunError):
                source = resolve_policy(player, asked.get("size", 1))
                return run_config(source.run_config, trust=bool(asked.get("trust", False))).env
    return None


class Transport:
    """Steps a stage at the right times, and obeys commands in between."""

    def __init__(self, stage: Stage, connection: Connection) -> None:
        self.stage, self.connection, self.out = stage, connection, stage.out
        self.speed, self.playing = 1.0, True
        self.due = 0.0
        """When the next step is due"""

    def run(self) -> None:
        """Plays until the server is gone: EOFError or OSError. Steps are due at fixed times, so that small delays do not add
        up; where a step is later than `LATE`, the times are moved."""
        self.stage.begin()
        self._say()
        self.due = time.monotonic()
        while True:
            for _ in range(MOST_COMMANDS):
                if not self.connection.poll(max(0.0, self.due - time.monotonic()) if self.playing else None):
                    break
                self._obey_next()
            if self.playing and time.monotonic() >= self.due:
                self.due = max(self.due + self.stage.step() / self.speed, time.monotonic() - LATE)

    def _obey_next(self) -> None:
        what = "command"
        try:
            command = receive_command(self.connection)
            what = str(command.get("do"))[:40]
            self._obey(what, command)
        except (UserError, ValueError) as error:
            self.out.refused(what, str(error))

    def _obey(self, what: str, command: Mapping[str, Any]) -> None:
        if what in ("pause", "continue"):
            self._play(what == "continue")
        elif what == "step":
            self._play(False)
            self.stage.step()
        elif what == "speed":
            self.speed = _speed(command.get("value"))
            self.due = min(self.due, time.monotonic())
            self._say()
        elif what == "restart":
            self.stage.begin()
        elif what == "record":
            path = self.stage.record()
            self.out.send({"type": "recorded", "file": path.name})
        else:
            self.stage.obey(command)
            if what in ("drive", "leave", "course"):
                self._say()

    def _play(self, playing: bool) -> None:
        if playing != self.playing:
            self.playing, self.due = playing, time.monotonic()
            self._say()

    def _say(self) -> None:
        self.out.status("playing" if self.playing else "paused", speed=self.speed, **self.stage.facts())


def _speed(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) \
            or not SPEEDS[0] <= value <= SPEEDS[1]:
        raise UserError(f"the speed is a number from {SPEEDS[0]:g} to {SPEEDS[1]:g}")
    return float(value)
