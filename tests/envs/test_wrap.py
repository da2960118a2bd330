"""Gymnasium wrappers of the configuration are applied in order and in every process, and refused where they would do harm."""
from __future__ import annotations

import sys

import gymnasium
import pytest
import torch
from pydantic import ValidationError

from wavedash.config import EnvConfig, RunConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.make import make_env
from wavedash.runs.trust import code_of

OWN = {"tests.envs.choices:Sum": {"factor": 10.0}}


def by_hand() -> gymnasium.Env:
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1"), max_episode_steps=7)
    env = gymnasium.wrappers.FilterObservation(gymnasium.wrappers.TimeAwareObservation(env, flatten=False), ["obs"])
    return gymnasium.wrappers.FlattenObservation(env)


@pytest.mark.parametrize("workers", [0, 2])
def test_wrappers_are_applied_in_order_in_every_process(workers):
    names = [{"TimeLimit": {"max_episode_steps": 7}}, {"TimeAwareObservation": {"flatten": False}},
             {"FilterObservation": {"filter_keys": ["obs"]}}, "FlattenObservation", OWN]
    env = make_env(EnvConfig(id="CartPole-v1", count=2, workers=workers, wrappers=names))
    reference = by_hand()
    try:
        obs = env.reset(seed=3)
        assert obs.shape == (2, 5)
        torch.testing.assert_close(obs[:, 4], 10 * obs[:, :4].sum(-1))
        lengths = []
        for t in range(1, 15):
            step = env.step(torch.tensor([t % 2, 1 - t % 2]))
            lengths += [t] if step.truncated.all() else []
        assert lengths == [7, 14]
        assert reference.observation_space.shape == (4,)
    finally:
        env.close()


def test_lists_become_tuples_where_gymnasium_needs_them():
    env = make_env(EnvConfig(id="CartPole-v1", count=1, wrappers=[{"ReshapeObservation": {"shape": [2, 2]}}]))
    assert env.observation_space.shape == (2, 2)


@pytest.mark.parametrize(("named", "says"), [
    ("TimeLimt", r"no wrapper 'TimeLimt'; did you mean 'TimeLimit'\?"),
    ("vector", r"no wrapper 'vector'"),
    ("NormalizeObservation", r"set ppo\.normalize_obs=true instead"),
    ("NormalizeReward", r"set ppo\.normalize_reward=true instead"),
    ({"RecordVideo": {"video_folder": "somewhere"}}, r"it writes files"),
    ({"TimeLimit": {"steps": 3}}, r"TimeLimit with the options \{'steps': 3\} cannot wrap .*TypeError"),
    ("tests.envs.choices:refuses", r"refuses with the options \{\} cannot wrap .*ValueError: not today"),
    ("tests.envs.choices:Som", r"no callable 'Som'; did you mean 'Sum'\?"),
], ids=str)
def test_what_does_not_work_is_named_with_the_next_step(named, says):
    with pytest.raises(EnvError, match=says):
        make_env(EnvConfig(id="CartPole-v1", count=1, wrappers=[named]))


def test_wrappers_are_for_gymnasium():
    with pytest.raises(EnvError, match=r"env\.wrappers is for environments of Gymnasium, but the factory returned a"):
        make_env(EnvConfig(factory="tests.envs.rlgym_envs:walkers", count=1, wrappers=["FlattenObservation"]))
    for wrong in ({"wrappers": ["TimeLimit"]}, {"frame_stack": 4}):
        with pytest.raises(ValidationError, match=r"are not for env\.rocket"):
            EnvConfig(rocket={}, **wrong)
    with pytest.raises(ValidationError, match="each entry is one wrapper"):
        EnvConfig(id="CartPole-v1", wrappers=[{"TimeLimit": {}, "ClipAction": {}}])


def test_wrappers_by_import_path_are_code_that_a_run_folder_names():
    config = RunConfig(env={"id": "CartPole-v1", "wrappers": ["TimeLimit", OWN, "my_module:Mine"]})
    assert [text for _, text in code_of(config)] == ["tests.envs.choices:Sum", "my_module:Mine"]


def test_a_missing_package_is_named_by_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)  # its import fails, installed or not
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EnvError, match=r"needs a package that is not installed: pip install \"wavedash\[box2d\]\""):
        make_env(EnvConfig(id="LunarLander-v3", count=1))
