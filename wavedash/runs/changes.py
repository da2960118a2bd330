"""Changes of settings while a run runs: which may change, and how a learner takes them over between iterations.

Keys are those of overrides (`ppo.learning_rate`, `env.rocket.rewards.goal`). Who holds a setting says that it may change: the
learner for `ppo`, the kind of environment for `env` (envs/kinds.py), listeners for what they do (`Listener.live`). A change is
checked as a whole configuration, and taken over by all of them or by none. No CUDA graph is captured anew: settings are tensors
that graphs read, or are read between graphs.

A run with a change at step s equals, bit for bit, one that is resumed at step s with the same overrides.
"""
from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wavedash.config import PPOConfig, RunConfig
from wavedash.config_file import changed_config, initials, option_keys
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.runs.compatible import FIXED, decides_weights
from wavedash.yaml_text import Key

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner


class ChangeError(UserError):
    """A setting cannot be changed while the run runs; the message names it, why, and what to do."""


def live_keys(learner: Learner) -> dict[str, Key]:
    """The settings that may change now, by their dotted names. Names of parts may have dots of their own."""
    return live_keys_of(learner.config, [key for listener in learner.listeners for key in listener.live])


def live_keys_of(config: RunConfig, listed: Iterable[str]) -> dict[str, Key]:
    """The settings that may change in a run with this configuration, whose listeners have listed theirs."""
    from wavedash.ppo.learner import BETWEEN_GRAPHS

    options = option_keys(PPOConfig)
    own = [f"ppo.{key}" for key in _leaves(options) if key.partition(".")[0] in BETWEEN_GRAPHS]
    if config.ppo.critic_learning_rate is None:
        own.remove("ppo.critic_learning_rate")  # the optimiser holds actor and critic together
    keys: list[Key] = [tuple(name.split(".")) for name in ("total_steps", *own, *listed)]
    keys += [("env", *key) for key in kind_of(config.env).live_keys(config.env)]
    return {".".join(map(str, key)): key for key in keys}


def changed(learner: Learner, values: Mapping[str, Any]) -> dict[Key, Any]:
    """The values by key. ChangeError: one of the keys cannot change while the run runs."""
    keys = live_keys(learner)
    wrong = [(name, _refusal(name, learner.config, keys)) for name in values if name not in keys]
    if wrong:
        orders = {order for listener in learner.listeners for order in listener.orders}
        raise ChangeError("\n".join(_told_as_order(name, values[name]) if name in orders else said for name, said in wrong))
    if values.get("ppo.critic_learning_rate", 0) is None:
        raise ChangeError("ppo.critic_learning_rate can change to another rate, but not to null, while the run runs")
    return {keys[name]: value for name, value in values.items()}


def apply(learner: Learner, config: RunConfig) -> None:
    """Gives the learner, its environments and its listeners another configuration, which differs in `live_keys` only. It counts
    from the next iteration on. ChangeError: one of them does not take it, and all are as they were."""
    then = learner.config
    try:
        _hand_over(learner, config)
    except Exception as error:  # parts of a task may be a user's own code
        _hand_over(learner, then)
        said = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        raise ChangeError(said) from error


def change(learner: Learner, values: Mapping[str, Any]) -> None:
    """Changes settings of a learner from the next iteration on, in this process: `{"ppo.learning_rate": 1e-4}`. ChangeError or
    ConfigError: nothing is changed."""
    apply(learner, changed_config(learner.config, changed(learner, values)))


def differing(then: RunConfig, now: RunConfig) -> dict[Key, Any]:
    """The values that differ, by key: those with which `changed_config` makes `now` of `then`. Where a mapping has other names
    than before, it is one value."""
    return dict(_differing(then.model_dump(), now.model_dump(), ()))


def _differing(then: Any, now: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(then, Mapping) and isinstance(now, Mapping) and then.keys() == now.keys():
        for name in now:
            yield from _differing(then[name], now[name], (*key, name))
    elif then != now:
        yield key, now


def value_at(config: RunConfig, key: Key) -> Any:
    """The value that a key has. Where there is none, that of the mapping around it, or of the number in its place."""
    value: Any = config.model_dump()
    for name in key:
        if not isinstance(value, Mapping) or name not in value:
            break
        value = value[name]
    return value


def _hand_over(learner: Learner, config: RunConfig) -> None:
    then = learner.config
    learner.change(config)
    if config.env != then.env:
        kind_of(config.env).change(learner.env, config.env)
    for listener in learner.listeners:
        listener.on_change(learner, then)


def _told_as_order(name: str, value: Any) -> str:
    """Says what to do instead of writing an order among settings, as in `live.yaml`."""
    argument = f"={value}" if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return f"{name} is an order, and a file holds settings only; give it by the command: wavedash set RUN {name}{argument}"


def _refusal(name: str, config: RunConfig, keys: Mapping[str, Key]) -> str:
    """Why a setting cannot change, and what can be done instead."""
    if name in FIXED:
        return f"{name} cannot change in a run: {FIXED[name]}"
    if decides_weights(name) and name in option_keys():
        return (f"{name} cannot change in a run: the weights that it has learned would not fit. Begin a new run with another "
                f"value: wavedash train ... {name}=...")
    if below := [key for key in keys if key.startswith(f"{name}.")]:
        return f"{name} cannot change as a whole while the run runs; set what is in it: {_listed(below)}"
    if name in option_keys() and (missing := _missing_section(config, name)):
        return f"{name} cannot change while the run runs: this run has no {missing}"
    if name in option_keys() or _missing_section(config, name) is None:
        return (f"{name} cannot change while the run runs. Stop the run and resume it with another value: "
                f"wavedash resume RUN {name}=...")
    last = name.rpartition(".")[2]
    near = (difflib.get_close_matches(name, keys, n=1, cutoff=0.75)
            or [key for key in keys if last in (key.rpartition(".")[2], initials(key.rpartition(".")[2]))]
            or difflib.get_close_matches(name, keys, n=1, cutoff=0.5))
    advice = f"did you mean {near[0]!r}?" if near else f"these may change: {_listed(keys)}"
    return f"there is no setting {name!r}; {advice}"


def _missing_section(config: RunConfig, name: str) -> str | None:
    """The part of a dotted name that leads to nothing in this configuration; None: the name leads to a value."""
    value: Any = config.model_dump()
    parts = name.split(".")
    for depth, part in enumerate(parts):
        if not isinstance(value, Mapping) or part not in value:
            return ".".join(parts[:depth])
        value = value[part]
    return None


def _listed(keys: Iterable[str]) -> str:
    names = list(keys)
    return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:12])}, and {len(names) - 12} more"


def _leaves(options: Iterable[str]) -> list[str]:
    names = list(options)
    return [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
