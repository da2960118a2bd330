"""Every way in which an environment can break its contract ends in an EnvError that says where and what to do."""
from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.envs.toy_envs import Acts, Counter, Fault, MissingKey, mixed
from wavedash.envs.batch import episode_seed
from wavedash.envs.errors import EnvError
from wavedash.envs.finite import all_finite
from wavedash.envs.local import LocalVecEnv


def play(make, steps=4):
    env = LocalVecEnv(make, 3)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(torch.tensor([0, 1, 2]))


@pytest.mark.parametrize(("kind", "says"), [
    ("shape", r"step\(\): observation has shape \(2,\) but its space says \(3,\)"),
    ("number instead of array", r"observation has shape \(\)"),
    ("dtype", r"observation has type complex64.*astype"),
    ("nan obs", r"observation\[1\] is nan after action 0.*division by zero"),
    ("inf reward", r"the reward is inf.*after action 0"),
    pytest.param("huge reward", r"the reward is inf \(as float32\)", marks=pytest.mark.filterwarnings("ignore:overflow")),
    ("array reward", r"the reward must be a number.*return float\(reward\)"),
    ("no reward", r"the reward must be a number but is None"),
    ("four values", r"raised ValueError: not enough values to unpack"),
    ("raises", r"raised ValueError: wheel fell off"),
])
def test_a_wrong_step_is_named(kind, says):
    with pytest.raises(EnvError, match=says) as error:
        play(partial(Fault, kind))
    assert f"environment 0, episode 0 (seed {episode_seed(0, 0, 0)}), step 2" in str(error.value)


@pytest.mark.parametrize(("kind", "says"), [
    ("reset raises", r"step 0: reset\(\) raised ValueError: no such level"),
    ("reset returns obs", r"reset\(\) must return \(observation, info\) but returned ndarray"),
])
def test_a_wrong_reset_is_named(kind, says):
    with pytest.raises(EnvError, match=says):
        play(partial(Fault, kind))


def test_the_traceback_of_the_environment_is_kept():
    with pytest.raises(EnvError) as error:
        play(partial(Fault, "raises"))
    frames = [entry.name for entry in pytest.ExceptionInfo.from_exception(error.value.__cause__).traceback]
    assert frames[-1] == "step"


def test_without_a_fault_there_is_no_error():
    play(partial(Fault, "raises", at=100), steps=30)


def test_the_culprit_is_named_among_many():
    faulty = iter([Counter, Counter, partial(Fault, "nan obs", at=1)])
    with pytest.raises(EnvError, match=r"environment 2, episode 0 .* step 1: step\(\): observation\[1\] is nan after action 2"):
        play(lambda: next(faulty)())


def test_a_missing_key_is_named():
    with pytest.raises(EnvError, match=r"observation has no 'image'.*it has: \['action_mask', 'flat', 'kind'\]"):
        play(MissingKey)


def test_environments_with_unequal_spaces_are_refused():
    with pytest.raises(EnvError, match="environment 1 differs from the others"):
        play(partial(mixed, []))


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Tuple([spaces.Discrete(2)]), spaces.Box(0, 5, (2,), np.int64)])
def test_an_unsupported_action_space_is_refused(space):
    with pytest.raises(EnvError, match=r"action space .*: use .*MultiDiscrete"):
        LocalVecEnv(partial(Acts, space), 1)


def test_an_unsupported_observation_space_is_refused():
    class Talks(Counter):
        observation_space = spaces.Text(3)

    with pytest.raises(EnvError, match="FlattenObservation"):
        LocalVecEnv(Talks, 1)


def test_a_factory_that_returns_something_else_is_refused():
    with pytest.raises(EnvError, match=r"returned .*it must return a gymnasium.Env"):
        LocalVecEnv(lambda: gymnasium.spaces.Discrete(2), 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_finite_check_finds_any_bad_number_and_has_no_false_alarm(bad):
    rng = np.random.default_rng(0)
    for _ in range(200):
        array = rng.normal(size=(5, 7)).astype(np.float32) * np.float32(10.0) ** rng.integers(-38, 38)
        assert all_finite(array)
        array[rng.integers(5), rng.integers(7)] = bad
        assert not all_finite(array)
