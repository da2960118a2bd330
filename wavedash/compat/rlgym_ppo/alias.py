"""After `install()`, `from rlgym_ppo import Learner` imports our module, whether rlgym-ppo is installed or not."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

THEIRS, OURS = "rlgym_ppo", "wavedash.compat.rlgym_ppo"


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == THEIRS or fullname.startswith(f"{THEIRS}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(OURS + spec.name.removeprefix(THEIRS))
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has replaced it


def install() -> None:
    """Redirects imports. Code that has imported modules of rlgym-ppo before keeps them."""
    if not is_installed():
        sys.meta_path.insert(0, _Finder())
        for name in [name for name in sys.modules if name == THEIRS or name.startswith(f"{THEIRS}.")]:
            del sys.modules[name]


def is_installed() -> bool:
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)
