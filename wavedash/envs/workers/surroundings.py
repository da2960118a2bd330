"""The process of a worker: its thread limits and signals, its end with its parent, and how its end is described.

It imports nothing heavy, because every worker imports it.
"""
from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from types import ModuleType

from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.import_path import in_run_folder

# Workers share the cores among themselves: one that starts a thread per core slows down all others.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
PR_SET_PDEATHSIG = 1  # linux/prctl.h
STOPS = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)}
"""Signals that ask a run to stop. They often reach every process of a terminal or a job. Workers ignore them, because the
parent needs them until it has saved."""


@contextmanager
def surroundings_of_a_worker(needs_main: bool) -> Iterator[None]:
    """Set what a new process inherits before its first line of Python runs: thread limits, blocked signals, no main script.

    multiprocessing lets every child import the script that was started. Where the job is not defined in it, that would only
    cost time and memory (it imports torch), and recurse endlessly where the script lacks an `if __name__ == "__main__":`.
    """
    main = sys.modules["__main__"]
    if not needs_main:
        sys.modules["__main__"] = ModuleType("__main__")
    # A worker is started by `python -c`, which looks for modules in the current folder first, until it gets our sys.path.
    told = {**ONE_THREAD, "PYTHONSAFEPATH": "1"} if in_run_folder() else ONE_THREAD
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    if hasattr(signal, "pthread_sigmask"):
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        resource_tracker.ensure_running()  # it inherits the mask, but starting it clears a part of ours
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def arrange_signals(stack: SharedBlock, die_with_parent: bool) -> None:
    """Make the worker ignore STOPS, dump the stack on SIGUSR1 and on a crash, and die with the parent."""
    for number in STOPS - {signal.SIGTERM}:
        signal.signal(number, signal.SIG_IGN)
    # Not ignored: programs that an environment starts would inherit that, and `terminate()` would not end them.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.siginterrupt(signal.SIGTERM, False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, stack.fileno())
        faulthandler.enable(stack.fileno())
    if sys.platform == "linux" and die_with_parent:
        # A worker that waits for its next command sees the pipe close; one that is stuck in a step needs this.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = parent_process()
        if parent is not None and os.getppid() != parent.pid:  # it died before that call
            os._exit(1)


def how_it_ended(process: BaseProcess) -> str:
    """Say how a process ended; called in the parent, after the pipe broke."""
    process.join(1.0)
    code = process.exitcode
    if code is None or code >= 0:
        return f"ended by itself with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (often the system's answer to too little memory)" if name == "SIGKILL" else "")
