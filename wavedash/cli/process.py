"""The process of a command: how it reports a user's mistake, and how it ends."""
from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from wavedash.cli.app import app
from wavedash.cli.ctrl_c import interrupt_at_ctrl_c
from wavedash.errors import UserError
from wavedash.import_path import append_current_folder


def main() -> None:
    """Run the command line; a mistake of the user's ends as a message, not as a traceback."""
    append_current_folder()
    interrupt_at_ctrl_c()
    with _quiet_end(), _quick_end_under_torchrun():
        try:
            app()
        except UserError as error:
            if error.shows_cause and error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            typer.secho(f"error: {error}", fg="red", err=True)
            raise SystemExit(2) from None


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Ignore further signals once a command has ended, and output that nobody can read any more.

    The command has already done what a first signal asked for. A last line that goes to a closed terminal or to a pipe
    without a reader is not a failure.
    """
    try:
        yield
    finally:
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _quick_end_under_torchrun() -> Iterator[None]:
    """End a process that torchrun started without taking torch apart.

    Otherwise one process in twenty is aborted by a thread that is left ("terminate called without an active exception"), and
    torchrun calls the run failed.
    """
    try:
        yield
    except SystemExit as leaving:
        if "LOCAL_RANK" not in os.environ:
            raise
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None))
