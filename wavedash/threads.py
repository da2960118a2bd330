"""One place decides how many CPU threads there are: of networks that act and learn, and of the simulator.

The option `threads` counts if it is set. Else there are as many as cores that this process may use (its affinity, its
container's limit, shared between the processes that torchrun has started on this machine), and no more than OMP_NUM_THREADS.
Threads belong to a process and not to a learner, so the decision is kept here.

Torch's own threads share every single operation and wait for each other at its end. Beside a busy program one of them is often
without a core, and all others wait for it. Only matrices too large for one thread get them; the update has threads of its own
(wavedash/ppo/pieces.py).
"""
from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavedash.config import PolicyConfig

SMALL_MATRIX = 2**26
"""Multiplications of one layer below which a second CPU thread costs more than it brings."""

_threads, _processes = 0, 1
_torch_limit, _told_torch = 0, 0
"""Torch's own number of threads, and the one that it was last given here"""


def decide_threads(threads: int, processes: int = 1) -> None:
    """`threads`: the option of the configuration. `processes`: of this run, on this machine."""
    global _threads, _processes
    _threads, _processes = threads, processes


def cores() -> int:
    """That this process keeps busy at most."""
    share = max(1, allowed_cores() // _processes)
    return _threads or min(share, _omp_num_threads() or share)


def compute_threads() -> int:
    """For matrix products. Torch's own number is a limit too: that of the real cores where each has two hardware threads, or
    what the program has set with torch.set_num_threads."""
    global _torch_limit
    import torch

    own = torch.get_num_threads()
    if own != _told_torch:
        _torch_limit = own
    return _threads or min(cores(), _torch_limit)


def set_torch_threads(samples: int, policy: PolicyConfig) -> None:
    """Threads inside torch's operations, for networks that see so many samples at once."""
    give_torch(compute_threads() if cost_of(samples, policy) >= SMALL_MATRIX else 1)


def give_torch(threads: int) -> None:
    """So many threads for each of its operations."""
    global _told_torch
    import torch

    compute_threads()  # to see what torch had
    torch.set_num_threads(threads)
    _told_torch = threads


def cost_of(samples: int, policy: PolicyConfig) -> int:
    """Multiplications of the widest layer."""
    memory = [policy.memory.size] if policy.memory.kind != "none" else []
    widest = max([*policy.hidden, *(policy.critic_hidden or []), *memory, 1])
    return samples * widest * widest


def allowed_cores() -> int:
    """A container, or whoever started this process, may allow fewer cores than the machine has."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, _container_cores() or affinity))


def _omp_num_threads() -> int:
    """0 where it is not set. It may be a list, whose first number is that of the outermost threads."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _container_cores(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Of a container with a limit on its CPU time, cgroup v2 or v1; None without one."""
    try:
        if (root / "cpu.max").is_file():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else None
    except (OSError, ValueError):  # no such file, or "max"
        return None

