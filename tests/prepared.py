"""Processes that begin with torch and Wavedash imported: to import them takes two seconds, and tests start hundreds.

They are real ones, with a number, a folder, variables, streams, signals and an exit code of their own; only their imports have
been done, by a server that does nothing else and forks for each of them. That a process which imports everything by itself does
the same is what tests/test_cli.py and tests/test_training.py are about. They import by themselves elsewhere than on Linux, and
where there is a GPU, whose driver does not survive a fork.
"""
from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import torch

ROOT = Path(__file__).parents[1]
FORKS = sys.platform == "linux" and not torch.cuda.is_available()
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL


class Process:
    """As subprocess.Popen of `[sys.executable, *words]`. `terminal`: its standard input is to be its terminal."""

    def __init__(self, words: Sequence[str], cwd: Path | str | None = None, env: Mapping[str, str] | None = None, *,
                 stdin: Any = subprocess.DEVNULL, stdout: Any = None, stderr: Any = None, start_new_session: bool = False,
                 terminal: bool = False) -> None:
        self.args, self.returncode, self.stdout = [sys.executable, *words], None, None
        reading, status = os.pipe()
        self._status = os.fdopen(reading)
        opened = [status]
        streams = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            if stream == subprocess.PIPE:
                assert number == 1, "only what it prints has a pipe"
                end, stream = os.pipe()
                self.stdout = os.fdopen(end, encoding="utf-8")
                opened.append(stream)
            elif stream == subprocess.DEVNULL:
                stream = os.open(os.devnull, os.O_RDWR)
                opened.append(stream)
            elif stream == subprocess.STDOUT:
                stream = streams[1]
            streams.append(number if stream is None else stream if isinstance(stream, int) else stream.fileno())
        asked = {"words": [str(word) for word in words], "folder": str(cwd or os.getcwd()), "session": start_new_session,
                 "terminal": terminal, "environment": dict(os.environ if env is None else env)}
        socket.send_fds(_server(os.getpid()), [json.dumps(asked).encode()], [*streams, status])
        for handle in opened:
            os.close(handle)
        begun = self._status.readline()
        assert begun, "the server of prepared processes has ended; what it wrote to stderr says why"
        self.pid = int(begun)

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


@cache
def _server(owner: int) -> socket.socket:
    """The other end of the server, of which each process that tests has one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    program = Path(__file__).with_name("prepared_server.py")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, str(program), str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd=ROOT,
                              env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    theirs.close()

    def stop() -> None:
        if os.getpid() == owner:
            ours.close()
            server.wait()

    atexit.register(stop)
    return ours


def popen(words: Sequence[str], cwd: Path | str | None = None, env: Mapping[str, str] | None = None, *,
          stdin: Any = subprocess.DEVNULL, stdout: Any = None, stderr: Any = None, start_new_session: bool = False) -> Any:
    """A process of Python with these words, that is not waited for."""
    if FORKS:
        return Process(words, cwd, env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=start_new_session)
    return subprocess.Popen([sys.executable, *words], cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, text=True,
                            start_new_session=start_new_session)


def run(words: Sequence[str], cwd: Path | str | None = None, env: Mapping[str, str] | None = None,
        timeout: float | None = 250.0, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs Python with these words and this input, and returns how it ended and what it printed."""
    if not FORKS:
        return subprocess.run([sys.executable, *words], cwd=cwd, env=env, input=given, capture_output=True, text=True,
                              timeout=timeout, check=False)
    with _file() as read, _file() as out, _file() as errors:
        read.write(given)
        read.seek(0)
        process = Process(words, cwd, env, stdin=read, stdout=out, stderr=errors)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, code, _all_of(out), _all_of(errors))


def _file() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


def _all_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def run_ranks(words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 250.0) -> str:
    """Runs Python with these words as torchrun with two processes does, and returns what both printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**(os.environ if env is None else env), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "tests"}
    until = time.monotonic() + timeout
    with _file() as printed:
        ranks = [popen(words, cwd, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=printed, stderr=printed)
                 for rank in range(2)]
        try:
            codes = [rank.wait(max(0.0, until - time.monotonic())) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        said = _all_of(printed)
    assert codes == [0, 0], said
    return said
