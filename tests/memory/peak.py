"""The most memory that torch holds at one time while something runs on a CPU, by the profiler's record of allocations."""
from __future__ import annotations

from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile


def peak(work: Callable[[], object]) -> int:
    """Bytes above what was allocated before. The first of two calls is not counted: it may make things that stay."""
    work()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        work()
    assert found.profiler is not None
    events = [event for event in found.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
