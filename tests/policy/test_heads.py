"""Heads turn features into actions: what is stored, what the environment receives, and how unusual spaces are handled."""
from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.ppo.learners import ACTIONS, FEATURES, trained_policy
from wavedash.config import PolicyConfig
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.heads import GaussianHead, make_head
from wavedash.policy.normalizer import ObsNormalizer

OBS = torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(0))


def gaussian_head(space: spaces.Box) -> GaussianHead:
    head = make_head(FEATURES, space, PolicyConfig())
    assert isinstance(head, GaussianHead)
    return head


# --- continuous actions ----------------------------------------------------------------------------------------------


def test_the_unit_range_is_spread_over_the_bounds_and_clipped_to_them():
    head = gaussian_head(spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32)))
    sampled = torch.tensor([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [0.5, -0.5], [3.0, -7.0]])
    expected = torch.tensor([[-2.0, 0.0], [0.0, 2.5], [2.0, 5.0], [1.0, 1.25], [2.0, 0.0]])
    torch.testing.assert_close(head.env_action(sampled), expected)


def test_an_unbounded_or_half_bounded_action_is_not_scaled():
    high = np.array([np.inf, np.inf, np.finfo(np.float32).max], np.float32)
    head = gaussian_head(spaces.Box(np.array([-np.inf, 0.0, np.finfo(np.float32).min], np.float32), high))
    assert head.env_action(torch.tensor([[-3.0, -3.0, -3.0]])).tolist() == [[-3.0, 0.0, -3.0]]


def test_a_clipped_action_lies_in_a_space_of_float64():
    """As float32, 0.1 is 0.10000000149: an environment that checks its actions would refuse it."""
    space = spaces.Box(-0.1, 0.1, (3,), np.float64)
    for sample in (-5.0, 5.0):
        action = gaussian_head(space).env_action(torch.full((1, 3), sample))[0].numpy().astype(np.float64)
        assert space.contains(action)


@pytest.mark.parametrize("space", [
    spaces.Box(-1, 1, ()), spaces.Box(-1, 1, (2, 3)), spaces.MultiDiscrete([[2, 3], [4, 5]]), spaces.MultiBinary((2, 3)),
    spaces.MultiBinary(4), spaces.MultiDiscrete([2, 3]), spaces.Discrete(3),
], ids=str)
def test_the_environment_receives_actions_of_its_own_shape(space):
    policy = ActorCritic(spaces.Box(-1, 1, (FEATURES,)), space, PolicyConfig(hidden=[8]))
    with torch.no_grad():
        decision = policy.act(OBS, {})
    assert decision.log_prob.shape == decision.value.shape == (len(OBS),)
    received = policy.head.env_action(decision.action)
    assert received.shape == (len(OBS), *space.shape)
    for row in received.numpy().astype(space.dtype):
        assert space.contains(np.asarray(row, space.dtype) if isinstance(space, spaces.Box) else row)


def test_a_box_of_integers_is_refused_with_advice():
    with pytest.raises(UserError, match="MultiDiscrete"):
        make_head(4, spaces.Box(0, 3, (2,), np.int64), PolicyConfig())


def test_the_first_policy_is_nearly_uniform_and_heads_know_their_largest_entropy():
    largest = {"discrete": math.log(5), "multi-discrete": math.log(24), "multi-binary": math.log(8), "gaussian": None}
    for kind, space in ACTIONS.items():
        policy = ActorCritic(spaces.Box(-1, 1, (FEATURES,)), space, PolicyConfig())
        assert policy.head.max_entropy == (None if largest[kind] is None else pytest.approx(largest[kind]))
        with torch.no_grad():
            distribution, _ = policy(OBS)
        if largest[kind] is not None:
            assert float(distribution.entropy().min()) > 0.999 * largest[kind]


def test_a_confined_normal_stays_within_its_ranges():
    torch.manual_seed(0)
    policy = ActorCritic(spaces.Box(-1, 1, (FEATURES,)), spaces.Box(-1, 1, (2,)), PolicyConfig(distribution="confined",
                                                                                               std_range=(0.2, 0.6)))
    with torch.no_grad():
        first, _ = policy(OBS)
        for p in policy.parameters():
            p.normal_(0.0, 3.0)
        wild, _ = policy(OBS)
    torch.testing.assert_close(first.log_std.exp(), torch.full((6, 2), 0.4), rtol=0.05, atol=0.0)
    assert wild.mean.abs().max() <= 1 and wild.mean.abs().max() > 0.99
    std = wild.log_std.exp()
    assert std.min() >= 0.2 - 1e-6 and std.max() <= 0.6 + 1e-6 and std.max() - std.min() > 0.39


