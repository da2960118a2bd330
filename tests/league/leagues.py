"""Shared by the tests of leagues: tiny runs against opponents, and everything that a resumed one must have in common with one
that was never stopped."""
from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import torch

from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.envs.spaces import space_to_json
from wavedash.league.pool import Pool
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.rocket.kind import RocketKind
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.training import train

TINY = ("env.count=12", "env.groups=2", "ppo.rollout_steps=8", "ppo.epochs=1", "ppo.minibatch_size=96", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1", "env.rocket.starts={save: 1}",
        "env.rocket.endings={goal: {}, time_out: {seconds: 1.5}}", "checkpoint.every=800", "opponents.share=0.5",
        "opponents.slots=3", "opponents.snapshot_every=500", "opponents.refresh_every=2", "opponents.pool=4")
"""Balls fly at a goal, so there are results in every iteration. An iteration is about 140 steps."""


class Stop(Listener):
    """Ends a run after an iteration."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration >= self.after:
            learner.stop("that is enough")


class KillSoon(Listener):
    """Kills its process with SIGKILL, some time after an iteration."""

    def __init__(self, after: int, seconds: float) -> None:
        self.after, self.seconds = after, seconds

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == self.after:
            Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def trained(root: Path, *overrides: str, preset: str = "rocket-1v1", listeners: tuple[Listener, ...] = ()) -> Path:
    """The folder of a new run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train(preset, *TINY, *overrides, listeners=listeners) == 0
    (run,) = root.glob("*/*/")
    return run


def saved(run: Path, checkpoint: Path | None = None) -> dict[str, Any]:
    """The state of the league in a checkpoint, by default in the newest one."""
    checkpoint = checkpoint or max(run.glob("checkpoints/step-*"))
    league: dict[str, Any] = json.loads((checkpoint / "state.json").read_text())["listeners"]["league"]
    return league


def ending(run: Path) -> dict[str, Any]:
    """What the end of a run must be, bit for bit: weights, arenas, random streams, metrics, and the league with its files."""
    (final,) = run.glob("final/step-*")
    league, told = saved(run), [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        "tensors": {path.name: path.read_bytes() for path in final.glob("*.safetensors")},
        "league": league,
        "pool": {member["name"]: (run / "league" / member["name"] / "policy.safetensors").read_bytes()
                 for member in league["members"] if member["sha256"] is not None},
        "results": (run / "league" / "results.csv").read_text(),
        "metrics": [{name: x for name, x in line.items() if not name.startswith(("time/", "health/"))} for line in told],
    }


def policy_folder(path: Path, *overrides: str, preset: str = "rocket-1v1", seed: int = 1) -> Path:
    """A policy from elsewhere, with clear preferences among its actions."""
    config = load_config(preset, [f"seed={seed}", *overrides])
    policy = make_policy(RocketKind().spaces(config.env, torch.device("cpu")), config)
    with torch.no_grad():
        for p in policy.head.parameters():
            p.mul_(1000.0)
    clip = config.ppo.obs_clip if config.ppo.normalize_obs else None
    state = {"steps": 7, "fingerprint": {
        "observation_space": space_to_json(policy.observation_space), "action_space": space_to_json(policy.action_space),
        "policy": policy.config.model_dump(mode="json"), "normalize_obs": clip}}
    return PolicyFolder(path.parent / Pool(path.parent).add(path.name, config, policy.state_dict(), state)).path
