"""What a checkpoint holds, turned into a policy or a learner: whatever is wrong with it, the error names the checkpoint."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from gymnasium import Space
from pydantic import ValidationError

from wavedash.config import PolicyConfig
from wavedash.envs.spaces import space_from_json
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.runs.checkpoint import USE_ANOTHER, Checkpoint, CheckpointError
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.saved import Saved, SavedError, complaint

log = logging.getLogger(__name__)

_OF_WRONG_CONTENT = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
                     ValueError)
"""What values of the wrong kind lead to, wherever they are first used"""


@contextmanager
def reading(checkpoint: Checkpoint | PolicyFolder | None) -> Iterator[None]:
    """Around the use of what a checkpoint holds. None: its path is known to another process."""
    path = "the checkpoint" if checkpoint is None else str(checkpoint.path)
    try:
        yield
    except SavedError as error:
        place = error.file if checkpoint is None else str(checkpoint.path / error.file)
        raise CheckpointError(f"{place}: {error.what}; {USE_ANOTHER}") from error
    except IncompatibleError as error:
        raise IncompatibleError(f"{path}: {error}") from error
    except UserError:
        raise
    except _OF_WRONG_CONTENT as error:
        log.debug("%s cannot be used", path, exc_info=error)
        what = f"holds what cannot be loaded ({type(error).__name__}: {_reason(error)})"
        raise CheckpointError(f"{path} {what}; {USE_ANOTHER}") from error


def read_policy(checkpoint: Checkpoint | PolicyFolder) -> tuple[ActorCritic, Space[Any] | None]:
    """From data alone: the checkpoint says what its policy senses and does, and of which layers it is made. The second is the
    space of the environment's own observations, where the policy sees them encoded."""
    tensors, state = checkpoint.load(["policy"])
    with reading(checkpoint):
        observed, acted, config, clip, source = _description(state)
        with torch.device("meta"):  # shapes without memory: what does not fit the file must not be made, however large it is
            Saved("policy", tensors["policy"]).fits(ActorCritic(observed, acted, config, clip).state_dict())
        policy = ActorCritic(observed, acted, config, clip)
        policy.load_state_dict(tensors["policy"])
    return policy, source


def _description(state: Any) -> tuple[Space[Any], Space[Any], PolicyConfig, float | None, Space[Any] | None]:
    """What a policy is made from: spaces of observations and actions, networks, bound of normalised observations; and the space
    of what the environment itself gives."""
    try:
        fingerprint = state["fingerprint"]
        observed, acted = (space_from_json(fingerprint[name]) for name in ("observation_space", "action_space"))
        clip, source = fingerprint["normalize_obs"], fingerprint.get("source_space")
        return (observed, acted, PolicyConfig.model_validate(fingerprint["policy"]), None if clip is None else float(clip),
                None if source is None else space_from_json(source))
    except KeyError as error:
        raise SavedError("state.json", f"fingerprint: {error} is missing") from error
    except ValidationError as error:
        raise SavedError("state.json", f"fingerprint.policy: {complaint(error)}") from error
    except _OF_WRONG_CONTENT as error:
        raise SavedError("state.json", f"fingerprint: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
