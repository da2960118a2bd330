"""Checkpoints of rlgym-ppo: the imported policy is the saved one, training goes on with its optimisers, and no code runs."""
from __future__ import annotations

import inspect
import json
import math
import os
import pickle
from pathlib import Path

import pytest
import torch
from gymnasium import spaces
from safetensors.torch import load_file
from torch import nn

from tests.compat.gym_envs import Match
from tests.compat.learners import SMALL, small_learner
from tests.compat.rlgym_ppo_checkpoint import RLGymPPOCheckpoint
from wavedash.assembly import make_policy
from wavedash.compat.rlgym_ppo import Learner as TheirLearner
from wavedash.compat.rlgym_ppo import checkpoint_import, read_checkpoint
from wavedash.compat.rlgym_ppo.maker import EnvMaker
from wavedash.compat.rlgym_ppo.settings import run_config
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.row_spec import RowSpec
from wavedash.ppo.learner import Learner
from wavedash.runs.checkpoint import CheckpointError

OBS = torch.randn(50, 3, generator=torch.Generator().manual_seed(1)) * 3


def read_here(folder: Path) -> dict[str, torch.Tensor]:
    """Does what the separate process does, without the seconds that starting one takes."""
    read_checkpoint.main(folder, folder / "tensors")
    return load_file(folder / "tensors")


def import_checkpoint(folder: Path, learner: Learner) -> None:
    checkpoint_import.import_checkpoint(folder, learner, read_here)


def learner_for(action_space, **changes) -> Learner:
    """Our learner as the `Learner` with rlgym-ppo's constructor makes it, without worker processes."""
    env = LocalVecEnv(EnvMaker(lambda: Match(2, action_space=action_space)), 1)
    defaults = {name: p.default for name, p in inspect.signature(TheirLearner).parameters.items()}
    arguments = {**defaults, **SMALL, "env_create_function": Match, "standardize_obs": False, **changes}
    config = run_config(arguments, RowSpec(env.observation_space, env.action_space, 2))
    return Learner(env, make_policy(env, config), config)


def test_a_discrete_policy_has_the_saved_probabilities(tmp_path):
    theirs = RLGymPPOCheckpoint(5, nn.Softmax(-1))
    learner = learner_for(spaces.Discrete(5))
    import_checkpoint(theirs.save(tmp_path), learner)
    with torch.no_grad():
        distribution, value = learner.policy(OBS)
        torch.testing.assert_close(distribution.log_probs.exp(), theirs.policy(OBS))
        torch.testing.assert_close(value, theirs.value(OBS).squeeze(-1))
    assert (learner.steps, learner.iteration) == (123_456, 9)


def test_a_multi_discrete_policy_has_the_saved_probabilities(tmp_path):
    sizes = [3, 3, 3, 3, 3, 2, 2, 2]
    theirs = RLGymPPOCheckpoint(sum(sizes), None)
    learner = learner_for(spaces.MultiDiscrete(sizes))
    import_checkpoint(theirs.save(tmp_path), learner)
    with torch.no_grad():
        parts = theirs.policy(OBS).split(sizes, -1)
        distribution, _ = learner.policy(OBS)
    for k, (logits, size) in enumerate(zip(parts, sizes, strict=True)):
        torch.testing.assert_close(distribution.choices.log_probs[:, k, :size], logits.log_softmax(-1))


def test_a_continuous_policy_has_the_saved_mean_and_deviation(tmp_path):
    theirs = RLGymPPOCheckpoint(4, nn.Tanh())
    learner = learner_for(spaces.Box(-1, 1, (2,)), continuous_var_range=(0.2, 0.8))
    import_checkpoint(theirs.save(tmp_path), learner)
    with torch.no_grad():
        out = theirs.policy(OBS)
        distribution, _ = learner.policy(OBS)
    torch.testing.assert_close(distribution.mean, out[:, :2])
    torch.testing.assert_close(distribution.log_std.exp(), 0.2 + (out[:, 2:] + 1) * 0.3)


