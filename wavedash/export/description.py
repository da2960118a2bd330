"""An exported file holds its own description: inputs and outputs, what an action means, which checkpoint it comes from."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from wavedash import __version__
from wavedash.envs.spaces import space_to_json
from wavedash.export.actor import Actor
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.heads import (
    BetaHead,
    ConfinedGaussianHead,
    ContinuousHead,
    DiscreteHead,
    GaussianHead,
    MultiDiscreteHead,
    TanhGaussianHead,
)
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.policy_folder import PolicyFolder

SAMPLING = {
    DiscreteHead: "an index drawn with the probabilities exp(log_probs), plus the start of the space",
    MultiDiscreteHead: "per choice k an index drawn with the probabilities exp(log_probs[:, k]), plus the start of the space",
    GaussianHead: "centre + half_range * x, clipped to the bounds of the space; x drawn from Normal(mean, std)",
    ConfinedGaussianHead: "centre + half_range * x, clipped to the bounds of the space; x drawn from Normal(mean, std)",
    TanhGaussianHead: "centre + half_range * tanh(x); x drawn from Normal(mean, std)",
    BetaHead: "centre + half_range * (2 * x - 1); x drawn from Beta(alpha, beta)",
}
"""How to draw an action as in training; the output `action` is the most likely one"""


def describe(actor: Actor, policy: ActorCritic, checkpoint: Checkpoint | PolicyFolder) -> dict[str, Any]:
    """Returns the description as plain values, for JSON."""
    inputs = actor.example(rows=1)
    action: dict[str, Any] = {"space": space_to_json(policy.action_space), "sampling": SAMPLING[type(actor.head)]}
    if isinstance(actor.head, ContinuousHead):
        action |= {"centre": actor.head.centre.tolist(), "half_range": actor.head.half_range.tolist()}
    return {
        "wavedash": __version__,
        "torch": torch.__version__,
        "checkpoint": "/".join(checkpoint.path.absolute().parts[-4:]),  # name, time, store and step; no folder of this machine
        "steps": checkpoint.step,
        "inputs": [_facts(name, x) | _source(actor, name) for name, x in inputs.items()],
        "outputs": [_facts(name, x) for name, x in actor(inputs).items()],
        "memory": {f"memory_{part}": f"next_memory_{part}" for part in actor.memory_parts},
        "action": action,
    }


def _facts(name: str, x: Tensor) -> dict[str, Any]:
    return {"name": name, "dtype": str(x.dtype).removeprefix("torch."), "shape": ["batch", *x.shape[1:]]}


def _source(actor: Actor, name: str) -> dict[str, str]:
    return {"observation": actor.sources[name]} if name in actor.sources else {}
