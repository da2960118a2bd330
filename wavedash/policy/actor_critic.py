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
from wavedash.policy.heads import make_head
from wavedash.policy.mlp import linear, mlp
from wavedash.policy.normalizer import ObsNormalizer

Memory = dict[str, Tensor]
"""The state that a policy carries from step to step, [N, ...] per entry; empty for a policy without memory."""


class Decision(NamedTuple):
    """What the policy did with one observation per row."""

    action: Tensor
    log_prob: Tensor
    value: Tensor
    memory: Memory


class Evaluation(NamedTuple):
    """What the policy thinks of actions taken earlier."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor


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
        critic_hidden = config.critic_hidden or config.hidden
        self.actor = nn.ModuleDict({"body": mlp(inputs, config.hidden, config.activation)})
        features = config.hidden[-1] if config.hidden else inputs
        self.actor["head"] = make_head(features, action_space, config.std, config.initial_std)
        self.critic = nn.ModuleDict()
        if not config.shared:
            self.critic["body"] = mlp(inputs, critic_hidden, config.activation)
            features = critic_hidden[-1] if critic_hidden else inputs
        self.critic["head"] = linear(features, 1, gain=1.0)

    @property
    def head(self) -> Any:
        return self.actor["head"]

    def normalize(self, obs: Obs) -> Obs:
        return obs if self.normalizer is None else self.normalizer(obs)

    def initial_memory(self, rows: int) -> Memory:
        return {}

    def _features(self, obs: Obs) -> tuple[Tensor, Tensor]:
        """Features of the actor and of the critic."""
        parts = [part.flatten(-len(space.shape)) if len(space.shape) > 1 else part
                 for part, space in zip(sensed(obs).values(), sensed_spaces(self.observation_space).values(), strict=True)]
        flat = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        actor = self.actor["body"](flat)
        return actor, actor if self.config.shared else self.critic["body"](flat)

    def _forward(self, obs: Obs) -> tuple[Distribution, Tensor]:
        actor, critic = self._features(obs)
        return self.head(actor, action_mask(obs)), self.critic["head"](critic).squeeze(-1)

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
        return self.critic["head"](self._features(obs)[1]).squeeze(-1)

    def evaluate(self, obs: Obs, action: Tensor) -> Evaluation:
        """Log-probability, entropy and value of a batch of stored steps."""
        distribution, value = self._forward(obs)
        return Evaluation(distribution.log_prob(action), distribution.entropy(), value)
