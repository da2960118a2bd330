"""`wavedash doctor` examines this machine: each finding says what is there and, where something is missing, what to do."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wavedash.threads import allowed_cores

EXTRAS = {
    "mujoco": ("mujoco", "the MuJoCo presets"),
    "rocket": ("warp", "the Rocket League presets"),
    "walk": ("mujoco_warp", "the presets of walking robots"),
    "replays": ("subtr_actor", "wavedash replays"),
    "rlbot": ("rlbot", "bots for RLBot and the match server"),
    "wandb": ("wandb", "report.wandb=true"),
    "export": ("onnxscript", "wavedash export to ONNX"),
    "bench": ("stable_baselines3", "comparing with other libraries"),
}
"""The extras of the package: the module that each brings, and what it is for"""
LOW_DISK_GIB = 5


@dataclass(frozen=True)
class Finding:
    """One line of the output."""

    state: Literal["ok", "warn"]
    subject: str
    detail: str
    advice: str = ""
    table: tuple[str, ...] = ()
    """More lines, below the detail"""


def examine() -> Iterator[Finding]:
    """Yields the findings about this machine, the slow ones last."""
    yield _python()
    yield _cores()
    yield _disk(Path.cwd())
    yield _compiler()
    yield _package("gymnasium")
    yield from (_extra(name) for name in EXTRAS)
    yield from _torch()
    yield from _memory()


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}"
    if (3, 11) <= sys.version_info < (3, 14):
        return Finding("ok", "python", detail)
    return Finding("warn", "python", detail, "install Python 3.11, 3.12 or 3.13")


def _cores() -> Finding:
    return Finding("ok", "cores", f"{allowed_cores()}")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free / 2**30
    detail = f"{free:.0f} GiB free under {folder}"
    if free >= LOW_DISK_GIB:
        return Finding("ok", "disk", detail)
    return Finding("warn", "disk", detail, "free some space, or keep fewer checkpoints: checkpoint.keep=2")


def _compiler() -> Finding:
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++", "cl"))), None)
    if found:
        return Finding("ok", "compiler", found)
    return Finding("warn", "compiler", "none found: torch.compile cannot be used",
                   "optional; install g++ (Linux), Xcode tools (macOS) or Visual Studio Build Tools (Windows)")


def _package(name: str) -> Finding:
    try:
        return Finding("ok", name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding("warn", name, "not installed", f"pip install {name}")


def _extra(name: str) -> Finding:
    module, purpose = EXTRAS[name]
    if importlib.util.find_spec(module):
        return Finding("ok", name, f"{module} is installed ({purpose})")
    return Finding("warn", name, f"not installed; needed only for {purpose}", f'pip install "wavedash[{name}]"')


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("warn", "torch", f"cannot be imported: {error}", "pip install torch==2.13.0")
        return
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU only"
    yield Finding("ok", "torch", f"{torch.__version__} ({build})")
    if not torch.cuda.is_available():
        advice = "" if shutil.which("nvidia-smi") is None else (
            "an NVIDIA card is here: update its driver, or install the CUDA build of torch (https://pytorch.org)")
        yield Finding("warn" if advice else "ok", "device", "the CPU; no CUDA device", advice)
        return
    for index in range(torch.cuda.device_count()):
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(index))
        name = torch.cuda.get_device_name(index)
        yield Finding("ok", "device", f"cuda:{index} {name}, {free:.1f} of {total:.1f} GiB free")


def _memory() -> Iterator[Finding]:
    """Says what `auto` means on GPUs of several sizes; nothing where the packages for it are missing, which was said above."""
    if any(importlib.util.find_spec(module) is None for module in ("torch", EXTRAS["rocket"][0])):
        return
    from wavedash.errors import UserError
    from wavedash.memory.table import PRESET, lines, rows

    try:
        table = tuple(lines(rows()))
    except UserError as error:
        yield Finding("warn", "memory", f"what {PRESET} needs cannot be estimated: {error}")
        return
    yield Finding("ok", "memory", f"what {PRESET} chooses by itself (docs/memory.md); before RTX 30, fp16 instead of bf16",
                  table=table)
