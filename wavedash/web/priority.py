"""Lowers the priority of a process, so that a training on the same machine goes first."""
from __future__ import annotations

import os
from contextlib import suppress


def be_nice(level: int) -> None:
    """Lowers it to a level of nice, or to below normal on Windows. Where the system refuses, it stays as it is."""
    with suppress(Exception):
        if hasattr(os, "nice"):
            os.nice(max(0, level - os.nice(0)))
        else:
            import ctypes

            kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
            kernel.SetPriorityClass(kernel.GetCurrentProcess(), 0x4000)  # BELOW_NORMAL_PRIORITY_CLASS
