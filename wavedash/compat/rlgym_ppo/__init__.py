"""rlgym-ppo's interface: `from wavedash.compat.rlgym_ppo import Learner`. What works and what differs is in docs/rlgym.md.

Names are imported when they are first used, so that worker processes, which need only `util`, do not load torch.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavedash.compat.rlgym_ppo.learner import Learner
    from wavedash.compat.rlgym_ppo.util import MetricsLogger

__all__ = ["Learner", "MetricsLogger"]

_MODULES = {"Learner": "learner", "MetricsLogger": "util"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
