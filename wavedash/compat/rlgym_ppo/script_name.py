"""Names the function of a script that builds environments (`/folder/train.py:build_env`), for `wavedash eval` and `resume`."""
from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def factory_of(build: Callable[[], Any]) -> dict[str, Any]:
    """Returns `factory` and `kwargs` of our configuration. A function that cannot be found by name gets a name too, and the
    error of `eval` then shows it."""
    if isinstance(build, functools.partial) and not build.args and _is_plain(build.keywords):
        return {"factory": _name(build.func), "kwargs": dict(build.keywords)}
    return {"factory": _name(build)}


def _name(build: Any) -> str:
    name = getattr(build, "__qualname__", None)
    if name is None or (hasattr(build, "__self__") and not isinstance(build.__self__, type)):
        name = f"<{type(build).__name__}>"  # a callable object, or a method of an object
    return f"{_place(getattr(build, '__module__', None) or type(build).__module__)}:{name}"


def _place(module: str) -> str:
    """Returns the file of the started script or of a module beside it, which is imported by its path; else the module's
    name."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if module == "__main__":
        spec = getattr(found, "__spec__", None)
        if spec is not None:  # python -m package.train
            return str(spec.name)
    elif "." in module or file is None or Path(file).resolve().parent != _folder_of_script():
        return module
    return module if file is None else str(Path(file).resolve())


def _folder_of_script() -> Path | None:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return None if main is None else Path(main).resolve().parent


def _is_plain(keywords: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(keywords)) == keywords)
    except (TypeError, ValueError):
        return False
