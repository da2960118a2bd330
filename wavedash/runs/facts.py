"""Facts that are needed to repeat a run later: versions, the state of the code, the machine."""
from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("wavedash", "torch", "numpy", "gymnasium", "safetensors", "pydantic")


def gather_facts() -> dict[str, Any]:
    """Returns everything except uncommitted changes (see `git_diff`); what cannot be found out is None."""
    import torch

    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_commit": (_git("rev-parse", "HEAD") or "").strip() or None,
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "cuda": torch.version.cuda,
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
    }


def git_diff() -> str | None:
    """Returns what was changed in the current folder since its last commit; None without changes, a repository or git."""
    return _git("diff", "--no-color", "--no-ext-diff", "HEAD") or None


def command_line() -> str:
    return subprocess.list2cmdline(sys.argv)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
