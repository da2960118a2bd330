"""Describes the device: what it is, how fast it could be, and how busy training keeps it."""
from __future__ import annotations

import gc
import platform
import statistics
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import torch
from torch import Tensor

from wavedash.threads import allowed_cores, compute_threads

PROBE_SECONDS = 0.05
"""The time of one measurement of one probe"""
READ_EVERY = 0.2
SETTLE_SECONDS = 1.0
"""The GPU reports its utilisation over about this long; work runs for so long before the first reading."""


@dataclass(frozen=True)
class Busy:
    """The load of the machine while iterations ran."""

    gpu: float | None
    """The share of the time in which the GPU computed anything; None if there is no GPU, or no tool reports it"""
    cores: float
    """The number of CPU cores that the learner's process (not its workers) kept busy"""


def synchronize(device: torch.device) -> None:
    """Waits until the GPU has done everything that was launched."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(number(device))
    try:  # on other systems than Linux, platform.processor() has the name
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def describe(device: torch.device, busy: Busy) -> dict[str, str]:
    """Returns name, memory, cores and their load, as text."""
    facts = {"device": device_name(device)}
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(number(device))
        facts["memory of the GPU"] = f"{_gib(total - free)} of {_gib(total)} GiB in use, by all programs"
        facts["peak of this training"] = f"{_gib(torch.cuda.max_memory_allocated(number(device)))} GiB"
        known = busy.gpu is not None
        facts["GPU busy in iterations"] = f"{busy.gpu:.0%}" if known else "unknown: neither pynvml nor nvidia-smi reports it"
    facts["CPU cores"] = f"{allowed_cores()}; {compute_threads()} thread(s) of the learner"
    facts["cores busy in iterations"] = f"{busy.cores:.2f}, by the learner's process"
    return facts


def probe(device: torch.device, rounds: int) -> dict[str, list[float]]:
    """Measures the speed of the device: billions of operations per second in large matrix products, GB/s of copies to it."""
    tests: dict[str, Callable[[], float]] = {}
    if device.type == "cuda":
        tests["matmul fp32, GFLOP/s"] = lambda: _matmul(device, torch.float32, 4096)
        tests["matmul tf32, GFLOP/s"] = lambda: _matmul(device, torch.float32, 4096, "high")
        tests["matmul bf16, GFLOP/s"] = lambda: _matmul(device, torch.bfloat16, 8192)
        tests["copy to the GPU, GB/s"] = lambda: _copy(device, pinned=False)
        tests["copy to the GPU, pinned, GB/s"] = lambda: _copy(device, pinned=True)
    else:
        tests["matmul fp32, GFLOP/s"] = lambda: _matmul(device, torch.float32, 512)
    return {name: [test() for _ in range(rounds)] for name, test in tests.items()}


def arithmetic_speed(probed: dict[str, list[float]], precision: str) -> float:
    """Returns the operations per second of large matrix products in this precision (fp16 runs as fast as bf16)."""
    kind = "fp32" if precision == "fp32" or "matmul bf16, GFLOP/s" not in probed else "bf16"
    return 1e9 * statistics.median(probed[f"matmul {kind}, GFLOP/s"])


def number(device: torch.device) -> int:
    """Returns the number of a GPU. `cuda` without a number is the current one, which not every function of torch accepts."""
    return torch.cuda.current_device() if device.index is None else device.index


def measure_load(work: Callable[[], object], device: torch.device, seconds: float) -> Busy:
    """Repeats `work` for so long, and measures the load of the machine meanwhile."""
    cuda = device.type == "cuda"
    if cuda:
        gc.collect()  # memory of earlier measurements must not count in the peak
        torch.cuda.reset_peak_memory_stats(number(device))
    _repeat(work, SETTLE_SECONDS if cuda else 0.0)
    readings: list[float | None] = []
    with _reading_repeatedly(lambda: readings.append(gpu_busy(device)) if cuda else None):
        began, used = perf_counter(), process_time()
        _repeat(work, seconds)
        cores = (process_time() - used) / (perf_counter() - began)
    known = [reading for reading in readings if reading is not None]
    return Busy(statistics.mean(known) if known else None, cores)


def gpu_busy(device: torch.device) -> float | None:
    """Returns the share of the last second or so in which the GPU computed, from NVML or else from nvidia-smi."""
    try:
        return torch.cuda.utilization(number(device)) / 100
    except Exception:  # pynvml is missing, has no permission or does not match the driver: nvidia-smi may still work
        pass
    # By its UUID: CUDA_VISIBLE_DEVICES changes the numbers of GPUs, but not those of nvidia-smi.
    identity = f"GPU-{torch.cuda.get_device_properties(number(device)).uuid}"
    command = ["nvidia-smi", f"--id={identity}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        return float(subprocess.run(command, capture_output=True, timeout=10, check=True, text=True).stdout) / 100
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


@contextmanager
def _reading_repeatedly(read: Callable[[], object]) -> Iterator[None]:
    """Calls `read` from a thread, again and again."""
    done = threading.Event()

    def loop() -> None:
        while not done.wait(READ_EVERY):
            read()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _repeat(work: Callable[[], object], seconds: float) -> None:
    began = perf_counter()
    while perf_counter() - began < seconds:
        work()


def _matmul(device: torch.device, dtype: torch.dtype, size: int, precision: str = "highest") -> float:
    generator = torch.Generator(device).manual_seed(0)
    a, b = (torch.randn(size, size, generator=generator, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        return 2 * size**3 / _seconds(lambda: torch.mm(a, b, out=out), device) / 1e9
    finally:
        torch.set_float32_matmul_precision(before)


def _copy(device: torch.device, pinned: bool) -> float:
    host = torch.zeros(2**26, dtype=torch.uint8, pin_memory=pinned)
    there = torch.empty_like(host, device=device)

    def copy() -> Tensor:
        return there.copy_(host, non_blocking=True)

    return host.numel() / _seconds(copy, device) / 1e9


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Returns the seconds per call, over as many calls as fill the time of a probe."""
    work()
    synchronize(device)
    calls, began = 0, perf_counter()
    while perf_counter() - began < PROBE_SECONDS:
        for _ in range(4):
            work()
        synchronize(device)
        calls += 4
    return (perf_counter() - began) / calls


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}"
