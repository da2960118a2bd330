"""Reads a preset or a YAML file with `key=value` overrides into a checked `RunConfig`, and writes one as YAML.

Layers are merged in order: the preset named by `base:`, the file, the overrides. The place of each value is kept for error
messages. All errors of a configuration are reported together.
"""
from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wavedash.config import AUTO, RunConfig, Section
from wavedash.errors import UserError
from wavedash.yaml_text import LARGEST_TEXT, Key, YamlError, read_yaml, write_yaml

SMOKE_STEPS, SMOKE_ENVIRONMENTS = 1_000, 20
"""Size of a run with `wavedash train --smoke`."""
LONGEST_LINE = 118
"""Characters of a line of `wavedash config show`"""


class ConfigError(UserError):
    """A configuration that cannot be used; the message lists every problem with its place and the next step."""


@dataclass(frozen=True)
class _Layer:
    """One source of values, and for each key the place where it was written."""

    values: dict[str, Any]
    places: dict[Key, str]
    named: Key = ()
    """The key of an override. It may lead into mappings as well as sections, and what it names is replaced as a whole."""

    def over(self, below: _Layer) -> _Layer:
        return _Layer(self._merge(below.values, self.values, ()), below.places | self.places)

    def _merge(self, below: dict[str, Any], above: Mapping[str, Any], path: Key) -> dict[str, Any]:
        """Sections are merged key by key; values are replaced, mappings (`env.kwargs`, `env.rocket.rewards`) too."""
        merged = dict(below)
        for name, value in above.items():
            here, old = (*path, name), merged.get(name)
            inside = here != self.named if here == self.named[: len(here)] else is_section(here)
            mergeable = inside and isinstance(old, dict) and isinstance(value, dict)
            merged[name] = self._merge(old, value, here) if mergeable else value  # type: ignore[arg-type]
        return merged


