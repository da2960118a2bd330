"""The objects that scripts find inside rlgym-ppo's Learner, as views of ours."""
from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor

from wavedash.compat.rlgym_ppo.report import Reporter, model_updates
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import Learner


class PolicyView:
    """`get_action` for rows of raw observations; they are standardised here if the learner does so."""

    def __init__(self, policy: ActorCritic) -> None:
        self.module = policy

    @torch.no_grad()
    def get_action(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor]:
        """Actions [rows, ...] as the environment takes them, and their log-probabilities [rows]; `deterministic`: the likeliest
        action of each row."""
        seen = _as_rows(obs, self.module)
        decision = self.module.act(seen, self.module.initial_memory(len(seen)), deterministic=deterministic)
        return self.module.head.env_action(decision.action).cpu(), decision.log_prob.cpu()

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self.module.actor.state_dict())

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self.module.actor.parameters()


class ValueView:
    """Called with rows of raw observations, it tells their values [rows, 1]."""

    def __init__(self, policy: ActorCritic) -> None:
        self.module = policy

    @torch.no_grad()
    def __call__(self, obs: Any) -> Tensor:
        seen = _as_rows(obs, self.module)
        return self.module.value(seen, self.module.initial_memory(len(seen))).unsqueeze(-1)

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self.module.critic.state_dict())

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self.module.critic.parameters()


def _as_rows(obs: Any, policy: ActorCritic) -> Any:
    rows = torch.as_tensor(obs, dtype=torch.float32, device=next(policy.parameters()).device)
    return policy.normalize(rows.reshape(-1, *(policy.observation_space.shape or ())))


class RateGroup(MutableMapping[str, float]):
    """One of an optimiser's `param_groups`: only the learning rate can be seen and set."""

    def __init__(self, read: Callable[[], float], write: Callable[[float], None]) -> None:
        self._read, self._write = read, write

    def __getitem__(self, key: str) -> float:
        if key != "lr":
            raise KeyError(key)
        return self._read()

    def __setitem__(self, key: str, value: float) -> None:
        if key != "lr":
            raise KeyError(f"only 'lr' can be set, not {key!r}")
        self._write(value)

    def __delitem__(self, key: str) -> None:
        raise KeyError(f"{key!r} cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(("lr",))

    def __len__(self) -> int:
        return 1


class OptimizerView:
    """Its learning rate."""

    def __init__(self, learner: Learner, group: str, write: Callable[[float], None]) -> None:
        rates = learner.updater.optimizer.base_rates
        self.param_groups = [RateGroup(lambda: rates[group], write)]


class PPOLearnerView:
    """Networks and optimisers."""

    def __init__(self, learner: Learner, set_rates: Callable[..., None]) -> None:
        self._learner = learner
        self.policy, self.value_net = PolicyView(learner.policy), ValueView(learner.policy)
        self.policy_optimizer = OptimizerView(learner, "actor", lambda rate: set_rates(new_policy_lr=rate))
        self.value_optimizer = OptimizerView(learner, "critic", lambda rate: set_rates(new_critic_lr=rate))

    @property
    def cumulative_model_updates(self) -> int:
        return model_updates(self._learner)


class AgentView:
    """Who plays, and how it goes."""

    def __init__(self, learner: Learner, policy: PolicyView, reporter: Reporter) -> None:
        self.policy = policy
        self._learner, self._reporter = learner, reporter

    @property
    def cumulative_timesteps(self) -> int:
        return self._learner.steps

    @property
    def average_reward(self) -> float | None:
        """Over episodes, the latest count most; None before one has ended."""
        return self._reporter.average_reward
