"""A configuration makes its environments; the error about a name that does not exist suggests the nearest one."""
from __future__ import annotations

import pytest
import torch

from wavedash.config import EnvConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.make import make_env
from wavedash.envs.pool import WorkerPool


def test_workers_zero_runs_here_and_more_runs_in_processes():
    here = make_env(EnvConfig(id="CartPole-v1", count=4))
    there = make_env(EnvConfig(id="CartPole-v1", count=4, workers=2))
    try:
        assert isinstance(here, LocalVecEnv)
        assert isinstance(there, WorkerPool)
        assert torch.equal(here.reset(seed=3), there.reset(seed=3))
        assert there.groups == (slice(0, 2), slice(2, 4))
    finally:
        there.close()


def test_a_factory_gets_its_keyword_arguments():
    env = make_env(EnvConfig(factory="tests.envs.toy_envs:Counter", kwargs={"truncates": True}, count=2))
    env.reset(seed=0)
    assert any(bool(env.step(torch.zeros(2, dtype=torch.int64)).truncated.any()) for _ in range(10))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("source", "says"), [
    ({"id": "CartPool-v1"}, r"no environment 'CartPool-v1' in Gymnasium; did you mean 'CartPole-v1'\?"),
    ({"id": "CartPole-v9"}, r"did you mean 'CartPole-v1'"),
    ({"id": "xyzzy"}, r"no environment 'xyzzy' in Gymnasium\. For an environment of your own"),
    ({"factory": "tests.envs.toy_envs:Conter"}, r"no callable 'Conter'; did you mean 'Counter'\?"),
    ({"factory": "tests.envs.no_such:Counter"}, r"cannot import 'tests.envs.no_such'"),
    ({"factory": "Counter"}, r"is not an import path: write 'package.module:callable'"),
])
def test_wrong_names_are_answered_with_the_nearest_one(source, says, workers):
    with pytest.raises(EnvError, match=says):
        make_env(EnvConfig(**source, count=2, workers=workers))
