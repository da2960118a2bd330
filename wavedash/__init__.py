"""Wavedash: PPO training for game-playing and walking agents.

Names are imported when first used, so that `import wavedash` and the command line answer without loading torch.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavedash.loading import load_policy, load_run
    from wavedash.ppo.learner import Learner
    from wavedash.ppo.listener import Listener
    from wavedash.training import resume, train

__version__ = "0.1.0"
__all__ = ["Learner", "Listener", "__version__", "load_policy", "load_run", "resume", "train"]

_MODULES = {
    "Learner": "wavedash.ppo.learner",
    "Listener": "wavedash.ppo.listener",
    "load_policy": "wavedash.loading",
    "load_run": "wavedash.loading",
    "resume": "wavedash.training",
    "train": "wavedash.training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'wavedash' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
