"""EnvError, in a file of its own: worker processes use it and must not import torch."""
from __future__ import annotations

from wavedash.errors import UserError


class EnvError(UserError):
    """An environment broke its contract; the message names the cause and the next step."""

    def __init__(self, message: str, shows_cause: bool = False):
        super().__init__(message)
        self.shows_cause = shows_cause
