"""GymnasiumVectorEnv: the three autoreset modes of Gymnasium give the same transitions."""
from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.envs.toy_envs import Acts, Counter, DictObs, Fault
from wavedash.envs.errors import EnvError
from wavedash.envs.gymnasium.vector import GymnasiumVectorEnv
from wavedash.envs.obs import named_tensors

ZEROS = torch.zeros(3, dtype=torch.int64)


def vector(make, mode, count=3, **kwargs):
    return GymnasiumVectorEnv(SyncVectorEnv([make] * count, autoreset_mode=mode, **kwargs))


def transitions(env, steps):
    """Per row, the sequence of (obs, reward, terminated, truncated, next obs) of the active transitions."""
    stories = [[] for _ in range(env.num_rows)]
    obs = {k: v.clone() for k, v in named_tensors(env.reset(seed=0)).items()}
    for _ in range(steps):
        step = env.step(torch.zeros(env.num_rows, dtype=torch.int64))
        final_obs = named_tensors(step.final_obs)
        ended = step.terminated | step.truncated
        assert (step.final_obs is step.obs) == (not ended.any())
        for row in range(env.num_rows):
            if step.active[row]:
                stories[row].append((
                    {k: v[row].tolist() for k, v in obs.items()}, step.reward[row].item(), step.terminated[row].item(),
                    step.truncated[row].item(), {k: v[row].tolist() for k, v in final_obs.items()}))
            else:
                assert (step.reward[row], ended[row]) == (0, False)
        obs = {k: v.clone() for k, v in named_tensors(step.obs).items()}
    return stories


def stepped_by_hand(make, row, length):
    """One environment, reset when its episode ends, without any vector environment."""
    env, story = make(), []
    obs, _ = env.reset(seed=row)
    while len(story) < length:
        following, reward, terminated, truncated, _ = env.step(0)
        story.append(({"obs": np.float32(obs).tolist()}, np.float32(reward).item(), terminated, truncated,
                      {"obs": np.float32(following).tolist()}))
        obs = env.reset()[0] if terminated or truncated else following
    return story


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("make", [Counter, partial(Counter, truncates=True), partial(gymnasium.make, "CartPole-v1")])
def test_every_mode_gives_the_transitions_of_environments_stepped_by_hand(make, mode, copy):
    for row, story in enumerate(transitions(vector(make, mode, copy=copy), 60)):
        assert story == stepped_by_hand(make, row, len(story))
        assert sum(terminated or truncated for _, _, terminated, truncated, _ in story) >= 3


def test_only_next_step_mode_has_rows_that_are_no_transition():
    lengths = {mode: [len(story) for story in transitions(vector(Counter, mode), 60)] for mode in AutoresetMode}
    assert lengths[AutoresetMode.SAME_STEP] == lengths[AutoresetMode.DISABLED] == [60] * 3
    assert max(lengths[AutoresetMode.NEXT_STEP]) < 60


def test_dict_observations_agree_between_modes():
    class BoxesOnly(gymnasium.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gymnasium.spaces.Dict({k: env.observation_space[k] for k in ("flat", "image")})

        def observation(self, observation):
            return {k: observation[k] for k in ("flat", "image")}

    stories = {mode: transitions(vector(lambda: BoxesOnly(DictObs()), mode), 40) for mode in AutoresetMode}
    assert stories[AutoresetMode.SAME_STEP] == stories[AutoresetMode.DISABLED]
    for a, b in zip(stories[AutoresetMode.SAME_STEP], stories[AutoresetMode.NEXT_STEP], strict=True):
        assert a[: len(b)] == b


def test_the_start_of_a_discrete_action_space_is_added():
    env = vector(partial(Acts, gymnasium.spaces.Discrete(5, start=3)), AutoresetMode.SAME_STEP)
    env.reset(seed=0)
    assert env.step(ZEROS).obs[:, 2].tolist() == [3.0] * 3


def test_a_vector_environment_has_no_state_to_save():
    env = vector(Counter, AutoresetMode.SAME_STEP)
    assert env.save_state() == {}
    with pytest.raises(EnvError, match="cannot restore"):
        env.load_state({})


@pytest.mark.parametrize("kind", ["nan obs", "inf reward"])
def test_numbers_that_are_not_finite_are_refused(kind):
    env = vector(partial(Fault, kind), AutoresetMode.NEXT_STEP)
    env.reset(seed=0)
    env.step(ZEROS)
    with pytest.raises(EnvError, match="finite"):
        env.step(ZEROS)


def test_an_environment_that_does_not_declare_its_autoreset_mode_is_refused():
    env = SyncVectorEnv([Counter] * 2)
    env.metadata = {}
    with pytest.raises(EnvError, match="autoreset_mode"):
        GymnasiumVectorEnv(env)
