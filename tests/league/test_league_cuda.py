"""The league of a run on a GPU: rollouts stay one CUDA graph while opponents are exchanged, and a run is resumed with them."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.league.leagues import Stop, saved, trained
from wavedash.league.league import League
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.changes import change
from wavedash.training import resume

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


class Watch(Listener):
    """Looks, before the league does, at what has just played: its weights, and the graph that played it."""

    def __init__(self) -> None:
        self.graphs: set[int] = set()
        self.opponents: set[tuple[str | None, ...]] = set()

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        (league,) = (listener for listener in learner.listeners if isinstance(listener, League))
        self.opponents.add(tuple(league.state.seats))
        self.graphs |= {id(call.graph) for call in learner._graphs.values() if call.graph is not None}
        home = league.seating.home
        assert home.actors is not None
        for slot in home.slots:
            weights = league.pool.read(league.state.seats[slot])
            for name, x in home.actors._places(slot):
                assert torch.equal(x.cpu().flatten(), weights[name].to(x.dtype).flatten()), (slot, name)


@pytest.mark.parametrize("options", [
    ["precision=bf16"],
    ["policy.memory={kind: gru, size: 8, sequence: 8}", "opponents.members=[chaser]"],
], ids=["bf16", "gru, chaser"])
def test_opponents_are_exchanged_without_another_capture_and_a_run_is_resumed(options: list[str], tmp_path: Path) -> None:
    watch, size = Watch(), ["device=cuda", "env.count=256", "env.groups=1", "ppo.minibatch_size=1024", "opponents.slots=4",
                            "opponents.snapshot_every=8000", "checkpoint.every=20000", "total_steps=100000"]
    run = trained(tmp_path, *size, *options, listeners=(watch, Stop(20)))
    assert len(watch.opponents) > 3 and len(watch.graphs) == 1, "one graph for all opponents"
    before = saved(run)
    assert resume(str(run), "total_steps=110000") == 0
    after = saved(run)
    assert after["draws"] > before["draws"] and after["members"][0] != before["members"][0], "games go on being counted"
    told = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["league/games"] for line in told) > 1000 and told[-1]["health/failed_snapshots"] == 0


class Share(Listener):
    """Changes the opponents' share after some iterations, and keeps the arenas that have opponents, and the graph."""

    def __init__(self) -> None:
        self.playing: list[list[int]] = []
        self.graphs: set[int] = set()

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.playing.append([int((task.line_up.seats != 0).any(-1).sum()) for task in learner.env.tasks])
        self.graphs |= {id(call.graph) for call in learner._graphs.values() if call.graph is not None}
        if report.iteration in (6, 12, 18):
            change(learner, {"opponents.share": {6: 0.25, 12: 0.5, 18: 0.0}[report.iteration]})


def test_the_share_changes_in_all_team_sizes_without_another_capture(tmp_path: Path) -> None:
    """An episode has at most 23 steps, so three iterations of 8 steps after a change all arenas have followed it."""
    watch = Share()
    run = trained(tmp_path, "device=cuda", "env.count=256", "ppo.minibatch_size=1024", "opponents.slots=4",
                  "total_steps=1_000_000", "opponents.most=0.5", "opponents.share=0", "opponents.snapshot_every=20000",
                  "rating=null",
                  "env.rocket.sizes={1v1: 0.5, 2v2: 0.5}", "env.rocket.observation={advanced_obs_plus: {team_size: 2}}",
                  listeners=(watch, Stop(24)))
    assert watch.playing[5] == [0, 0] and watch.playing[11] == [32, 32] and watch.playing[17] == [64, 64]
    assert watch.playing[23] == [0, 0] and len(watch.graphs) == 1, "one graph for all shares"
    told = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["league/games"] for line in told[:6]) == 0 < sum(line["league/games"] for line in told[6:])
    assert resume(str(run), f"total_steps={saved(run)['steps'] + 10_000}") == 0
