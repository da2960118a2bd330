"""LocalVecEnv against plain loops over single environments: observations, rewards, endings, actions, seeds."""
from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.envs.toy_envs import Acts, Counter, DictObs, KeepsAction, Succeeds, Teams
from wavedash.envs.batch import episode_seed
from wavedash.envs.local import LocalVecEnv


def played_one_by_one(make, count, seed, actions):
    """What N rows should return, from environments stepped by hand: (obs, reward, terminated, truncated, final_obs)."""
    envs, episodes = [make() for _ in range(count)], [0] * count
    for i, env in enumerate(envs):
        env.reset(seed=episode_seed(seed, i, 0))
    for step_actions in actions:
        rows = []
        for i, (env, action) in enumerate(zip(envs, step_actions, strict=True)):
            obs, reward, terminated, truncated, _ = env.step(action)
            final_obs = obs
            if terminated or truncated:
                episodes[i] += 1
                obs, _ = env.reset(seed=episode_seed(seed, i, episodes[i]))
            rows.append((obs, reward, terminated, truncated, final_obs))
        yield [np.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("make", [Counter, partial(Counter, truncates=True), partial(gymnasium.make, "CartPole-v1"),
                                  partial(gymnasium.make, "Pendulum-v1", max_episode_steps=9)])
def test_steps_equal_environments_stepped_by_hand(make):
    env = LocalVecEnv(make, 5)
    env.reset(seed=11)
    env.action_space.seed(0)
    actions = np.stack([[env.action_space.sample() for _ in range(5)] for _ in range(100)])
    endings = 0
    for action, expected in zip(torch.from_numpy(actions), played_one_by_one(make, 5, 11, actions), strict=True):
        step = env.step(action)
        for got, want in zip((step.obs, step.reward, step.terminated, step.truncated, step.final_obs), expected, strict=True):
            np.testing.assert_array_equal(got.numpy(), want.astype(got.numpy().dtype))
        ended = bool((step.terminated | step.truncated).any())
        assert (step.final_obs is step.obs) == (not ended)
        assert step.active.all()
        endings += ended
    assert endings > 5


def test_a_time_limit_truncates_and_does_not_terminate():
    env = LocalVecEnv(partial(gymnasium.make, "Pendulum-v1", max_episode_steps=4), 2)
    env.reset(seed=0)
    for i in range(8):
        step = env.step(torch.zeros(2, 1))
        assert step.terminated.tolist() == [False, False]
        assert step.truncated.tolist() == [i % 4 == 3] * 2


def test_observations_are_views_that_cost_no_copy():
    env = LocalVecEnv(Counter, 3)
    obs = env.reset(seed=0)
    step = env.step(torch.zeros(3, dtype=torch.int64))
    assert step.obs.data_ptr() == obs.data_ptr()
    assert step.obs.dtype == torch.float32
    assert env.observation_space.dtype == np.float32


def test_the_seed_decides_the_episodes():
    env = LocalVecEnv(Counter, 4)
    first, second, third = env.reset(seed=1).clone(), env.reset(seed=1).clone(), env.reset(seed=2).clone()
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    env.reset(seed=1)
    assert not torch.equal(env.reset().clone(), first), "a reset without a seed goes on to the next episode"


def test_an_episode_depends_on_run_seed_environment_and_index_only():
    seeds = {episode_seed(run, env, episode) for run in range(4) for env in range(20) for episode in range(200)}
    assert len(seeds) == pytest.approx(4 * 20 * 200, abs=5)  # 31 bits: about 0.06 collisions expected
    small, large = LocalVecEnv(Counter, 2), LocalVecEnv(Counter, 5)
    assert torch.equal(small.reset(seed=9), large.reset(seed=9)[:2])


@pytest.mark.parametrize("space", [spaces.Discrete(5, start=3), spaces.Discrete(4, dtype=np.int32), spaces.MultiBinary(3),
                                   spaces.MultiDiscrete([3, 4]), spaces.MultiDiscrete([3, 4], start=[2, -1]),
                                   spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (2, 2), np.float64)])
def test_every_action_space_reaches_the_environment_as_its_own_sample(space):
    """`Acts` asserts that the action is in its space, and observes its sum."""
    space.seed(0)
    env = LocalVecEnv(partial(Acts, space), 1)
    env.reset(seed=0)
    for _ in range(20):
        sample = space.sample()
        index = torch.as_tensor(sample - getattr(space, "start", 0))
        step = env.step(index.float()[None] if isinstance(space, spaces.Box) else index[None])
        np.testing.assert_allclose(step.final_obs[0, 2], np.sum(sample), rtol=1e-6)


def test_an_action_that_an_environment_keeps_does_not_change():
    env = LocalVecEnv(KeepsAction, 2)
    env.reset(seed=0)
    env.step(torch.zeros(2, 2))
    np.testing.assert_array_equal(env.step(torch.ones(2, 2)).reward, [2.0, 2.0])


def test_dict_observations_keep_their_types_and_discrete_becomes_one_hot():
    env = LocalVecEnv(DictObs, 3)
    obs = env.reset(seed=4)
    assert {key: (tuple(x.shape), x.dtype) for key, x in obs.items()} == {
        "flat": ((3, 3), torch.float32), "image": ((3, 2, 2), torch.uint8), "kind": ((3, 7), torch.float32),
        "action_mask": ((3, 5), torch.int8)}
    assert torch.equal(obs["kind"].argmax(1), obs["flat"][:, 0].long() % 7)
    assert obs["kind"].sum() == 3
    step = env.step(torch.ones(3, dtype=torch.int64))
    assert (step.obs["image"] == 1).all()
    assert step.final_obs is step.obs


def test_a_discrete_observation_is_one_hot():
    env = LocalVecEnv(partial(gymnasium.make, "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"), 2)
    obs = env.reset(seed=0)
    assert obs.shape == (2, 500)
    assert torch.equal(obs.sum(1), torch.ones(2))


def test_success_is_reported_where_an_episode_ended_and_only_by_environments_that_know_it():
    env, silent = LocalVecEnv(Succeeds, 4), LocalVecEnv(Counter, 4)
    start = env.reset(seed=3)[:, 0].clone()
    silent.reset(seed=3)
    seen = 0
    for _ in range(40):
        step = env.step(torch.zeros(4, dtype=torch.int64))
        ended = step.terminated
        if ended.any():
            assert torch.equal(step.metrics["episode/success"][ended], (start % 2 == 0).float()[ended])
            seen += int(ended.sum())
        start = step.obs[:, 0].clone()
        assert silent.step(torch.zeros(4, dtype=torch.int64)).metrics == {}
    assert seen > 10


def test_environments_of_several_rows_end_together_and_change_their_seats_at_reset():
    env = LocalVecEnv(Teams, 3)
    obs = env.reset(seed=5).clone()
    assert env.num_rows == 6
    seats_seen = set()
    for t in range(1, 13):
        action = torch.arange(6) % 5
        step = env.step(action)
        seats = [True, int(episode_seed(5, 0, (t - 1) // 3)) % 2 == 0]
        seats_seen.add(tuple(seats))
        assert step.active[:2].tolist() == seats, "the seats of the episode that this step belongs to"
        age = (t - 1) % 3 + 1
        assert step.reward.tolist() == [age, -age] * 3
        assert step.terminated.tolist() == [age == 3] * 6
        assert torch.equal(step.final_obs[:, 1], action.float())
        assert torch.equal(step.final_obs[:, 0], obs[:, 0])
        obs = step.obs.clone()
    assert len(seats_seen) == 2
