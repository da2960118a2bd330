"""Gymnasium wrappers by name: from `env.wrappers` of a configuration to a wrapped environment. It must not import torch."""
from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from gymnasium import wrappers as shipped

from wavedash.envs.errors import EnvError

Named = str | dict[str, dict[str, Any]]
REFUSED = {
    "NormalizeObservation": "its statistics are no part of a checkpoint and start over in every evaluation: set "
                            "ppo.normalize_obs=true instead",
    "NormalizeReward": "its statistics are no part of a checkpoint: set ppo.normalize_reward=true instead",
    "Autoreset": "ended episodes are followed by the next one anyway: leave it out",
    "RecordVideo": "it writes files: name it by its import path, gymnasium.wrappers:RecordVideo, if that is what you want",
    "HumanRendering": "it opens a window for every environment: name it by its import path, gymnasium.wrappers:HumanRendering, "
                      "if that is what you want",
}
"""Wrappers of Gymnasium that do harm in training, and what to do instead."""


def wrapped(env: Any, names: Sequence[Named], import_callable: Callable[[str], Callable[..., Any]]) -> Any:
    """`env` in these wrappers, the first one inside."""
    for named in names:
        if not isinstance(env, gymnasium.Env):
            raise EnvError(f"env.wrappers is for environments of Gymnasium, but the factory returned a {type(env).__name__}")
        name, options = (named, {}) if isinstance(named, str) else next(iter(named.items()))
        wrapper = import_callable(name) if ":" in name else _shipped(name)
        try:
            # YAML has lists where Gymnasium asks for tuples, such as a shape.
            env = wrapper(env, **{key: tuple(x) if isinstance(x, list) else x for key, x in options.items()})
        except Exception as error:
            raise EnvError(f"env.wrappers: {name} with the options {options} cannot wrap {env}: {type(error).__name__}: "
                           f"{error}") from error
    return env


def _shipped(name: str) -> Callable[..., Any]:
    if name in REFUSED:
        raise EnvError(f"env.wrappers: {name} is not for training: {REFUSED[name]}")
    wrapper = getattr(shipped, name, None) if name in shipped.__all__ else None
    if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
        known = [known for known in shipped.__all__ if known[0].isupper()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see gymnasium.wrappers for what there is"
        raise EnvError(f"env.wrappers: Gymnasium has no wrapper {name!r}; {hint} For one of your own write its import path "
                       "'module:Class'")
    return wrapper
