"""May this checkpoint go on in this learner? Compared by fingerprint: plain values that must be equal for weights to fit."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wavedash.config import PolicyConfig
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.plain import from_json, to_json

BEGINNINGS = frozenset({"policy.orthogonal", "policy.gsde.sample_every"})
"""Settings that weights fit whatever they are: how they began, how long noise stays."""


class IncompatibleError(CheckpointError):
    """The checkpoint was made with other spaces or networks; the message says which."""


def check_compatible(saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises IncompatibleError unless both fingerprints are equal."""
    if lines := differences(saved, now):
        raise IncompatibleError("\n  ".join(["the checkpoint does not fit this run:", *lines]) + "\nSet environment and "
                                "networks as they were saved (config.yaml in the checkpoint's run folder), or start a new run")


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One line for each value that differs; empty when compatible. What observations were before they became numbers is of no
    matter to the weights. A checkpoint from before an option of the policy existed has the option's default."""
    saved, now = ({name: value for name, value in both.items() if name != "source_space"} for both in (saved, now))
    then, here = dict(_values(saved)), dict(_values(from_json(to_json(now))))  # as JSON: it has lists, no tuples
    defaults = dict(_values({"policy": PolicyConfig().model_dump(mode="json")}))
    then = {**{key: value for key, value in defaults.items() if key in here}, **then}
    return [f"{key}: saved {then.get(key, 'nothing')}, now {here.get(key, 'nothing')}"
            for key in sorted((then.keys() | here.keys()) - BEGINNINGS) if then.get(key, _MISSING) != here.get(key, _MISSING)]


_MISSING = object()


def _values(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
