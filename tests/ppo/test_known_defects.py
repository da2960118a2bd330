"""Defects of rlgym-ppo 1.3.13 and of PPO code like it, which must not be repeated. Each test says in its name what is right."""
from __future__ import annotations

import math

import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import ACTIONS, FEATURES, identity_learner, learner_over, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded
from tests.toy_vec_envs import IdentityEnv, TapeEnv
from wavedash.ppo.gae import gae, next_values

T, N = 8, 4


def truncating_env(action_space=None) -> TapeEnv:
    torch.manual_seed(0)
    cut = torch.rand(T, N) < 0.4
    cut[T - 1, 0] = True
    return TapeEnv(torch.randn(T, N, 3) + 2.0, torch.randn(T, N), truncated=cut, action_space=action_space)


def test_a_truncated_trajectory_does_not_bootstrap_from_the_next_one():
    """Two trajectories of two steps follow each other, both cut off where V is 1. rlgym-ppo gets [100, 100, -99, 1]."""
    value = torch.tensor([[0.0], [0.0], [100.0], [0.0]])
    zero, cut = torch.zeros(4, 1), torch.tensor([[False], [True], [False], [True]])
    following = next_values(value, torch.tensor([555.0]), torch.ones(4, 1), torch.zeros_like(cut), cut)
    advantage = gae(zero, value, following, cut, torch.ones_like(cut), 1.0, 1.0)
    assert advantage.flatten().tolist() == [1.0, 1.0, -99.0, 1.0]

    shifted = torch.cat([value[1:], torch.ones(1, 1)])  # its mistake: the value of the next state in the buffer
    wrong = gae(zero, value, shifted, cut, torch.ones_like(cut), 1.0, 1.0)
    assert wrong.flatten().tolist() == [100.0, 100.0, -99.0, 1.0]


@pytest.mark.parametrize("normalize_obs", [False, True])
def test_the_final_observation_is_what_a_truncation_bootstraps_from(normalize_obs):
    """The next observation belongs to a new episode; the last one of the old episode differs from it by its sign."""
    env = truncating_env()
    learner = learner_over(env, run_config({"rollout_steps": T, "gae_lambda": 0.0, "normalize_obs": normalize_obs}))
    rollout = learner.buffer.next_slot()
    last_value = learner.collector.collect(rollout)
    learner.estimate_advantages(rollout, last_value)
    first = env.obs.roll(-1, 0)
    with torch.no_grad():
        v_final, v_first = (learner.policy.value(learner.policy.normalize(x), {}) for x in (-first, first))
    expected = rollout.reward + 0.99 * torch.where(env.truncated, v_final, v_first) - rollout.value
    # Values of another batch of rows sum the inputs of each layer in another order.
    size = rollout.reward.abs() + rollout.value.abs() + torch.where(env.truncated, v_final, v_first).abs() + 1.0
    assert_rounded(rollout.advantage, expected, 2 * (3 + 16 + 2 * FUNCTION), size)
    lost = rollout.reward + 0.99 * v_first - rollout.value
    assert (lost - rollout.advantage)[env.truncated].abs().min() > 1e-3
    assert torch.equal(rollout.done, env.truncated), "a truncation closes the trajectory"


def test_deterministic_actions_are_chosen_row_by_row():
    policy = trained_policy("discrete")
    obs = 3 * torch.randn(50, FEATURES)
    with torch.no_grad():
        actions = policy.act(obs, {}, deterministic=True).action
        one_by_one = torch.cat([policy.act(x.unsqueeze(0), {}, deterministic=True).action for x in obs])
    assert actions.shape == (50,) and torch.equal(actions, one_by_one) and len(set(actions.tolist())) > 1


def test_the_density_belongs_to_the_unclipped_action_and_the_environment_receives_the_clipped_one():
    low, high = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 5.0])
    env = truncating_env(spaces.Box(low.numpy(), high.numpy()))
    learner = learner_over(env, run_config({"rollout_steps": T}, policy={"initial_std": 2.0}))
    rollout = learner.buffer.next_slot()
    learner.collector.collect(rollout)
    outside = rollout.action.abs() > 1
    assert outside.any() and (~outside).any(), "the stored action is what was sampled"
    received = torch.stack(env.received)
    expected = rollout.action * torch.tensor([2.0, 2.5]) + torch.tensor([0.0, 2.5])
    torch.testing.assert_close(received, expected.clamp(low, high))
    with torch.no_grad():
        distribution, _ = learner.policy(rollout.obs)
        normal = torch.distributions.Normal(distribution.mean.double(), distribution.log_std.exp().double())
    of_the_sampled = normal.log_prob(rollout.action.double()).sum(-1)
    z = (rollout.action - distribution.mean).abs() / distribution.log_std.exp()
    # The mean comes from another batch, of numbers below 1; an error of it counts z times.
    size = (1 + z.square() + z / distribution.log_std.exp()).sum(-1)
    assert_rounded(rollout.log_prob, of_the_sampled, 2 * (3 + 16 + 2 * FUNCTION), size)
    of_the_clipped = normal.log_prob(rollout.action.clamp(-1, 1).double()).sum(-1)
    assert (of_the_clipped - rollout.log_prob)[outside.any(-1)].abs().min() > 1e-3


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_space_trains_and_rows_end_on_their_own(kind):
    """rlgym-ppo has integer actions only, and one `done` for all agents. Here each row has `terminated` and `truncated`."""
    learner = identity_learner(kind, {"rollout_steps": 32})
    assert learner.iterate().metrics["optim/gradient_steps"] > 0
    rollout = learner.rollout
    assert not torch.equal(rollout.done.any(1), rollout.done.all(1)), "rows end at different times"
    assert rollout.terminated.any() and rollout.truncated.any() and not (rollout.terminated & rollout.truncated).any()


def test_entropy_is_reported_and_weighted_per_nat_and_heads_know_its_maximum():
    """Entropy is in nats, as in the paper; `max_entropy` is for those who want a share that fits any action table."""
    for n in (3, 90):
        env = IdentityEnv(spaces.Discrete(n), rows=8)
        learner = learner_over(env, run_config({"rollout_steps": 8, "epochs": 1, "minibatch_size": 64, "entropy_coef": 0.5}))
        assert learner.iterate().metrics["policy/entropy"] == pytest.approx(math.log(n), rel=1e-3)
        assert learner.policy.head.max_entropy == pytest.approx(math.log(n))
