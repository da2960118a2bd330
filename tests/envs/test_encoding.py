"""Observed choices become one-hot vectors, and bits numbers, alike in every adapter and for a trained policy."""
from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.envs.choices import SPACES, Choices
from tests.envs.rlgym_envs import walkers
from tests.ppo.learners import learner_over, run_config
from wavedash.envs.encoding import OneHot, encoded_space, encoders_of
from wavedash.envs.errors import EnvError
from wavedash.envs.gymnasium.vector import GymnasiumVectorEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool
from wavedash.loading import load_policy
from wavedash.runs.store import CheckpointStore
from wavedash.trained_policy import TrainedPolicy

CHOICES = ["discrete", "multi-discrete", "shifted", "table"]


def by_hand(space, value) -> list[float]:
    """One-hot vectors, component by component."""
    if isinstance(space, spaces.Discrete):
        sizes, starts, values = [space.n], [space.start], [value]
    else:
        sizes, starts, values = space.nvec.flatten(), space.start.flatten(), value.flatten()
    return [float(v - start == k) for n, start, v in zip(sizes, starts, values, strict=True) for k in range(n)]


@pytest.mark.parametrize("name", CHOICES)
def test_one_hot_per_component_alone_and_in_batches(name):
    space, one_hot = SPACES[name], OneHot(SPACES[name])
    space.seed(0)
    samples = [space.sample() for _ in range(40)]
    expected = [by_hand(space, sample) for sample in samples]
    assert [one_hot(sample).tolist() for sample in samples] == expected
    batch = np.stack([np.asarray(sample) for sample in samples])
    np.testing.assert_array_equal(one_hot(batch), expected)
    np.testing.assert_array_equal(one_hot(batch.reshape(4, 10, *batch.shape[1:])), np.reshape(expected, (4, 10, -1)))
    assert one_hot.box.shape == np.shape(expected[0]) and len({tuple(x) for x in expected}) > 4


@pytest.mark.parametrize(("value", "says"), [
    (np.array([3, 0, 0]), "outside"), (np.array([0, -1, 0]), "outside"), (np.array([0, 0]), "does not fit"),
    (np.array([0.0, 0.0, 0.0]), "does not fit"), (1, "does not fit"),
])
def test_what_lies_outside_the_space_is_refused(value, says):
    with pytest.raises(EnvError, match=rf"{says} MultiDiscrete\(\[3 2 4\]\): correct the observation space"):
        OneHot(SPACES["multi-discrete"])(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_rows_observe_what_the_environments_returned_here_and_in_workers(name):
    made: list[Choices] = []

    def make() -> Choices:
        made.append(Choices(name))
        return made[-1]

    here, there = LocalVecEnv(make, 3), WorkerPool(partial(Choices, name), 3, workers=2, groups=2)
    try:
        mine, theirs = here.reset(seed=1), there.reset(seed=1)
        for _ in range(7):  # past the end of an episode
            for key, space in (SPACES[name] if name == "dict" else {"": SPACES[name]}).items():
                own, other = (obs[key] if key else obs for obs in (mine, theirs))
                assert torch.equal(own, other)
                for row, env in enumerate(made):
                    raw = env.log[-1]
                    raw = raw[key] if key else raw
                    chosen = isinstance(space, spaces.Discrete | spaces.MultiDiscrete)
                    assert own[row].tolist() == (by_hand(space, raw) if chosen else raw.tolist())
            action = torch.zeros(3, dtype=torch.int64)
            mine, theirs = here.step(action).obs, there.step(action).obs
    finally:
        there.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", ["multi-discrete", "dict"])
def test_a_vector_environment_encodes_alike(name, mode):
    env = GymnasiumVectorEnv(SyncVectorEnv([partial(Choices, name)] * 3, autoreset_mode=mode))
    expected = encoded_space(SPACES[name])
    env.reset(seed=0)
    for _ in range(12):
        step = env.step(torch.zeros(3, dtype=torch.int64))
        for obs in (step.obs, step.final_obs):
            cards, lengths = (obs["cards"], [2, 3]) if name == "dict" else (obs, [3, 2, 4])
            assert [part.sum(-1).tolist() for part in cards.split(lengths, -1)] == [[1.0] * 3] * len(lengths)
            row = {key: x[0].numpy() for key, x in obs.items()} if name == "dict" else obs[0].numpy()
            assert expected.contains(row)
    assert env.source_space == SPACES[name]


@pytest.mark.parametrize("inside", [False, True])
def test_agents_of_rlgym_may_observe_choices(inside):
    choices = spaces.MultiDiscrete([2, 3])
    env = LocalVecEnv(partial(walkers, observed=spaces.Dict({"kind": choices}) if inside else ("multi-discrete", [2, 3])), 1)
    space = env.observation_space["kind"] if inside else env.observation_space
    assert space.shape == (5,)


def test_pictures_of_bits_are_not_divided_by_255():
    """The whole numbers of a picture are 0..255, but bits are 0 or 1."""
    env = LocalVecEnv(partial(Choices, "bitmap"), 4)
    learner = learner_over(env, run_config({"rollout_steps": 4}))
    encoder = next(iter(learner.policy.trunks["actor"].encoders.parts.values()))
    seen = []
    encoder.convolutions.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    encoder(env.reset(seed=0))
    assert seen[0].unique().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", SPACES)
def test_a_saved_policy_takes_what_the_environment_gives(name, tmp_path):
    """One observation or a batch, raw or one-hot, leads to the same actions."""
    learner = learner_over(LocalVecEnv(partial(Choices, name), 4), run_config({"rollout_steps": 8, "normalize_obs": True}))
    with torch.no_grad():
        learner.policy.head.logits.weight.mul_(300.0)  # so that the action depends on the observation
    CheckpointStore(tmp_path).save(learner.steps, *learner.state(), {})
    player = load_policy(next(tmp_path.iterdir()))
    env = Choices(name)
    raws = [env.reset(seed=seed)[0] for seed in range(12)]
    one_by_one = [int(player.act(raw)) for raw in raws]
    encoders = encoders_of(SPACES[name])
    if name == "dict":
        batch = {key: np.stack([raw[key] for raw in raws]) for key in raws[0]}
        numbers = {key: encoders[key](x) if key in encoders else x for key, x in batch.items()}
    else:
        batch = np.stack([np.asarray(raw) for raw in raws])
        numbers = encoders[""](batch) if encoders else batch
    assert player.act(batch).tolist() == player.act(numbers).tolist() == one_by_one
    if name != "bitmap":
        assert len(set(one_by_one)) == 2, "a policy without observations would do the same everywhere"


def test_a_policy_without_the_raw_space_takes_one_hot_vectors():
    learner = learner_over(LocalVecEnv(Choices, 4), run_config({"rollout_steps": 4}))
    with pytest.raises(RuntimeError):
        TrainedPolicy(learner.policy).act(np.array([0, 1, 2]))  # the control: shapes do not fit


@pytest.mark.parametrize("name", ["multi-discrete", "dict"])
def test_choices_can_be_learned_from(name):
    learner = learner_over(LocalVecEnv(partial(Choices, name), 4), run_config({"rollout_steps": 16, "learning_rate": 0.01}))
    first = learner.iterate().metrics["rollout/reward"]
    for _ in range(6):
        last = learner.iterate().metrics["rollout/reward"]
    assert last > 0.8 > first
