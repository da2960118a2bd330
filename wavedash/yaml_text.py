"""YAML with the surprises taken out: what looks like a number is one, `off` is a word, nothing is said twice.

PyYAML follows YAML 1.1, where `1e-4` is text, `off` is false, `1:30` is ninety and a repeated key silently wins. Here
plain scalars are read as YAML 1.2 reads them (plus `100_000`), repeated keys are refused, and every key's line is known.

A file may come from anybody: before anything is built, its size, its nesting and what its aliases would expand to are held to
more than any configuration needs (nested aliases turn a hundred characters into a billion values).
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

LARGEST_TEXT = 256 * 1024
"""Characters; the longest preset has two thousand"""
DEEPEST = 32
"""Levels of nesting; a configuration has six"""
MOST_VALUES = 20_000
"""Keys and values, those that aliases repeat counted as often as they appear"""

Key = tuple[int | str, ...]
"""Where a value sits: ("ppo", "learning_rate")."""

# Tag, pattern, and the characters that such a scalar can start with.
_SCALARS = (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"[-+]?[0-9][0-9_]*", list("-+0123456789")),
    ("float", r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", list("-+.0123456789")),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 (its own, not those of YAML 1.1)


class _Dumper(yaml.SafeDumper):
    """Must share the loader's rules: it puts quotes around exactly the words that would be read as something else."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (its own, not those of YAML 1.1)


for _tag, _pattern, _first in _SCALARS:
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))  # PyYAML's reads 010 as eight


class YamlError(Exception):
    """The text is not usable YAML; `found` lists (line, what is wrong)."""

    def __init__(self, found: list[tuple[int, str]]):
        super().__init__(found)
        self.found = found


def read_yaml(text: str) -> tuple[Any, dict[Key, int]]:
    """The value of a YAML document and the line of each of its keys, counted from 1."""
    lines: dict[Key, int] = {}
    repeated = []
    try:
        _check_extent(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        value = loader.construct_document(node) if node else None
        for key, line in _walk(node, ()):
            if key in lines:
                repeated.append((line, f"'{_dotted(key)}' was already set in line {lines[key]}; remove one of the two"))
            lines[key] = line
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError([(mark.line + 1 if mark else 1, f"not valid YAML: {error.problem or error.context}")]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError([(1, f"not valid YAML: {error}")]) from None
    if repeated:
        raise YamlError(repeated)
    return value, lines


def _check_extent(text: str) -> None:
    """Follows the text event by event and stops at the first that goes too far: nothing is expanded to be counted."""
    if len(text) > LARGEST_TEXT:
        raise YamlError([(1, f"the text is longer than {LARGEST_TEXT:,} characters, which no configuration needs")])
    sizes: dict[str, int] = {}  # values below each finished anchor
    open_parts: list[tuple[str | None, int]] = []  # of the collections around this place: anchor, values before it
    values = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise YamlError([(line, f"the alias *{event.anchor} stands for nothing that is finished before it")])
            values += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            open_parts.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_parts.pop()
            if anchor is not None:
                sizes[anchor] = values - before
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        if len(open_parts) > DEEPEST:
            raise YamlError([(line, f"nested more than {DEEPEST} levels deep, which no configuration needs")])
        if values > MOST_VALUES:
            raise YamlError([(line, f"more than {MOST_VALUES:,} values (aliases counted as what they repeat), which no "
                                    "configuration needs")])


def write_yaml(value: Any, inline: bool = False) -> str:
    """YAML that `read_yaml` reads back to an equal value; `inline` writes it on one line without a line break at its end."""
    if not inline:
        return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=128)
    text = yaml.dump([value], Dumper=_Dumper, sort_keys=False, default_flow_style=True, width=10**9)
    return text.strip()[1:-1]


def _walk(node: yaml.Node | None, key: Key) -> Iterator[tuple[Key, int]]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield (*key, name.value), name.start_mark.line + 1
            yield from _walk(value, (*key, name.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*key, index), value.start_mark.line + 1
            yield from _walk(value, (*key, index))


def _dotted(key: Key) -> str:
    return ".".join(map(str, key))
