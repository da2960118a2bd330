"""Any RLGym v2 environment trains: agents that come, go and end on their own, every space, exact resume."""
from __future__ import annotations

import random
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.envs.rlgym_envs import NAMES, changing_teams, noisy_walkers, one_against_one, rocket, two_against_two, walkers
from tests.envs.traces import random_actions, record, same
from tests.roundings import assert_rounded
from wavedash.assembly import assembled, make_policy
from wavedash.config import RunConfig
from wavedash.envs.batch import episode_seed
from wavedash.envs.errors import EnvError
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.rlgym import RLGymEnv
from wavedash.ppo.learner import Learner


def played(env, steps, action=0):
    """The steps of an environment, copied."""
    trace = []
    for _ in range(steps):
        step = env.step(torch.full((env.num_rows,), action))
        trace.append(step._replace(**{name: x.clone() for name, x in step._asdict().items() if isinstance(x, torch.Tensor)}))
    return trace


def test_every_agent_ends_on_its_own_and_is_inactive_until_all_have():
    """ann terminates after 2 steps, bob is truncated after 3, cat terminates after 5: then all begin again."""
    env = LocalVecEnv(walkers, 1)
    began = env.reset(seed=3)[:, 0].clone()
    steps = played(env, 6)
    assert torch.stack([s.active for s in steps]).int().tolist() == [
        [1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1], [1, 1, 1]]
    assert torch.stack([s.terminated for s in steps]).int().tolist() == [
        [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert torch.stack([s.truncated for s in steps]).int().tolist() == [
        [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    cut = steps[2]
    assert cut.final_obs[1].tolist() == [began[1], 3, 0], "the last observation of bob"
    assert cut.reward[1] == began[1]
    over = steps[4]
    assert over.final_obs[2].tolist() == [began[2], 5, 0]
    assert over.obs[:, 1].tolist() == [0, 0, 0], "the next episode has begun"
    assert not torch.equal(over.obs[:, 0], began)


def test_a_truncated_agent_bootstraps_from_its_own_last_observation():
    """The advantages of a rollout are worked out by hand, agent by agent, from the plain RLGym environment."""
    config = RunConfig.model_validate({"env": {"id": "toy"}, "ppo": {"rollout_steps": 5, "gae_lambda": 1.0, "gamma": 0.9}})
    env = LocalVecEnv(walkers, 1)
    learner = Learner(env, make_policy(env, config), config)
    learner.start()
    rollout = learner.buffer.next_slot()
    learner.complete(rollout, learner.collector.collect(rollout))
    seen, rewards = rollout.obs, rollout.reward
    with torch.no_grad():
        value = learner.policy.value(seen, {})
        last_seen = torch.tensor([seen[0, 1, 0], 3.0, float(rollout.action[2, 1])])
        after_bob = learner.policy.value(last_seen.unsqueeze(0), {})[0]
    for row, length, beyond in ((0, 2, 0.0), (1, 3, after_bob), (2, 5, 0.0)):
        future = torch.tensor(float(beyond))
        for t in reversed(range(length)):
            future = rewards[t, row] + 0.9 * future
            size = 5 * float(rewards.abs().max()) + float(value.abs().max()) + abs(float(beyond))
            # The sum has five steps, and the values come from another batch and from layers of 64.
            assert_rounded(rollout.advantage[t, row], future - value[t, row], 2 * 5 + 2 * 3 * 64, size)
        assert rollout.advantage[length:, row].abs().sum() == 0, "nothing is learned from an inactive row"


def test_team_sizes_change_at_reset_and_empty_seats_are_inactive_and_observe_zeros():
    env = LocalVecEnv(changing_teams, 1)
    env.reset(seed=1)
    assert env.num_rows == 3
    counts = set()
    for _ in range(12):
        present = env.step(torch.zeros(3, dtype=torch.int64)).active.clone()
        assert present.tolist() == sorted(present.tolist(), reverse=True), "agents take the first seats"
        count = int(present.sum())
        counts.add(count)
        for t in range(1, {1: 2, 2: 3, 3: 5}[count]):
            step = env.step(torch.zeros(3, dtype=torch.int64))
            if count < 3 and t + 1 < {1: 2, 2: 3}[count]:
                assert step.obs[count:].abs().sum() == 0
        assert (step.terminated | step.truncated)[count:].all(), "an empty seat's episode is that of its environment"
    assert counts == {1, 2, 3}


def test_an_agent_that_leaves_has_ended():
    env = LocalVecEnv(partial(walkers, terminated={"cat": 4}, truncated={}, gone={"ann": 2, "bob": 3}), 1)
    env.reset(seed=0)
    steps = played(env, 4)
    assert [s.active.int().tolist() for s in steps] == [[1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert [s.terminated.int().tolist() for s in steps] == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert steps[2].obs[0].tolist() == [0, 0, 0], "the seat is empty"


def test_an_agent_may_not_join_in_the_middle():
    env = walkers()
    engine_step = env.transition_engine.step

    def step(actions, shared_info):
        return {**engine_step(actions, shared_info), "dan": env.transition_engine.state.setdefault("dan", [0.0, 0.0, 0.0])}

    env.transition_engine.step = step
    adapter = RLGymEnv(env)
    adapter.reset(0)
    with pytest.raises(EnvError, match="agent 'dan' joined in the middle of an episode"):
        adapter.step(np.zeros(3, np.int64))


SPACES = {
    "discrete": (("discrete", 5), spaces.Discrete(5), (1,), np.integer),
    "number": (5, spaces.Discrete(5), (1,), np.integer),
    "the other way round": ((2.0, "continuous"), spaces.Box(-1, 1, (2,)), (2,), np.float32),
    "real": (("real", 2), spaces.Box(-1, 1, (2,)), (2,), np.float32),
    "multi-discrete": (("multi-discrete", (3, 2)), spaces.MultiDiscrete([3, 2]), (2,), np.integer),
    "gymnasium": (spaces.Discrete(4), spaces.Discrete(4), (), np.integer),
    "counts from 3": (spaces.Discrete(4, start=3), spaces.Discrete(4, start=3), (), np.integer),
    "box": (spaces.Box(-2, 3, (2, 2)), spaces.Box(-2, 3, (2, 2)), (2, 2), np.float32),
    "binary": (spaces.MultiBinary(3), spaces.MultiBinary(3), (3,), np.integer),
}


@pytest.mark.parametrize("kind", SPACES)
def test_actions_arrive_as_their_space_says(kind):
    written, space, shape, dtype = SPACES[kind]
    received: list = []
    adapter = RLGymEnv(walkers(action=written, received=received))
    assert adapter.action_space == space
    env = LocalVecEnv(lambda: adapter, 1)
    env.reset(seed=0)
    action = torch.from_numpy(random_actions(env, 1, seed=1)[0].numpy() - getattr(space, "start", 0))
    env.step(action)
    for row, name in enumerate(NAMES):
        got = received[-1][name]
        assert np.shape(got) == shape and np.issubdtype(got.dtype, dtype)
        assert np.array_equal(np.reshape(got, action[row].shape), action[row].numpy() + getattr(space, "start", 0))
        assert shape == (1,) or space.contains(got)


BOX = spaces.Box(-np.inf, np.inf, (3,), np.float32)


@pytest.mark.parametrize("written", [("real", 3), ("real", -1), 3, BOX, spaces.Box(-np.inf, np.inf, (3,), np.float64)])
def test_observations_are_numbers_however_their_space_is_written(written):
    env = LocalVecEnv(partial(walkers, observed=written), 2)
    assert env.observation_space == BOX
    assert env.reset(seed=0)[:, 1:].tolist() == [[0, -1]] * 6


@pytest.mark.parametrize("inside", [False, True])
def test_discrete_observations_are_one_hot(inside):
    kind = spaces.Discrete(4)
    env = LocalVecEnv(partial(walkers, observed=spaces.Dict({"flat": BOX, "kind": kind}) if inside else ("discrete", 4)), 2)
    obs = env.reset(seed=0)
    if inside:
        assert torch.equal(obs["kind"], torch.eye(4)[obs["flat"][:, 0].int() % 4])
    else:
        assert obs.shape == (6, 4) and obs.sum(1).tolist() == [1] * 6 and len(obs.argmax(1).unique()) > 1


@pytest.mark.parametrize(("make", "message"), [
    (partial(walkers, action=("sideways", 3)), r"action space \('sideways', 3\) is not understood: use \('real', n\)"),
    (partial(walkers, observed="everything"), "observation space 'everything' is not understood"),
    (partial(walkers, observed=("real", 4)), r"agent 'ann' has the shape \(3,\) but its space says \(4,\)"),
    (partial(walkers, names=()), "no observation of any agent"),
    (partial(rocket, 2), r"one policy plays them all: .*DefaultObs\(zero_padding=3\)"),
    (lambda: RLGymEnv(walkers(), max_agents=2), r"3 agents, but there are seats for 2: .*max_agents=3"),
    (lambda: object(), r"must return a gymnasium.Env or an rlgym.api.RLGym"),
])
def test_what_cannot_be_learned_from_is_refused_with_the_reason(make, message):
    with pytest.raises(EnvError, match=message):
        LocalVecEnv(make, 1).reset(seed=0)


def test_an_episode_depends_on_its_seed_alone():
    """It does within an episode too, where environments take turns: each has its own state of numpy's global generator."""
    both = LocalVecEnv(noisy_walkers, 2)
    both.reset(seed=7)
    first, second = (step.obs for step in played(both, 2))
    for index in range(2):
        alone, rows = RLGymEnv(noisy_walkers()), slice(3 * index, 3 * index + 3)
        alone.reset(episode_seed(7, index, 0))
        for expected in (first, second)[: 1 + alone.active[1]]:  # ann alone: the second step is the next episode's beginning
            np.testing.assert_allclose(alone.step(np.zeros(3, np.int64))[0], expected[rows].numpy(), rtol=1e-6)


def test_the_random_generators_of_the_process_do_not_change():
    np.random.seed(5)
    expected = np.random.RandomState(5).uniform(size=4)
    env = LocalVecEnv(noisy_walkers, 1)
    env.reset(seed=0)
    played(env, 5)
    assert np.array_equal(np.random.uniform(size=4), expected)


@pytest.mark.slow
@pytest.mark.parametrize("make", [changing_teams, noisy_walkers, two_against_two])
def test_a_resume_is_exact(make):
    """It is exact also if some rows of an unfinished episode have ended already."""
    for steps in (3, 7):
        env = LocalVecEnv(make, 3)
        env.reset(seed=2)
        actions = random_actions(env, 30, seed=0)
        record(env, actions[:steps])
        state = env.save_state()
        expected = record(env, actions[steps:])
        random.seed(99)  # what the process drew meanwhile does not matter
        again = LocalVecEnv(make, 3)
        again.load_state(state)
        assert same(record(again, actions[steps:]), expected)
        assert again.health["dropped_episodes"] == 0


def test_the_pool_plays_the_same_episodes(pool):
    """Team sizes are random, single agents end, and steps have noise: the pool returns what one process returns."""
    local = LocalVecEnv(noisy_walkers, 4)
    workers = pool(noisy_walkers, 4, workers=2, groups=2)
    assert torch.equal(local.reset(seed=4), workers.reset(seed=4))
    actions = random_actions(local, 25, seed=1)
    assert same(record(local, actions), record(workers, actions))


def test_a_real_game_is_rlgyms_own(pool):
    """In 1v1 on RocketSim in the pool, observations, rewards and ends are those of the plain environment, step by step."""
    env = pool(one_against_one, 2, workers=1)
    obs = env.reset(seed=0).clone()
    assert env.num_rows == 4 and env.observation_space.shape == (92,) and env.action_space == spaces.Discrete(90)
    plain = one_against_one()
    random.seed(episode_seed(0, 0, 0))
    np.random.set_state(np.random.RandomState(np.random.MT19937(episode_seed(0, 0, 0))).get_state())
    expected = plain.reset()
    ended = False
    for action in random_actions(env, 40, seed=0):
        np.testing.assert_array_equal(np.stack(list(expected.values())).astype(np.float32), obs[:2].numpy())
        step = env.step(action)
        expected, reward, terminated, truncated = plain.step({a: action[i : i + 1].numpy() for i, a in enumerate(expected)})
        assert step.reward[:2].tolist() == pytest.approx(list(reward.values()))
        assert step.terminated[:2].tolist() == list(terminated.values())
        assert step.truncated[:2].tolist() == list(truncated.values())
        if any(truncated.values()):
            ended = True
            np.testing.assert_array_equal(np.stack(list(expected.values())).astype(np.float32), step.final_obs[:2].numpy())
            break
        obs = step.obs.clone()
    assert ended, "no car touched the ball"


@pytest.mark.slow
def test_walkers_train_in_the_learners_process_and_learn():
    """Only the first action is rewarded: after a few iterations all agents take it."""
    config = RunConfig.model_validate({
        "env": {"factory": "tests.envs.rlgym_envs:generous", "count": 4}, "total_steps": 4000,
        "ppo": {"rollout_steps": 32, "minibatch_size": 64, "epochs": 4, "learning_rate": 3e-3}, "policy": {"hidden": [16]},
    })
    with assembled(config) as learner:
        learner.learn()
        taken = learner.rollout.action[learner.rollout.active]
    assert (taken == 2).float().mean() > 0.9


def test_rlgym_is_imported_only_where_it_is_used():
    code = "import sys, wavedash.envs.rlgym, wavedash.compat.rlgym_ppo.util; assert not {'rlgym', 'torch'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