def test_training_goes_on_with_the_saved_optimisers(tmp_path):
    """The next step of Adam, for the same gradient, leads to the same weights."""
    theirs = RLGymPPOCheckpoint(5, nn.Softmax(-1))
    learner = learner_for(spaces.Discrete(5))
    import_checkpoint(theirs.save(tmp_path), learner)
    optimizer = learner.updater.optimizer
    optimizer.max_grad_norm = None
    for p in learner.policy.parameters():
        p.grad.copy_(torch.sin(p.detach() * 10 + OBS.mean()))
    optimizer.step()
    theirs.adam_step(OBS)
    with torch.no_grad():
        distribution, value = learner.policy(OBS)
        torch.testing.assert_close(distribution.log_probs.exp(), theirs.policy(OBS))
        torch.testing.assert_close(value, theirs.value(OBS).squeeze(-1))
    assert int(optimizer.steps["actor"]) == int(optimizer.steps["critic"]) == 4


def test_statistics_scale_as_they_do_in_rlgym_ppo(tmp_path):
    """In rlgym-ppo the first entry of the observations' statistics scales all of them."""
    learner = learner_for(spaces.Discrete(5), standardize_obs=True)
    import_checkpoint(RLGymPPOCheckpoint(5, nn.Softmax(-1)).save(tmp_path), learner)
    torch.testing.assert_close(learner.policy.normalize(OBS), ((OBS - 0.5) / 2.0).clamp(-5, 5))
    assert float(learner.return_moments.scale) == pytest.approx(1 / 2.0)


@pytest.mark.slow
def test_the_learner_goes_on_from_the_latest_checkpoint_of_rlgym_ppo(tmp_path):
    """The checkpoint is in a folder as rlgym-ppo makes it, beside stray files; the learner finds it and trains."""
    theirs = RLGymPPOCheckpoint(5, nn.Softmax(-1))
    for folder, steps in (("bot-100", 5000), ("bot-200", 1000), ("bot-200", 2000)):
        theirs.book["cumulative_timesteps"] = steps
        theirs.save(tmp_path / folder / str(steps))
    (tmp_path / "bot-200" / "notes.txt").touch()
    (tmp_path / "bot-backup").mkdir()
    with small_learner(tmp_path, standardize_obs=False, timestep_limit=2080, policy_lr=1e-4) as learner:
        assert learner.agent.cumulative_timesteps == 2000 and learner.agent.average_reward == 1.5
        probabilities = theirs.policy(OBS)
        chosen, log_prob = learner.agent.policy.get_action(OBS.numpy())
        torch.testing.assert_close(log_prob, probabilities.gather(1, chosen.unsqueeze(1)).log().squeeze(1))
        assert learner.ppo_learner.cumulative_model_updates == 3
        learner.learn()
        assert learner.agent.cumulative_timesteps == 2080


# --- what is refused --------------------------------------------------------------------------------------------------

class Bomb:
    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def huge_claim(path: Path, marker: Path) -> None:
    torch.save({"model.0.weight": torch.zeros(1).expand(1 << 20, 1 << 20)}, path)


BAD_FILES = {
    "pickle": (lambda path, marker: path.write_bytes(pickle.dumps(Bomb(marker), 2)), "Weights only load failed"),
    "torch": (lambda path, marker: torch.save({"model.0.weight": Bomb(marker)}, path), "Weights only load failed"),
    "a tensor larger than its data": (huge_claim, "model.0.weight is larger than its data"),
    "empty": (lambda path, marker: path.write_bytes(b""), "EOFError"),
    "not a dictionary": (lambda path, marker: torch.save(torch.zeros(3), path), "it holds a Tensor"),
}


