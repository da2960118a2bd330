"""CUDA graphs capture a part of an iteration once and replay it, without the cost of launching each operation."""
from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch

log = logging.getLogger(__name__)

T = TypeVar("T")
WARM_UP = 2
"""The number of ordinary calls before the capture, in which libraries choose their algorithms and workspaces."""


class CapturedCall(Generic[T]):
    """Calls `body`, on CUDA by replaying a graph of it. `body` has no arguments and no host sync, and reads and writes tensors
    at fixed addresses. What it returns is overwritten by the next call."""

    def __init__(self, body: Callable[[], T], name: str, generators: Sequence[torch.Generator] = (), smaller: bool = False):
        """`smaller`: whoever calls it can make the work smaller, so torch.OutOfMemoryError of a capture is raised. Otherwise
        `body` runs without a graph then, which needs less memory."""
        self.smaller = smaller
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
        # Python's garbage collector might destroy the graph of a dead learner, which is not allowed during a capture.
        gc.collect()
        gc.disable()
        try:
            # A capture that fails at its end leaves its own stream current; the outer context puts this one back.
            with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
                self.result = self.body()
        except Exception as error:  # whatever cannot be captured still runs eagerly
            # Where memory runs out, the capture may fail a second time at its end.
            found = next((e for e in (error, error.__context__) if isinstance(e, torch.OutOfMemoryError)), None)
            if found is not None and self.smaller:
                raise found from None
            reason = (str(error) or repr(error)).splitlines()[0]
            log.warning("%s cannot be captured as a CUDA graph and runs without one: %s", self.name, reason)
            self.eager = True
            return self.body()
        finally:
            gc.enable()
        self.graph = graph
        graph.replay()  # a capture runs nothing
        return self.result
