"""Rating while training on a GPU: its games are captured in a graph of their own, and those of the training are undisturbed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from wavedash.league.games import GamesFile
from wavedash.league.panel import Panel
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.find import resolve_checkpoint
from wavedash.training import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

STEPS = 64 * 2 * 16
"""Steps of an iteration"""
TASK = ("rocket-1v1", "env.count=64", "ppo.rollout_steps=16", "ppo.minibatch_size=1024", "policy.hidden=[32]", "precision=bf16",
        f"total_steps={(WARM_UP + 6) * STEPS}", "report.console=off", "report.tensorboard=false", "device=cuda")
RATING = f"rating={{every: {STEPS}, games: 64, seconds: 4, panel: [chaser, random], most: 1}}"


class Graphs(Listener):
    """It notes the graphs of collection and of matches after every iteration."""

    def __init__(self) -> None:
        self.of_collection: list[int] = []
        self.of_matches: list[int] = []

    def on_iteration(self, learner: Any, report: IterationReport) -> None:
        self.of_collection += [id(call.graph) for call in learner._graphs.values() if call.graph is not None]
        for panel in (listener for listener in learner.listeners if isinstance(listener, Panel)):
            assert panel._match is not None
            step = panel._match._advance
            assert isinstance(step, CapturedCall)
            self.of_matches += [] if step.graph is None else [id(step.graph)]


def test_a_run_with_a_panel_keeps_its_graphs_and_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, runs = [], []
    for name, rating in (("rated", RATING), ("plain", "rating=null")):
        monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / name))
        graphs = Graphs()
        assert train(*TASK, rating, listeners=[graphs]) == 0
        (run,) = (tmp_path / name).glob("*/*")
        runs.append(run)
        weights.append(resolve_checkpoint(run / "final").load()[0]["policy"])
        assert len(set(graphs.of_collection)) == 1 and len(graphs.of_collection) >= 4, "captured once, and not again"
        assert len(set(graphs.of_matches)) == int(name == "rated")
    for key, x in weights[0].items():
        torch.testing.assert_close(x, weights[1][key], rtol=1e-3, atol=1e-4)
    games = GamesFile(runs[0] / "games.csv").read()
    versions = {game.step for game in games}
    assert len(versions) >= 5 and len(games) == 2 * 64 * len(versions)
    assert not (runs[1] / "games.csv").exists()
