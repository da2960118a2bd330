"""What tests of the league's commands share: policies that have learned nothing, and games of players of known strength."""
from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from wavedash.league.games import Game
from wavedash.runs.find import resolve_checkpoint
from wavedash.training import train

TINY = ("total_steps=64", "env.count=4", "policy.hidden=[8]", "ppo.rollout_steps=16", "ppo.minibatch_size=64",
        "report.console=off", "report.tensorboard=false", "device=cpu")


def trained(root: Path, preset: str = "rocket-1v1", *overrides: str) -> Path:
    """The folder of a new run under `root`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train(preset, *TINY, *overrides) == 0
    return resolve_checkpoint(root).path.parent.parent


def policy_folder(run: Path, folder: Path) -> Path:
    """A folder with the policy of a run alone."""
    folder.mkdir()
    shutil.copy(run / "config.yaml", folder)
    for name in ("policy.safetensors", "state.json"):
        shutil.copy(resolve_checkpoint(run).path / name, folder)
    return folder


def drawn_games(strengths: dict[str, float], pairs: Sequence[tuple[str, str]], games: int, rng: np.random.Generator,
                simulator: str = "warp", step: int = 0, nu: float = 0.5) -> list[Game]:
    """Games of players whose true ratings are known, by the definition of the scale, both sides equally often."""
    made = []
    for first, second in pairs:
        for number in range(games):
            blue, orange = (first, second) if number % 2 else (second, first)
            gap = strengths[blue] - strengths[orange]
            odds = np.array([10 ** (gap / 800), nu, 10 ** (-gap / 800)])
            goals = ((1, 0), (0, 0), (0, 1))[rng.choice(3, p=odds / odds.sum())]
            made.append(Game("2026-01-01T00:00:00Z", step, blue, orange, 1, *goals, 60.0, simulator, 0))
    return made
