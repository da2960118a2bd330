"""`wavedash diagnose`: what it measures, what it advises, and the baseline that it keeps."""
from __future__ import annotations

import json
import os
import random
import re
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from tests.ppo.learners import ACTIONS, identity_learner, learner_over, run_config
from tests.toy_vec_envs import IdentityEnv, TapeEnv
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.cli import app
from wavedash.cli.machine import split_words
from wavedash.config_file import load_config
from wavedash.diagnosis import STAGES, command, device, stages, timing
from wavedash.diagnosis.advice import ROUND_TRIP, Facts, advise
from wavedash.diagnosis.baseline import Baseline, compare, default_path, differences
from wavedash.diagnosis.timing import Timing
from wavedash.envs.vec_env import Step
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner

SMALL = ["ppo.rollout_steps=8", "ppo.epochs=1", "env.count=4"]
PARTS = ["env", "inference", "gae", "update", "other"]


@pytest.fixture(autouse=True)
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are as short as possible, and files go to a folder of the test."""
    monkeypatch.setattr(timing, "ROUND_SECONDS", 1e-3)
    monkeypatch.setattr(command, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(device, "PROBE_SECONDS", 1e-3)
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("changes", [[], ["env.workers=2"]], ids=["in the learner's process", "workers"])
def test_every_stage_has_its_row_and_the_shares_add_up(changes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    app(["diagnose", "all", "cartpole", *SMALL, *changes, "--rounds", "2"], standalone_mode=False)
    printed = capsys.readouterr().out
    shares = {}
    for line in printed.splitlines():
        row = re.match(r"│ (\w+) +│.* ([\d.]+)% │$", line)
        if row:
            shares[row[1]] = float(row[2])
    assert list(shares) == [*PARTS, "iteration"]
    assert sum(shares[part] for part in PARTS) == pytest.approx(100.0, abs=0.3) and shares["iteration"] == 100.0
    assert re.search(r"\nbottleneck: \w+, because it takes \d.*\n  (try: \w|no setting)", printed, re.DOTALL)
    assert re.search(r"matmul fp32, GFLOP/s +│ +[1-9]", printed) and "CPU cores" in printed


@pytest.mark.parametrize("stage", ["env", "inference", "update", "gpu"])
def test_a_named_stage_is_measured_alone(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = command.diagnose(stage, "cartpole", SMALL, rounds=3)
    assert set(found.timing.seconds) == set(STAGES[stage]) and found.advice is None
    assert all(len(rounds) == 3 and min(rounds) > 0 for rounds in found.timing.seconds.values())
    assert bool(found.probed) == (stage == "gpu")
    assert "share" not in capsys.readouterr().out


@pytest.mark.parametrize(("words", "meaning"), [
    ("", ("all", "cartpole", [])),
    ("env", ("env", "cartpole", [])),
    ("hopper", ("all", "hopper", [])),
    ("seed=3", ("all", "cartpole", ["seed=3"])),
    ("update hopper seed=3 ppo.epochs=2", ("update", "hopper", ["seed=3", "ppo.epochs=2"])),
    ("gpu env.count=2", ("gpu", "cartpole", ["env.count=2"])),
])
def test_omitted_arguments_have_defaults(words: str, meaning: tuple[str, str, list[str]]) -> None:
    assert split_words(words.split()) == meaning


@pytest.mark.parametrize(("words", "message"), [
    (["enf"], "did you mean 'env'? Stages are: env, inference, update, gpu, all"),
    (["updte", "cartpole"], "did you mean 'update'"),
    (["cartpol"], "did you mean 'cartpole'"),
    (["env", "cartpol"], "no such file, and no preset has this name; did you mean 'cartpole'"),
    (["env", "cartpole", "ppo.lr=3"], "unknown key 'ppo.lr'"),
])
def test_a_mistake_is_answered_with_the_nearest_name(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        app(["diagnose", *words], standalone_mode=False)


@pytest.mark.slow
def test_a_slow_environment_is_the_bottleneck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "allowed_cores", lambda: 4)
    slow = _sleepy(tmp_path, delay=2e-3)
    found = command.diagnose("all", slow, rounds=2)
    assert found.advice is not None and found.advice.bottleneck == "env"
    assert [s.settings for s in found.advice.suggestions] == ["env.workers=4"]
    # The time of its sleep is in the row of the environment and in no other.
    slept = 4 * 8 * 2e-3
    assert min(found.timing.seconds["env"]) >= slept > max(found.timing.seconds["inference"])


@pytest.mark.slow
def test_advice_can_be_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "allowed_cores", lambda: 2)
    slow = _sleepy(tmp_path, delay=5e-3)
    app(["diagnose", "all", slow, "--rounds", "2", "--try"], standalone_mode=False)
    # Two workers sleep at the same time: this is faster by far on any machine.
    assert re.search(r"try: env.workers=2 .*tried: .* samples/s \(\+\d+% faster\)", capsys.readouterr().out, re.DOTALL)


def _sleepy(folder: Path, delay: float) -> str:
    path = folder / f"sleepy-{delay}.yaml"
    path.write_text(f"name: sleepy\nenv: {{factory: 'tests.sleepy_env:make', kwargs: {{delay: {delay}}}, count: 4}}\n"
                    "ppo: {rollout_steps: 8, epochs: 1}\n")
    return str(path)


# --- what is measured ------------------------------------------------------------------------------------------------


class StrictEnv(IdentityEnv):
    """It refuses forbidden actions and counts its steps."""

    steps = 0

    def step(self, action: Tensor) -> Step:
        assert action.shape == (self.num_rows, *self.action_space.shape)
        for row in action:
            assert self.action_space.contains(row.numpy() if row.dim() else np.int64(row)), row
        if self.masked:
            chosen = [torch.nn.functional.one_hot(a, n) for a, n in zip(action.view(len(action), -1).unbind(-1), self.sizes,
                                                                         strict=True)]
            assert (self.allowed.bool() | (torch.cat(chosen, -1) == 0)).all(), "a forbidden action"
        self.steps += 1
        return super().step(action)


@pytest.mark.parametrize(("kind", "masked"), [*((kind, False) for kind in ACTIONS), ("discrete", True), ("multi-binary", True)])
def test_random_play_takes_valid_actions_for_as_many_steps_as_a_rollout(kind: str, masked: bool) -> None:
    env = StrictEnv(ACTIONS[kind], rows=8, masked=masked)
    learner = learner_over(env, run_config({"rollout_steps": 8}))
    play = stages.RandomPlay(learner)
    seen: list[Step] = []
    play(lambda index, step: seen.append(step))
    assert env.steps == len(seen) == 8
    assert _equal(learner.collector.shards[0].obs, seen[-1].obs), "the collector goes on from here"
    learner.iterate()


def _equal(a: Any, b: Any) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a) if isinstance(a, dict) else torch.equal(a, b)


class TwoTapes(TapeEnv):
    """It has two shards, each with its own place on the tape; the one that was sent last answers first."""

    groups = (slice(0, 2), slice(2, 5))

    def __init__(self, *tape: Tensor):
        super().__init__(*tape)
        self.times, self.sent = [0, 0], []
        self.block = [[torch.empty_like(x[0, rows]) for x in tape] for rows in self.groups]

    def send(self, group: int, action: Tensor) -> None:
        self.sent.append(group)

    def recv(self) -> tuple[int, Step]:
        group = self.sent.pop()
        self.played, self.times[group] = self.times[group], self.times[group] + 1
        step, rows = super().step(torch.empty(0)), self.groups[group]
        obs, reward, terminated, truncated, active = self.block[group]  # the next step overwrites it
        for x, new in zip(self.block[group], (step.obs, step.reward, *step[2:4], step.active), strict=True):
            x.copy_(new[rows])
        return group, Step(obs, reward, terminated, truncated, -obs, active, {})


def test_inference_alone_fills_a_rollout_from_earlier_steps_without_stepping_the_environment() -> None:
    torch.manual_seed(0)
    T, N = 6, 5
    ends = torch.rand(2, T, N) < 0.2
    env = TwoTapes(torch.randn(T, N, 3), torch.randn(T, N), *ends, torch.rand(T, N) < 0.8)
    learner = learner_over(env, run_config({"rollout_steps": T}))
    learner.iterate()
    out = stages.copy_of(learner.rollout)
    for x in out.tensors().values():
        x.zero_()
    work = stages.inference(learner, stages.RandomPlay(learner), out)
    assert env.times == [2 * T, 2 * T]
    for _ in range(2):  # the second time goes over the same steps again
        work()
    assert env.times == [2 * T, 2 * T]
    assert torch.equal(out.reward, env.reward * env.active)
    assert all(torch.equal(getattr(out, name), getattr(env, name)) for name in ("terminated", "truncated", "active"))
    assert torch.equal(out.obs[env.active], env.obs[env.active]), "a step acts on the observation of the step before"
    final = learner.policy.value(-env.obs.roll(-1, 0).flatten(0, 1), {}).view(T, N)
    torch.testing.assert_close(out.final_value, torch.where(env.truncated & env.active, final, 0.0))


def _snapshot(learner: Learner) -> dict[str, Tensor]:
    tensors, plain = learner.state()
    kept = {f"{part}.{name}": x for part in ("policy", "optimizer") for name, x in tensors[part].items()}
    gathered = [x for normalizer in learner.normalizers for x in normalizer.buffers()]
    kept |= {f"gathered.{index}": x for index, x in enumerate(gathered)}
    kept |= {"running": learner.tracker.running, **learner.buffer.all.tensors(), "steps": torch.tensor(plain["steps"])}
    return {name: x.clone() for name, x in kept.items()}


@pytest.mark.slow
@pytest.mark.parametrize("policy", [{}, {"memory": {"kind": "gru", "size": 8, "sequence": 4}}], ids=["plain", "memory"])
def test_measuring_does_not_change_the_learner(policy: dict[str, Any]) -> None:
    ppo = {"rollout_steps": 8, "minibatch_size": 16, "epochs": 2, "normalize_obs": True, "normalize_reward": True,
           "buffer_rollouts": 2}
    learner = identity_learner("multi-discrete", ppo, masked=True, policy=policy)
    for _ in range(2):
        learner.iterate()
    before = _snapshot(learner)
    rng = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    timing.time_stages(learner, ["env", "inference", "gae", "update"], rounds=2)
    device.probe(torch.device("cpu"), 2)
    after = _snapshot(learner)
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert torch.equal(rng[0], torch.get_rng_state()) and (rng[1] == np.random.get_state()[1]).all()
    assert rng[2] == random.getstate() and torch.get_float32_matmul_precision() == "highest"
    with stages.unchanged(learner):  # the control: these stages do change it while they run
        stages.update(learner)()
        spare = stages.copy_of(learner.rollout)
        stages.inference(learner, stages.RandomPlay(learner), spare)()
        stages.advantages(learner, spare)()
        during = _snapshot(learner)
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], during[name])}
    assert {"policy", "optimizer", "gathered", "running"} <= changed and "obs" not in changed and "advantage" not in changed
    learner.iterate()


def test_the_time_of_a_captured_graph_is_divided_in_proportion_to_its_stages_alone() -> None:
    alone_seconds = {"env": [1.0, 9.0, 1.0], "inference": [3.0], "gae": [1.0], "update": [7.0], "iteration": [10.0]}
    found = Timing(100, alone_seconds, {"collect": 4.0, "update": 5.0, "other": 1.0})
    assert found.shares() == pytest.approx({"env": 0.08, "inference": 0.24, "gae": 0.08, "update": 0.5, "other": 0.1})
    assert found.rates("update") == [100 / 7]
    told = Timing(100, alone_seconds, {"env": 1.0, "inference": 1.0, "gae": 1.0, "update": 1.0, "other": 0.0})
    assert told.shares() == {"env": 0.25, "inference": 0.25, "gae": 0.25, "update": 0.25, "other": 0.0}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("graphs", [False, True])
def test_an_environment_on_a_gpu_is_diagnosed(graphs: bool, capsys: pytest.CaptureFixture[str]) -> None:
    env = SyntheticEnv(4096, "cuda")
    learner = learner_over(env, run_config({"rollout_steps": 8, "minibatch_size": 8192, "epochs": 1}, graphs=graphs))
    found = command.examine(learner, "all", rounds=3)
    command.show(Console(width=110), found, found.measured)
    assert ("collect" in found.timing.parts) == graphs and sum(found.timing.shares().values()) == pytest.approx(1.0)
    assert list(found.timing.shares()) == PARTS and found.advice is not None
    printed = capsys.readouterr().out
    for row in ("GPU busy in iterations", "peak of this training", "matmul bf16", "matmul tf32", "copy to the GPU, pinned"):
        assert row in printed


@pytest.mark.skipif(os.name == "nt", reason="a stand-in for nvidia-smi is a shell script")
def test_utilisation_comes_from_nvidia_smi_if_nvml_has_no_python_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="1234"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert device.gpu_busy(torch.device("cuda", 0)) is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\n[ "$1" = "--id=GPU-1234" ] && echo 37\n')
    tool.chmod(0o755)
    assert device.gpu_busy(torch.device("cuda", 0)) == pytest.approx(0.37)
    tool.write_text("#!/bin/sh\necho '[N/A]'\n")
    assert device.gpu_busy(torch.device("cuda", 0)) is None


# --- what is advised -------------------------------------------------------------------------------------------------


def facts(bottleneck: str, *overrides: str, **changes: Any) -> Facts:
    share = {part: 0.8 if part == bottleneck else 0.05 for part in PARTS}
    config = load_config("cartpole", ["env.count=16", "ppo.minibatch_size=64", "ppo.epochs=1", *overrides])
    made = Facts(config=config, share=share, step_seconds=0.1, efficiency={"inference": 0.9, "update": 0.9},
                 rows=16, samples=512, cores=4, threads=4)
    return replace(made, **changes)


LOW = {"inference": 0.1, "update": 0.1}
TINY = {"inference": 0.001, "update": 0.001}
GPU = {"cuda": True}
SHORT = 2e-4
"""Seconds of a step that takes less time than a worker needs to answer."""

CASES = {
    "env: cores to spare": (facts("env"), ["env.workers=4"]),
    "env: more workers than environments": (facts("env", "env.count=3"), ["env.workers=3"]),
    "env: fewer workers than groups": (facts("env", "env.groups=8"), ["env.workers=4 env.groups=4"]),
    "env: too few workers": (facts("env", "env.workers=2"), ["env.workers=4"]),
    "env: one core": (facts("env", cores=1), []),
    "env: steps too short for workers": (facts("env", step_seconds=SHORT), ["env.count=64 env.workers=4"]),
    "env: steps far too short for workers": (facts("env", step_seconds=SHORT / 20), []),
    "env: every environment has a worker": (facts("env", "env.count=3", "env.workers=3"), ["env.count=4 env.workers=4"]),
    "env: all cores step": (facts("env", "env.workers=4"), []),
    "env: all cores step by themselves": (facts("env", "env.id=null", "env.rocket={}"), []),
    "env: RocketSim does not": (facts("env", "env.id=null", "env.rocket={simulator: rocketsim}"), ["env.workers=4"]),
    "env: all cores step, mostly waiting": (facts("env", "env.workers=4", step_seconds=2 * ROUND_TRIP), ["env.count=32"]),
    "env: one group": (facts("env", "env.workers=4", "env.groups=1",
                             share={"env": 0.5, "inference": 0.3, "gae": 0.0, "update": 0.2, "other": 0.0}), ["env.groups=2"]),
    "env: one group, little inference": (facts("env", "env.workers=4", "env.groups=1"), []),
    "env: on the GPU": (facts("env", capturable=True, **GPU), ["env.count=32"]),
    "env: on the GPU, not captured": (facts("env", "graphs=false", capturable=True, **GPU), ["graphs=true", "env.count=32"]),
    "inference: small batches": (facts("inference", efficiency=LOW), ["env.count=64"]),
    "inference: small batches on a GPU": (facts("inference", efficiency=LOW, **GPU), ["env.count=64"]),
    "inference: tiny batches on a GPU": (facts("inference", efficiency=TINY, **GPU), ["env.count=64", "device=cpu"]),
    "inference: tiny batches in a graph": (facts("inference", efficiency=TINY, capturable=True, **GPU), ["env.count=64"]),
    "inference: arithmetic": (facts("inference"), []),
    "inference: arithmetic on one thread": (facts("inference", threads=1), ["threads=4"]),
    "inference: arithmetic on a GPU": (facts("inference", threads=1, **GPU), ["precision=bf16"]),
    "inference: not captured": (facts("inference", "graphs=false", "precision=bf16", capturable=True, **GPU), ["graphs=true"]),
    "inference: cannot be captured": (facts("inference", "graphs=false", "precision=bf16", **GPU), []),
    "gae": (facts("gae"), ["env.count=32 ppo.rollout_steps=16"]),
    "gae: whole sequences": (facts("gae", "policy.memory.kind=gru", "policy.memory.sequence=32"), []),
    "gae: not captured": (facts("gae", "graphs=false", capturable=True, **GPU),
                          ["graphs=true", "env.count=32 ppo.rollout_steps=16"]),
    "update: small minibatches": (facts("update", efficiency=LOW), ["ppo.minibatch_size=256"]),
    "update: no larger than what there is": (facts("update", efficiency=LOW, samples=100), ["ppo.minibatch_size=100"]),
    "update: small rollouts": (facts("update", efficiency=LOW, samples=64), ["env.count=32 ppo.minibatch_size=128"]),
    "update: many epochs": (facts("update", "ppo.epochs=10"), ["ppo.epochs=5"]),
    "update: arithmetic": (facts("update"), []),
    "update: arithmetic on one thread": (facts("update", threads=1), ["threads=4"]),
    "update: arithmetic on a GPU": (facts("update", **GPU), ["precision=bf16", "compile=true"]),
    "update: everything is on": (facts("update", "precision=bf16", "compile=true", **GPU), []),
    "update: memory is not compiled": (facts("update", "precision=bf16", "policy.memory.kind=lstm", **GPU), []),
    "update: not captured": (facts("update", "graphs=false", "precision=bf16", "compile=true", **GPU), ["graphs=true"]),
    "update: too little for a GPU": (facts("update", "compile=true", efficiency=TINY, **GPU),
                                     ["ppo.minibatch_size=256", "device=cpu"]),
    "other": (facts("other"), ["ppo.rollout_steps=64"]),
}


@pytest.mark.parametrize("case", CASES)
def test_each_piece_of_advice_is_given_when_it_is_due_and_not_otherwise(case: str) -> None:
    given, expected = CASES[case]
    advice = advise(given)
    assert [suggestion.settings for suggestion in advice.suggestions] == expected
    assert advice.bottleneck == case.partition(":")[0]
    assert str(advice).startswith(f"bottleneck: {advice.bottleneck}, because it takes ")
    for suggestion in advice.suggestions:  # each can be typed as it is, and changes something
        assert load_config("cartpole", [*_as_overrides(given), *suggestion.settings.split()]) != given.config


def _as_overrides(given: Facts) -> list[str]:
    plain = given.config.model_dump(mode="json")
    return [f"{key}={json.dumps(value)}" for key, value in plain.items()]


def test_the_largest_share_is_the_bottleneck_and_an_idle_gpu_is_reported() -> None:
    share = {"env": 0.3, "inference": 0.31, "gae": 0.05, "update": 0.29, "other": 0.05}
    advice = advise(facts("env", share=share, gpu_busy=0.234, cuda=True))
    assert advice.bottleneck == "inference" and "31%" in str(advice) and "the GPU computes 23% of the time" in str(advice)
    assert "GPU" not in str(advise(facts("env", share=share)))


@pytest.mark.parametrize(("bottleneck", "changes", "told"), [
    ("update", {"busy_cores": 0.4}, True),
    ("update", {"busy_cores": 0.9}, False),
    ("env", {"busy_cores": 0.4}, False),  # it may be the environment that waits
    ("update", {"busy_cores": 0.4, "cuda": True}, False),  # the host waits for the GPU
])
def test_a_machine_that_is_busy_with_other_programs_is_reported(bottleneck: str, changes: dict[str, Any], told: bool) -> None:
    assert ("other programs slow it down" in str(advise(facts(bottleneck, **changes)))) == told


# --- the baseline ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("then", "now", "told"), [
    ([100, 110, 120], [121, 130, 140], "+18% faster"),
    ([100, 110, 120], [120, 130, 140], "+18% noise"),
    ([100, 110, 120], [80, 90, 99], "-18% slower"),
    ([100, 110, 120], [80, 90, 100], "-18% noise"),
    ([100, 110, 120], [100, 110, 120], "+0% noise"),
    ([1, 100, 1000], [200, 200, 200], "+100% noise"),
])
def test_a_difference_counts_only_beyond_the_spread_of_the_rounds(then: list[float], now: list[float], told: str) -> None:
    assert str(compare(then, now)) == told


def test_the_first_measurement_is_the_baseline_of_later_ones(capsys: pytest.CaptureFixture[str]) -> None:
    path = default_path(load_config("cartpole", SMALL))
    first = command.diagnose("env", "cartpole", SMALL, rounds=2)
    assert "since" not in capsys.readouterr().out
    assert Baseline.read(path) == first.measured and set(first.measured.rates) == {"env"}
    kept = path.read_bytes()

    command.diagnose("env", "cartpole", [*SMALL, "seed=5", "total_steps=77"], rounds=2)
    printed = capsys.readouterr().out
    assert re.search(r"│ env .*[+-]\d+% (faster|slower|noise) │", printed) and "compared with" in printed
    assert path.read_bytes() == kept, "only the first one is kept by itself"

    second = command.diagnose("inference", "cartpole", SMALL, rounds=2)
    assert "added: inference" in capsys.readouterr().out
    both = Baseline.read(path)
    assert both is not None and both.rates == {**first.measured.rates, **second.measured.rates}

    third = command.diagnose("env", "cartpole", SMALL, rounds=2, save=True)
    both = Baseline.read(path)
    assert both is not None and both.rates == {**third.measured.rates, "inference": second.measured.rates["inference"]}
    assert default_path(load_config("cartpole", [*SMALL, "env.workers=2"])) != path


def test_a_slowdown_is_flagged_and_what_else_changed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kept.json"
    command.diagnose("env", _sleepy(tmp_path, 0.0), baseline=file, rounds=2)
    capsys.readouterr()
    kept = file.read_bytes()
    found = command.diagnose("env", _sleepy(tmp_path, 2e-3), baseline=file, rounds=2)
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"│ env │.*-\d+% slower │", printed)
    assert "under other conditions: env.kwargs.delay: 0.0 -> 0.002" in printed
    assert file.read_bytes() == kept
    here = found.measured.machine
    faster = {"env": [1e9], "update": [1e9]}
    elsewhere = found.measured.model_copy(update={"machine": {**here, "device": "another", "cores": 96}, "rates": faster})
    assert list(differences(elsewhere, found.measured)) == [
        f"machine.device: another -> {here['device']}", f"machine.cores: 96 -> {here['cores']}"]
    assert found.measured.over(elsewhere) == found.measured, "metrics of two machines are not mixed"


GOOD = Baseline(saved="now", machine={}, config={}, rates={"env": [1.0]}).model_dump()
BROKEN = {
    "empty": b"", "cut off": b'{"version": 1, "saved": "n', "binary": bytes(range(256)), "a list": b"[]",
    "a config file": b"env: {id: CartPole-v1}\n",
    "another format": json.dumps({**GOOD, "version": 2}).encode(),
    "no rounds": json.dumps({**GOOD, "rates": {"env": []}}).encode(),
    "not positive": json.dumps({**GOOD, "rates": {"env": [0.0]}}).encode(),
    "not finite": json.dumps({**GOOD, "rates": {"env": [float("nan")]}}).encode(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_baseline_is_reported_and_not_overwritten(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.json"
    file.write_bytes(content)
    command.diagnose("env", "cartpole", SMALL, baseline=file, rounds=2)
    printed = " ".join(capsys.readouterr().out.split())
    assert "│ env │" in printed and "is no baseline of `wavedash diagnose`" in printed and "--save puts a new one" in printed
    assert file.read_bytes() == content
    found = command.diagnose("env", "cartpole", SMALL, baseline=file, rounds=2, save=True)
    assert Baseline.read(file) == found.measured and (tmp_path / "kept.json.broken").read_bytes() == content


def test_a_baseline_that_cannot_be_written_is_reported_after_the_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "file" / "kept.json"):
        command.diagnose("env", "cartpole", SMALL, baseline=place, rounds=2, save=True)
        printed = capsys.readouterr().out
        assert printed.index("│ env ") < printed.index("the baseline") < printed.index("--baseline FILE")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_the_table_shows_medians(capsys: pytest.CaptureFixture[str]) -> None:
    found = command.diagnose("env", "cartpole", SMALL, rounds=5)
    rates = found.timing.rates("env")
    assert f"{statistics.median(rates):,.0f} │ {min(rates):,.0f} - {max(rates):,.0f} │" in capsys.readouterr().out
