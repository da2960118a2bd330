"""This file decides how many CPU threads there are, for networks that act and learn and for the simulator.

If the option `threads` is set, it counts. Otherwise there are as many threads as cores that this process may use (by its
affinity and its container's limit, shared between the processes that torchrun has started on this machine), and no more than
OMP_NUM_THREADS. Threads belong to a process and not to a learner, so the decision is kept in this module.

Torch's own threads share every single operation and wait for each other at its end. Beside a busy program one of them is often
without a core, and all others wait for it. Only matrices too large for one thread use them; the update has threads of its own
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
"""For a layer with fewer multiplications, a second CPU thread costs more than it brings."""

_threads, _processes = 0, 1
_torch_limit, _given_to_torch = 0, 0
"""Torch's own number of threads, and the number that `give_torch` last set"""


def decide_threads(threads: int, processes: int = 1) -> None:
    """Sets the number of threads: `threads` is the option, `processes` the number of processes of this run on this machine."""
    global _threads, _processes
    _threads, _processes = threads, processes


def cores() -> int:
    """Returns the most cores that this process may keep busy."""
    share = max(1, allowed_cores() // _processes)
    return _threads or min(share, _omp_num_threads() or share)


def compute_threads() -> int:
    """Returns the number of threads for matrix products. Torch's own number is a limit too: it is that of physical cores, or
    what the program has set with torch.set_num_threads."""
    global _torch_limit
    import torch

    own = torch.get_num_threads()
    if own != _given_to_torch:
        _torch_limit = own
    return _threads or min(cores(), _torch_limit)


def set_torch_threads(samples: int, policy: PolicyConfig) -> None:
    """Sets the number of threads inside torch's operations, for networks that take so many samples at once."""
    give_torch(compute_threads() if cost_of(samples, policy) >= SMALL_MATRIX else 1)


def give_torch(threads: int) -> None:
    """Gives torch so many threads for each of its operations."""
    global _given_to_torch
    import torch

    compute_threads()  # notes torch's own number first
    torch.set_num_threads(threads)
    _given_to_torch = threads


def cost_of(samples: int, policy: PolicyConfig) -> int:
    """Returns the number of multiplications of the widest layer."""
    memory = [policy.memory.size] if policy.memory.kind != "none" else []
    widest = max([*policy.hidden, *(policy.critic_hidden or []), *memory, 1])
    return samples * widest * widest


def allowed_cores() -> int:
    """Returns the number of cores that this process may use: a container or the affinity may allow fewer than there are."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, _container_cores() or affinity))


def _omp_num_threads() -> int:
    """Returns the number, or 0 where it is not set. In a list the first number is that of the outermost threads."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _container_cores(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Returns the limit of a container on CPU time, by cgroup v2 or v1; None without one."""
    try:
        if (root / "cpu.max").is_file():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else None
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return None

