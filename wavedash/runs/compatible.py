"""The rules for changed settings when a run is resumed.

Whatever is not refused here takes effect from the next iteration on: settings come from the configuration, never from a
checkpoint. Two kinds are refused, each by its name: those in FIXED, which would have no effect because the checkpoint has
decided them for good, and those with which the saved weights do not fit. The latter are compared by fingerprint.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wavedash.config import PolicyConfig, RunConfig
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.plain import from_json, to_json

FIXED = {
    "name": "the folder of the run is named by it",
    "init": "it says with which weights a run begins, and this one goes on from those of its checkpoint",
    "distill.teacher": "it says from whom a run learns, and a copy of that policy is in its folder. To go on without it, begin "
                       "a run by PPO with this one's policy: wavedash train ... distill=null init=RUN",
    "distill.begin_as_teacher": "it says with which weights a run begins, and this one goes on from those of its checkpoint",
    "imitate.held_out": "it says which episodes a run does not learn from, and this one has learned from the others. To go on "
                        "without demonstrations, begin a run by PPO with this one's policy: wavedash train ... imitate=null "
                        "init=RUN",
    "seed": "random streams go on from where they were saved",
    "policy.orthogonal": "it says how weights are initialised, and these weights are trained already",
}
"""Settings that cannot change when a run is resumed, and why"""
ANY_FITS = frozenset({"policy.action_floor", "policy.orthogonal", "policy.gsde.sample_every", "policy.memory.sequence"})
"""Settings of the policy with which weights fit whatever their value"""


def decides_weights(key: str) -> bool:
    """Whether a setting, by its dotted name, says which weights a policy has, so that a resume with another value is refused.
    That an observation has another size is only known once it is made."""
    return (key.startswith("policy.") and key not in ANY_FITS) or key in ("ppo.normalize_obs", "env.frame_stack")


class IncompatibleError(CheckpointError):
    """The checkpoint was made with other spaces or networks; the message says which."""


def check_changes(then: RunConfig, now: RunConfig) -> None:
    """Raises IncompatibleError, which names the settings that were changed and cannot be."""
    lines = [f"{change}: {FIXED[key]}" for key, change in changes(then, now).items() if key in FIXED]
    if lines:
        raise IncompatibleError("\n  ".join(["these settings cannot change when a run is resumed:", *lines])
                                + "\nLeave them as they were, or start a new run with `wavedash train`")


def changes(then: RunConfig, now: RunConfig) -> dict[str, str]:
    """Returns, by key, the settings that differ: `env.count was 8, now 16`."""
    old, new = (dict(_values(config.model_dump(mode="json"), with_empty=True)) for config in (then, now))
    keys = sorted(old.keys() | new.keys())
    return {key: f"{key} was {old.get(key, 'not set')}, now {new.get(key, 'not set')}"
            for key in keys if old.get(key, _MISSING) != new.get(key, _MISSING)
            and not any(other.startswith(f"{key}.") for other in keys)}  # what was empty is named by what is in it now


def check_compatible(saved: Mapping[str, Any], now: Mapping[str, Any], changed: Iterable[str] = ()) -> None:
    """Raises IncompatibleError unless both fingerprints are equal. `changed` is what differs in the configuration."""
    if lines := differences(saved, now):
        since = "\n  ".join(["\nSettings that were changed:", *changed]) if changed else ""
        advice = "Set environment and networks as they were saved (config.yaml in the run folder), or start a new run"
        raise IncompatibleError("\n  ".join(["the checkpoint does not fit this run:", *lines]) + f"{since}\n{advice}")


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns one line for each value that differs; none when compatible."""
    return [f"{key}: saved {then}, now {here}" for key, (then, here) in different_values(saved, now).items()]


def different_values(saved: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns, by key, the values that differ between two fingerprints (`nothing` where one of them has none). An option of the
    policy that is newer than the checkpoint counts as its default there."""
    saved, now = (_of_weights(fingerprint) for fingerprint in (saved, now))
    then, here = dict(_values(saved)), dict(_values(from_json(to_json(now))))  # JSON turns tuples into lists
    defaults = dict(_values({"policy": PolicyConfig().model_dump(mode="json")}))
    then = {**{key: value for key, value in defaults.items() if key in here}, **then}
    return {key: (then.get(key, "nothing"), here.get(key, "nothing"))
            for key in sorted((then.keys() | here.keys()) - ANY_FITS) if then.get(key, _MISSING) != here.get(key, _MISSING)}


_MISSING = object()


def _of_weights(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Drops what weights do not depend on (the space of raw observations, the clip range of normalised ones), and names the
    rest as in the configuration."""
    rest = {name: value for name, value in fingerprint.items() if name not in ("source_space", "normalize_obs")}
    return {**rest, "ppo.normalize_obs": fingerprint.get("normalize_obs") is not None}


def _values(tree: Mapping[str, Any], prefix: str = "", with_empty: bool = False) -> Iterator[tuple[str, Any]]:
    """Yields all values by their dotted names. `with_empty`: mappings without any (a part without options) count as values."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and (value or not with_empty):
            yield from _values(value, f"{prefix}{key}.", with_empty)
        else:
            yield prefix + key, value
