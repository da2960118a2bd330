"""Scripts find numbered folders with rlgym-ppo's files on the disk, and nothing else beside them."""
from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.compat.gym_envs import teams
from tests.compat.learners import small_learner
from tests.compat.rlgym_ppo_checkpoint import Network
from wavedash.compat.rlgym_ppo import checkpoint_export
from wavedash.evaluate.own_task import evaluate
from wavedash.runs import durable
from wavedash.runs.find import resolve_checkpoint

pytestmark = pytest.mark.slow

FILES = ["BOOK_KEEPING_VARS.json", "PPO_POLICY.pt", "PPO_POLICY_OPTIMIZER.pt", "PPO_VALUE_NET.pt", "PPO_VALUE_NET_OPTIMIZER.pt"]


def as_scripts_search(folder: Path) -> Path:
    """The newest checkpoint as most scripts find it: all names in the folder are numbers."""
    return folder / max(os.listdir(folder), key=int)


@pytest.fixture
def trained(tmp_path):
    """A learner that standardises nothing, after two iterations, and the folder of its checkpoints."""
    with small_learner(tmp_path, timestep_limit=80, standardize_obs=False, standardize_returns=False,
                       add_unix_timestamp=False) as learner:
        learner.learn()
    return learner, tmp_path / "bot"


def test_a_script_finds_its_checkpoints_and_goes_on_from_them_exactly(tmp_path):
    with small_learner(tmp_path / "whole", teams, timestep_limit=200) as whole:
        whole.learn()
    parts = tmp_path / "parts" / "bot"
    for limit in (80, 120, 200):
        found = as_scripts_search(parts) if parts.exists() else None
        with small_learner(parts.parent, teams, timestep_limit=limit, add_unix_timestamp=False,
                           checkpoint_load_folder=None if found is None else str(found)) as learner:
            assert learner.agent.cumulative_timesteps == (0 if found is None else int(found.name))
            learner.learn()
    expected = whole._learner.policy.state_dict()
    assert all(torch.equal(x, expected[name]) for name, x in learner._learner.policy.state_dict().items())


def test_the_folder_of_checkpoints_holds_numbers_only_and_the_newest_few(trained):
    learner, folder = trained
    assert sorted(os.listdir(folder), key=int) == ["40", "80"]
    assert sorted(set(os.listdir(folder / "80")) - {"wavedash.json"}) == FILES
    learner.n_checkpoints_to_keep = 2
    learner.save(100)
    assert sorted(os.listdir(folder), key=int) == ["80", "100"], "the oldest is removed"
    theirs = folder / "7"
    theirs.mkdir()
    (theirs / "PPO_POLICY.pt").touch()
    learner.save(30)
    assert sorted(os.listdir(folder), key=int) == ["7", "30", "100"], "by the time of saving; what is not ours stays"


def test_rlgym_ppo_can_load_the_files(trained):
    """The files hold networks as rlgym-ppo builds them, its Adam, and its book-keeping."""
    learner, folder = trained
    newest = folder / "80"
    policy, value = Network([3, 16, 8, 5], [nn.Softmax(-1)]), Network([3, 12, 1], [])
    obs = torch.randn(20, 3)
    view = learner.ppo_learner
    for network, name, ours in ((policy, "POLICY", view.policy), (value, "VALUE_NET", view.value_net)):
        network.load_state_dict(torch.load(newest / f"PPO_{name}.pt", weights_only=True))
        torch.testing.assert_close(network(obs), ours(obs))
        adam = torch.optim.Adam(network.parameters())
        adam.load_state_dict(torch.load(newest / f"PPO_{name}_OPTIMIZER.pt", weights_only=True))
        state = adam.state[next(network.parameters())]
        assert int(state["step"]) == learner.ppo_learner.cumulative_model_updates and float(state["exp_avg_sq"].sum()) > 0
        assert adam.param_groups[0]["lr"] == 3e-4
    sizes = (sum(a * b + b for a, b in pairwise(layers)) * 4 for layers in ((3, 16, 8, 5), (3, 12, 1)))
    for name, size in zip(("POLICY", "VALUE_NET"), sizes, strict=True):
        assert (newest / f"PPO_{name}.pt").stat().st_size < size + 8000, "views are not saved with all that they are views of"
    book = json.loads((newest / "BOOK_KEEPING_VARS.json").read_text())
    assert (book["cumulative_timesteps"], book["epoch"], book["cumulative_model_updates"]) == (80, 2, 4)
    assert book["policy_average_reward"] == pytest.approx(learner.agent.average_reward)
    assert book["reward_running_stats"] == {"mean": [0.0], "var": [0.0], "shape": [1], "count": 0}


