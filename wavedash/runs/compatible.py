"""May this run go on with these settings?

Whatever is not refused here counts from the next iteration on: settings come from the configuration, never from a checkpoint.
Two kinds are refused, each by its name. FIXED are those that a checkpoint has decided for good, so that another value would
change nothing. And weights must fit: that is compared by fingerprint, plain values that must be equal.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wavedash.config import PolicyConfig, RunConfig
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.plain import from_json, to_json

FIXED = {
    "name": "the folder of the run is named by it",
    "seed": "random streams go on from where they were saved",
    "policy.orthogonal": "it says how weights begin, and these have begun",
}
"""Settings that cannot change when a run is resumed, and why"""
FITTING = frozenset({"policy.orthogonal", "policy.gsde.sample_every", "policy.memory.sequence"})
"""Settings of the policy that weights fit whatever they are: how they began, how long noise stays, how far gradients reach"""


class IncompatibleError(CheckpointError):
    """The checkpoint was made with other spaces or networks; the message says which."""


def check_changes(then: RunConfig, now: RunConfig) -> None:
    """IncompatibleError: names the settings that were changed and cannot be."""
    lines = [f"{change}: {FIXED[key]}" for key, change in changes(then, now).items() if key in FIXED]
    if lines:
        raise IncompatibleError("\n  ".join(["these settings cannot change when a run is resumed:", *lines])
                                + "\nLeave them as they were, or start a new run with `wavedash train`")


def changes(then: RunConfig, now: RunConfig) -> dict[str, str]:
    """The settings that differ: `env.count was 8, now 16`, by key."""
    old, new = (dict(_values(config.model_dump(mode="json"))) for config in (then, now))
    return {key: f"{key} was {old.get(key, 'not set')}, now {new.get(key, 'not set')}"
            for key in sorted(old.keys() | new.keys()) if old.get(key, _MISSING) != new.get(key, _MISSING)}


def check_compatible(saved: Mapping[str, Any], now: Mapping[str, Any], changed: Iterable[str] = ()) -> None:
    """Raises IncompatibleError unless both fingerprints are equal. `changed`: what is different in the configuration."""
    if lines := differences(saved, now):
        since = "\n  ".join(["\nSettings that were changed:", *changed]) if changed else ""
        advice = "Set environment and networks as they were saved (config.yaml in the run folder), or start a new run"
        raise IncompatibleError("\n  ".join(["the checkpoint does not fit this run:", *lines]) + f"{since}\n{advice}")


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One line for each value that differs; empty when compatible. What observations were before they became numbers is of no
    matter to the weights, nor where normalised ones are clipped. A checkpoint from before an option of the policy existed has
    the option's default."""
    saved, now = (_of_weights(both) for both in (saved, now))
    then, here = dict(_values(saved)), dict(_values(from_json(to_json(now))))  # as JSON: it has lists, no tuples
    defaults = dict(_values({"policy": PolicyConfig().model_dump(mode="json")}))
    then = {**{key: value for key, value in defaults.items() if key in here}, **then}
    return [f"{key}: saved {then.get(key, 'nothing')}, now {here.get(key, 'nothing')}"
            for key in sorted((then.keys() | here.keys()) - FITTING) if then.get(key, _MISSING) != here.get(key, _MISSING)]


_MISSING = object()


def _of_weights(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Without what weights fit in any case; named as in the configuration."""
    rest = {name: value for name, value in fingerprint.items() if name not in ("source_space", "normalize_obs")}
    return {**rest, "ppo.normalize_obs": fingerprint.get("normalize_obs") is not None}


def _values(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
