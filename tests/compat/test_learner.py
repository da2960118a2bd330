"""The Learner with rlgym-ppo's interface trains, reports, saves and resumes; scripts find the attributes they use."""
from __future__ import annotations

import json
import logging
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests import prepared
from tests.compat import rlgym_v2_example
from tests.compat.gym_envs import Looks, Match, teams, two_players
from tests.compat.learners import small_learner
from wavedash.compat.rlgym_ppo import Learner
from wavedash.errors import UserError
from wavedash.evaluate.own_task import evaluate
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.folder import RunFolder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KEYS = [
    "Policy Reward", "Policy Entropy", "Value Function Loss", "Mean KL Divergence", "SB3 Clip Fraction",
    "Policy Update Magnitude", "Value Function Update Magnitude", "Collected Steps per Second", "Overall Steps per Second",
    "Timestep Collection Time",
    "Timestep Consumption Time", "PPO Batch Consumption Time", "Total Iteration Time", "Cumulative Model Updates",
    "Cumulative Timesteps", "Timesteps Collected",
]


def reports_in(text: str) -> list[dict[str, float]]:
    blocks = re.findall(r"-{8}BEGIN ITERATION REPORT-{8}\n(.*?)\n-{8}END ITERATION REPORT-{8}", text, re.DOTALL)
    return [{name: float(value.replace(",", "")) for name, value in re.findall(r"^(.*?): +?(\S+)$", block, re.MULTILINE)}
            for block in blocks]


def lines_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Run:
    """A user's run at Weights & Biases."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.logged, self.finished, self.id = fails, [], 0, "mine"

    def log(self, data: dict) -> None:
        if self.fails:
            raise ConnectionError("the service has gone")
        self.logged.append(data)

    def finish(self) -> None:
        self.finished += 1


def test_a_script_for_rlgym_ppo_runs_without_a_terminal_and_is_resumed(tmp_path, monkeypatch, capsys, caplog):
    script = ROOT / "tests" / "compat" / "rlgym_v2_example.py"
    done = prepared.run([str(script)], tmp_path, {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    reports = reports_in(done.stdout)
    assert [list(report) for report in reports] == [KEYS] * 4
    assert [report["Cumulative Timesteps"] for report in reports] == [400, 600, 800, 1000], "the first 200 steps calibrate"
    assert [report["Cumulative Model Updates"] for report in reports] == [1, 3, 6, 9], "a buffer of 600 has batches of 200"
    assert all(report["Policy Entropy"] == pytest.approx(math.log(90), rel=0.01) for report in reports)
    (first,) = (tmp_path / "data" / "checkpoints").glob("rlgym-ppo-run-*")

    monkeypatch.chdir(tmp_path)
    learner = Learner(rlgym_v2_example.build_env, n_proc=2, policy_layer_sizes=(32, 32), critic_layer_sizes=(32, 32),
                      ppo_batch_size=200, ts_per_iteration=200, exp_buffer_size=600, ppo_minibatch_size=100, ppo_ent_coef=0.001,
                      ppo_epochs=1, standardize_obs=False, timestep_limit=1_200, device="cpu")
    assert learner.agent.cumulative_timesteps == 1000 and learner.ppo_learner.cumulative_model_updates == 9
    saved, _ = resolve_checkpoint(first).load(["policy"])
    assert all(torch.equal(x, saved["policy"][name]) for name, x in learner._learner.policy.state_dict().items())
    learner.learn()
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING], "the games go on where they were"
    (report,) = reports_in(capsys.readouterr().out)
    assert report["Cumulative Timesteps"] == 1200 and report["Cumulative Model Updates"] == 12
    assert Path(learner.checkpoints_save_folder).name != first.name, "a new folder, as with rlgym-ppo"
    assert evaluate(learner.checkpoints_save_folder, episodes=2).returns, "the commands know the folder"


def test_a_run_is_exactly_resumed_in_the_same_folder(tmp_path):
    """Three iterations lead to the same weights as two, a new process and one more."""
    with small_learner(tmp_path / "whole", teams) as whole:
        whole.learn()
    for limit in (80, 120):
        with small_learner(tmp_path / "parts", teams, timestep_limit=limit, add_unix_timestamp=False) as parts:
            parts.learn()
    assert parts.agent.cumulative_timesteps == whole.agent.cumulative_timesteps
    assert parts.agent.average_reward == whole.agent.average_reward is not None
    expected = whole._learner.policy.state_dict()
    assert all(torch.equal(x, expected[name]) for name, x in parts._learner.policy.state_dict().items())
    assert len(lines_of(parts.run_folder)) == len(lines_of(whole.run_folder))


def test_a_warning_while_a_checkpoint_is_loaded_is_in_the_log_file_of_the_run(tmp_path):
    """More processes than before cannot go on with the episodes that were saved."""
    for processes, limit in ((1, 80), (2, 120)):
        with small_learner(tmp_path, teams, timestep_limit=limit, n_proc=processes, add_unix_timestamp=False) as learner:
            learner.learn()
        run_folder = learner.run_folder
    text = (run_folder / "log.txt").read_text(encoding="utf-8")
    assert text.count("the saved state has 1 environments, this run has 2") == 1


def test_a_logger_is_called_at_every_step_and_reports_once_an_iteration(tmp_path, capsys):
    """It is called in the workers; its metrics go to the W&B run that was passed and into our own files."""
    run = Run()
    with small_learner(tmp_path, lambda: Match(2, length=4), metrics_logger=Looks(), wandb_run=run, n_proc=2,
                       standardize_obs=False, standardize_returns=False) as learner:
        learner.learn()
    mine, reports = run.logged[::2], run.logged[1::2]
    assert [list(report) for report in reports] == [KEYS] * 3
    assert [point["at"] for point in mine] == [40, 80, 120]
    for point in mine:
        assert point["entries"] == 20, "10 steps in each of 2 environments"
        assert (point["shapes"], point["type"]) == ("{((1,), (6,), (1,))}", "float32")
    # 1 2 3 4 1 2 3 4 1 2, then on from 3
    assert [float(point["mean step"]) for point in mine] == pytest.approx([2.3, 2.7, 2.3])
    assert run.finished == 1
    lines = lines_of(learner.run_folder)
    assert [line["user/entries"] for line in lines] == [20, 20, 20] and "user/shapes" not in lines[0]
    assert len(reports_in(capsys.readouterr().out)) == 3


def test_without_weights_and_biases_the_logger_reports_to_our_files(tmp_path):
    with small_learner(tmp_path, metrics_logger=Looks(), timestep_limit=40, standardize_obs=False,
                       standardize_returns=False) as learner:
        assert learner.wandb_run is None
        learner.learn()
    (line,) = lines_of(learner.run_folder)
    assert line["user/entries"] == 20


def test_a_failing_tracker_does_not_end_the_training(tmp_path, caplog):
    with small_learner(tmp_path, wandb_run=Run(fails=True)) as learner:
        learner.learn()
        assert learner.agent.cumulative_timesteps == 120
    assert sum("did not take a report (the service has gone)" in record.message for record in caplog.records) == 1


CLIENT = """
import json, os
from pathlib import Path

