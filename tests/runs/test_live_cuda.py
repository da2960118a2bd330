"""Changes to a run on a GPU: no CUDA graph is captured anew, and the graphs that are replayed read the new values."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runs.test_live import Asking, LastWords, trained
from wavedash.ppo.gae import gae, next_values
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

SETTINGS = ("rocket-1v1", "device=cuda", "env.count=64", "ppo.rollout_steps=16", "ppo.minibatch_size=512", "ppo.epochs=2",
            "policy.hidden=[32]", "report.console=off", "report.tensorboard=false", "rating=null", "total_steps=24_000",
            "ppo.normalize_reward=false",
            "env.rocket.rewards={velocity_player_to_ball: 1, face_ball: 1}", "env.rocket.zero_sum=0",
            "env.rocket.endings={goal: {}, time_out: {seconds: 100}}")
CHANGES = ("ppo.gamma=0.5", "ppo.gae_lambda=0.25", "ppo.learning_rate=1e-3", "ppo.entropy_coef=0.5", "ppo.clip_range=0.01",
           "env.rocket.rewards.face_ball=0", "env.rocket.team_spirit=1", "env.rocket.endings.time_out.seconds=0.1")
AT = 5


class Watch(Listener):
    """Keeps the graphs, and what each rollout shows of the settings."""

    def __init__(self) -> None:
        self.graphs: list[set[int]] = []
        self.rows: list[dict[str, float]] = []
        self.exact: list[bool] = []
        self.tensors: dict[str, Any] = {}

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        calls: list[Any] = [*learner._graphs.values(), *(step for _, step in learner.updater._graphs.values())]
        self.graphs.append({id(call.graph) for call in calls if getattr(call, "graph", None) is not None})
        self.rows.append(dict(report.metrics))
        ppo, rollout = learner.config.ppo, learner.rollout
        # The value after the rollout is not kept, so the last step of each row is left out.
        following = next_values(rollout.value, rollout.value[-1], rollout.final_value, rollout.terminated, rollout.truncated)
        reference = gae(rollout.reward, rollout.value, following, rollout.done, rollout.active, ppo.gamma, 0.0)
        chained = rollout.advantage[:-1] - reference[:-1]
        linked = ppo.gamma * ppo.gae_lambda * (~rollout.done[:-1] & rollout.active[:-1] & rollout.active[1:])
        self.exact.append(torch.allclose(chained, linked * rollout.advantage[1:], rtol=1e-4, atol=1e-4))
        self.tensors = {name: float(x) for name, x in learner.updater.loss.coefficients.items()}


def test_nothing_is_captured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    watch, last = Watch(), LastWords()
    trained(tmp_path, SETTINGS, Asking(*CHANGES, at=AT), watch, last)
    assert [answer.done for answer in last.answers] == [True], last.answers
    assert len(watch.graphs[AT - 1]) >= 2, "collection and update are graphs by now"
    assert all(graphs == watch.graphs[AT - 1] for graphs in watch.graphs[AT:]), "and stay the same ones"
    assert all(watch.exact), "advantages are those of the discounts of their time"
    faces = [abs(row["env/reward/face_ball"]) for row in watch.rows]
    assert all(x > 0 for x in faces[:AT]) and not any(faces[AT:])
    assert watch.rows[AT]["rollout/episodes"] > 10 * max(1.0, watch.rows[AT - 1].get("rollout/episodes", 0.0)), "they end soon"
    assert watch.tensors == pytest.approx({"clip_range": 0.01, "entropy_coef": 0.5})
