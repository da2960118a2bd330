"""Generalised state-dependent exploration: its density, its noise, and when noise is drawn anew."""
from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError

from tests.ppo.learners import ACTIONS, FEATURES, identity_learner, learner_over, run_config, trained_policy
from tests.toy_vec_envs import TapeEnv
from wavedash.config import PolicyConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.heads import GaussianHead, make_head
from wavedash.trained_policy import TrainedPolicy

FEATURE_ROWS = torch.tensor([[0.5, -1.0, 0.25], [0.0, 0.0, 0.0], [-0.9, 0.3, 0.8]])
LOG_STD = torch.tensor([[-1.0, 0.5], [-2.0, 0.0], [0.25, -0.5]])
MEAN = torch.tensor([[0.1, -0.2], [0.0, 0.3], [1.0, -1.0]])
ACTION = torch.tensor([[0.4, 0.6], [0.001, 0.299], [-0.5, 0.75]])
SB3 = {  # log-probability and entropy of these by Stable-Baselines3 2.9.2
    False: ([-1.650319, 10.977617, -3.948785], [2.172410, -10.977633, 3.378427]),
    True: ([-1.602847, 10.977617, -4.046593], [2.082932, -10.977633, 3.198712]),
}


def head_of(**options) -> GaussianHead:
    torch.manual_seed(0)
    head = make_head(3, spaces.Box(-1, 1, (2,)), PolicyConfig(std="gsde", **options))
    assert isinstance(head, GaussianHead)
    with torch.no_grad():
        head.log_std.copy_(LOG_STD)
    return head


@torch.no_grad()
def density(head: GaussianHead):
    distribution = head(FEATURE_ROWS)
    return type(distribution)(MEAN, distribution.log_std)


