"""The actor is the part of a policy that is deployed, as one function of named tensors."""
from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.envs.obs import ACTION_MASK, Obs, empty_obs, sensed_spaces
from wavedash.policy import trunk
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Beta, Categorical, Distribution, Gaussian, MultiCategorical
from wavedash.policy.normalizer import ObsNormalizer

RESERVED = ("action", "log_probs", "mean", "std", "alpha", "beta", "memory_h", "memory_c", "next_memory_h", "next_memory_c")
"""Names of inputs and outputs, which no observation key may have"""


class Actor(nn.Module):
    """Normaliser, trunk and head of the actor, in float32 on the CPU. The critic is left out: it may use observations that a
    deployed actor does not have.

    Inputs [N, ...] are every observation key that the actor uses, `action_mask` where there is one, and `memory_h` (and
    `memory_c`). Outputs are `action` as the environment takes it, the parameters of the distribution whose mode it is, and
    `next_memory_h` (and `next_memory_c`), which are inputs of the next step. Memory is zero at the beginning of an episode.
    """

    first_action: Tensor

    def __init__(self, policy: ActorCritic):
        super().__init__()
        self.trunk, self.head = copy.deepcopy((policy.trunks["actor"], policy.head))
        self.space = _actor_space(policy.observation_space, self.trunk.encoders.keys, bool(self.head.num_masked))
        self.normalizer = None if policy.normalizer is None else _normalizer_of(policy.normalizer, self.space)
        self.memory_parts = tuple(self.trunk.initial_state(1))
        # A discrete action space need not begin at 0.
        self.register_buffer("first_action", torch.as_tensor(np.asarray(getattr(policy.action_space, "start", 0))))
        self.sources = _named(self.space.spaces)
        """The observation key of each input, by the name of the input"""
        self.cpu().eval().requires_grad_(False)

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = {key: inputs[name] for name, key in self.sources.items()}
        mask = obs.pop(ACTION_MASK, None)
        seen = obs if self.normalizer is None else self.normalizer(obs)
        memory = {f"actor.{part}": inputs[f"memory_{part}"] for part in self.memory_parts}
        features, after = trunk.step({"actor": self.trunk}, seen, memory)
        distribution = self.head(features["actor"], mask)
        action = self.head.env_action(distribution.mode()) + self.first_action
        state = {f"next_memory_{part}": after[f"actor.{part}"] for part in self.memory_parts}
        return {"action": action, **parameters(distribution), **state}

    def inputs(self, obs: Obs, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Names an observation of the policy, and `memory` by part, as the inputs are named."""
        parts = obs if isinstance(obs, dict) else {"obs": obs}
        return {name: parts[key] for name, key in self.sources.items()} | {f"memory_{part}": x for part, x in memory.items()}

    def example(self, rows: int) -> dict[str, Tensor]:
        """Returns inputs of the right shapes and dtypes, all zero."""
        inputs = self.inputs(empty_obs(self.space, rows), self.trunk.initial_state(rows))
        return {name: torch.zeros_like(x) for name, x in inputs.items()}


def parameters(distribution: Distribution) -> dict[str, Tensor]:
    """Returns what is needed to sample: see docs/export.md."""
    if isinstance(distribution, Categorical):
        return {"log_probs": distribution.log_probs}  # [N, n]
    if isinstance(distribution, MultiCategorical):
        return {"log_probs": distribution.choices.log_probs}  # [N, K, max(sizes)]
    if isinstance(distribution, Beta):
        return {"alpha": distribution.alpha, "beta": distribution.beta}
    normal = distribution if isinstance(distribution, Gaussian) else distribution.normal
    return {"mean": normal.mean, "std": normal.log_std.exp().expand_as(normal.mean)}


def _actor_space(space: gymnasium.Space[Any], keys: Sequence[str], masks: bool) -> gymnasium.spaces.Dict:
    """Returns the space of those keys of an observation that the actor uses."""
    parts = {key: sensed_spaces(space)[key] for key in keys}
    if masks and isinstance(space, gymnasium.spaces.Dict) and ACTION_MASK in space.spaces:
        return gymnasium.spaces.Dict({**parts, ACTION_MASK: space[ACTION_MASK]})
    return gymnasium.spaces.Dict(parts)  # type: ignore[arg-type]


def _named(keys: Iterable[str]) -> dict[str, str]:
    """Returns keys by identifiers, which every runtime accepts as names."""
    names: dict[str, str] = {}
    for key in keys:
        name = re.sub(r"\W|^(?=\d)", "_", key, flags=re.ASCII)
        while name in RESERVED or name in names:
            name += "_"
        names[name] = key
    return names


def _normalizer_of(whole: ObsNormalizer, space: gymnasium.spaces.Dict) -> ObsNormalizer:
    """Copies the normaliser for the actor's keys alone, without what only training needs."""
    normalizer = ObsNormalizer(space, whole.clip)
    normalizer.load_state_dict({name: x for name, x in whole.state_dict().items() if name in normalizer.state_dict()})
    for moments in normalizer.parts.values():
        del moments.count, moments.mean, moments.var, moments.sums
    return normalizer
