"""The policy: normaliser, encoders, memory and heads of an actor and a critic."""
from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from wavedash.config import PolicyConfig
from wavedash.envs.obs import Obs, action_mask, sensed, sensed_spaces
from wavedash.policy.distributions import Distribution
from wavedash.policy.evaluation import Evaluation, by_autograd
from wavedash.policy.explicit import ExplicitPolicy
from wavedash.policy.heads import make_head
from wavedash.policy.mlp import MLP, linear
from wavedash.policy.normalizer import ObsNormalizer

Memory = dict[str, Tensor]
"""The state that a policy carries from step to step, [N, ...] per entry; empty for a policy without memory."""


class Decision(NamedTuple):
    """What the policy did with one observation per row."""

    action: Tensor
    log_prob: Tensor
    value: Tensor
    memory: Memory


class ActorCritic(nn.Module):
    """Observations here are normalised already (`normalize`): the rollout stores what the networks saw."""

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: PolicyConfig,
        normalize_obs: float | None = None,
    ):
        """`normalize_obs`: the clip range of running observation normalisation; None leaves observations as they are."""
        super().__init__()
        self.observation_space, self.action_space, self.config = observation_space, action_space, config
        self.normalizer = ObsNormalizer(observation_space, normalize_obs) if normalize_obs is not None else None
        inputs = sum(int(np.prod(part.shape)) for part in sensed_spaces(observation_space).values())
        body = MLP(inputs, config.hidden, config.activation)
        head = make_head(body.outputs, action_space, config.std, config.initial_std)
        self.actor = nn.ModuleDict({"body": body, "head": head})
        critic_hidden = config.hidden if config.critic_hidden is None else config.critic_hidden
        critic_body = body if config.shared else MLP(inputs, critic_hidden, config.activation)
        self.critic = nn.ModuleDict({"head": linear(critic_body.outputs, 1, gain=1.0)})
        if not config.shared:
            self.critic["body"] = critic_body
        self._explicit: list[ExplicitPolicy] | None = None  # decided at the first evaluation, when the device is known

    @property
    def head(self) -> Any:
        return self.actor["head"]

    def normalize(self, obs: Obs) -> Obs:
        return obs if self.normalizer is None else self.normalizer(obs)

    def initial_memory(self, rows: int) -> Memory:
        return {}

    def _flat(self, obs: Obs) -> Tensor:
        """Everything that is sensed, side by side in the order of the space (a player's dict may have another): [..., F]"""
        values, parts = sensed(obs), []
        for key, space in sensed_spaces(self.observation_space).items():
            x, dims = values[key], len(space.shape)
            x = x if dims == 1 else x.unsqueeze(-1) if dims == 0 else x.flatten(-dims)
            parts.append(x if x.is_floating_point() else x.float())
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def _value(self, flat: Tensor, actor_features: Tensor | None) -> Tensor:
        features = actor_features if actor_features is not None and self.config.shared else self._critic_body(flat)
        return self.critic["head"](features).squeeze(-1)

    @property
    def _critic_body(self) -> nn.Module:
        return self.actor["body"] if self.config.shared else self.critic["body"]

    def _forward(self, obs: Obs) -> tuple[Distribution, Tensor]:
        flat = self._flat(obs)
        features = self.actor["body"](flat)
        return self.head(features, action_mask(obs)), self._value(flat, features)

    def act(
        self, obs: Obs, memory: Memory, generator: torch.Generator | None = None, deterministic: Tensor | bool = False
    ) -> Decision:
        """One step of every row. `deterministic`: for all rows, or per row [N]."""
        distribution, value = self._forward(obs)
        if deterministic is True:
            action = distribution.mode()
        else:
            action = distribution.sample(generator)
            if isinstance(deterministic, Tensor):
                rows = deterministic.view(-1, *(1,) * (action.dim() - 1))
                action = torch.where(rows, distribution.mode(), action)
        return Decision(action, distribution.log_prob(action), value, memory)

    def value(self, obs: Obs, memory: Memory) -> Tensor:
        """V(obs) after `memory`, which stays as it is."""
        return self._value(self._flat(obs), None)

    def evaluate(self, obs: Obs, action: Tensor) -> Evaluation:
        """Log-probability, entropy and value of a batch of stored steps."""
        if self._explicit is None:
            self._explicit = [ExplicitPolicy(self)] if ExplicitPolicy.fits(self) else []
        if self._explicit:
            return self._explicit[0].evaluate(self._flat(obs), action, action_mask(obs))
        with torch.enable_grad():
            distribution, value = self._forward(obs)
            return by_autograd(distribution.log_prob(action), distribution.entropy(), value)
