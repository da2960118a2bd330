"""What the page says about a setting: the sentence that documents it, and the words that it may be, from the configuration."""
from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from wavedash.config import RunConfig


@lru_cache(4096)
def about(key: str) -> dict[str, Any]:
    """`help` and `choices` of a dotted key, such as ppo.schedule.kind, each where there is one."""
    section: type[BaseModel] | None = RunConfig
    *above, last = key.split(".")
    for name in above:
        field = section.model_fields.get(name) if section is not None else None
        section = next(_sections(field.annotation), None) if field is not None else None
    field = section.model_fields.get(last) if section is not None else None
    if field is None:
        return {}
    found = {"help": " ".join((field.description or "").split()), "choices": _words(field.annotation)}
    return {name: value for name, value in found.items() if value}


def _sections(kind: Any) -> Iterator[type[BaseModel]]:
    """The sections that a type allows."""
    for one in _alternatives(kind):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one


def _words(kind: Any) -> list[str]:
    """The words of a type that allows nothing but a few words."""
    found = _alternatives(kind)
    if found == [bool]:
        return ["true", "false"]
    if not found or not all(get_origin(one) is Literal for one in found):
        return []
    return [word for one in found for word in get_args(one) if isinstance(word, str)]


def _alternatives(kind: Any) -> list[Any]:
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [one for part in get_args(kind) for one in _alternatives(part)]
    return [kind]
