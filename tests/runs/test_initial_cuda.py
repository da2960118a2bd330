"""`init` and the critic's warm-up on a GPU: with CUDA graphs, compiled networks and bf16 they do what they do on a CPU."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import wavedash
from tests.ppo.combinations import Combination, learner_of
from tests.ppo.learners import learner_over, run_config
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.ppo.graphs import CapturedCall
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.training import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

WARMUP = 3
PPO = {"rollout_steps": 16, "minibatch_size": 256, "epochs": 2, "normalize_reward": True, "weight_decay": 0.01,
       "critic_warmup": WARMUP}
"""Eight minibatches an epoch: within one iteration the step of a minibatch is captured."""


def weights(learner: Learner, part: str) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in learner.policy.state_dict().items() if name.startswith(part)}


def captured(learner: Learner) -> list[bool]:
    steps = [step for _, step in learner.updater._graphs.values()]
    return [isinstance(step, CapturedCall) and step.graph is not None for step in steps]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_captured_steps_leave_the_actor_alone_until_the_warmup_is_over(precision: str, compiled: bool) -> None:
    torch._dynamo.reset()
    config = run_config(PPO, {"hidden": [64, 64]}, precision=precision, compile=compiled)
    learner = learner_over(SyntheticEnv(128, "cuda"), config)
    actor, critic = weights(learner, "actor"), weights(learner, "critic")
    for _ in range(WARMUP):
        learner.iterate()
    assert captured(learner) and all(captured(learner))
    assert all(torch.equal(x, actor[name]) for name, x in weights(learner, "actor").items())
    assert not any(torch.equal(x, critic[name]) for name, x in weights(learner, "critic").items())
    for _ in range(2):
        metrics = learner.iterate().metrics
    assert captured(learner) and all(captured(learner)), "the steps of both were captured anew"
    assert not any(torch.equal(x, actor[name]) for name, x in weights(learner, "actor").items())
    assert metrics["optim/skipped"] == 0
    steps = learner.updater.optimizer.steps
    assert steps["actor"].item() > 0 and steps["critic"].item() > steps["actor"].item()


def test_replaying_graphs_gives_what_running_each_operation_gives() -> None:
    combo = Combination("none", "discrete", True, False, "fp32")
    runs = [learner_of(combo, device="cuda", graphs=graphs, ppo={"critic_warmup": WARMUP}) for graphs in (False, True)]
    plain, replayed = ([run.iterate().metrics for _ in range(2 * WARMUP)] for run in runs)
    for a, b in zip(plain, replayed, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-4)


class Watch(Listener):
    """Copies the weights at the beginning and after every iteration."""

    def __init__(self) -> None:
        self.weights: list[dict[str, Tensor]] = []
        self.devices: set[str] = set()

    def on_start(self, learner: Learner) -> None:
        self.devices = {x.device.type for x in learner.policy.parameters()}
        self._copy(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._copy(learner)

    def _copy(self, learner: Learner) -> None:
        self.weights.append({name: x.cpu().clone() for name, x in learner.policy.state_dict().items()})


@pytest.mark.parametrize("options", [[], ["compile=true"]], ids=["eager", "compiled"])
def test_a_run_on_a_gpu_begins_with_the_champion(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    champion: dict[str, Any] = wavedash.load_policy("champion").policy.state_dict()
    run = wavedash.load_run("champion").config
    fits = [f"policy.{name}={getattr(run.policy, name)!r}".lower() for name in ("hidden", "layer_norm")]
    watch, rows = Watch(), 64 * 2
    assert train("rocket-1v1-gpu", "init=champion", "ppo.critic_warmup=1", "env.count=64", "ppo.minibatch_size=512",
                 f"total_steps={6 * 32 * rows}", "device=cuda", "report.console=off", "report.tensorboard=false", *fits,
                 *options, listeners=[watch]) == 0
    assert watch.devices == {"cuda"}
    first, warmed, *_, last = watch.weights
    assert all(torch.equal(x, champion[name]) for name, x in first.items())
    moved = {name.partition(".")[0] for name, x in warmed.items() if not torch.equal(x, champion[name])}
    assert moved == {"critic"}
    assert {"actor", "critic"} <= {name.partition(".")[0] for name, x in last.items() if not torch.equal(x, champion[name])}