@pytest.mark.parametrize("std", ["fixed", "learned", "state"])
def test_the_deviation_starts_as_configured_and_moves_only_if_learned(std):
    policy = ActorCritic(spaces.Box(-1, 1, (FEATURES,)), spaces.Box(-1, 1, (2,)), PolicyConfig(std=std, initial_std=0.5))
    with torch.no_grad():
        distribution, _ = policy(OBS)
    torch.testing.assert_close(distribution.log_std.exp().expand(6, 2), torch.full((6, 2), 0.5), rtol=0.05, atol=0.0)
    trained = {name for name, p in policy.named_parameters() if p.requires_grad}
    assert ("actor.head.log_std" in trained) == (std == "learned")
    assert ("actor.head.state_log_std.weight" in trained) == (std == "state")


# --- deterministic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ACTIONS)
def test_each_row_may_be_deterministic_or_sampled(kind):
    policy = trained_policy(kind)
    rows = torch.tensor([True, False, True, False, False, True])
    draws = []
    with torch.no_grad():
        best = policy.act(OBS, {}, deterministic=True).action
        for seed in range(30):
            decision = policy.act(OBS, {}, torch.Generator().manual_seed(seed), deterministic=rows)
            assert torch.equal(decision.action[rows], best[rows])
            torch.testing.assert_close(decision.log_prob, policy.evaluate(OBS, decision.action).log_prob)
            draws.append(decision.action)
    varied = (torch.stack(draws) != best).reshape(30, 6, -1).any(-1).any(0)
    assert torch.equal(varied, ~rows)


# --- observations ----------------------------------------------------------------------------------------------------

DICT = spaces.Dict({
    "far": spaces.Box(-1, 1, (2, 3)), "clock": spaces.Box(0, 1, ()), "image": spaces.Box(0, 255, (4,), np.uint8),
    "action_mask": spaces.MultiBinary(5),
})


def dict_obs(rows: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {"far": torch.randn(rows, 2, 3), "clock": torch.rand(rows), "action_mask": torch.ones(rows, 5, dtype=torch.int8),
            "image": torch.randint(0, 255, (rows, 4), dtype=torch.uint8)}


def test_the_order_of_an_observations_keys_does_not_matter():
    policy = ActorCritic(DICT, spaces.Discrete(5), PolicyConfig(), normalize_obs=10.0)
    obs = dict_obs(3)
    turned = dict(reversed(obs.items()))
    assert list(turned) != list(obs)
    with torch.no_grad():
        first, second = (policy(policy.normalize(o)) for o in (obs, turned))
    assert torch.equal(first[0].log_probs, second[0].log_probs) and torch.equal(first[1], second[1])


def test_every_key_but_the_mask_reaches_the_network():
    policy = ActorCritic(DICT, spaces.Discrete(5), PolicyConfig())
    obs = dict_obs(3)
    with torch.no_grad():
        before = policy.value(obs, {})
        for key in obs:
            changed = {**obs, key: 1 - obs[key]}
            assert torch.equal(policy.value(changed, {}), before) == (key == "action_mask")


def test_observations_that_are_integers_alone_reach_the_network():
    """Each of them counts, and as the same number does that is a float."""
    policy = ActorCritic(spaces.Box(0, 255, (4,), np.uint8), spaces.Discrete(2), PolicyConfig())
    obs = torch.randint(0, 200, (3, 4), dtype=torch.uint8)
    with torch.no_grad():
        value = policy.value(obs, {})
        assert torch.equal(policy.value(obs.float(), {}), value)
        for column in range(4):
            changed = obs.clone()
            changed[:, column] += 50
            assert (policy.value(changed, {}) != value).all()


def test_only_floats_are_normalised():
    normalizer = ObsNormalizer(DICT, clip=10.0)
    assert set(normalizer.parts) == {"far", "clock"}
    obs = dict_obs(50)
    normalizer.accumulate(normalizer.standardize(obs), torch.ones(50))
    normalizer.commit()
    out = normalizer(obs)
    assert torch.equal(out["image"], obs["image"]) and torch.equal(out["action_mask"], obs["action_mask"])
    assert not torch.equal(out["far"], obs["far"])
