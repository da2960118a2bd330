"""`init`: a run begins with the weights of another policy, fresh in everything else; what does not fit is refused."""
from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import wavedash
from tests.league import leagues
from wavedash.config_file import load_config
from wavedash.envs.obs import map_obs
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.training import resume, train

TINY = ("total_steps=64", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1")
NORMALISED = ("ppo.normalize_obs=true",)


class Watch(Listener):
    """Copies what a run begins with, and its first rollout."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self.optimizer: dict[str, Tensor] = {}
        self.rollout: Any = None
        self.steps: list[int] = []

    def on_start(self, learner: Learner) -> None:
        self.weights = {name: x.clone() for name, x in learner.policy.state_dict().items()}
        self.optimizer = {name: x.clone() for name, x in learner.updater.optimizer.state_dict().items()}

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.steps.append(report.steps)
        if self.rollout is None:
            stored = learner.rollout
            self.rollout = [map_obs(Tensor.clone, stored.obs), stored.action.clone(), stored.log_prob.clone(),
                            stored.value.clone()]


class StopAt(Listener):
    """Ends the run once it has made so many steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.steps >= self.steps:
            learner.stop("as the test wants it")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose weights are far from initial ones."""
    root = tmp_path_factory.mktemp("source")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train("cartpole", *TINY, *NORMALISED, "ppo.learning_rate=0.01", "seed=3") == 0
    return next(root.glob("*/*/"))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def policy_folder(source: Path, target: Path) -> Path:
    target.mkdir()
    shutil.copy(source / "config.yaml", target)
    for name in ("policy.safetensors", "state.json"):
        shutil.copy(resolve_checkpoint(source).path / name, target)
    return target


def test_the_first_rollout_is_played_by_the_source(source, runs):
    watch = Watch()
    assert train("cartpole", *TINY, *NORMALISED, f"init={source}", "seed=5", listeners=[watch]) == 0
    policy = wavedash.load_policy(source).policy
    expected = policy.state_dict()
    assert watch.weights.keys() == expected.keys()
    assert all(torch.equal(x, expected[name]) for name, x in watch.weights.items()), "weights and statistics"
    obs, action, log_prob, value = watch.rollout
    for t in range(len(action)):
        distribution, its_value = policy(obs[t])
        assert torch.equal(distribution.log_prob(action[t]), log_prob[t]) and torch.equal(its_value, value[t])
    assert not any(x.any() for x in watch.optimizer.values()), "the optimiser is fresh"
    assert watch.steps == [32, 64], "statistics of observations came with the weights: there is no calibration"


def test_without_init_other_weights_play(source, runs):
    """This is the control of the test above."""
    watch = Watch()
    assert train("cartpole", *TINY, *NORMALISED, "seed=5", listeners=[watch]) == 0
    obs, action, log_prob, _ = watch.rollout
    assert not torch.equal(wavedash.load_policy(source).policy(obs[0])[0].log_prob(action[0]), log_prob[0])
    assert watch.steps == [64], "the first rollout calibrates"


def test_the_reward_scale_is_measured_anew(source, runs):
    watch = Watch()
    assert train("cartpole", *TINY, *NORMALISED, f"init={source}", "ppo.normalize_reward=true", listeners=[watch]) == 0
    assert watch.steps == [64], "the first rollout calibrates"


@pytest.mark.parametrize("name", ["run", "final", "checkpoint", "policy folder"])
def test_a_source_may_be_a_run_a_store_a_checkpoint_or_a_policy_folder(name, source, runs, tmp_path):
    place = {"run": source, "final": source / "final", "checkpoint": resolve_checkpoint(source).path}.get(name)
    place = policy_folder(source, tmp_path / "rung") if place is None else place
    watch = Watch()
    assert train("cartpole", *TINY, *NORMALISED, f"init={place}", listeners=[watch]) == 0
    expected = wavedash.load_policy(place).policy.state_dict()
    assert all(torch.equal(x, expected[key]) for key, x in watch.weights.items())


def test_the_configuration_records_an_absolute_path(source, runs, monkeypatch):
    monkeypatch.chdir(source.parent)
    assert train("cartpole", *TINY, *NORMALISED, f"init={source.name}") == 0
    (config,) = runs.glob("*/*/config.yaml")
    assert load_config(str(config)).init == str(source)
    log = (config.parent / "log.txt").read_text()
    assert f"beginning with the policy of {resolve_checkpoint(source).path} after 64 steps" in log


def test_a_resumed_run_is_the_run_that_never_stopped_and_needs_no_source(source, runs, tmp_path):
    place = policy_folder(source, tmp_path / "rung")
    options = [*TINY, *NORMALISED, f"init={place}", "ppo.normalize_reward=true", "ppo.critic_warmup=2", "total_steps=192"]
    assert train("cartpole", *options, "name=whole") == 0
    assert train("cartpole", *options, "name=stopped", listeners=[StopAt(64)]) == 0
    shutil.rmtree(place)
    (stopped,) = runs.glob("stopped/*")
    assert resume(str(stopped)) == 0
    whole, resumed = (resolve_checkpoint(runs / name / "final").load()[0] for name in ("whole", "stopped"))
    for file in ("policy", "optimizer", "learner", "env"):
        assert whole[file].keys() == resumed[file].keys()
        assert all(torch.equal(x, resumed[file][name]) for name, x in whole[file].items()), file


def test_init_cannot_change_on_resume(source, runs):
    assert train("cartpole", *TINY, *NORMALISED) == 0
    with pytest.raises(IncompatibleError, match=r"init was None, now .*goes on from those of its checkpoint"):
        resume(str(runs), "total_steps=128", f"init={source}")


def test_other_networks_are_refused_with_the_overrides_that_fit(source, runs, tmp_path):
    place = policy_folder(source, tmp_path / "rung")
    with pytest.raises(IncompatibleError) as told:
        train("cartpole", *TINY, "policy.hidden=[16, 16]", "policy.activation=relu", f"init={place}")
    assert str(told.value) == "\n".join([
        f"init={place} does not fit this run (the policy is in {place}):",
        "  policy.activation: there tanh, here relu",
        "  policy.hidden: there [8], here [16, 16]",
        "  ppo.normalize_obs: there true, here false",
        'To make it fit, add: policy.activation=tanh "policy.hidden=[8]" ppo.normalize_obs=true',
    ])
    assert not runs.exists(), "no run folder was made"
    with pytest.raises(IncompatibleError, match="does not fit this run"):  # `wavedash config check` says the same
        check_run(load_config("cartpole", [*TINY, f"init={place}"]))
    watch = Watch()
    fits = ["policy.activation=tanh", "policy.hidden=[8]", "ppo.normalize_obs=true"]
    assert train("cartpole", *TINY, f"init={place}", *fits, listeners=[watch]) == 0


def test_another_environment_is_refused_with_both_spaces(source, runs):
    with pytest.raises(IncompatibleError) as told:
        train("acrobot", *TINY, *NORMALISED, "policy.activation=tanh", f"init={source}")
    text = str(told.value)
    assert "\n  observation_space.shape: there [4], here [6]" in text and "\n  action_space.n: there 2, here 3" in text
    assert "\n  env.id: there CartPole-v1, here Acrobot-v1" in text and text.endswith("add: env.id=CartPole-v1")
    assert not runs.exists()


def test_the_same_networks_with_another_meaning_are_taken_with_a_warning(source, runs, caplog):
    with caplog.at_level(logging.WARNING):
        assert train("cartpole", *TINY, *NORMALISED, f"init={source}", "env.kwargs={max_episode_steps: 9}") == 0
    assert "was trained with env.kwargs={}, here it is {max_episode_steps: 9}" in caplog.text


def test_what_is_not_there_is_refused_before_a_run_folder_is_made(runs, tmp_path):
    with pytest.raises(UserError, match="no checkpoint found at"):
        train("cartpole", *TINY, f"init={tmp_path / 'nowhere'}")
    assert not runs.exists()


@pytest.mark.slow
def test_the_first_opponent_of_a_league_is_the_policy_that_the_run_began_with(tmp_path, runs):
    source = leagues.policy_folder(tmp_path / "source", "policy.hidden=[8]")
    run = leagues.trained(runs, f"init={source}", "total_steps=300")
    first, expected = (PolicyFolder(folder).load()[0]["policy"] for folder in (min((run / "league").glob("step-*")), source))
    assert all(torch.equal(x, expected[name]) for name, x in first.items()) and first
