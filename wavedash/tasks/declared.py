"""A check that every tensor that a part changes is declared as a buffer: any other would be lost when a run is saved.

The check compares the tensors of a part before and after it is called. It is made once, at a rehearsal on few environments.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from wavedash.envs.errors import EnvError
from wavedash.tasks.part import Part

OF_MODULES = frozenset(vars(nn.Module()))
"""Attributes that every module has: its buffers, its modules, ..."""


@contextmanager
def refuse_undeclared(part: Part, named: str, foreign: Collection[Tensor] = ()) -> Iterator[None]:
    """Raises EnvError if the code inside changes a tensor of the part that is no buffer, or replaces a buffer by another
    tensor. `foreign`: memory that is not the part's own, of which the part may hold views."""
    before = {path: (x, x._version) for path, x in _plain(part)}
    buffers = dict(part.named_buffers())
    yield
    now = dict(part.named_buffers())
    for path, x in buffers.items():
        if now[path] is not x:
            raise EnvError(f"{named} puts another tensor in the place of its buffer {path!r}, which a CUDA graph does not see. "
                           f"Change it in place: self.{path}.copy_(...)")
    declared = {_home(x) for x in (*part.buffers(), *part.parameters(), *foreign)}
    for path, x in _plain(part):
        same = path in before and before[path][0] is x and before[path][1] == x._version
        if not same and _home(x) not in declared:
            raise EnvError(
                f"{named} changes its tensor {path!r}, which is a plain attribute of {type(part).__name__}: it would be lost "
                f"when the run is saved. Declare it in bind(): self.register_buffer({path!r}, ...) if it is remembered from "
                f"step to step, self.register_buffer({path!r}, ..., persistent=False) if it is work memory")


def _plain(part: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors that are attributes, or lie in a list, dictionary or object that is an attribute; with their paths."""
    for prefix, module in part.named_modules():
        for name, value in vars(module).items():
            if name not in OF_MODULES:
                for inner, x in _within(value):
                    yield ".".join(filter(None, (prefix, name, inner))), x


def _within(value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield "", value
        return
    items: Any = ()
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    elif not isinstance(value, (nn.Module, type)) and hasattr(value, "__dict__"):
        items = vars(value).items()
    for name, item in items:
        if isinstance(item, Tensor):
            yield str(name), item


def _home(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
