"""A policy is a normaliser, and trunks (encoders, memory, hidden layers) and heads of an actor and a critic."""
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
from wavedash.policy.evaluation import Evaluation, autograd_evaluation
from wavedash.policy.explicit import ExplicitPolicy
from wavedash.policy.heads import GaussianHead, make_head
from wavedash.policy.masks import check_mask_space
from wavedash.policy.memory import State
from wavedash.policy.mlp import initialize_as_torch_does, linear
from wavedash.policy.normalizer import ObsNormalizer
from wavedash.policy.trunk import Trunk

log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """What the policy does in one step, for every row."""

    action: Tensor
    log_prob: Tensor
    value: Tensor
    memory: State


class ActorCritic(nn.Module):
    """The networks of actor and critic.

    Its methods take observations that were normalised before by `normalize`: the rollout stores what the networks saw. `memory`
    is the state that rows carry from step to step, `actor.h`, `critic.h`, ...; it is empty for a policy without memory.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: PolicyConfig,
        normalize_obs: float | None = None,
    ):
        """`normalize_obs` is the clip range of running observation normalisation; None leaves observations as they are."""
        super().__init__()
        check_mask_space(observation_space, action_space)
        self.observation_space, self.action_space, self.config = observation_space, action_space, config
        self.normalizer = ObsNormalizer(observation_space, normalize_obs) if normalize_obs is not None else None
        spaces = sensed_spaces(observation_space)
        network = Trunk(spaces, config.actor_keys, config.hidden, config)
        self.trunks = {"actor": network}
        """`actor`, and `critic` unless both share one"""
        self.actor = nn.ModuleDict({"trunk": network, "head": make_head(network.outputs, action_space, config)})
        self.critic = nn.ModuleDict()
        if not config.shared:
            hidden = config.hidden if config.critic_hidden is None else config.critic_hidden
            network = self.trunks["critic"] = Trunk(spaces, config.critic_keys, hidden, config)
            self.critic["trunk"] = network
        self.critic["head"] = linear(network.outputs, 1, gain=1.0)
        if not config.orthogonal:
            initialize_as_torch_does(self)
        self.precision: torch.dtype | None = None
        """The precision of the networks' arithmetic, both when acting and when learning; None is that of the weights"""
        self._evaluate_outputs: Callable[..., tuple[Tensor, Tensor, Tensor]] = self.evaluate_outputs
        self._explicit: list[ExplicitPolicy] | None = None  # set at the first evaluation, when the device is known

    @property
    def head(self) -> Any:
        return self.actor["head"]

    @property
    def explicit(self) -> ExplicitPolicy | None:
        """The same networks with gradients that do not need autograd, where these are written out."""
        if self._explicit is None:
            self._explicit = [ExplicitPolicy(self)] if ExplicitPolicy.fits(self) else []
        return self._explicit[0] if self._explicit else None

    @property
    def compiled(self) -> bool:
        """Whether it learns with compiled networks."""
        return isinstance(self._evaluate_outputs, Compiled)

    @property
    def sequence_length(self) -> int | None:
        """The length of the sequences that it learns from; None for a policy without memory, which learns from single steps."""
        return None if self.config.memory.kind == "none" else self.config.memory.sequence

    @property
    def _actor_trunk(self) -> dict[str, Trunk]:
        return {"actor": self.trunks["actor"]}

    def normalize(self, obs: Obs) -> Obs:
        return obs if self.normalizer is None else self.normalizer(obs)

    def initial_memory(self, rows: int) -> State:
        return {f"{name}.{part}": x for name, trunk in self.trunks.items() for part, x in trunk.initial_state(rows).items()}

    def draw_noise(self, step: int, rows: int, before: Tensor | None, generator: torch.Generator | None) -> Tensor | None:
        """Returns the noise matrices [N, F, A] of gSDE for a step of a rollout: new ones, or those of the step before. It is
        None for a policy without gSDE."""
        head = self.head
        if not isinstance(head, GaussianHead) or head.gsde is None:
            return None
        every = head.gsde.sample_every
        anew = before is None or step == 0 or (every is not None and step % every == 0)
        return head.draw_noise(rows, generator) if anew else before

    def act(
        self, obs: Obs, memory: State, generator: torch.Generator | None = None, deterministic: Tensor | bool = False,
        noise: Tensor | None = None, critic: bool = True,
    ) -> Decision:
        """Takes one step of every row. `deterministic` is for all rows, or per row [N]. `noise` is what `draw_noise` returned;
        without it a policy with gSDE draws noise of the same size anew in every step. Without `critic`, only the actor is
        computed: values are 0, and the critic's memory stays as it is."""
        with self._autocast():
            features, after = trunk.step(self.trunks if critic else self._actor_trunk, sensed(obs), memory)
        distribution = self.head(self._full(features["actor"]), action_mask(obs))
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
        log_prob = distribution.log_prob(action)
        if not critic:
            return Decision(action, log_prob, torch.zeros_like(log_prob), {**memory, **after})
        return Decision(action, log_prob, self._value(features), after)

    def value(self, obs: Obs, memory: State) -> Tensor:
        """Returns V(obs), given `memory`, which is not changed."""
        name = next(reversed(self.trunks))
        with self._autocast():
            features, _ = trunk.step({name: self.trunks[name]}, sensed(obs), memory)
        return self._value(features)

    def forward(self, obs: Obs, memory: State | None = None, fresh: Tensor | None = None) -> tuple[Distribution, Tensor]:
        """Returns the action distribution and the value of stored steps [B, ...] or, with memory, of sequences [L, B, ...]."""
        with self._autocast():
            features = trunk.sequence(self.trunks, sensed(obs), memory or {}, fresh)
        return self._heads(features, action_mask(obs))

    def step_actor(self, obs: Obs, memory: State) -> tuple[Distribution, State]:
        """Returns the action distribution of one step of every row, and the actor's memory after it. The critic is left out,
        here and in `memory`."""
        with self._autocast():
            features, after = trunk.step(self._actor_trunk, sensed(obs), memory)
        return self.head(self._full(features["actor"]), action_mask(obs)), after

    def step_both(self, obs: Obs, memory: State) -> tuple[Distribution, Tensor, State]:
        """Returns the action distribution and the value of one step of every row, and the memory of both after it."""
        with self._autocast():
            features, after = trunk.step(self.trunks, sensed(obs), memory)
        return *self._heads(features, action_mask(obs)), after

    def forward_actor(self, obs: Obs, memory: State | None = None, fresh: Tensor | None = None) -> Distribution:
        """Returns the action distribution of stored steps or sequences as `forward` does, without the critic."""
        with self._autocast():
            features = trunk.sequence(self._actor_trunk, sensed(obs), memory or {}, fresh)
        return self.head(self._full(features["actor"]), action_mask(obs))

    def evaluate(self, obs: Obs, action: Tensor, memory: State | None = None, fresh: Tensor | None = None) -> Evaluation:
        """Returns log-probability, entropy and value of stored steps [B, ...]; with memory, of sequences [L, B, ...] that start
        from `memory` [B, ...], which is zeroed where `fresh` [L, B]. The results are flat: [B] or [L * B]."""
        if self.explicit is not None:
            return self.explicit.evaluate(sensed(obs), action, action_mask(obs), memory, fresh)
        with torch.enable_grad():
            return autograd_evaluation(*self._evaluate_outputs(obs, action, memory, fresh))

    def evaluate_outputs(
        self, obs: Obs, action: Tensor, memory: State | None, fresh: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns log-probability, entropy and value, flat."""
        distribution, value = self(obs, memory, fresh)
        return distribution.log_prob(action).reshape(-1), distribution.entropy().reshape(-1), value.reshape(-1)

    def compile_networks(self) -> None:
        """Learns with compiled networks from now on."""
        if self.sequence_length is not None:
            log.warning("compile=true is ignored: a policy with memory is faster without it")
        else:
            self._evaluate_outputs = Compiled(self.evaluate_outputs, "the policy")

    def _autocast(self) -> AbstractContextManager[None]:
        if self.precision is None:
            return nullcontext()
        return torch.autocast(next(self.parameters()).device.type, self.precision)

    def _heads(self, features: dict[str, Tensor], mask: Tensor | None) -> tuple[Distribution, Tensor]:
        """Computes the heads in full precision: the ratio of two probabilities needs every digit."""
        return self.head(self._full(features["actor"]), mask), self._value(features)

    def _value(self, features: dict[str, Tensor]) -> Tensor:
        """Computes the value from the last features: the critic's, or the actor's where the trunk is shared."""
        return self.critic["head"](self._full(features[next(reversed(features))])).squeeze(-1)

    def _full(self, features: Tensor) -> Tensor:
        return features if self.precision is None else features.float()
