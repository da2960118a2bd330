"""The policy: normaliser, trunks (encoders, memory, hidden layers) and heads of an actor and a critic."""
from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import gymnasium
import torch
from torch import Tensor, nn

from wavedash.config import PolicyConfig
from wavedash.envs.obs import Obs, action_mask, sensed, sensed_spaces
from wavedash.policy import trunk
from wavedash.policy.compiled import Compiled
from wavedash.policy.distributions import Distribution
from wavedash.policy.evaluation import Evaluation, by_autograd
from wavedash.policy.explicit import ExplicitPolicy
from wavedash.policy.heads import GaussianHead, make_head
from wavedash.policy.masks import check_mask_space
from wavedash.policy.memory import State
from wavedash.policy.mlp import initialize_as_torch_does, linear
from wavedash.policy.normalizer import ObsNormalizer
from wavedash.policy.trunk import Trunk

log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """What the policy did with one observation per row."""

    action: Tensor
    log_prob: Tensor
    value: Tensor
    memory: State


class ActorCritic(nn.Module):
    """Observations here are normalised already (`normalize`): the rollout stores what the networks saw.

    `memory` is the state that rows carry from step to step, `actor.h`, `critic.h`, ...; empty for a policy without memory.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: PolicyConfig,
        normalize_obs: float | None = None,
    ):
        """`normalize_obs`: the clip range of running observation normalisation; None leaves observations as they are."""
        super().__init__()
        check_mask_space(observation_space, action_space)
        self.observation_space, self.action_space, self.config = observation_space, action_space, config
        self.normalizer = ObsNormalizer(observation_space, normalize_obs) if normalize_obs is not None else None
        spaces = sensed_spaces(observation_space)
        mine = Trunk(spaces, config.actor_keys, config.hidden, config)
        self.trunks = {"actor": mine}
        """`actor`, and `critic` unless both share one"""
        self.actor = nn.ModuleDict({"trunk": mine, "head": make_head(mine.outputs, action_space, config)})
        self.critic = nn.ModuleDict()
        if not config.shared:
            hidden = config.hidden if config.critic_hidden is None else config.critic_hidden
            mine = self.trunks["critic"] = Trunk(spaces, config.critic_keys, hidden, config)
            self.critic["trunk"] = mine
        self.critic["head"] = linear(mine.outputs, 1, gain=1.0)
        if not config.orthogonal:
            initialize_as_torch_does(self)
        self.precision: torch.dtype | None = None
        """The precision of the networks' arithmetic, when acting and when learning alike; None: that of the weights"""
        self._judge: Callable[..., tuple[Tensor, Tensor, Tensor]] = self.judge
        self._explicit: list[ExplicitPolicy] | None = None  # decided at the first evaluation, when the device is known

    @property
    def head(self) -> Any:
        return self.actor["head"]

    @property
    def explicit(self) -> ExplicitPolicy | None:
        """The same networks with their gradients written out, where there are such."""
        if self._explicit is None:
            self._explicit = [ExplicitPolicy(self)] if ExplicitPolicy.fits(self) else []
        return self._explicit[0] if self._explicit else None

    @property
    def compiled(self) -> bool:
        """Whether it learns with compiled networks."""
        return isinstance(self._judge, Compiled)

    @property
    def sequence_length(self) -> int | None:
        """Steps of the sequences that it learns from; None for a policy without memory, which learns from single steps."""
        return None if self.config.memory.kind == "none" else self.config.memory.sequence

    def normalize(self, obs: Obs) -> Obs:
        return obs if self.normalizer is None else self.normalizer(obs)

    def initial_memory(self, rows: int) -> State:
        return {f"{name}.{part}": x for name, trunk in self.trunks.items() for part, x in trunk.initial_state(rows).items()}

    def draw_noise(self, step: int, rows: int, before: Tensor | None, generator: torch.Generator | None) -> Tensor | None:
        """gSDE: the noise matrices [N, F, A] of a step of a rollout: new ones, or those of the step before. None for a policy
        that has no such noise."""
        head = self.head
        if not isinstance(head, GaussianHead) or head.gsde is None:
            return None
        every = head.gsde.sample_every
        anew = before is None or step == 0 or (every is not None and step % every == 0)
        return head.draw_noise(rows, generator) if anew else before

    def act(
        self, obs: Obs, memory: State, generator: torch.Generator | None = None, deterministic: Tensor | bool = False,
        noise: Tensor | None = None,
    ) -> Decision:
        """One step of every row. `deterministic`: for all rows, or per row [N]. `noise`: what `draw_noise` gave; without it a
        policy with gSDE explores by noise that is as large but new at this step."""
        with self._autocast():
            features, after = trunk.step(self.trunks, sensed(obs), memory)
        distribution, value = self._heads(features, action_mask(obs))
        if deterministic is True:
            action = distribution.mode()
        else:
            if noise is None:
                action = distribution.sample(generator)
            else:
                action = self.head.explore(distribution, self._full(features["actor"]), noise)
            if isinstance(deterministic, Tensor):
                rows = deterministic.view(-1, *(1,) * (action.dim() - 1))
                action = torch.where(rows, distribution.mode(), action)
        return Decision(action, distribution.log_prob(action), value, after)

    def value(self, obs: Obs, memory: State) -> Tensor:
        """V(obs) after `memory`, which stays as it is."""
        name = next(reversed(self.trunks))
        with self._autocast():
            features, _ = trunk.step({name: self.trunks[name]}, sensed(obs), memory)
        return self._value(features)

    def forward(self, obs: Obs, memory: State | None = None, fresh: Tensor | None = None) -> tuple[Distribution, Tensor]:
        """The action distribution and the value of stored steps [B, ...] or, with memory, of sequences [L, B, ...]."""
        with self._autocast():
            features = trunk.sequence(self.trunks, sensed(obs), memory or {}, fresh)
        return self._heads(features, action_mask(obs))

    def evaluate(self, obs: Obs, action: Tensor, memory: State | None = None, fresh: Tensor | None = None) -> Evaluation:
        """Log-probability, entropy and value of stored steps [B, ...]; with memory of sequences [L, B, ...], from the `memory`
        [B, ...] before their first step, zeroed where `fresh` [L, B]. The results are flat: [B] or [L * B]."""
        if self.explicit is not None:
            return self.explicit.evaluate(sensed(obs), action, action_mask(obs), memory, fresh)
        with torch.enable_grad():
            return by_autograd(*self._judge(obs, action, memory, fresh))

    def judge(self, obs: Obs, action: Tensor, memory: State | None, fresh: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability, entropy and value, flat."""
        distribution, value = self(obs, memory, fresh)
        return distribution.log_prob(action).reshape(-1), distribution.entropy().reshape(-1), value.reshape(-1)

    def compile_networks(self) -> None:
        """Learn with compiled networks from now on."""
        if self.sequence_length is not None:
            log.warning("compile=true is left out: a policy with memory is faster without it")
        else:
            self._judge = Compiled(self.judge, "the policy")

    def _autocast(self) -> AbstractContextManager[None]:
        if self.precision is None:
            return nullcontext()
        return torch.autocast(next(self.parameters()).device.type, self.precision)

    def _heads(self, features: dict[str, Tensor], mask: Tensor | None) -> tuple[Distribution, Tensor]:
        """Heads are read in full precision: the ratio of two probabilities has no digits to spare."""
        return self.head(self._full(features["actor"]), mask), self._value(features)

    def _value(self, features: dict[str, Tensor]) -> Tensor:
        """The value, from the critic's features. They are the last ones: the actor's where the trunk is shared."""
        return self.critic["head"](self._full(features[next(reversed(features))])).squeeze(-1)

    def _full(self, features: Tensor) -> Tensor:
        return features if self.precision is None else features.float()
