"""Viewers follow a run: the next game is played by its newest checkpoint, and they see no gap."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.serving import PATIENCE, Server, next_of, tell, until
from tests.web.training import Training

pytest.importorskip("RocketSim")
TINY = ("rocket-1v1", "env.rocket.simulator=rocketsim", "env.count=2", "env.workers=0", "rating=null", "policy.hidden=[8]",
        "ppo.rollout_steps=32", "ppo.minibatch_size=128", "total_steps=1000000000", "report.console=plain",
        "report.tensorboard=false", "checkpoint.every=500", "checkpoint.keep=1")
"""A training that replaces its only checkpoint all the time"""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with Training(tmp_path_factory.mktemp("runs"), *TINY) as training:
        until(lambda: list(training.run.glob("checkpoints/step-*")), "checkpoint")
        yield training


def step_of(name: str) -> int:
    """Which checkpoint plays, as the stage itself says."""
    assert name.startswith("rocket-1v1@")
    return int(name.partition("@")[2])


def next_game(viewer: Any) -> tuple[int, list[str]]:
    """Has somebody score, and returns which checkpoint plays the next game, and the states that viewers were told meanwhile."""
    tell(viewer, "place", ball={"position": [0, 4900, 100], "velocity": [0, 3000, 0]})
    next_of(viewer, "header")
    next_of(viewer, "end")
    states = []
    while (message := json.loads(next_text(viewer)))["type"] != "header":
        states += [message["state"]] if message["type"] == "status" else []
    next_of(viewer, "frame")
    return step_of(message["players"][0]["name"]), states


def next_text(viewer: Any) -> str:
    while isinstance(message := viewer.recv(timeout=PATIENCE), bytes):
        pass
    return str(message)


@pytest.mark.slow
def test_the_next_game_is_played_by_the_newest_checkpoint(training: Training) -> None:
    with Server(training.root, str(training.run)) as server, server.socket() as viewer:
        (run,) = server.json("/api/runs")
        assert server.json("/api/about")["run"] == run["id"]
        ids = {player["name"]: player["id"] for player in server.json("/api/players") if player["run"] == run["id"]}
        first = step_of(next_of(viewer, "status", state="playing")["who"]["blue"])
        tell(viewer, "speed", value=2)
        tell(viewer, "drive", car=1)
        next_of(viewer, "status", speed=2.0, humans=[1])
        for _ in range(50):
            step, states = next_game(viewer)
            assert set(states) <= {"playing"}, "nobody waits for players to be loaded"
            if step != first:
                break
        assert step > first, "a newer checkpoint has never played"
        next_of(viewer, "status", speed=2.0, humans=[1])  # what viewers have chosen stays
        same = {player["name"]: player["id"] for player in server.json("/api/players") if player["run"] == run["id"]}
        assert same["rocket-1v1 newest"] == ids["rocket-1v1 newest"] and "Traceback" not in server.errors.read_text()
        assert not list(training.run.glob(f"checkpoints/step-{first:012d}")), "what played first was pruned long ago"
        assert training.goes_on()
        training.end()
        assert until(lambda: server.json("/api/runs")[0]["state"] == "stopped", "end of the run")
        next_of(viewer, "frame")  # its last checkpoint plays on
