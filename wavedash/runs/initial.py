"""`init`: a run begins with the weights of a policy that was trained before.

Only data is read, no code runs: the source needs no trust. What the source says of its spaces and networks is compared with
those of the run; a refusal names each difference, and the overrides with which the policy would fit.
"""
from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wavedash import champions
from wavedash.config import EnvConfig, RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner_state import policy_fingerprint
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import IncompatibleError, different_values
from wavedash.runs.content import read_policy
from wavedash.runs.find import resolve_policy
from wavedash.runs.folder import RunError
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.yaml_text import write_yaml

log = logging.getLogger(__name__)

Differences = Mapping[str, tuple[Any, Any]]
"""By key: the value there, at the source, and the value here"""


def initialize(policy: ActorCritic, config: RunConfig) -> Checkpoint | PolicyFolder | None:
    """Copies the weights and observation statistics of `config.init` into `policy`, in place, and returns where they came from.
    IncompatibleError: they do not fit; nothing was copied."""
    if config.init is None:
        return None
    source = _source(config.init, kind_of(config.env).team_size(config.env))
    trained, _ = read_policy(source)
    theirs = _environment_of(source, like=config.env)
    meaning = {} if theirs is None else _different_meaning(theirs, config.env)
    differences = different_values(policy_fingerprint(trained), policy_fingerprint(policy))
    if differences:
        smaller = theirs is not None and _smaller_teams(theirs, config.env)
        raise IncompatibleError(_refusal(config.init, source, differences, meaning, smaller))
    for key, (there, here) in meaning.items():
        log.warning("init=%s was trained with %s=%s, here it is %s: its networks fit, but they have not learned what these "
                    "numbers mean", config.init, key, _inline(there), _inline(here))
    policy.load_state_dict(trained.state_dict())
    return source


def _source(init: str, teams: int | None) -> Checkpoint | PolicyFolder:
    try:
        return resolve_policy(init, teams)
    except RunError as error:
        if Path(init).exists():
            raise
        raise RunError(f"init={init}: {error}; `champion` is the policy that ships. Scripts such as the chaser have no weights "
                       "to begin with") from error


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Returns the configuration as the run folder records it: its paths do not depend on the current folder."""
    distill = config.distill
    if distill is not None:
        distill = distill.model_copy(update={"teacher": _absolute(distill.teacher)})
    imitate = config.imitate
    if imitate is not None:
        imitate = imitate.model_copy(update={"data": str(Path(imitate.data).absolute())})
    init = None if config.init is None else _absolute(config.init)
    return config.model_copy(update={"init": init, "distill": distill, "imitate": imitate})


def _absolute(policy: str) -> str:
    return policy if champions.is_champion(policy) else str(Path(policy).absolute())


def _environment_of(source: Checkpoint | PolicyFolder, like: EnvConfig) -> EnvConfig | None:
    """Returns what the source was trained in. None: in another kind of environment than `like`, or it was copied without its
    configuration, or that cannot be read here."""
    try:
        theirs = load_config(str(source.run_config)).env
    except UserError:
        return None
    return theirs if kind_of(theirs) is kind_of(like) else None


def _smaller_teams(theirs: EnvConfig, env: EnvConfig) -> bool:
    """Whether the source has played in smaller teams only, so that its observations may have no room for all that play here."""
    there, here = (kind_of(config).team_size(config) for config in (theirs, env))
    return there is not None and here is not None and there < here


def _different_meaning(theirs: EnvConfig, env: EnvConfig) -> Differences:
    """Returns the options that say what observations and actions mean, where they differ."""
    kind = kind_of(env)
    there, here = (config.model_dump(mode="json") for config in (theirs, env))
    values = {f"env.{key}": (_value(there, key), _value(here, key)) for key in kind.meaning_options}
    return {key: (there, here) for key, (there, here) in values.items() if there != here}


def _refusal(init: str, source: Checkpoint | PolicyFolder, differences: Differences, meaning: Differences,
             smaller: bool) -> str:
    spaces = any(key.startswith(("observation_space", "action_space")) for key in differences)
    shown = {**differences, **(meaning if spaces else {})}
    overrides = [_override(key, there) for key, (there, _) in shown.items() if not key.startswith(("observation", "action"))]
    lines = [f"init={init} does not fit this run (the policy is in {source.path}):",
             *(f"  {key}: there {_inline(there)}, here {_inline(here)}" for key, (there, here) in shown.items())]
    if spaces and smaller:
        lines.append("It was trained in smaller teams, and sees fewer cars than play here: train in teams of its size, or "
                     "begin without init")
    elif spaces and not meaning:
        lines.append("Its environment has other observations or actions: train in that one, or begin without init")
    else:
        lines.append(f"To make it fit, add: {' '.join(overrides)}")
    return "\n".join(lines)


def _override(key: str, value: Any) -> str:
    text = f"{key}={_inline(value)}"
    return text if re.fullmatch(r"[\w.=+-]+", text) else f'"{text}"'


def _inline(value: Any) -> str:
    return write_yaml(value, inline=True)


def _value(tree: Mapping[str, Any], key: str) -> Any:
    """Returns what a dotted key leads to; None if nothing is there."""
    value: Any = tree
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
