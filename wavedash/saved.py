"""Saved tensors are compared with those that they replace before any of them is used.

A right checksum says that a file is as it was written, not that Wavedash has written it. Code that loads a state declares here
what it must be like; the error for a difference names file and tensor.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

import torch
from pydantic import ValidationError
from torch import Tensor

from wavedash.errors import UserError


class SavedError(UserError):
    """Saved data is wrong, whatever the configuration."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file, self.what = file, what


def first_problem(error: ValidationError) -> str:
    """Returns a line about the first problem of plain values."""
    wrong = error.errors(include_url=False)[0]
    key, message = ".".join(map(str, wrong["loc"])), wrong["msg"]
    if wrong["type"] == "missing":
        return f"{key} is missing"
    return f"{key}: {message.replace('Input should be', 'expected')}".removeprefix(": ")


class Saved:
    """The tensors of one file of a checkpoint."""

    def __init__(self, file: str, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
        """`file` is the name without its suffix. `prefix` stands before these names in the file."""
        self.file, self.tensors, self.prefix = f"{file}.safetensors", tensors, prefix

    def refuse(self, what: str) -> NoReturn:
        raise SavedError(self.file, what)

    def fits(self, expected: Mapping[str, Tensor], optional: Collection[str] = ()) -> None:
        """Requires these names and no others, each with the dtype and shape of the expected one. Those in `optional` may be
        missing."""
        if missing := [name for name in expected if name not in self.tensors and name not in optional]:
            self.refuse(f"{self._some(missing)} missing")
        if unknown := [name for name in self.tensors if name not in expected]:
            self.refuse(f"{self._some(unknown)} not known here")
        for name, like in expected.items():
            if name in self.tensors:
                self.is_like(name, like)

    def is_like(self, name: str, like: Tensor, finite: bool = True) -> Tensor:
        """Returns the tensor of this name, which must have the dtype and shape of another."""
        return self.has(name, like.dtype, tuple(like.shape), finite)

    def has(self, name: str, dtype: torch.dtype, shape: tuple[int | None, ...], finite: bool = True) -> Tensor:
        """Returns the tensor of this name, which must have this dtype and shape (None stands for any length)."""
        if name not in self.tensors:
            self.refuse(f"{self._some([name])} missing")
        x = self.tensors[name]
        same = x.dim() == len(shape) and all(wanted in (None, size) for size, wanted in zip(x.shape, shape, strict=True))
        if x.dtype != dtype or not same:
            sizes = ", ".join("any" if size is None else str(size) for size in shape)
            self.refuse(f"{self.prefix}{name} is {_kind(x.dtype)} {list(x.shape)}, expected {_kind(dtype)} [{sizes}]")
        if finite and x.is_floating_point() and not bool(x.isfinite().all()):
            self.refuse(f"{self.prefix}{name} holds NaN or infinity")
        return x

    def is_between(self, name: str, low: float | Tensor, high: float | Tensor) -> None:
        """Requires every number of a tensor to be in this range, which NaN is not."""
        x = self.tensors[name]
        wrong = ~((x >= low) & (x <= high))
        if bool(wrong.any()):
            self.refuse(f"{self.prefix}{name} holds {x[wrong][0].item():g}, which is not between {_bound(low)} and "
                        f"{_bound(high)}")

    def _some(self, names: list[str]) -> str:
        shown = ", ".join(f"{self.prefix}{name}" for name in names[:3])
        return f"{shown}{f' and {len(names) - 3} more' if len(names) > 3 else ''} {'is' if len(names) == 1 else 'are'}"


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _bound(limit: float | Tensor) -> str:
    return "its bounds" if isinstance(limit, Tensor) else f"{limit:g}"
