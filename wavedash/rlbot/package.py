"""The package `rlbot`, which only some commands need."""
from __future__ import annotations

from typing import Any

from wavedash.errors import UserError

INSTALL = "pip install 'wavedash[rlbot]'"


def flat() -> Any:
    """The module of RLBot's messages."""
    try:
        import rlbot.flat
    except ImportError as error:
        raise UserError(f"the package rlbot is not installed ({error}). Install it with: {INSTALL}") from error
    return rlbot.flat