def write(**entry):
    with Path(os.environ["FAKE_WANDB_RECORD"]).open("a") as file:
        file.write(json.dumps(entry) + "\\n")

class Settings:
    def __init__(self, **settings): pass

class Run:
    def define_metric(self, name, step_metric): pass
    def log(self, point): write(point=point)
    def finish(self): write(finished=True)

def init(**settings):
    write(init={name: settings.get(name) for name in ("project", "group", "name", "id")})
    return Run()
"""


def test_runs_at_weights_and_biases_have_their_names_and_go_on(tmp_path, monkeypatch):
    (tmp_path / "client" / "wandb").mkdir(parents=True)
    (tmp_path / "client" / "wandb" / "__init__.py").write_text(CLIENT)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'client'}{os.pathsep}{ROOT}")
    monkeypatch.syspath_prepend(str(tmp_path / "client"))
    record = tmp_path / "record"
    monkeypatch.setenv("FAKE_WANDB_RECORD", str(record))
    options = {"build": lambda: Match(2, length=7), "metrics_logger": Looks(), "log_to_wandb": True, "wandb_group_name": "g",
               "wandb_project_name": "cars", "wandb_run_name": "r"}
    with small_learner(tmp_path, timestep_limit=80, **options) as first:
        first.learn()
    with small_learner(tmp_path, timestep_limit=120, **options) as second:
        assert second.wandb_run.id == first.wandb_run.id
        second.learn()
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    began = [entry["init"] for entry in entries if "init" in entry]
    assert began[0] == began[1] and (began[0]["project"], began[0]["group"], began[0]["name"]) == ("cars", "g", "r")
    points = [entry["point"] for entry in entries if "point" in entry]
    assert [point["steps"] for point in points if "Policy Reward" in point] == [80, 120]
    # The first has the points of the calibration too; the second has none of the steps that were repeated to resume.
    assert [point["entries"] for point in points if "entries" in point] == [40, 20]


def test_scripts_find_the_attributes_that_they_use(tmp_path):
    with small_learner(tmp_path, two_players) as learner:
        assert learner.agent.cumulative_timesteps == 0 and learner.agent.average_reward is None
        assert learner.config["ts_per_iteration"] == 40 and learner.wandb_run is None
        obs = np.random.default_rng(0).normal(size=(50, 3)) * 5
        torch.nn.init.normal_(learner._learner.policy.head.logits.weight)
        actions, log_prob = learner.agent.policy.get_action(obs, deterministic=True)
        alone = [learner.ppo_learner.policy.get_action(row, deterministic=True)[0] for row in obs]
        assert torch.equal(actions, torch.cat(alone)) and len(actions.unique()) > 1, "row by row"
        assert log_prob.shape == (50,) and learner.ppo_learner.value_net(obs).shape == (50, 1)

        learner.update_learning_rate(new_policy_lr=1e-3)
        assert learner.ppo_learner.policy_optimizer.param_groups[0]["lr"] == 1e-3
        assert learner.ppo_learner.value_optimizer.param_groups[0]["lr"] == 3e-4
        for group in learner.ppo_learner.value_optimizer.param_groups:
            group["lr"] = 5e-3
        learner._live.apply()
        learner._learner.start()
        learner._learner.iterate()
        rates = learner._learner.updater.optimizer.rates
        assert (float(rates["actor"]), float(rates["critic"])) == pytest.approx((1e-3, 5e-3))
        with pytest.raises(UserError, match="experience cannot be added from outside"):
            learner.add_new_experience(())


def test_saving_and_loading_by_hand(tmp_path, capsys):
    with small_learner(tmp_path, add_unix_timestamp=False) as learner:
        assert learner.load("latest", True) is None, "nothing has been saved"
        learner.save(0)
        weights = {name: x.detach().clone() for name, x in learner._learner.policy.named_parameters()}
        torch.nn.init.normal_(learner._learner.policy.head.logits.weight)
        assert learner.load("latest", True, new_critic_lr=1e-2) is False, "there is no wandb run to go on with"
        assert all(torch.equal(x, weights[name]) for name, x in learner._learner.policy.named_parameters())
        assert learner.ppo_learner.value_optimizer.param_groups[0]["lr"] == 1e-2
        learner.learn()
    with pytest.raises(UserError, match=r"does not fit this run:\n.*hidden"), small_learner(tmp_path, add_unix_timestamp=False,
                                                                                            policy_layer_sizes=(4,)):
        pass


def test_continuous_actions_learn_within_their_range_of_deviations(tmp_path):
    """The density is that of the sampled action; rlgym-ppo takes that of the clipped one."""
    box = spaces.Box(-5, 5, (2,))
    with small_learner(tmp_path, lambda: Match(2, action_space=box), continuous_var_range=(0.5, 0.9)) as learner:
        learner.learn()
        rollout, policy = learner._learner.rollout, learner._learner.policy
        with torch.no_grad():
            distribution, _ = policy(rollout.obs)
        std = distribution.log_std.exp()
        assert float(std.min()) > 0.5 and float(std.max()) < 0.9
        assert (rollout.action.abs() > 1).any()
        assert policy.head.env_action(rollout.action).abs().max() == 1, "between -1 and 1 as in rlgym-ppo"
        normal = torch.distributions.Normal(distribution.mean, std)
        drift = (normal.log_prob(rollout.action).sum(-1) - rollout.log_prob).abs().max()
        assert drift < 0.1, "only the update changed it"


def test_the_average_reward_is_a_running_mean_over_episodes(tmp_path):
    with small_learner(tmp_path, lambda: Match(1, length=2)) as learner:
        learner.learn()
        returns = [line["rollout/return"] for line in lines_of(learner.run_folder)]
        expected = returns[0]
        for mean in returns[1:]:
            for _ in range(20):  # episodes of an iteration
                expected = 0.9 * expected + 0.1 * mean
        assert learner.agent.average_reward == pytest.approx(expected)


def test_an_error_ends_the_run_saved_and_is_raised(tmp_path):
    """rlgym-ppo prints it, and the script goes on as if nothing had happened."""
    class Broken(Looks):
        def _report_metrics(self, collected_metrics, wandb_run, cumulative_timesteps):
            raise ZeroDivisionError("nobody drove")

    with small_learner(tmp_path, metrics_logger=Broken()) as learner, pytest.raises(ZeroDivisionError):
        learner.learn()
    assert RunFolder(learner.run_folder).newest().step > 0
