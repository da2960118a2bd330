"""What inactive rows observe, do and are rewarded with changes no bit of the weights, the statistics or the metrics."""
from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.vec_env import Obs, Step
from wavedash.ppo.learner import Learner

T, N, ROLLOUTS = 8, 6, 3
BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
ACTIONS = {
    "discrete": (spaces.Discrete(3), {}), "multi-discrete": (spaces.MultiDiscrete([3, 2]), {}),
    "gaussian": (BOX, {}), "tanh": (BOX, {"distribution": "tanh", "std": "state"}), "beta": (BOX, {"distribution": "beta"}),
}


class EmptySeats(TapeEnv):
    """A tape whose rows are inactive at times; their observations and rewards are `filling` then, and flags mean nothing."""

    def __init__(self, filling: float | None, action_space: spaces.Space, full_at_first: bool):
        torch.manual_seed(0)
        shape = T * ROLLOUTS, N
        ends, cut, active = torch.rand(shape) < 0.2, torch.rand(shape) < 0.5, torch.rand(shape) < 0.7
        active[0] |= full_at_first
        self.filling = filling
        super().__init__(torch.randn(*shape, 3), torch.randn(shape), ends & ~cut, ends & cut, active, action_space)
        # An empty seat is inactive, and no transition led to what it observes.
        before = torch.cat([torch.zeros(1, N, dtype=torch.bool), (self.active & ~ends)[:-1]])
        self.empty = ~self.active & ~before

    def _filled(self, x: Tensor, where: Tensor) -> Tensor:
        return x if self.filling is None else x.masked_fill(where.view(-1, *(1,) * (x.dim() - 1)), self.filling)

    def reset(self, seed: int | None = None) -> Obs:
        return self._filled(super().reset(seed), self.empty[0])

    def step(self, action: Tensor) -> Step:
        t = self.played % len(self.obs)
        step = super().step(action)
        idle, flag = ~self.active[t], torch.full_like(step.terminated, self.filling is not None)
        return step._replace(
            obs=self._filled(step.obs, self.empty[self.played % len(self.obs)]),
            reward=self._filled(step.reward, idle),
            terminated=torch.where(idle, flag, step.terminated),
            truncated=torch.where(idle, flag, step.truncated),
            final_obs=self._filled(step.final_obs, idle),
            metrics={"speed": self._filled(step.reward, idle)},
        )


@cache
def trained(kind: str, memory: str, normalised: bool, filling: float | None) -> tuple[Learner, list[Mapping[str, float]]]:
    """Statistics start from the median of the first observations, before it is known which seats are empty."""
    space, policy = ACTIONS[kind]
    ppo = {"rollout_steps": T, "epochs": 2, "minibatch_size": 20, "normalize_obs": normalised, "normalize_reward": normalised,
           "learning_rate": 0.01, "buffer_rollouts": 2, "value_clip": 0.2}
    options = {"activation": "relu", "memory": {"kind": memory, "size": 6, "sequence": 4}, **policy}
    learner = learner_over(EmptySeats(filling, space, full_at_first=normalised), run_config(ppo, options))
    return learner, [learner.iterate().metrics for _ in range(ROLLOUTS - 1)]


def learned(learner: Learner) -> dict[str, Tensor]:
    """Weights, statistics, moments and running returns, but neither the tape nor what was stored of empty seats."""
    tensors, _ = learner.state()
    learner_part = {name: x for name, x in tensors["learner"].items() if not name.startswith("obs.")}
    return {**tensors["policy"], **tensors["optimizer"], **learner_part}


@pytest.mark.parametrize(("filling", "normalised"), [(-1e30, False), (math.nan, False), (math.nan, True)])
@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
@pytest.mark.parametrize("kind", [kind for kind in ACTIONS if kind != "beta"])
def test_whatever_fills_an_empty_seat_nothing_changes(kind, memory, filling, normalised):
    clean, expected = trained(kind, memory, normalised, None)
    filled, metrics = trained(kind, memory, normalised, filling)
    assert metrics == expected and all(math.isfinite(x) for f in metrics for x in f.values())
    reference = learned(clean)
    assert {name for name, x in learned(filled).items() if not torch.equal(x, reference[name])} == set()
    assert metrics[-1]["optim/skipped"] == 0 and metrics[-1]["optim/update_size"] > 1e-3


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_beta_policy_learns_beside_empty_seats(memory):
    """Sampling a beta takes a varying number of random numbers, so a seat changes what the others draw, but nothing else."""
    learner, metrics = trained("beta", memory, True, math.nan)
    assert all(math.isfinite(x) for f in metrics for x in f.values()) and metrics[-1]["optim/skipped"] == 0
    assert all(x.isfinite().all() for x in learned(learner).values() if x.is_floating_point())


def test_the_last_observation_of_a_dropped_episode_still_counts():
    """The control: an observation to which a transition led is learned from, although its row is inactive afterwards."""
    def run(change: float) -> Tensor:
        env = EmptySeats(None, ACTIONS["discrete"][0], full_at_first=True)
        t, row = ((~env.active & ~env.empty)[1:T].nonzero() + torch.tensor([1, 0]))[0].tolist()
        env.obs[t, row] += change
        learner = learner_over(env, run_config({"rollout_steps": T, "epochs": 1}))
        learner.iterate()
        return learner.updater.optimizer.parameters

    assert not torch.equal(run(0.0), run(1.0))