@pytest.mark.parametrize("expln", [False, True])
def test_density_and_entropy_are_those_of_stable_baselines3(expln):
    distribution = density(head_of(gsde={"expln": expln}))
    log_prob, entropy = SB3[expln]
    torch.testing.assert_close(distribution.log_prob(ACTION), torch.tensor(log_prob), rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(distribution.entropy(), torch.tensor(entropy), rtol=1e-5, atol=2e-5)


def test_the_variance_is_that_of_a_sum_of_independent_weights():
    """Worked out by hand: Var(sum of h_f * w_fa) = sum of h_f^2 * std_fa^2, and the density of a normal with this variance."""
    distribution = density(head_of())
    for row in range(3):
        log_prob = entropy = 0.0
        for a in range(2):
            variance = 1e-6 + sum((float(FEATURE_ROWS[row, f]) * math.exp(float(LOG_STD[f, a]))) ** 2 for f in range(3))
            error = float(ACTION[row, a] - MEAN[row, a])
            log_prob -= 0.5 * (error**2 / variance + math.log(2 * math.pi * variance))
            entropy += 0.5 * math.log(2 * math.pi * math.e * variance)
        assert float(distribution.log_prob(ACTION)[row]) == pytest.approx(log_prob, abs=1e-4)
        assert float(distribution.entropy()[row]) == pytest.approx(entropy, abs=1e-4)


@pytest.mark.parametrize("expln", [False, True])
def test_actions_made_by_noise_matrices_have_the_density_that_is_claimed(expln):
    """Over many matrices the mean and the covariance are within six standard errors, and dimensions are independent."""
    head, count = head_of(gsde={"expln": expln}), 100_000
    features = FEATURE_ROWS[2].expand(count, 3)
    with torch.no_grad():
        claimed = head(features)
        noise = head.draw_noise(count, torch.Generator().manual_seed(0))
        actions = head.explore(claimed, features, noise)
    mean, std = claimed.mean[0], claimed.log_std[0].exp()
    assert ((actions.mean(0) - mean).abs() < 6 * std / math.sqrt(count)).all()
    assert ((actions.std(0) / std - 1).abs() < 6 / math.sqrt(2 * count)).all()
    correlation = np.corrcoef(actions.T.numpy())[0, 1]
    assert abs(correlation) < 6 / math.sqrt(count)


def test_noise_is_a_function_of_the_state_and_each_row_has_its_own():
    head = head_of()
    with torch.no_grad():
        noise = head.draw_noise(3, torch.Generator().manual_seed(0))
        first, again = (head.explore(head(FEATURE_ROWS), FEATURE_ROWS, noise) for _ in range(2))
        shift = first - head(FEATURE_ROWS).mode()
        scaled = head.explore(head(2 * FEATURE_ROWS), 2 * FEATURE_ROWS, noise) - head(2 * FEATURE_ROWS).mode()
    assert torch.equal(first, again)
    torch.testing.assert_close(scaled, 2 * shift)  # linear in the features
    assert (shift[1] == 0).all() and not torch.equal(noise[0], noise[1])


def test_the_entropy_has_no_gradient_for_the_features():
    """Its gradient reaches the deviations of the noise matrix and nothing else."""
    policy = trained_policy("gaussian", std="gsde")
    policy(torch.randn(6, FEATURES))[0].entropy().sum().backward()
    reached = {name for name, p in policy.named_parameters() if p.grad is not None and (p.grad != 0).any()}
    assert reached == {"actor.head.log_std"}


STEPS, ROWS = 8, 3


def rollouts_over_a_constant_env(sample_every: int | None, distribution: str = "gaussian") -> list[torch.Tensor]:
    """The actions of two rollouts, [T, N, A] each. No observation ever changes, so an action changes only with the noise."""
    env = TapeEnv(torch.ones(1, ROWS, 4), torch.zeros(1, ROWS), terminated=torch.ones(1, ROWS, dtype=torch.bool),
                  action_space=ACTIONS["gaussian"])
    options = {"std": "gsde", "gsde": {"sample_every": sample_every}, "distribution": distribution}
    learner = learner_over(env, run_config({"rollout_steps": STEPS}, options))
    found = []
    for _ in range(2):
        learner.collector.collect(learner.buffer.next_slot())
        found.append(learner.rollout.action.clone())
    return found


@pytest.mark.parametrize("distribution", ["gaussian", "tanh"])
@pytest.mark.parametrize(("sample_every", "changes"), [(None, []), (3, [3, 6]), (1, list(range(1, STEPS))), (100, [])])
def test_noise_is_drawn_at_the_beginning_of_a_rollout_and_every_so_many_steps(sample_every, changes, distribution):
    first, second = rollouts_over_a_constant_env(sample_every, distribution)
    for actions in (first, second):
        moved = (actions[1:] != actions[:-1]).any(-1)  # [T - 1, N]
        assert (moved == moved[:, :1]).all(), "the noise changes for all rows at once"
        assert (moved[:, 0].nonzero().flatten() + 1).tolist() == changes
        assert not torch.equal(actions[0, 0], actions[0, 1]), "each row has noise of its own"
    assert (second[0] != first[-1]).all(), "a new rollout has new noise"


def test_without_gsde_every_step_has_new_noise():
    """This is the control of the test above."""
    env = TapeEnv(torch.ones(1, ROWS, 4), torch.zeros(1, ROWS), action_space=ACTIONS["gaussian"])
    learner = learner_over(env, run_config({"rollout_steps": STEPS}))
    learner.collector.collect(learner.buffer.next_slot())
    assert (learner.rollout.action[1:] != learner.rollout.action[:-1]).all()


def test_a_policy_with_gsde_learns_to_do_what_the_observation_says():
    ppo = {"rollout_steps": 32, "epochs": 5, "minibatch_size": 64, "learning_rate": 3e-3, "gamma": 0.5}
    learner = identity_learner("gaussian", ppo, policy={"std": "gsde", "initial_std": 0.3}, rows=16)
    before = learner.iterate().metrics["rollout/reward"]
    for _ in range(25):
        after = learner.iterate().metrics["rollout/reward"]
    assert before < 0.65 and after > 0.8


def test_gsde_is_refused_for_distributions_that_are_not_normal():
    with pytest.raises(ValidationError, match=r"policy\.std=gsde needs policy\.distribution=gaussian or tanh, not beta"):
        PolicyConfig(std="gsde", distribution="beta")


# --- a trained policy at play ----------------------------------------------------------------------------------------


def player(sample_every: int | None) -> TrainedPolicy:
    torch.manual_seed(0)
    options = PolicyConfig(hidden=[8], std="gsde", gsde={"sample_every": sample_every})
    return TrainedPolicy(ActorCritic(spaces.Box(-1, 1, (3,)), spaces.Box(-9, 9, (2,), np.float32), options))


def test_a_trained_policy_that_explores_keeps_its_noise_as_training_does():
    still, every_third = player(None), player(3)
    obs = np.ones((4, 3), np.float32)
    kept = [still.act(obs, deterministic=False) for _ in range(5)]
    assert all(np.array_equal(kept[0], x) for x in kept) and not np.array_equal(kept[0], still.act(obs))
    drawn = [every_third.act(obs, deterministic=False) for _ in range(6)]
    assert [not np.array_equal(a, b) for a, b in pairwise(drawn)] == [False, False, True, False, False]


def test_an_episode_that_begins_has_new_noise_in_its_row_alone():
    still, obs = player(None), np.ones((3, 3), np.float32)
    before = still.act(obs, deterministic=False)
    still.reset(torch.tensor([False, True, False]))
    after = still.act(obs, deterministic=False)
    assert (before != after).any(-1).tolist() == [False, True, False]
    still.reset()
    assert (still.act(obs, deterministic=False) != after).any(-1).all()
    one = np.ones(3, np.float32)
    still.reset()
    assert still.act(one, deterministic=False).shape == (2,)
