"""Environments as rlgym-ppo has them, in our interface: agents are rows, ends are told apart, the last observation is kept."""
from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.compat.gym_envs import Match, teams
from tests.envs.rlgym_envs import walkers
from tests.envs.traces import random_actions, record, same
from wavedash.compat.rlgym_ppo.maker import EnvMaker, to_host_env
from wavedash.compat.rlgym_ppo.util import RLGymV2GymWrapper
from wavedash.envs.errors import EnvError
from wavedash.envs.gymnasium.host_env import GymnasiumEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.rlgym import RLGymEnv
from wavedash.envs.rlgym.gym_env import GymEnv


def env_of(*args, **kwargs):
    """The adapter and the environment in it."""
    inner = Match(*args, **kwargs)
    return LocalVecEnv(EnvMaker(lambda: inner), 1), inner


@pytest.mark.parametrize("five", [False, True])
def test_an_episode_ends_for_all_its_agents_and_its_last_observation_is_kept(five):
    env, _ = env_of(2, five=five)
    began = env.reset(seed=0)[:, 0].clone()
    for t in range(1, 5):
        step = env.step(torch.tensor([1, 3]))
        torch.testing.assert_close(step.reward, began + t)
        assert step.terminated.tolist() == [t == 4] * 2 and not step.truncated.any() and step.active.all()
        torch.testing.assert_close(step.final_obs, torch.stack([began, torch.full((2,), t), torch.tensor([1.0, 3.0])], 1))
    assert step.obs[:, 1].tolist() == [0, 0] and not torch.equal(step.obs[:, 0], began)


def test_a_fifth_value_tells_truncation_apart():
    """rlgym-ppo resets first and takes the first observation of the next episode for what followed."""
    env, _ = env_of(2, truncates=True)
    began = env.reset(seed=0)[:, 0].clone()
    steps = [env.step(torch.zeros(2, dtype=torch.int64)) for _ in range(4)]
    assert steps[-1].truncated.all() and not steps[-1].terminated.any()
    assert torch.equal(steps[-1].final_obs[:, 0], began) and not torch.equal(steps[-1].obs[:, 0], began)


def test_old_gyms_time_limit_is_a_truncation():
    class Limited(Match):
        def step(self, actions):
            obs, reward, done, info = super().step(actions)
            return obs, reward, done, {**info, "TimeLimit.truncated": True} if done else info

    env = LocalVecEnv(EnvMaker(lambda: Limited(1, five=False)), 1)
    env.reset(seed=0)
    for t in range(1, 5):
        step = env.step(torch.zeros(1, dtype=torch.int64))
        assert (bool(step.terminated), bool(step.truncated)) == (False, t == 4)


def test_one_agent_may_come_without_a_leading_axis():
    env, inner = env_of(1, single=True)
    assert env.reset(seed=0).shape == (1, 3)
    step = env.step(torch.tensor([2]))
    assert step.reward.shape == (1,) and inner.received[-1].tolist() == [[2.0]]


def test_the_number_of_agents_changes_at_reset():
    env = LocalVecEnv(EnvMaker(teams), 1)
    env.reset(seed=0)
    counts = set()
    for _ in range(12):
        for _ in range(4):
            step = env.step(torch.zeros(3, dtype=torch.int64))
        counts.add(int(step.active.sum()))
        assert step.final_obs[~step.active].abs().sum() == 0 and step.truncated.all()
    assert env.num_rows == 3 and counts == {1, 2, 3}


OLD_DISCRETE = type("Discrete", (), {"n": 5, "shape": (), "dtype": np.dtype("int64")})()
OLD_BOX = SimpleNamespace(low=np.full(2, -3.0), high=np.full(2, 3.0), shape=(2,), dtype=np.dtype("float32"))
OLD_MULTI = SimpleNamespace(nvec=np.array([3, 2]), shape=(2,), dtype=np.dtype("int64"))


@pytest.mark.parametrize(("written", "space"), [
    (spaces.Discrete(5), spaces.Discrete(5)), (OLD_DISCRETE, spaces.Discrete(5)),
    (spaces.MultiDiscrete([3, 2]), spaces.MultiDiscrete([3, 2])), (OLD_MULTI, spaces.MultiDiscrete([3, 2])),
    (spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (2,))), (OLD_BOX, spaces.Box(-1, 1, (2,))),
])
def test_actions_arrive_as_rows_of_floats(written, space):
    """So do those of old Gym, which need not be installed. Continuous actions lie between -1 and 1, as in rlgym-ppo."""
    env, inner = env_of(2, action_space=written)
    assert env.action_space == space
    env.reset(seed=0)
    action = random_actions(env, 1, seed=0)[0]
    env.step(action)
    np.testing.assert_array_equal(inner.received[-1], action.reshape(2, -1).float().numpy())


