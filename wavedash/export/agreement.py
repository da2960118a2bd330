"""An exported model is compared with the live policy step by step over whole episodes, each with a memory of its own."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wavedash.envs.obs import Obs, empty_obs
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.errors import UserError
from wavedash.export.actor import Actor, parameters
from wavedash.export.formats import Arrays, Model
from wavedash.policy.actor_critic import ActorCritic
from wavedash.seeding import stream_seed
from wavedash.trained_policy import TrainedPolicy

TOLERANCE = 1e-4
"""The largest difference that rounding may cause, absolute below 1 and relative above. Runtimes sum in different orders: one
step differs by 1e-7 or so, and memory accumulates it."""
MOST_STEPS = 20_000
"""The most steps of all rows together, for environments whose episodes never end"""


class DisagreementError(UserError):
    """The exported model does not do what the policy does."""


@dataclass(frozen=True)
class Agreement:
    """What was compared, and the largest difference found."""

    episodes: int
    steps: int
    difference: float


@torch.no_grad()
def compare_with_policy(policy: ActorCritic, actor: Actor, model: Model, env: VecEnv, episodes: int) -> Agreement:
    """Plays whole episodes in `env` with the actions of the live policy. Raises DisagreementError at the first difference
    beyond rounding, of an action, a parameter of its distribution or the memory."""
    player, distributions = TrainedPolicy(policy), []
    hook = policy.head.register_forward_hook(lambda head, inputs, distribution: distributions.append(distribution))
    first = getattr(policy.action_space, "start", 0)  # a VecEnv counts from 0, and adds this itself
    try:
        obs = env.reset(stream_seed(1, "export"))
        memory = actor.trunk.initial_state(env.num_rows)
        ended = steps = 0
        difference = 0.0
        while ended < episodes and steps < MOST_STEPS:
            given = model({name: x.numpy() for name, x in actor.inputs(obs, memory).items()})
            action = player.act(obs)
            state = {f"next_memory_{part}": (player.memory or {})[f"actor.{part}"] for part in memory}
            parts = {name: x.numpy() for name, x in (parameters(distributions.pop()) | state).items()}
            difference = max(difference, _compare(given, {"action": action, **parts}, first, steps))
            step = env.step(torch.from_numpy(np.asarray(action - first)))
            done = step.terminated | step.truncated
            player.reset(done)
            memory = {part: torch.from_numpy(given[f"next_memory_{part}"]) for part in memory}
            for x in memory.values():
                x[done] = 0.0
            obs = step.obs
            ended += int(done.sum())
            steps += env.num_rows
        return Agreement(ended, steps, difference)
    finally:
        hook.remove()


def _compare(given: Arrays, live: Arrays, first: Any, step: int) -> float:
    """Returns the largest difference of one step."""
    if given.keys() != live.keys():
        raise DisagreementError(f"the exported model returns {', '.join(given)}; the policy {', '.join(live)}")
    differences = {name: _difference(given[name], live[name]) for name in live}
    if "log_probs" in live and 0.0 < differences["action"] < np.inf:
        differences["action"] = _likelihood_loss(given["action"] - first, live["log_probs"])
    for name, difference in differences.items():
        if not difference <= TOLERANCE:  # in this form it is true for NaN too
            raise DisagreementError(f"the exported model does not play as the policy does: after {step:,} steps `{name}` "
                                    f"differs by {difference:.2g}, where rounding explains {TOLERANCE:g}. Nothing was written; "
                                    "try other versions of torch and onnxruntime, or the other --format")
    return max(differences.values())


def _difference(given: NDArray[Any], live: NDArray[Any]) -> float:
    if (given.shape, given.dtype) != (live.shape, live.dtype):
        return np.inf
    return float(np.max(np.abs(given - live) / (1.0 + np.abs(live)), initial=0.0))


def _likelihood_loss(chosen: NDArray[Any], log_probs: NDArray[Any]) -> float:
    """Returns by how much the chosen actions are less likely than those of the live policy: near zero where two actions are
    equally likely."""
    choices = log_probs.reshape(-1, log_probs.shape[-1])
    index = chosen.reshape(-1, 1)
    if index.min() < 0 or index.max() >= choices.shape[-1]:
        return np.inf
    return float(np.max(choices.max(-1, keepdims=True) - np.take_along_axis(choices, index, -1)))


class RandomObservations(VecEnv):
    """Random observations of a space, in episodes of about 20 steps, for where the real environment cannot be made."""

    def __init__(self, policy: ActorCritic, rows: int):
        self.observation_space, self.action_space, self.num_rows = policy.observation_space, policy.action_space, rows

    def reset(self, seed: int | None = None) -> Obs:
        self.observation_space.seed(seed)
        self.generator = torch.Generator().manual_seed(seed or 0)
        return self._sample()

    def step(self, action: Tensor) -> Step:
        obs, never = self._sample(), torch.zeros(self.num_rows, dtype=torch.bool)
        ended = torch.rand(self.num_rows, generator=self.generator) < 1 / 20
        return Step(obs, torch.zeros(self.num_rows), ended, never, obs, ~never, {})

    def _sample(self) -> Obs:
        samples = [self.observation_space.sample() for _ in range(self.num_rows)]
        obs = empty_obs(self.observation_space, self.num_rows)
        if isinstance(obs, dict):
            for key, x in obs.items():
                x.copy_(_stacked([sample[key] for sample in samples]))
        else:
            obs.copy_(_stacked(samples))
        return obs


def _stacked(samples: list[NDArray[Any]]) -> Tensor:
    """Stacks samples. Floats are clamped, because spaces with bounds of 1e38 are meant to have none."""
    values = torch.from_numpy(np.stack(samples))
    return values.clamp(-10.0, 10.0) if values.is_floating_point() else values
