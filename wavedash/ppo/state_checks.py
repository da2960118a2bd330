"""A saved state is compared with the learner before any of it is loaded: names, dtypes, shapes, ranges."""
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from wavedash.envs.spaces import most
from wavedash.ppo.rank_state import StateTensors
from wavedash.saved import Saved, SavedError, first_problem

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

STATE_FILE = "state.json"
Count = Annotated[int, Field(ge=0, le=2**53)]
Multiplier = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
OPTIONAL = ("minibatches", "loss_scale", "loss_scale_steps")
"""Tensors that the optimiser's file may lack: another number of processes has other random streams, and a run that was not fp16
before has no loss scale"""


class Counters(BaseModel):
    """The plain values of `Learner.state`. There may be others beside them."""

    model_config = ConfigDict(strict=True)

    iteration: Count
    steps: Count
    episodes: Count
    dead_updates: Count
    schedule: Multiplier
    decays: dict[str, Multiplier] = {}
    recent: list[Annotated[tuple[Finite, Finite, float], Field(strict=False)]]
    buffer: Annotated[tuple[Count, Annotated[int, Field(ge=-1)]], Field(strict=False)]
    split: Annotated[tuple[Count | None, Annotated[int, Field(ge=1, le=2**53)]], Field(strict=False)] | None = None
    ranks: Annotated[int, Field(ge=1, le=2**20)] = 1
    fingerprint: dict[str, Any]
    listeners: dict[str, dict[str, Any]] = {}


def check_counters(plain: Any) -> None:
    """Raises SavedError, which names the first value that is missing or out of range."""
    try:
        Counters.model_validate(plain)
    except ValidationError as error:
        raise SavedError(STATE_FILE, first_problem(error)) from None


def check_saved(learner: Learner, tensors: StateTensors, plain: dict[str, Any]) -> None:
    """Raises SavedError if this learner cannot load what was saved. Environments and memory are checked when they are
    loaded."""
    check_counters(plain)
    for file in ("policy", "optimizer"):
        if file not in tensors:
            raise SavedError(f"{file}.safetensors", "it is missing")
    Saved("policy", tensors["policy"]).fits(learner.policy.state_dict())
    _check_optimizer(learner, Saved("optimizer", tensors["optimizer"]))
    if unknown := set(plain.get("decays", {})) - set(learner.decays):
        raise SavedError(STATE_FILE, f"decays: {sorted(unknown)[0]!r} is not known here")
    own = Saved("learner", tensors.get("learner", {}))
    if learner.return_moments is not None and "return_moments.count" in own.tensors:
        for name, x in learner.return_moments.state_dict().items():
            own.is_like(f"return_moments.{name}", x)
    if "buffer" in tensors and learner.buffer.fits(tensors["buffer"]):
        _check_buffer(learner, Saved("buffer", tensors["buffer"]), plain["buffer"])
    if "env" in tensors:
        own.has("running", torch.float32, (None, 3))


def check_streams(saved: dict[str, Tensor], now: dict[str, Tensor]) -> None:
    """Raises SavedError if random streams or memory do not fit the shards that they were saved for."""
    own = Saved("learner", saved)
    for name, x in now.items():
        shard = name.split(".")[1]
        if f"actions.{shard}" in saved:
            own.is_like(name, x)


def _check_optimizer(learner: Learner, saved: Saved) -> None:
    expected = learner.updater.state_dict()
    saved.fits({**{name: x for name, x in saved.tensors.items() if name in OPTIONAL}, **expected}, optional=OPTIONAL)
    saved.is_between("exp_avg_sq", 0.0, torch.finfo(torch.float32).max)
    for name in expected:
        if name.startswith("step."):
            saved.is_between(name, 0.0, 2.0**53)


def _check_buffer(learner: Learner, saved: Saved, places: Any) -> None:
    buffer = learner.buffer
    saved.is_like("active", buffer.all.active)
    for name, like in buffer.all.tensors().items():
        x = saved.is_like(name, like, finite=False)
        if x.is_floating_point() and x.shape[:3] == saved.tensors["active"].shape:
            x = x[saved.tensors["active"]]  # inactive steps may hold anything
        if x.is_floating_point() and not bool(x.isfinite().all()):
            saved.refuse(f"{name} holds NaN or infinity")
    filled, newest = places
    if filled > buffer.capacity or newest >= buffer.capacity:
        raise SavedError(STATE_FILE, f"buffer: {filled} rollouts, the newest number {newest}, do not fit into one of "
                                     f"{buffer.capacity}")
    if (greatest := most(learner.policy.action_space)) is not None:
        saved.is_between("action", 0, torch.as_tensor(greatest))
