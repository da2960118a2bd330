"""torch.compile with a fallback: where it fails, a warning is logged once and the function runs uncompiled."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import torch

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """Calls `function` compiled. Weights are read at every call, so updates take effect at once."""

    def __init__(self, function: Callable[P, R], name: str):
        self.function, self.name = function, name
        # In low precision, fused operations would skip the rounding in between: the ratio of probabilities computed here to
        # those of the uncompiled collection would be off by 2 percent (bf16) instead of 1e-6.
        rounded: dict[str, Any] = {"emulate_precision_casts": True}
        self.compiled: Callable[P, R] | None = torch.compile(function, dynamic=False, options=rounded)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.compiled is not None:
            try:
                return self.compiled(*args, **kwargs)
            except torch.OutOfMemoryError:
                raise  # who calls may compute fewer samples at once
            except Exception as error:  # no compiler, or code it cannot compile; a real error is raised again below
                reason = " ".join(str(error).splitlines()[:2]) or repr(error)  # the first line only names the backend
                log.warning("%s cannot be compiled and runs uncompiled: %s", self.name, reason)
                self.compiled = None
        return self.function(*args, **kwargs)
