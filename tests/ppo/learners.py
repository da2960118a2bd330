"""Shared by the tests of the algorithm: kinds of actions, small policies, made-up rollouts, learners over toy environments."""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from tests.oracle import Samples
from tests.toy_vec_envs import IdentityEnv
from wavedash.assembly import make_policy
from wavedash.config import RunConfig
from wavedash.envs.obs import action_mask, sensed
from wavedash.envs.vec_env import VecEnv
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import Learner
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import UpdateTable

ACTIONS: dict[str, gymnasium.Space[Any]] = {
    "discrete": spaces.Discrete(5),
    "multi-discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi-binary": spaces.MultiBinary(3),
    "gaussian": spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32)),
}
SIZES = {"discrete": [5], "multi-discrete": [3, 2, 4], "multi-binary": [2, 2, 2], "gaussian": None}
FEATURES = 4


def run_config(ppo: dict[str, Any] | None = None, policy: dict[str, Any] | None = None, **run: Any) -> RunConfig:
    return RunConfig.model_validate({
        "env": {"id": "toy"}, "ppo": ppo or {}, "policy": {"hidden": [16], **(policy or {})}, "total_steps": 10**9, **run,
    })


def observation_space(kind: str, masked: bool) -> gymnasium.Space[Any]:
    box = spaces.Box(-np.inf, np.inf, (FEATURES,))
    return spaces.Dict({"obs": box, "action_mask": spaces.MultiBinary(sum(SIZES[kind]))}) if masked else box


def trained_policy(kind: str, masked: bool = False, seed: int = 0, **policy: Any) -> ActorCritic:
    """Its weights are as after some training: the last layer of a fresh policy is so small that it hides mistakes."""
    torch.manual_seed(seed)
    made = ActorCritic(observation_space(kind, masked), ACTIONS[kind], run_config(policy=policy).policy)
    with torch.no_grad():
        for p in made.parameters():
            if p.requires_grad:
                p.add_(0.4 * torch.randn_like(p))
    return made


def random_mask(kind: str, *leading: int) -> Tensor:
    """At least one action of every choice is allowed."""
    parts = []
    for n in SIZES[kind]:
        part = torch.rand(*leading, n) < 0.6
        parts.append(part.scatter_(-1, torch.randint(n, (*leading, 1)), True))
    return torch.cat(parts, -1).to(torch.int8)


@torch.no_grad()
def made_up_experience(policy: ActorCritic, steps: int, rows: int, inactive: float, capacity: int = 1) -> RolloutBuffer:
    """A full buffer whose actions `policy` might have taken some updates ago: ratios and values are off, some rows are
    inactive."""
    torch.manual_seed(0)
    head, space = policy.head, policy.observation_space
    buffer = RolloutBuffer(capacity, steps, rows, space, head.action_shape, head.action_dtype, torch.device("cpu"))
    for _ in range(capacity):
        rollout = buffer.next_slot()
        for x in sensed(rollout.obs).values():
            x.normal_()
        if (mask := action_mask(rollout.obs)) is not None:
            kind = next(kind for kind, space in ACTIONS.items() if space == policy.action_space)
            mask.copy_(random_mask(kind, steps, rows))
        decision = policy.act(rollout.obs, {})
        rollout.action.copy_(decision.action)
        rollout.log_prob.copy_(decision.log_prob + 0.3 * torch.randn(steps, rows))
        rollout.value.copy_(decision.value + 0.3 * torch.randn(steps, rows))
        rollout.advantage.copy_(torch.randn(steps, rows) * 2.0 + 0.5)
        rollout.returns.copy_(rollout.value + torch.randn(steps, rows))
        rollout.active.copy_(torch.rand(steps, rows) >= inactive)
    return buffer


def as_samples(buffer: RolloutBuffer) -> Samples:
    """The buffer as the oracle reads it, copied."""
    flat = buffer.samples
    obs, mask = sensed(flat.obs)["obs"], action_mask(flat.obs)
    columns = [flat.action, flat.log_prob, flat.value, flat.advantage, flat.returns, flat.active]
    return Samples(obs.clone(), None if mask is None else mask.clone(), *(x.clone() for x in columns))


def without_updates(learner: Learner) -> Learner:
    """The learner then does everything as before, but its weights stay."""
    columns = learner.updater.columns
    learner.updater.update = lambda buffer: UpdateTable(columns, torch.zeros(1, len(columns)))
    return learner


def learner_over(env: VecEnv, config: RunConfig, started: bool = True, **kwargs: Any) -> Learner:
    learner = Learner(env, make_policy(env, config), config, **kwargs)
    if started:
        learner.start()
    return learner


def identity_learner(kind: str, ppo: dict[str, Any], rows: int = 8, inactive: float = 0.0, masked: bool = False,
                     started: bool = True, **run: Any) -> Learner:
    env = IdentityEnv(ACTIONS[kind], rows=rows, inactive=inactive, masked=masked)
    return learner_over(env, run_config(ppo, **run), started)
