"""Warp, an optional dependency: `__init__.py` starts it before anything else of this package is imported."""
from __future__ import annotations

from contextlib import AbstractContextManager

from wavedash import warp_package

INSTALL = "pip install 'wavedash[rocket]'"
COMPILE_SECONDS = warp_package.COMPILE_SECONDS


def start_warp() -> None:
    warp_package.start_warp("our simulator", f"{INSTALL}. Or take the other simulator: env.rocket.simulator=rocketsim")


def log_if_compiling(device: str) -> AbstractContextManager[None]:
    """Wraps the loading of kernels, and logs a line if they have to be compiled."""
    return warp_package.log_if_compiling("the simulator", device, COMPILE_SECONDS)
