"""What the choice of `auto` depends on: the memory of a device, what its cores can compute, and how many runs share it."""
from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.threads import cores

GIB = 2**30
RESERVE = 0.1
"""The share of a GPU's memory that is left free: gaps between blocks of memory, and the windows on the screen"""
HOST_SHARE = 0.5
"""The share of a computer's memory that a run on its CPU may take"""
UNKNOWN_HOST = 8 * GIB
"""The memory of a computer that does not tell it"""


@dataclass(frozen=True)
class Hardware:
    """A device as a run sees it."""

    device: torch.device
    total: int
    """Bytes of memory"""
    usable: int
    """Bytes of it that this process may take"""
    capability: tuple[int, int] = (0, 0)
    """Compute capability of a GPU; (0, 0) for a CPU"""
    taken: int = 0
    """Bytes of a GPU that other programs use"""

    @property
    def precision(self) -> str:
        """bf16 where tensor cores compute with it (RTX 30 and later), fp16 on those before it (V100, RTX 20), else fp32."""
        if self.device.type != "cuda" or self.capability < (7, 0):
            return "fp32"
        return "bf16" if self.capability >= (8, 0) else "fp16"

    @property
    def memory(self) -> str:
        """`8 GB of GPU memory`. Cards are sold by gibibytes that are called GB, a little of which the driver keeps."""
        on_gpu = self.device.type == "cuda"
        size = f"{self.total / GIB:.0f} GB" if self.total >= GIB else f"{self.total / GIB:.1f} GB"
        return f"{size} of GPU memory" if on_gpu else f"{cores()} CPU core(s) and {size} of memory"


def gpu(gibibytes: float, capability: tuple[int, int] = (8, 0)) -> Hardware:
    """A GPU with so much memory, all of it free."""
    total = round(gibibytes * GIB)
    return Hardware(torch.device("cuda"), total, round((1 - RESERVE) * total), capability)


def hardware_of(device: torch.device, ranks: Ranks = ALONE) -> Hardware:
    """The device of this run. With several ranks it has the least that any of them has, so that all of them choose alike."""
    every = ranks.all_gather(_own(device, ranks))
    return Hardware(device, min(one.total for one in every), min(one.usable for one in every),
                    min(one.capability for one in every), max(one.taken for one in every))


def _own(device: torch.device, ranks: Ranks) -> Hardware:
    if device.type != "cuda":
        total = host_memory()
        return Hardware(device, total, int(HOST_SHARE * total) // ranks.local_size)
    free, total = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device)  # what this process holds, it can use again
    sharing = -(-ranks.local_size // max(1, torch.cuda.device_count()))
    return Hardware(device, total, min(round((1 - RESERVE) * total), free) // sharing, torch.cuda.get_device_capability(device),
                    total - free)


def host_memory() -> int:
    """Bytes of memory of this computer, or of the container that this process is in."""
    return min(_physical_memory() or UNKNOWN_HOST, _container_memory() or sys.maxsize)


def _physical_memory() -> int | None:
    if hasattr(os, "sysconf"):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            return None
    return _windows_memory()


def _windows_memory() -> int | None:
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong),
                    *((name, ctypes.c_ulonglong) for name in ("total", "free", "page_total", "page_free", "virtual_total",
                                                              "virtual_free", "extended_free"))]

    windows = getattr(ctypes, "windll", None)
    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    found = windows is not None and windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total) if found else None


def _container_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The limit of a container, by cgroup v2 or v1; None without one."""
    for file in (root / "memory.max", root / "memory" / "memory.limit_in_bytes"):
        try:
            return int(file.read_text())
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return None
