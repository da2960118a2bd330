"""EnvError, in a file of its own: worker processes use it and must not import torch."""
from __future__ import annotations


class EnvError(RuntimeError):
    """An environment broke its contract; the message names the cause and the next step."""
