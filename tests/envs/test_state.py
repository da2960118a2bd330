"""A saved state goes on exactly: the run that was interrupted equals the one that was not."""
from __future__ import annotations

from functools import partial

import gymnasium
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs.toy_envs import Acts, Counter, DictObs, Endless, Teams
from tests.envs.traces import random_actions, record, same
from wavedash.envs.action_log import ActionLog
from wavedash.envs.errors import EnvError
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.obs import named_tensors

ENVS = {
    "CartPole": partial(gymnasium.make, "CartPole-v1"),
    "Pendulum": partial(gymnasium.make, "Pendulum-v1", max_episode_steps=30),
    "random inside the episode": Endless,
    "dict": DictObs,
    "multi-discrete": partial(Acts, gymnasium.spaces.MultiDiscrete([3, 4])),
    "two rows": Teams,
}


@pytest.mark.parametrize("make", ENVS.values(), ids=ENVS.keys())
@settings(max_examples=12, deadline=None)
@given(before=st.integers(0, 60), after=st.integers(1, 40), seed=st.integers(0, 2**40))
def test_a_loaded_state_goes_on_exactly(make, before, after, seed):
    env, fresh = LocalVecEnv(make, 3), LocalVecEnv(make, 3)
    actions = random_actions(env, before + after, seed % 1000)
    obs = env.reset(seed=seed)
    for action in actions[:before]:
        obs = env.step(action).obs
    state = {key: tensor.clone() for key, tensor in env.save_state().items()}
    restored = fresh.load_state(state)
    assert all(torch.equal(x, y) for x, y in zip(named_tensors(obs).values(), named_tensors(restored).values(), strict=True))
    assert all(torch.equal(x, fresh.save_state()[key]) for key, x in state.items()), "saved again, the state is the same"
    assert same(record(env, actions[before:]), record(fresh, actions[before:]))
    assert fresh.health["dropped_episodes"] == 0


def test_another_action_in_the_log_leads_elsewhere():
    env, fresh = LocalVecEnv(ENVS["CartPole"], 3), LocalVecEnv(ENVS["CartPole"], 3)
    env.reset(seed=0)
    actions = random_actions(env, 20, 0)
    record(env, actions[:6])
    state = env.save_state()
    state["action"][0] = 1 - state["action"][0]
    fresh.load_state(state)
    assert not same(record(env, actions[6:]), record(fresh, actions[6:]))


def test_a_state_is_plain_tensors():
    env = LocalVecEnv(Counter, 3)
    env.reset(seed=7)
    record(env, random_actions(env, 4, 0))
    state = env.save_state()
    assert set(state) == {"seed", "episode", "length", "action"}
    assert len(state["action"]) == state["length"].sum()


def test_an_episode_too_long_to_keep_is_dropped_and_counted():
    env, fresh = LocalVecEnv(Endless, 2), LocalVecEnv(Endless, 2)
    env._logs = [ActionLog(env._arrays, limit=50)]
    env.reset(seed=0)
    actions = random_actions(env, 120, 0)
    record(env, actions[:50])
    assert env.save_state()["length"].tolist() == [50, 50]
    record(env, actions[50:])
    state = env.save_state()
    assert state["length"].tolist() == [-1, -1]
    fresh.load_state(state)
    assert fresh.health["dropped_episodes"] == 2
    assert fresh.save_state()["episode"].tolist() == [1, 1]


def test_an_episode_longer_than_the_first_allocation_is_replayed():
    env, fresh = LocalVecEnv(Endless, 2), LocalVecEnv(Endless, 2)
    env.reset(seed=0)
    actions = random_actions(env, 2600, 0)
    record(env, actions[:2500])
    fresh.load_state(env.save_state())
    assert same(record(env, actions[2500:]), record(fresh, actions[2500:]))


def test_an_environment_that_is_not_deterministic_is_dropped_and_counted(caplog):
    env = LocalVecEnv(Counter, 3)
    env.reset(seed=0)
    state = env.save_state()
    state["length"][:] = 30  # longer than any episode of a Counter
    state["action"] = torch.zeros(90, dtype=torch.int64)
    env.load_state(state)
    assert env.health["dropped_episodes"] == 3
    assert "not deterministic" in caplog.text


def test_the_state_of_other_environments_is_refused():
    env = LocalVecEnv(Counter, 3)
    env.reset(seed=0)
    with pytest.raises(EnvError, match=r"has 3 environments, this run has 4: set env.count"):
        LocalVecEnv(Counter, 4).load_state(env.save_state())
    with pytest.raises(EnvError, match="the state of another environment"):
        LocalVecEnv(ENVS["multi-discrete"], 3).load_state(env.save_state())
