"""Every kind of action is learned within seconds, in an environment that rewards doing what the observation says."""
from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import IdentityEnv
from wavedash.policy.actor_critic import ActorCritic

PPO = {"rollout_steps": 16, "epochs": 4, "minibatch_size": 64, "learning_rate": 1e-2, "gamma": 0.0, "gae_lambda": 0.0}
MOST_ITERATIONS = 40

ENVS: dict[str, tuple[gymnasium.Space, bool, float]] = {
    "discrete": (spaces.Discrete(5), False, 0.0),
    "discrete, masked": (spaces.Discrete(12), True, 0.0),
    "discrete, half the rows sit out": (spaces.Discrete(5), False, 0.5),
    "multi-discrete": (spaces.MultiDiscrete([3, 2, 4]), False, 0.0),
    "multi-discrete, masked": (spaces.MultiDiscrete([6, 2, 9]), True, 0.0),
    "multi-binary": (spaces.MultiBinary(4), False, 0.0),
    "box with odd bounds": (spaces.Box(np.float32([-2.0, 0.0, 3.0]), np.float32([2.0, 5.0, 3.5])), False, 0.0),
}


@torch.no_grad()
def score(env: IdentityEnv, policy: ActorCritic) -> float:
    """The share of the best reward that the deterministic policy earns in a fresh environment."""
    obs, rewards = env.reset(seed=99), []
    for _ in range(10):
        step = env.step(policy.head.env_action(policy.act(policy.normalize(obs), {}, deterministic=True).action))
        obs = step.obs
        rewards.append(step.reward.mean())
    return float(torch.stack(rewards).mean())


@pytest.mark.parametrize("distribution", ["tanh", "beta", "confined"])
def test_bounded_distributions_learn_to_do_what_the_observation_says(distribution):
    space = ENVS["box with odd bounds"][0]
    policy = {"distribution": distribution, "initial_std": 0.5}
    learner = learner_over(IdentityEnv(space, rows=32), run_config(PPO, policy))
    for _ in range(2 * MOST_ITERATIONS):
        learner.iterate()
        if (trained := score(IdentityEnv(space, rows=100), learner.policy)) > 0.93:
            break
    assert trained > 0.93


@pytest.mark.parametrize("normalize", [False, True], ids=["raw", "normalised"])
@pytest.mark.parametrize("name", ENVS)
def test_every_kind_of_action_learns_to_do_what_the_observation_says(name, normalize):
    space, masked, inactive = ENVS[name]
    env = IdentityEnv(space, rows=32, masked=masked, inactive=inactive)
    ppo = {**PPO, "normalize_obs": normalize, "normalize_reward": normalize}
    policy = {"initial_std": 0.5} if isinstance(space, spaces.Box) else {}
    learner = learner_over(env, run_config(ppo, policy))
    untrained = score(IdentityEnv(space, rows=100, masked=masked), learner.policy)
    for _ in range(MOST_ITERATIONS):
        learner.iterate()
        trained = score(IdentityEnv(space, rows=100, masked=masked), learner.policy)
        if trained > 0.95:
            break
    assert trained > 0.95 > 0.75 > untrained


def test_a_policy_that_gets_rewards_of_other_rows_learns_nothing():
    """The control: the same run, with rewards dealt out in another order, stays at chance."""

    class Shuffled(IdentityEnv):
        def step(self, action):
            step = super().step(action)
            return step._replace(reward=step.reward.roll(1))

    learner = learner_over(Shuffled(spaces.Discrete(5), rows=32), run_config(PPO))
    for _ in range(MOST_ITERATIONS):
        learner.iterate()
    assert score(IdentityEnv(spaces.Discrete(5), rows=100), learner.policy) < 0.6
