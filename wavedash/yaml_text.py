"""YAML without surprises: what looks like a number is one, `off` is text, and no key may be repeated.

PyYAML follows YAML 1.1, where `1e-4` is text, `off` is false, `1:30` is ninety, and the last of repeated keys counts. Here
plain scalars are read as in YAML 1.2 (plus `100_000`), repeated keys are refused, and the line of every key is known.

A file may come from anybody: before any value is made, its size, its nesting and the expansion of its aliases are limited to
more than any configuration needs (nested aliases can turn a hundred characters into a billion values).
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

LARGEST_TEXT = 256 * 1024
"""The most characters; the longest preset has two thousand"""
DEEPEST = 32
"""The most levels of nesting; a configuration has six"""
MOST_VALUES = 20_000
"""The most keys and values, with aliases counted as what they repeat"""

Key = tuple[int | str, ...]
"""The path of a value: ("ppo", "learning_rate")"""

# Each has a tag, a pattern, and the characters that such a scalar can start with.
_SCALARS = (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"[-+]?[0-9][0-9_]*", list("-+0123456789")),
    ("float", r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", list("-+.0123456789")),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 (its own, not those of YAML 1.1)


class _Dumper(yaml.SafeDumper):
    """Shares the rules of the loader, so that it quotes exactly the texts that would be read as something else."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (its own, not those of YAML 1.1)


for _tag, _pattern, _first in _SCALARS:
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))  # PyYAML's reads 010 as eight


class YamlError(Exception):
    """The text is not valid YAML; `found` lists (line, what is wrong)."""

    def __init__(self, found: list[tuple[int, str]]):
        super().__init__(found)
        self.found = found


def read_yaml(text: str) -> tuple[Any, dict[Key, int]]:
    """Returns the value of a YAML document, and the line of each of its keys, counted from 1."""
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
    """Parses the text event by event and stops at the first limit that is exceeded; nothing is expanded."""
    if len(text) > LARGEST_TEXT:
        raise YamlError([(1, f"the text is longer than {LARGEST_TEXT:,} characters, which no configuration needs")])
    sizes: dict[str, int] = {}  # the number of values below each finished anchor
    open_parts: list[tuple[str | None, int]] = []  # anchor of each open collection, and the number of values before it
    values = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = 1 if event.start_mark is None else event.start_mark.line + 1
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
    """Returns YAML that `read_yaml` reads back to an equal value; `inline` puts it on one line without a line break."""
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
