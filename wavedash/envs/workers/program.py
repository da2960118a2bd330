"""The program of every worker process: builds what it works on, then answers one command after the other.

It imports nothing heavy, because every worker imports it.
"""
from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Protocol

from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.surroundings import arrange_signals
from wavedash.errors import UserError

READY, FAILED = b"R", b"!"
"""Answers that every worker gives, whatever its program. FAILED is followed, in the same message, by the reason."""


class Program(Protocol):
    """What a worker computes. Large data goes through shared memory: commands and answers are short."""

    def answer(self, command: bytes) -> bytes:
        """Do what the command says; the answer begins with neither READY nor FAILED."""

    def close(self) -> None:
        """Release what the program holds; the parent sends no more commands."""


Job = Callable[[], Program]
"""A job is sent to the worker, where it is called once."""


def work(job: Job, parent: Connection, stack: SharedBlock, die_with_parent: bool) -> None:
    """Run until the parent closes the pipe or is gone. An exception ends the worker, because its state may be inconsistent."""
    arrange_signals(stack, die_with_parent)
    try:
        program = job()
        parent.send_bytes(READY)
        for command in _commands(parent):
            parent.send_bytes(program.answer(command))
        program.close()
    except Exception as error:
        with suppress(OSError):  # the parent is gone
            parent.send_bytes(FAILED + _reason(error).encode())


def _commands(parent: Connection) -> Iterator[bytes]:
    """Commands of the parent, until it closes the pipe or is gone."""
    with suppress(EOFError, OSError):
        while True:
            yield parent.recv_bytes()


def _reason(error: Exception) -> str:
    """The text of an error; a UserError that explains itself needs no traceback."""
    in_words = isinstance(error, UserError) and not getattr(error, "shows_cause", False)
    return str(error) if in_words else traceback.format_exc()
