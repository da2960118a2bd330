"""The server behind tests/prepared.py: it imports what every process of ours needs, and forks for each that is asked for.

It runs nothing that it imports, so that it has one thread and no state of its own when it forks.
"""
from __future__ import annotations

import io
import json
import os
import random
import runpy
import signal
import socket
import sys
from types import ModuleType
from typing import Any

SIZE = 1 << 20
"""Bytes of a request"""
IMPORTED = ("numpy", "torch", "torch.distributed", "gymnasium.envs.classic_control.cartpole", "rich.console",
            "safetensors.torch", "yaml", "wavedash.cli", "wavedash.envs.gymnasium.host_env", "wavedash.league.league",
            "wavedash.loading", "wavedash.report.dashboard", "wavedash.rocket.actions", "wavedash.rocket.env",
            "wavedash.rocket.observations", "wavedash.rocket.players", "wavedash.rocket.recording.make",
            "wavedash.rocket.sim.simulator", "wavedash.training", "wavedash.walk.kind")


def main(number: int) -> None:
    for name in IMPORTED:
        __import__(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with several threads must not fork"
    asked = _serve(socket.socket(fileno=number), [path for path in sys.path if path not in _added(os.environ)][1:])
    if asked is not None:
        _run(asked["words"])


def _serve(requests: socket.socket, path: list[str]) -> dict[str, Any] | None:
    """Answers until nobody asks any more. In a forked process it returns what that one is to do."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who attends to a process leaves nothing behind when it ends
    while True:
        message, handles, _, _ = socket.recv_fds(requests, SIZE, 4)
        if not message:
            return None
        asked = json.loads(message)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            *streams, status = handles
            child = os.fork()
            if child == 0:
                os.close(status)
                _become(asked, streams, path)
                return asked
            _attend(child, streams, status)
        for handle in handles:
            os.close(handle)


def _attend(child: int, streams: list[int], status: int) -> None:
    """Tells the number of a process and, when it has ended, how."""
    for handle in (0, 1, 2, *streams):
        os.close(handle)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(status, f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.write(status, f"{code}\n".encode())
    finally:
        os._exit(0)


def _become(asked: dict[str, Any], streams: list[int], path: list[str]) -> None:
    """Turns this process into one that Python has just begun: its streams, folder, variables, terminal and path."""
    import fcntl
    import termios

    import numpy as np
    import torch

    if asked["session"] or asked["terminal"]:
        os.setsid()
    for number, handle in enumerate(streams):
        os.dup2(handle, number)
        os.close(handle)
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored where the tests run in the background
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if asked["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    through = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        raw = open(number, f"{mode}b", buffering=-1, closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace" if number == 2 else None,
                                  line_buffering=number == 2 or os.isatty(number), write_through=through)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    added = _added(os.environ)
    sys.path[:] = ["" if asked["words"][0] == "-c" else os.getcwd(), *added, *(entry for entry in path if entry not in added)]
    random.seed()
    np.random.seed()
    torch.seed()
    if threads := os.environ.get("OMP_NUM_THREADS"):  # torch has read it already, before it was this one
        torch.set_num_threads(int(threads))


def _added(environment: Any) -> list[str]:
    return [os.path.abspath(path) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def _run(words: list[str]) -> None:
    first, *rest = words
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(rest[0], main.__dict__)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(int(sys.argv[1]))