@pytest.mark.parametrize(("break_it", "message"), [
    (lambda env: setattr(env, "action_space", None), "has no action_space"),
    (lambda env: setattr(env, "observation_space", spaces.Box(-1, 1, (4,))), r"shape \(2, 3\), but the observation space says"),
    (lambda env: setattr(env, "action_space", "anything"), "action space 'anything' is not understood"),
])
def test_what_does_not_fit_is_refused(break_it, message):
    env = Match(2)
    break_it(env)
    with pytest.raises(EnvError, match=message):
        GymEnv(env)


def test_agents_do_not_join_in_the_middle():
    class Joins(Match):
        def look(self):
            return [*super().look(), np.zeros(3)] if self.steps == 2 else super().look()

    env = LocalVecEnv(EnvMaker(lambda: Joins(2)), 1)
    env.reset(seed=0)
    env.step(torch.zeros(2, dtype=torch.int64))
    with pytest.raises(EnvError, match="an episode of 2 agents has 3 after a step"):
        env.step(torch.zeros(2, dtype=torch.int64))


def test_the_adapter_is_chosen_by_the_interface_of_an_environment():
    assert isinstance(to_host_env(walkers()), RLGymEnv)
    assert isinstance(to_host_env(gymnasium.make("CartPole-v1")), GymnasiumEnv)
    assert isinstance(to_host_env(RLGymV2GymWrapper(walkers())), RLGymEnv)
    assert isinstance(to_host_env(Match(2)), GymEnv)


# --- RLGymV2GymWrapper ------------------------------------------------------------------------------------------------

def test_the_wrapper_keeps_ends_of_agents_apart():
    """In rlgym-ppo the first end of any agent ends all, and terminated and truncated are mixed. Here an episode ends with its
    last agent."""
    env = RLGymV2GymWrapper(walkers())  # ann terminates after 2 steps, bob is truncated after 3, cat terminates after 5
    obs = env.reset()
    assert obs.shape == (3, 3) and env.agent_map == {0: "ann", 1: "bob", 2: "cat"}
    ends = [env.step(np.zeros((3, 1), np.float32))[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(True, False)]
    cut = RLGymV2GymWrapper(walkers(terminated={}, truncated={"ann": 2, "bob": 3, "cat": 4}))
    cut.reset()
    assert [cut.step(np.zeros((3, 1), np.float32))[2:4] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]


@pytest.mark.parametrize(("written", "space", "action"), [
    (("real", 2), spaces.Box(-1, 1, (2,)), [[0.5, -0.5]] * 3),
    (("multi-discrete", (3, 2)), spaces.MultiDiscrete([3, 2]), [[2, 1]] * 3),
    (("discrete", 5), spaces.Discrete(5), [[4.0]] * 3),
])
def test_the_wrapper_takes_every_action_space(written, space, action):
    """That of rlgym-ppo takes whole numbers only and returns None for others."""
    received: list = []
    env = RLGymV2GymWrapper(walkers(action=written, received=received))
    assert env.action_space == space
    env.reset()
    obs, rewards, *_, info = env.step(np.array(action))
    assert received[-1]["ann"].tolist() == action[0]
    assert info["state"] is env.rlgym_env.state and [float(o[0]) for o in obs] == pytest.approx(rewards)


def test_a_subclass_of_the_wrapper_is_played_as_it_is_written():
    class Doubled(RLGymV2GymWrapper):
        def step(self, actions):
            obs, rewards, *rest = super().step(actions)
            return obs, [2 * r for r in rewards], *rest

    plain, doubled = LocalVecEnv(lambda: RLGymV2GymWrapper(walkers()), 1), LocalVecEnv(lambda: Doubled(walkers()), 1)
    assert torch.equal(plain.reset(seed=0), doubled.reset(seed=0))
    action = torch.zeros(3, dtype=torch.int64)
    torch.testing.assert_close(2 * plain.step(action).reward, doubled.step(action).reward)


def test_the_wrapper_in_workers_is_the_environment_in_workers(pool):
    local, workers = LocalVecEnv(walkers, 2), pool(EnvMaker(lambda: RLGymV2GymWrapper(walkers())), 2, workers=2)
    assert torch.equal(local.reset(seed=1), workers.reset(seed=1))
    actions = random_actions(local, 15, seed=0)
    assert same(record(local, actions), record(workers, actions))
