"""CUDA graphs: a piece of an iteration is captured once and then replayed, without the cost of launching each operation."""
from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch

log = logging.getLogger(__name__)

T = TypeVar("T")
WARM_UP = 2
"""Ordinary calls before the capture: libraries choose their algorithms and workspaces then."""


class CapturedCall(Generic[T]):
    """Calls `body`, on CUDA by replaying a graph of it. `body` takes nothing, reads and writes tensors that stay in place, and
    has no host sync. What it returns is overwritten by the next call."""

    def __init__(self, body: Callable[[], T], name: str, generators: Sequence[torch.Generator] = ()):
        self.body, self.name, self.generators = body, name, generators
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: T | None = None
        self.eager = not torch.cuda.is_available()

    def __call__(self) -> T:
        if self.graph is not None:
            self.graph.replay()
            return self.result  # type: ignore[return-value]
        self.calls += 1
        if self.eager or self.calls <= WARM_UP:
            return self.body()
        return self._capture()

    def _capture(self) -> T:
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        # Python's collector would destroy the graph of a learner that is gone, which is not allowed during a capture.
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph):
                self.result = self.body()
        except Exception as error:  # whatever keeps it from being captured, it still runs as it is
            log.warning("%s cannot be captured as a CUDA graph and runs without: %s", self.name, str(error).splitlines()[0])
            self.eager = True
            return self.body()
        finally:
            gc.enable()
        self.graph = graph
        graph.replay()  # the capture did not run anything
        return self.result
