"""`load_run`: what it returns, where it finds a run, and what it refuses."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import wavedash
from wavedash.errors import UserError
from wavedash.evaluate.own_task import evaluate
from wavedash.export import export_policy
from wavedash.rocket.kind import rocket_task
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.find import resolve_checkpoint
from wavedash.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train("cartpole", "total_steps=64", "env.count=2", "ppo.rollout_steps=32", "policy.hidden=[8]", "device=cpu",
                     "report.console=off", "report.tensorboard=false") == 0
    return resolve_checkpoint(root).path.parent.parent


@pytest.fixture
def folder(run: Path, tmp_path: Path) -> Path:
    """A folder with the policy alone, as people share it."""
    target, checkpoint = tmp_path / "rung", resolve_checkpoint(run).path
    target.mkdir()
    shutil.copy(run / "config.yaml", target)
    for name in ("policy.safetensors", "state.json"):
        shutil.copy(checkpoint / name, target)
    return target


def test_a_run_has_its_configuration_its_environments_and_its_policy(run):
    loaded = wavedash.load_run(run)
    assert loaded.config.env.id == "CartPole-v1" and loaded.device == torch.device("cpu")
    env = loaded.make_env(3)
    obs = env.reset(0)
    assert env.num_rows == 3 and torch.equal(loaded.policy.step(obs), wavedash.load_policy(run).step(obs))
    env.close()


def test_a_folder_with_the_policy_alone_plays_as_the_run_does(run, folder):
    obs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert (wavedash.load_policy(folder).act(obs) == wavedash.load_policy(run).act(obs)).all()
    assert evaluate(folder, episodes=4).returns == evaluate(run, episodes=4).returns
    exported = export_policy(folder, "torchscript", folder / "policy.pt", episodes=1)
    assert exported.description["steps"] == 64


@pytest.mark.parametrize(("name", "content", "words"), [
    ("policy.safetensors", b"no tensors", "not what it should be"),
    ("state.json", b"{", "not what it should be"),
    ("state.json", b"[]", "no table of values"),
    ("state.json", b"{}", "fingerprint"),
])
def test_a_damaged_folder_is_named(folder, name, content, words):
    (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=words) as told:
        wavedash.load_run(folder)
    assert str(folder) in str(told.value)


def test_a_policy_of_other_layers_than_the_folder_says_is_refused(folder):
    state = json.loads((folder / "state.json").read_text())
    state["fingerprint"]["policy"]["hidden"] = [9]
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match="rung"):
        wavedash.load_run(folder)


def test_a_policy_that_observes_something_else_is_refused(run):
    loaded = wavedash.load_run(run)
    with pytest.raises(UserError, match="other observations"):
        loaded.make_env(1, loaded.config.env.model_copy(update={"id": "Acrobot-v1"}))


def test_a_checkpoint_without_its_manifest_is_no_policy_folder(run, tmp_path):
    """An interrupted save looks like this, and is not taken for a whole one."""
    broken = tmp_path / "step-1"
    shutil.copytree(resolve_checkpoint(run).path, broken)
    (broken / "manifest.json").unlink()
    with pytest.raises(UserError, match="no checkpoint found"):
        wavedash.load_run(broken)


def test_only_rocket_league_has_a_rocket_task(run):
    loaded = wavedash.load_run(run)
    with pytest.raises(UserError, match="was trained in CartPole-v1"):
        rocket_task(loaded.config.env, loaded.path)


def test_a_policy_plays_on_the_cpu_if_the_device_of_its_run_is_missing(run, folder):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace("device: cpu", "device: cuda"))
    loaded = wavedash.load_run(folder)
    assert loaded.config.device == "cuda" and loaded.device == torch.device("cpu")
    assert evaluate(folder, episodes=2).returns == evaluate(run, episodes=2).returns