def preset_names() -> list[str]:
    """Names of the presets that ship with the package."""
    files = resources.files("wavedash.presets").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def load_config(source: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a preset (`cartpole`) or a YAML file, apply dotted overrides (`ppo.learning_rate=1e-4`), check everything."""
    layer = _read_source(source)
    for override in overrides:
        layer = _override_layer(override).over(layer)
    try:
        return RunConfig.model_validate(layer.values)
    except ValidationError as error:
        problems = [_explain(detail, layer.places) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(problems)) from None


def changed_config(config: RunConfig, values: Mapping[Key, Any]) -> RunConfig:
    """Returns a configuration with other values, checked as a whole: what overrides of the same keys would give."""
    layer = _Layer(config.model_dump(), {})
    for key, value in values.items():
        inside = value
        for name in reversed(key):
            inside = {name: inside}
        layer = _Layer(inside, {}, key).over(layer)
    return checked_config(layer.values)


def checked_config(values: Mapping[str, Any]) -> RunConfig:
    """Returns the configuration that a mapping is. ConfigError: it is none."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(complaint(detail) for detail in error.errors(include_url=False))) from None


def option_keys(model: type[BaseModel] = RunConfig) -> list[str]:
    """The dotted names of all options and sections of a configuration."""
    return list(_option_keys(model))


def smoke_overrides(config: RunConfig) -> list[str]:
    """Overrides that make of any preset a run of 1,000 steps with several updates and checkpoints. In a run with phases, these
    are 1,000 steps for each: it moves on after every iteration, whatever the bot can do, also from phases that end by hand."""
    phases = [phase.model_dump(exclude_none=True) for phase in config.phases]
    for phase in phases[:-1]:
        phase["until"] = {"steps": 1}
    total = SMOKE_STEPS * max(1, len(phases))
    count = SMOKE_ENVIRONMENTS if config.env.count == AUTO else min(config.env.count, SMOKE_ENVIRONMENTS)
    count = max(config.env.workers, count)
    steps = max(1, SMOKE_STEPS // 5 // count)
    sequence = [] if config.policy.memory.kind == "none" else [f"policy.memory.sequence={steps}"]
    return [
        *sequence,
        f"name={config.name}-smoke",
        f"total_steps={total}",
        *([f"phases={write_yaml(phases, inline=True)}"] if phases else []),
        f"env.count={count}",
        f"ppo.rollout_steps={steps}",
        f"checkpoint.every={total // 2}",
        "report.wandb=false",
    ]


def dump_config(config: RunConfig) -> str:
    """YAML that `load_config` reads back to an equal configuration."""
    return write_yaml(config.model_dump())


def describe_config(config: RunConfig) -> str:
    """`dump_config` with the documentation of every option as a comment above it."""
    return "\n".join(_describe(config, indent="")) + "\n"


def _describe(part: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        is_part = isinstance(value, BaseModel)
        documentation = type(value).__doc__ if is_part else field.description
        if is_part and not indent:
            yield ""
        comment = f"{indent}# "
        yield from textwrap.wrap(documentation or "", LONGEST_LINE, initial_indent=comment, subsequent_indent=comment)
        if is_part:
            yield f"{indent}{name}:"
            yield from _describe(value, indent + "  ")
        else:
            yield from _written(name, part.model_dump(include={name})[name], indent)


def _written(name: str, value: Any, indent: str) -> Iterator[str]:
    """An option and its value: in one line if it fits, else in a block."""
    line = f"{indent}{name}: {write_yaml(value, inline=True)}"
    if len(line) <= LONGEST_LINE or not isinstance(value, list | dict):
        yield line
        return
    yield f"{indent}{name}:"
    yield from textwrap.indent(write_yaml(value).rstrip(), f"{indent}  ").splitlines()


def _read_source(source: str) -> _Layer:
    presets = preset_names()
    if source in presets:
        text = resources.files("wavedash.presets").joinpath(f"{source}.yaml").read_text(encoding="utf-8")
        return _read_text(text, f"preset {source}")
    if not Path(source).is_file():
        raise ConfigError(f"{source}: no such file, and no preset has this name{_nearest(source, presets)}")
    try:
        with open(source, encoding="utf-8") as file:
            text = file.read(LARGEST_TEXT + 1)  # a larger file is refused without reading all of it
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source}: cannot be read as text: {error}") from None
    return _read_text(text, source)


def _read_text(text: str, name: str) -> _Layer:
    try:
        values, lines = read_yaml(text)
    except YamlError as error:
        raise ConfigError("\n".join(f"{name}:{line}: {what}" for line, what in error.found)) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{name}:1: expected options such as 'total_steps: 100_000', got {_shown(values)}")
    layer = _Layer(values, {key: f"{name}:{line}" for key, line in lines.items()})
    base = values.pop("base", None)
    if base is None:
        return layer
    if base not in preset_names():
        where = layer.places["base",]
        raise ConfigError(f"{where}: base: no preset is named {_shown(base)}{_nearest(str(base), preset_names())}")
    return layer.over(_read_source(base))


def read_override(override: str) -> tuple[Key, Any]:
    """The key and the value of an override such as `ppo.learning_rate=1e-4`."""
    dotted, equals, text = override.partition("=")
    key: Key = tuple(dotted.split("."))
    if not equals or not all(key):
        raise ConfigError(f"override '{override}': expected key=value, such as ppo.learning_rate=1e-4")
    try:
        return key, read_yaml(text)[0]
    except YamlError as error:
        raise ConfigError(f"override '{override}': {error.found[0][1]}") from None


def _override_layer(override: str) -> _Layer:
    key, value = read_override(override)
    for name in reversed(key):
        value = {name: value}
    return _Layer(value, {key[:n]: f"override '{override}'" for n in range(1, len(key) + 1)}, key)


def is_section(path: Key) -> bool:
    """Whether a key leads to a section, which has options of its own."""
    model: Any = RunConfig
    for name in path:
        field = model.model_fields.get(name) if model is not None else None
        if field is None:
            return False
        model = _section(field.annotation)
    return model is not None


def _section(annotation: Any) -> type[Section] | None:
    """The section that an option is, or may be; None for a value. A list of sections is a value."""
    kinds = () if get_origin(annotation) is list else (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def _explain(detail: ErrorDetails, places: Mapping[Key, str]) -> str:
    """One pydantic error as `place: key: what was expected`."""
    key = detail["loc"]
    place = next((places[key[:n]] for n in range(len(key), -1, -1) if key[:n] in places), "")
    return f"{place}: {complaint(detail)}" if place else complaint(detail)


def complaint(detail: ErrorDetails, model: type[BaseModel] = RunConfig, at: Key = ()) -> str:
    """One pydantic error as `key: what was expected`. `model` is what was being read, `at` its key in the configuration."""
    *parents, name = detail["loc"] or ("",)
    dotted = ".".join(map(str, (*at, *detail["loc"])))
    kind, message = detail["type"], detail["msg"]
    if kind == "extra_forbidden":
        return f"unknown key '{dotted}'{_suggest_key(model, at, [str(p) for p in parents], str(name))}"
    if kind == "missing":
        return f"'{dotted}' is missing; set it in the file or as {dotted}=..."
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "model_type" and not is_section((*at, *detail["loc"])):  # in a list or mapping, where no key with dots leads
        names = ", ".join(_names_at(model, list(map(str, detail["loc"]))))
        return f"{dotted}: expected options in braces ({names}), got {_shown(detail['input'])}"
    if kind == "model_type":
        return f"{dotted}: expected options below it ({dotted}.name=value), got {_shown(detail['input'])}"
    if kind.endswith("_parsing"):  # "a valid integer, unable to parse string as an integer"
        message = message.partition(",")[0]
    return f"{dotted}: {message.replace('Input should be', 'expected')}, got {_shown(detail['input'])}"


def _suggest_key(model: type[BaseModel], at: Key, parents: Sequence[str], name: str) -> str:
    """The nearest option beside the wrong one (`lr` counts as near), else one of that name elsewhere, else the choice."""
    start, prefix = ("".join(f"{key}." for key in keys) for keys in (at, parents))
    here = _names_at(model, parents)
    near = difflib.get_close_matches(name, here, n=1) or [key for key in here if name == initials(key)]
    elsewhere = [key for key in _option_keys(model) if key.rpartition(".")[2] == name]
    found = [prefix + key for key in near] or sorted(elsewhere, key=lambda key: key.count("."))
    choice = f"; choose from {', '.join(here)}" if here else ""
    return f"; did you mean '{start}{found[0]}'?" if found else choice


def _names_at(model: type[BaseModel], parents: Sequence[str]) -> list[str]:
    """The options of the section that a key leads to, also through a list or a mapping of sections (`phases.0.until`)."""
    here: Any = model
    for name in parents:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(name)
            here = None if field is None else field.annotation
        else:  # the number of an entry, or a name that its user has chosen
            here = get_args(here)[-1] if get_origin(here) in (list, dict) else None
        here = next((kind for kind in (here, *get_args(here)) if get_origin(kind) in (list, dict)), None) or _section(here)
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def initials(name: str) -> str:
    """`lr` for `learning_rate`."""
    return "".join(word[0] for word in name.split("_"))


def _option_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name
        section = _section(field.annotation)
        if section is not None:
            yield from _option_keys(section, f"{prefix}{name}.")


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; presets are {', '.join(known)}"


def _shown(value: object) -> str:
    return textwrap.shorten(repr(value), 60, placeholder="...")