@pytest.mark.parametrize("file", ["PPO_POLICY.pt", "PPO_VALUE_NET_OPTIMIZER.pt"])
@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_are_refused_and_run_no_code(tmp_path, kind, file):
    folder, marker = RLGymPPOCheckpoint(5, nn.Softmax(-1)).save(tmp_path / "bad"), tmp_path / "marker"
    BAD_FILES[kind][0](folder / file, marker)
    with pytest.raises(ValueError, match=f"{file}: ({BAD_FILES[kind][1]})"):
        read_here(folder)
    assert not marker.exists() and not (folder / "tensors").exists()


@pytest.mark.slow
def test_the_process_that_reads_says_why_it_refuses(tmp_path):
    folder = RLGymPPOCheckpoint(5, nn.Softmax(-1)).save(tmp_path / "bad")
    torch.save({"model.0.weight": Bomb(tmp_path / "marker")}, folder / "PPO_POLICY.pt")
    learner = learner_for(spaces.Discrete(5))
    before = {name: x.clone() for name, x in learner.policy.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"ValueError: PPO_POLICY.pt: Weights only load failed.*Only tensors are read"):
        checkpoint_import.import_checkpoint(folder, learner)
    assert not (tmp_path / "marker").exists()
    assert all(torch.equal(x, before[name]) for name, x in learner.policy.state_dict().items())


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    folder = RLGymPPOCheckpoint(5, nn.Softmax(-1)).save(tmp_path)
    monkeypatch.setattr(read_checkpoint, "LARGEST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"PPO_POLICY.pt: it unpacks to"):
        read_here(folder)


def test_only_the_networks_are_required(tmp_path):
    """Without the optimisers Adam starts afresh."""
    folder = RLGymPPOCheckpoint(5, nn.Softmax(-1)).save(tmp_path)
    (folder / "PPO_POLICY_OPTIMIZER.pt").unlink()
    learner = learner_for(spaces.Discrete(5))
    import_checkpoint(folder, learner)
    assert (int(learner.updater.optimizer.steps["actor"]), int(learner.updater.optimizer.steps["critic"])) == (0, 3)
    (folder / "PPO_VALUE_NET.pt").unlink()
    with pytest.raises(ValueError, match=r"PPO_VALUE_NET.pt: .*No such file"):
        import_checkpoint(folder, learner)


@pytest.mark.parametrize(("change", "message"), [
    (lambda book: "", "JSONDecodeError"), (lambda book: "[1]", "TypeError"), (lambda book: "{}", "KeyError"),
    (lambda book: "[" * 100_000, "RecursionError"),
    (lambda book: json.dumps({**book, "obs_running_stats": {"mean": ["x"], "var": [1], "count": 3}}), "ValueError"),
    (lambda book: json.dumps({**book, "obs_running_stats": {"mean": [math.nan], "var": [1], "count": 3}}), "no statistics"),
])
def test_bad_book_keeping_files_are_refused(tmp_path, change, message):
    theirs = RLGymPPOCheckpoint(5, nn.Softmax(-1))
    folder = theirs.save(tmp_path)
    (folder / "BOOK_KEEPING_VARS.json").write_text(change(theirs.book))
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(folder, learner_for(spaces.Discrete(5)))


@pytest.mark.parametrize(("theirs", "message"), [
    ({"hidden": (32,)}, r"takes 3 numbers, has hidden layers \(32,\) and 5 outputs; .* Pass policy_layer_sizes=\(32,\)"),
    ({"critic": (4, 4)}, r"value network .* Pass critic_layer_sizes=\(4, 4\)"),
    ({"inputs": 107}, "takes 107 numbers"),
    ({"outputs": 90}, "90 outputs"),
])
def test_other_networks_are_refused_with_what_differs(tmp_path, theirs, message):
    checkpoint = RLGymPPOCheckpoint(**{"outputs": 5, "last": nn.Softmax(-1), **theirs})
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(checkpoint.save(tmp_path), learner_for(spaces.Discrete(5)))
