"""What the machine has to do and how much room it has: processors, memory, GPU, disk."""
from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

GPU_QUERY = "name,utilization.gpu,memory.used,memory.total,temperature.gpu"
FRESH = 2.0
"""Seconds that an answer is used again"""


class Machine:
    """Looks at the machine at most every two seconds, however many viewers ask."""

    def __init__(self) -> None:
        self._lock, self._at, self._found = Lock(), float("-inf"), dict[str, Any]()
        self._nvidia = shutil.which("nvidia-smi")
        self._times = _times()

    def look(self) -> dict[str, Any]:
        """Shares of 1 of all processors and of the memory, and the first GPU. None: that cannot be known here."""
        with self._lock:
            if time.monotonic() - self._at > FRESH:
                self._found = {**_processors(), **self._load(), "gpu": self._gpu()}
                self._at = time.monotonic()
            return self._found

    def _load(self) -> dict[str, Any]:
        """The share of the processors that was busy since the last call. psutil's own measure is one per thread, and answers
        come from many threads."""
        before, self._times = self._times, _times()
        if before is None or self._times is None or self._times[1] <= before[1]:
            return {}
        return {"cpu": min(1.0, max(0.0, (self._times[0] - before[0]) / (self._times[1] - before[1])))}

    def _gpu(self) -> dict[str, Any] | None:
        if self._nvidia is None:
            return None
        try:
            done = subprocess.run([self._nvidia, f"--query-gpu={GPU_QUERY}", "--format=csv,noheader,nounits"],
                                  capture_output=True, timeout=5, check=True, text=True)
            name, used, memory, whole, heat = (field.strip() for field in done.stdout.splitlines()[0].split(","))
            return {"name": name, "used": _float(used, 100), "memory": _float(memory, 2**-20),
                    "memory_total": _float(whole, 2**-20), "temperature": _float(heat)}
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return None


def _float(text: str, per: float = 1.0) -> float | None:
    try:
        return float(text) / per
    except ValueError:
        return None


def _times() -> tuple[float, float] | None:
    """Seconds that all processors together were busy, and that they were there. None: psutil is not installed."""
    with suppress(ImportError):
        import psutil

        times = psutil.cpu_times()
        whole = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)  # these are in user and nice too
        return whole - times.idle - getattr(times, "iowait", 0.0), whole
    return None


def _processors() -> dict[str, Any]:
    """Uses psutil where it is installed, and else what the system itself says."""
    with suppress(ImportError):
        import psutil

        memory = psutil.virtual_memory()
        return {"cpu": None, "cores": os.cpu_count(), "memory": memory.percent / 100,
                "memory_used": memory.total - memory.available, "memory_total": memory.total}
    cpu = memory_used = memory_total = None
    with suppress(OSError, AttributeError):
        cpu = min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    with suppress(OSError, ValueError, KeyError, IndexError):
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        facts = {words[0]: int(words[1]) * 1024 for words in lines}
        memory_total, memory_used = facts["MemTotal:"], facts["MemTotal:"] - facts["MemAvailable:"]
    share = memory_used / memory_total if memory_used is not None and memory_total else None
    return {"cpu": cpu, "cores": os.cpu_count(), "memory": share, "memory_used": memory_used, "memory_total": memory_total}


def folder_bytes(folder: Path, most: int = 50_000) -> int | None:
    """The bytes of all files in a folder, without following links. None: it has more files than are worth counting."""
    total, seen, left = 0, 0, [str(folder)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                seen += 1
                with suppress(OSError):  # it was removed meanwhile
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        if seen > most:
            return None
    return total


def process_lives(pid: int, before: float) -> bool:
    """Whether a process of this number runs that began before a time (seconds since 1970)."""
    with suppress(ImportError):
        import psutil

        try:
            return bool(psutil.Process(pid).create_time() <= before + 5.0 and psutil.Process(pid).status() != "zombie")
        except psutil.Error:
            return False
    if os.name != "posix":
        return True  # os.kill would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
