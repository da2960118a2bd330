"""Imports a script by its file, under another name than `__main__`: what it does when it is started it does not do now."""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from wavedash.envs.errors import EnvError

_importing: list[Path] = []


def import_script(path: str) -> ModuleType:
    """Import a script, once in a process. Its folder is searched for modules first, as when it is started."""
    script = Path(path).resolve()
    for name, module in list(sys.modules.items()):
        if name != "__main__" and getattr(module, "__file__", None) and Path(str(module.__file__)).resolve() == script:
            return module
    if not script.is_file():
        raise EnvError(f"the script {script} is not there any more: put it back, or set env.factory to where its function is "
                       "(of a run: in its config.yaml)")
    folder = str(script.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Modules beside it may import it by its own name; where that is taken, it gets another.
    name = script.stem if script.stem not in sys.modules else f"wavedash_script_{script.stem}"
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _being_imported(script):
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise EnvError(f"cannot import the script {script}: {error}; install what is missing, or start from the folder "
                           "that it was started from") from error
        raise
    return module


def script_being_imported() -> Path | None:
    """The script that is being imported, if any: it must not start a training then."""
    return _importing[-1] if _importing else None


@contextmanager
def _being_imported(script: Path) -> Iterator[None]:
    from wavedash.compat.rlgym_ppo import alias  # a script for rlgym-ppo was started with its modules replaced by ours

    alias.install()
    _importing.append(script)
    try:
        yield
    finally:
        _importing.pop()
