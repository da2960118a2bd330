"""Whether an exported model plays as the live policy does: the same episodes, step by step, each with a memory of its own."""
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
"""The most that rounding may make of a difference, absolute below 1 and relative above. Runtimes sum in different orders: one
step differs by 1e-7 or so, and memory carries that on."""
MOST_STEPS = 20_000
"""Of all rows together: a world whose episodes never end is watched no longer."""


class DisagreementError(UserError):
    """The exported model does something else than the policy."""


@dataclass(frozen=True)
class Agreement:
    """What was compared, and the largest difference found."""

    episodes: int
    steps: int
    difference: float


@torch.no_grad()
def play_side_by_side(policy: ActorCritic, actor: Actor, model: Model, world: VecEnv, episodes: int) -> Agreement:
    """Play whole episodes in `world`, which the live policy steers. Raises DisagreementError at the first difference beyond
    rounding, of an action, a parameter of its distribution or the memory."""
    player, distributions = TrainedPolicy(policy), []
    hook = policy.head.register_forward_hook(lambda head, inputs, distribution: distributions.append(distribution))
    first = getattr(policy.action_space, "start", 0)  # worlds of ours count from 0, and add this themselves
    try:
        obs = world.reset(stream_seed(1, "export"))
        memory = actor.trunk.initial_state(world.num_rows)
        ended = steps = 0
        difference = 0.0
        while ended < episodes and steps < MOST_STEPS:
            given = model({name: x.numpy() for name, x in actor.inputs(obs, memory).items()})
            action = player.act(obs)
            state = {f"next_memory_{part}": (player.memory or {})[f"actor.{part}"] for part in memory}
            parts = {name: x.numpy() for name, x in (parameters(distributions.pop()) | state).items()}
            difference = max(difference, _compare(given, {"action": action, **parts}, first, steps))
            step = world.step(torch.from_numpy(np.asarray(action - first)))
            done = step.terminated | step.truncated
            player.reset(done)
            memory = {part: torch.from_numpy(given[f"next_memory_{part}"]) for part in memory}
            for x in memory.values():
                x[done] = 0.0
            obs = step.obs
            ended += int(done.sum())
            steps += world.num_rows
        return Agreement(ended, steps, difference)
    finally:
        hook.remove()


def _compare(given: Arrays, live: Arrays, first: Any, step: int) -> float:
    """The largest difference of one step."""
    if given.keys() != live.keys():
        raise DisagreementError(f"the exported model returns {', '.join(given)}; the policy {', '.join(live)}")
    differences = {name: _difference(given[name], live[name]) for name in live}
    if "log_probs" in live and 0.0 < differences["action"] < np.inf:
        differences["action"] = _loss(given["action"] - first, live["log_probs"])
    for name, difference in differences.items():
        if not difference <= TOLERANCE:  # so written, it refuses NaN too
            raise DisagreementError(f"the exported model does not play as the policy does: after {step:,} steps `{name}` "
                                    f"differs by {difference:.2g}, where rounding explains {TOLERANCE:g}. Nothing was written; "
                                    "try other versions of torch and onnxruntime, or the other --format")
    return max(differences.values())


def _difference(given: NDArray[Any], live: NDArray[Any]) -> float:
    if (given.shape, given.dtype) != (live.shape, live.dtype):
        return np.inf
    return float(np.max(np.abs(given - live) / (1.0 + np.abs(live)), initial=0.0))


def _loss(chosen: NDArray[Any], log_probs: NDArray[Any]) -> float:
    """How much less likely than the live policy's choice these are: near zero where two actions are equally good."""
    choices = log_probs.reshape(-1, log_probs.shape[-1])
    index = chosen.reshape(-1, 1)
    if index.min() < 0 or index.max() >= choices.shape[-1]:
        return np.inf
    return float(np.max(choices.max(-1, keepdims=True) - np.take_along_axis(choices, index, -1)))


class RandomWorld(VecEnv):
    """Random observations of a space, in episodes of about 20 steps: where the real world cannot be had."""

    def __init__(self, policy: ActorCritic, rows: int):
        self.observation_space, self.action_space, self.num_rows = policy.observation_space, policy.action_space, rows

    def reset(self, seed: int | None = None) -> Obs:
        self.observation_space.seed(seed)
        self.generator = torch.Generator().manual_seed(seed or 0)
        return self._look()

    def step(self, action: Tensor) -> Step:
        obs, never = self._look(), torch.zeros(self.num_rows, dtype=torch.bool)
        ended = torch.rand(self.num_rows, generator=self.generator) < 1 / 20
        return Step(obs, torch.zeros(self.num_rows), ended, never, obs, ~never, {})

    def _look(self) -> Obs:
        samples = [self.observation_space.sample() for _ in range(self.num_rows)]
        obs = empty_obs(self.observation_space, self.num_rows)
        if isinstance(obs, dict):
            for key, x in obs.items():
                x.copy_(_stacked([sample[key] for sample in samples]))
        else:
            obs.copy_(_stacked(samples))
        return obs


def _stacked(samples: list[NDArray[Any]]) -> Tensor:
    """Spaces with bounds of 1e38 are meant to have none."""
    values = torch.from_numpy(np.stack(samples))
    return values.clamp(-10.0, 10.0) if values.is_floating_point() else values
