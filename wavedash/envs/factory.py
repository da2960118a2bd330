"""EnvFactory: names an environment, so that a worker process can build it."""
from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium

from wavedash.envs.errors import EnvError
from wavedash.envs.gymnasium.wrap import Named, wrapped
from wavedash.envs.script import import_script

EXTRAS = {"box2d": "gymnasium.envs.box2d", "mujoco": "gymnasium.envs.mujoco"}
"""Extras of this package, and the environments that need them."""


@dataclass(frozen=True)
class EnvFactory:
    """Builds a Gymnasium id (`CartPole-v1`) or calls an import path (`module:callable`, `/folder/script.py:callable`)."""

    name: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    imported: bool = False
    """`name` is an import path."""
    wrappers: tuple[Named, ...] = ()
    """Wrappers around the environment, the first one inside."""

    def __call__(self) -> Any:
        return wrapped(self._bare(), self.wrappers, import_callable)

    def _bare(self) -> Any:
        return called(self.name, import_callable(self.name) if self.imported else partial(_registered, self.name), self.kwargs)


def called(name: str, make: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what `make` returns; an exception in it becomes an EnvError that names the environment."""
    try:
        return make(**kwargs)
    except EnvError:
        raise
    except Exception as error:
        given = f" with env.kwargs={kwargs}" if kwargs else ""
        raise EnvError(f"making the environment {name!r}{given} raised {type(error).__name__}: {error}. The traceback above "
                       "shows where", shows_cause=True) from error


def _registered(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    try:
        # Gymnasium's checker wraps every step; HostBatch checks what matters for learning on whole blocks at once.
        return gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        raise EnvError(f"there is no environment {env_id!r} in Gymnasium{_did_you_mean(env_id, list(gymnasium.registry))}. "
                       "For an environment of your own set env.factory to an import path 'module:callable'") from error
    except gymnasium.error.DependencyNotInstalled as error:
        extra = next((name for name, module in EXTRAS.items() if module in str(_entry_point(env_id))), None)
        install = f': pip install "wavedash[{extra}]"' if extra else f": {error}"
        raise EnvError(f"environment {env_id!r} needs a package that is not installed{install}") from error


def _entry_point(env_id: str) -> object:
    return gymnasium.registry[env_id].entry_point if env_id in gymnasium.registry else None


def import_callable(path: str) -> Callable[..., Any]:
    """Import `package.module:callable` or `/folder/script.py:callable`."""
    module_name, _, name = path.rpartition(":")
    if not module_name or not name:
        raise EnvError(f"{path!r} is not an import path: write 'package.module:callable'")
    if "<" in name:
        raise EnvError(f"{path!r} has no name by which it can be found again: a lambda, a function inside a function, or an "
                       "object that can be called. Write a function without arguments at the top level of a module, and set "
                       "env.factory to 'module:function' (of a run: in its config.yaml; it is then asked for --trust)")
    if module_name.endswith(".py"):
        module = import_script(module_name)
    else:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise EnvError(f"cannot import {module_name!r} of {path!r}: {error}; install it, or start from the folder that "
                           "holds it") from error
        except Exception as error:
            raise EnvError(f"importing {module_name!r} of {path!r} raised {type(error).__name__}: {error}. The traceback above "
                           "shows where", shows_cause=True) from error
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        names = [n for n in vars(module) if callable(getattr(module, n))]
        raise EnvError(f"module {module_name!r} has no callable {name!r}{_did_you_mean(name, names)}")
    return function


def _did_you_mean(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
