"""What parts of a task remember, found without asking them: every tensor that they, or what they are made of, hold."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from wavedash.rocket.state import GameState


def tensors_of(thing: Any, path: str) -> Iterator[tuple[str, Tensor]]:
    """Named by the way to them. Tables that never change are among them; they are small. A view is left out: what it looks at
    is found itself."""
    if isinstance(thing, Tensor):
        if not thing._is_view():
            yield path, thing
    elif isinstance(thing, GameState):
        yield path, thing.memory
    elif isinstance(thing, (list, tuple)):
        for index, item in enumerate(thing):
            yield from tensors_of(item, f"{path}.{index}")
    elif isinstance(thing, dict):
        for name, item in thing.items():
            yield from tensors_of(item, f"{path}.{name}")
    elif type(thing).__module__ != "builtins" and hasattr(thing, "__dict__"):
        for name, item in vars(thing).items():
            yield from tensors_of(item, f"{path}.{name}")
