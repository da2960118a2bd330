"""The sizes of a run's observations and networks, in bytes: all that an estimate of its memory needs to know of them."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from wavedash.distill.teacher import label_shape
from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import empty_obs, map_obs, named_tensors
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.rollout import stored_space

TRACED = 2
"""Samples, or sequences, of the evaluation in which activations are counted"""


@dataclass(frozen=True)
class Shapes:
    """Bytes, unless it says otherwise."""

    rows: int
    """Rows of an environment (a number, not bytes)"""
    observation: int
    """The observation of a row"""
    action: int
    """The action of a row"""
    memory: int
    """What the policy remembers of a row"""
    weights: int
    """All weights, in fp32"""
    actor_weights: int
    """The actor's"""
    networks: int
    """Trunks, 2 unless actor and critic share one (a number, not bytes)"""
    activations: int
    """What the backward pass of one sample needs, as autograd keeps it"""
    widest: int
    """The largest tensor among them"""
    outputs: int
    """What the heads return for one sample: logits or means, and the value"""
    by_actor: int = 0
    """Those keys of an observation that the actor sees, and the action mask; only distillation stores so little"""
    by_both: int = 0
    """Those keys that actor or critic see, and the action mask"""
    label: int = 0
    """What a teacher says of a row"""

    @classmethod
    def of(cls, spaces: Spaces, policy: ActorCritic) -> Shapes:
        """The sizes of this policy, with its precision. The activations are counted in an evaluation of a few samples: they are
        those of any network, and grow with the number of samples and nothing else."""
        def stored(keys: Collection[str] | None) -> int:
            row = empty_obs(stored_space(spaces.observation_space, keys), 1)
            return sum(map(_bytes, named_tensors(row).values()))

        keys = {name: network.encoders.keys for name, network in policy.trunks.items()}
        # Some tensors do not grow with the samples, such as copies of the weights in low precision.
        samples = TRACED * (policy.sequence_length or 1)
        of_a_sample = [-(-(more - few) // samples)
                       for few, more in zip(_kept(policy, TRACED), _kept(policy, 2 * TRACED), strict=True)]
        return cls(
            rows=spaces.rows,
            observation=stored(None),
            action=prod(policy.head.action_shape) * policy.head.action_dtype.itemsize,
            memory=sum(map(_bytes, policy.initial_memory(1).values())),
            weights=sum(map(_bytes, policy.parameters())),
            actor_weights=sum(map(_bytes, policy.actor.parameters())),
            networks=len(policy.trunks),
            activations=sum(of_a_sample),
            widest=max(of_a_sample),
            outputs=4 * (1 + sum(layer.out_features for layer in policy.head.modules() if isinstance(layer, nn.Linear))),
            by_actor=stored(keys["actor"]),
            by_both=stored({key for seen in keys.values() for key in seen}),
            label=4 * prod(label_shape(spaces.action_space)),
        )


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def _kept(policy: ActorCritic, batch: int) -> list[int]:
    """The sizes of all tensors that autograd keeps of an evaluation of so many samples or sequences, but for weights."""
    own = {p.untyped_storage().data_ptr() for p in policy.parameters()}
    alive: list[Tensor] = []
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        alive.append(x)  # or its memory might be used again, and counted once
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    length = policy.sequence_length
    shape = (batch,) if length is None else (length, batch)
    obs = map_obs(torch.ones_like, empty_obs(policy.observation_space, *shape))
    action = torch.zeros(*shape, *policy.head.action_shape, dtype=policy.head.action_dtype)
    if action.is_floating_point():
        action += 0.5  # an action of 0.5 is possible under every distribution
    fresh = None if length is None else torch.zeros(shape, dtype=torch.bool)
    with saved_tensors_hooks(keep, lambda x: x), torch.enable_grad():
        policy.evaluate_outputs(obs, action, policy.initial_memory(batch), fresh)
    return list(kept.values())
