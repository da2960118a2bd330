"""Lookup of parts by name: `goal`, `Goal` or `my_module:MyReward` in a YAML file become the class that they mean.

Each environment has a `Lookup` of its own, which knows the kinds of parts and the modules of those that ship with it. A shipped
part has the name of its class, in CamelCase or snake_case. A user's own part is named by its import path.
"""
from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from wavedash.envs.errors import EnvError
from wavedash.envs.factory import import_callable
from wavedash.errors import UserError
from wavedash.tasks.part import Part


class Lookup:
    """The kinds of parts of one environment."""

    def __init__(self, bases: str, kinds: Mapping[str, tuple[type[Part], str]]) -> None:
        """`bases`: the module with the base classes that users derive their own parts from. `kinds`: for each kind, its base
        class and the module of the parts that ship with it."""
        self.bases, self.kinds = bases, dict(kinds)
        self._shipped: dict[str, dict[str, type[Part]]] = {}

    def shipped(self, kind: str) -> dict[str, type[Part]]:
        """The classes of this kind that ship with the environment, by snake_case name."""
        if kind not in self._shipped:  # a ramp makes all parts of a task anew in every iteration, to check their values
            base, module = self.kinds[kind]
            found = [c for c in vars(importlib.import_module(module)).values() if inspect.isclass(c) and issubclass(c, base)]
            self._shipped[kind] = {snake_case(c.__name__): c for c in found
                                   if not inspect.isabstract(c) and not c.__name__.startswith("_")}
        return self._shipped[kind]

    def find(self, kind: str, name: str) -> type[Part]:
        """The class that `name` means: a shipped one, or a user's own by import path."""
        if ":" in name:
            own = import_callable(name)
            if not (inspect.isclass(own) and issubclass(own, self.kinds[kind][0])):
                raise UserError(f"{name!r} cannot be used as {_with_article(kind)}: it is no class derived from "
                                f"{self.bases}.{self.kinds[kind][0].__name__}")
            return own
        classes = self.shipped(kind)
        if snake_case(name) not in classes:
            raise UserError(f"there is no {kind} {name!r}{_nearest(snake_case(name), classes) or '.'} The {kind}s are: "
                            f"{', '.join(sorted(classes))}; one of your own is named 'module:Class'")
        return classes[snake_case(name)]

    def options(self, kind: str, name: str) -> dict[str, inspect.Parameter]:
        """Returns what a part of this name can be made with."""
        return dict(_parameters(self.find(kind, name)))

    def make(self, kind: str, name: str, options: Mapping[str, Any] | None = None) -> Any:
        """Makes a part of this name with these options."""
        found, given = self.find(kind, name), dict(options or {})
        accepted = self.options(kind, name)
        if not any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
            for option in given:
                if option not in accepted:
                    has = f"its options are: {', '.join(accepted)}" if accepted else "it has none"
                    raise UserError(f"{kind} {name!r} has no option {option!r}{_nearest(option, accepted) or ';'} {has}")
        missing = [n for n, p in accepted.items() if p.default is p.empty and n not in given
                   and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if missing:
            raise UserError(f"{kind} {name!r} needs a value for {', '.join(missing)}")
        try:
            part = found(**given)
        except UserError:
            raise
        except Exception as error:
            options_given = ", ".join(f"{option}={value!r}" for option, value in given.items()) or "no options"
            raise EnvError(f"{kind} {name!r} cannot be made with {options_given}: {type(error).__name__}: {error}",
                           shows_cause=":" in name) from error
        part.origin, part.given = f"{name} {given!r}", given
        return part

    def kind_of(self, part: Part) -> str:
        """The kind of a part, such as "reward"."""
        return next(kind for kind, (base, _) in self.kinds.items() if isinstance(part, base))


def name_of(part: Part) -> str:
    """The name of a part as a YAML file would have it."""
    kind = type(part)
    ships = kind.__module__.startswith("wavedash.")
    return snake_case(kind.__name__) if ships else f"{kind.__module__}:{kind.__qualname__}"


@cache
def _parameters(kind: type[Part]) -> dict[str, inspect.Parameter]:
    """Returns what a class is made with, but for `self`."""
    _, *parameters = inspect.signature(kind.__init__).parameters.items()
    return dict(parameters)


@cache
def snake_case(name: str) -> str:
    """`VelocityPlayerToBall` -> `velocity_player_to_ball`; a name in snake_case stays as it is."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _nearest(name: str, names: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
