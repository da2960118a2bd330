"""A baseline is a measurement that later ones are compared with. It is kept as JSON, with the machine and the options."""
from __future__ import annotations

import hashlib
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wavedash.config import RunConfig
from wavedash.errors import UserError
from wavedash.runs.durable import replace_file
from wavedash.runs.folder import runs_root

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NOT_ABOUT_SPEED = {"name", "seed", "total_steps", "checkpoint", "report"}


class BaselineError(UserError):
    """A baseline cannot be read or written."""


class Baseline(BaseModel):
    """Rates of every round, with the machine and the options that they were measured with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    saved: str
    """The time of the measurement"""
    machine: dict[str, str | int]
    config: dict[str, Any]
    """The options that matter for speed"""
    rates: dict[str, Annotated[list[Rate], Field(min_length=1)]]
    """Samples per second of each stage, or what the name of a probe says; more is better"""

    @classmethod
    def of(cls, config: RunConfig, machine: Mapping[str, str | int], rates: Mapping[str, Sequence[float]]) -> Baseline:
        return cls(saved=f"{datetime.now():%Y-%m-%d %H:%M}", machine=dict(machine), config=about_speed(config),
                   rates={name: list(values) for name, values in rates.items()})

    @classmethod
    def read(cls, path: Path) -> Baseline | None:
        """Reads a baseline; returns None where there is no such file yet."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BaselineError(f"the baseline {path} cannot be read ({error.strerror})") from error
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            place = ".".join(map(str, wrong["loc"]))
            raise BaselineError(f"{path} is no baseline of `wavedash diagnose` ({place + ': ' if place else ''}{wrong['msg']})"
                                ) from error

    def write(self, path: Path) -> None:
        """Writes the baseline. A file of that name that is no baseline is kept as `.broken`."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                Baseline.read(path)
            except BaselineError as error:
                if isinstance(error.__cause__, OSError):  # a folder, or a file without permission to read
                    raise
                os.replace(path, path.with_name(f"{path.name}.broken"))
            replace_file(path, self.model_dump_json(indent=1).encode())
        except OSError as error:
            raise BaselineError(f"the baseline cannot be written to {path} ({error.strerror})") from error

    def over(self, older: Baseline | None) -> Baseline:
        """Returns this one with the rates that only the older one has, unless that was measured under other conditions."""
        if older is None or list(differences(older, self)):
            return self
        return self.model_copy(update={"rates": {**older.rates, **self.rates}})


def default_path(config: RunConfig) -> Path:
    """Returns the file of a configuration, in a folder beside the runs."""
    text = json.dumps(about_speed(config), sort_keys=True, default=str)
    return runs_root() / ".diagnose" / f"{config.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"


def about_speed(config: RunConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude=NOT_ABOUT_SPEED)


def differences(then: Baseline, now: Baseline) -> Iterator[str]:
    """Yields what was different, as `key: then -> now`."""
    before, after = (dict(_flat({"machine": measured.machine, **measured.config})) for measured in (then, now))
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            yield f"{key}: {before.get(key)} -> {after.get(key)}"


def _flat(part: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


class Change(NamedTuple):
    """The change of a rate since the baseline."""

    share: float
    """0.1 is a tenth more"""
    verdict: Literal["faster", "slower", "noise"]

    def __str__(self) -> str:
        return f"{self.share:+.0%} {self.verdict}"


def compare(then: Sequence[float], now: Sequence[float]) -> Change:
    """Compares medians. A change is more than noise only if all rounds of one were faster than all rounds of the other."""
    share = statistics.median(now) / statistics.median(then) - 1.0
    if min(now) > max(then):
        return Change(share, "faster")
    return Change(share, "slower" if max(now) < min(then) else "noise")