def test_statistics_come_back_from_the_files_of_rlgym_ppo_alone(tmp_path):
    """A numbered folder that was copied away from its run holds all that rlgym-ppo saves."""
    with small_learner(tmp_path, timestep_limit=80, add_unix_timestamp=False) as first:
        first.learn()
    book = json.loads((tmp_path / "bot" / "80" / "BOOK_KEEPING_VARS.json").read_text())
    assert book["obs_running_stats"]["shape"] == [3] and book["obs_running_stats"]["count"] == 80
    copy = shutil.copytree(tmp_path / "bot" / "80", tmp_path / "elsewhere" / "80")
    shutil.rmtree(tmp_path / "runs")
    with small_learner(tmp_path / "other", checkpoint_load_folder=str(copy)) as second:
        obs = torch.randn(9, 3) * 5
        torch.testing.assert_close(second._learner.policy.normalize(obs), first._learner.policy.normalize(obs))
        torch.testing.assert_close(second.return_stats.std, first.return_stats.std)
        torch.testing.assert_close(second.ppo_learner.policy(obs), first.ppo_learner.policy(obs))
        assert second.agent.cumulative_timesteps == 80 and second.epoch == first.epoch


@pytest.mark.parametrize("change", ["network", "book"])
def test_what_was_changed_in_the_folder_counts(trained, caplog, change):
    """Scripts enlarge networks by hand or set the counters; then our own checkpoint no longer holds."""
    learner, folder = trained
    path = folder / "80" / ("PPO_POLICY.pt" if change == "network" else "BOOK_KEEPING_VARS.json")
    if change == "network":
        torch.save({name: x + 1 for name, x in torch.load(path, weights_only=True).items()}, path)
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), "cumulative_timesteps": 7}))
    with small_learner(folder.parent, standardize_obs=False, standardize_returns=False, add_unix_timestamp=False) as again:
        assert again.agent.cumulative_timesteps == (80 if change == "network" else 7)
        moved = again.ppo_learner.policy.model[0].weight - learner.ppo_learner.policy.model[0].weight
        assert torch.allclose(moved, torch.tensor(1.0 if change == "network" else 0.0))
    assert "has been changed since it was saved" in caplog.text


def test_a_users_entry_in_the_book_keeping_file_changes_nothing_else(trained, caplog):
    """Scripts keep their curriculum there."""
    _, folder = trained
    path = folder / "80" / "BOOK_KEEPING_VARS.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "curriculum": "shots"}))
    with small_learner(folder.parent, standardize_obs=False, standardize_returns=False, add_unix_timestamp=False) as again:
        assert again.agent.cumulative_timesteps == 80
    assert not caplog.records


def test_the_commands_know_the_folder_of_checkpoints(trained):
    learner, folder = trained
    for path in (folder, folder / "80", learner.run_folder / "checkpoints"):
        assert resolve_checkpoint(path).step == 80
    assert resolve_checkpoint(folder / "40").step == 40
    assert evaluate(folder, episodes=2).returns


def test_a_disk_that_is_full_does_not_end_the_training(tmp_path, monkeypatch, caplog):
    real = durable.write_durably

    def full(path, data):
        if path.name == "PPO_POLICY.pt":
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(checkpoint_export, "write_durably", full)
    with small_learner(tmp_path, add_unix_timestamp=False) as learner:
        learner.learn()
    assert learner.agent.cumulative_timesteps == 120 and resolve_checkpoint(learner.run_folder).step == 120
    assert "No space left on device. The checkpoint itself is in" in caplog.text
    assert not (tmp_path / "bot").exists() or os.listdir(tmp_path / "bot") == []
    assert not list(learner.run_folder.rglob(".tmp*"))


def test_a_folder_of_this_number_is_replaced(trained):
    """So is one that is no checkpoint: rlgym-ppo would write into it."""
    learner, folder = trained
    (folder / "80" / "PPO_POLICY.pt").unlink()
    (folder / "80" / "notes.txt").touch()
    learner.save(80)
    assert sorted(set(os.listdir(folder / "80")) - {"wavedash.json"}) == FILES and resolve_checkpoint(folder / "80").step == 80
    assert not list(learner.run_folder.rglob(".tmp*"))
