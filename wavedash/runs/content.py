"""A policy is made from the content of a checkpoint; whatever is wrong with that, the error names the checkpoint."""
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
from wavedash.saved import Saved, SavedError, first_problem

log = logging.getLogger(__name__)

_CONTENT_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
                     ValueError)
"""Errors that values of the wrong kind may cause, wherever they are first used"""


@contextmanager
def reading(checkpoint: Checkpoint | PolicyFolder | None) -> Iterator[None]:
    """Turns errors in the use of a checkpoint's content into CheckpointError. None: only another process knows its path."""
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
    except _CONTENT_ERRORS as error:
        log.debug("%s cannot be used", path, exc_info=error)
        raise CheckpointError(f"{path} holds what cannot be loaded ({type(error).__name__}: {_reason(error)}); "
                              f"{USE_ANOTHER}") from error


def read_policy(checkpoint: Checkpoint | PolicyFolder) -> tuple[ActorCritic, Space[Any] | None]:
    """Makes the policy from data alone: the checkpoint describes its spaces and networks. The second result is the space of the
    environment's own observations, where the policy sees them encoded."""
    tensors, state = checkpoint.load(["policy"])
    with reading(checkpoint):
        observed, acted, config, clip, source = _description(state)
        with torch.device("meta"):  # shapes without memory: a wrong description may ask for a huge network
            Saved("policy", tensors["policy"]).fits(ActorCritic(observed, acted, config, clip).state_dict())
        policy = ActorCritic(observed, acted, config, clip)
        policy.load_state_dict(tensors["policy"])
    return policy, source


def _description(state: Any) -> tuple[Space[Any], Space[Any], PolicyConfig, float | None, Space[Any] | None]:
    """Returns the spaces of observations and actions, the networks, the clip range of normalised observations, and the space of
    the environment's own observations."""
    try:
        fingerprint = state["fingerprint"]
        observed, acted = (space_from_json(fingerprint[name]) for name in ("observation_space", "action_space"))
        clip, source = fingerprint["normalize_obs"], fingerprint.get("source_space")
        return (observed, acted, PolicyConfig.model_validate(fingerprint["policy"]), None if clip is None else float(clip),
                None if source is None else space_from_json(source))
    except KeyError as error:
        raise SavedError("state.json", f"fingerprint: {error} is missing") from error
    except ValidationError as error:
        raise SavedError("state.json", f"fingerprint.policy: {first_problem(error)}") from error
    except _CONTENT_ERRORS as error:
        raise SavedError("state.json", f"fingerprint: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
