"""Clones play as their teachers do: with discrete actions, continuous ones, and with memory where memory is needed."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from wavedash.envs.puzzles import RepeatPrevious
from wavedash.evaluate.own_task import evaluate
from wavedash.imitate.demonstrations import write_samples
from wavedash.training import train

pytestmark = pytest.mark.slow

QUIET = ("report.console=off", "report.tensorboard=false", "device=cpu", "threads=1")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def last(run: Path, metric: str) -> float:
    """The last value of a metric of the only run in a folder."""
    lines = next(run.glob("*/metrics.jsonl")).read_text().splitlines()
    return float([found[metric] for line in lines if metric in (found := json.loads(line))][-1])


def demonstrate(env: gymnasium.Env[Any, Any], act: Callable[[Any], Any], path: Path, episodes: int,
                noise: float = 0.0) -> None:
    """A scripted teacher plays; with `noise`, that share of what it does is random, but what it meant to do is written."""
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    seen, meant, number = [], [], []
    for episode in range(episodes):
        obs, over = env.reset(seed=episode)[0], False
        while not over:
            action = act(obs)
            seen.append(obs)
            meant.append(action)
            number.append(episode)
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample() if rng.random() < noise else action)
            over = terminated or truncated
    write_samples(path, torch.from_numpy(np.stack(seen)), torch.from_numpy(np.stack(meant)), torch.tensor(number))


def balance(obs: Any) -> Any:
    """CartPole: push to where the pole leans and turns."""
    return np.int64(obs[2] + 0.5 * obs[3] + 0.02 * obs[0] + 0.05 * obs[1] > 0)


def steady(obs: Any) -> Any:
    """InvertedPendulum: a force in proportion to how far off everything is."""
    return np.clip(np.array([obs @ (1.0, 8.0, 1.5, 2.0)], np.float32), -3.0, 3.0)


def test_a_clone_of_a_script_balances_as_it_does(runs: Path, tmp_path: Path) -> None:
    demonstrate(gymnasium.make("CartPole-v1"), balance, tmp_path / "d.safetensors", 20, noise=0.1)
    assert train("cartpole", *QUIET, f"imitate.data={tmp_path / 'd.safetensors'}", "total_steps=60000",
                 "imitate.every=20000") == 0
    assert last(runs / "cartpole", "imitate/held_out_accuracy") > 0.97
    assert evaluate(runs / "cartpole", episodes=20).mean > 475
    fresh = train("cartpole", *QUIET, "name=fresh", "total_steps=1", "ppo.learning_rate=1e-9")
    assert fresh == 0 and evaluate(runs / "fresh", episodes=20).mean < 200, "the control: one that has learned nothing"


@pytest.mark.parametrize("distribution", ["gaussian", "beta"])
def test_a_clone_of_a_continuous_script_holds_the_pole_up(distribution: str, runs: Path, tmp_path: Path) -> None:
    demonstrate(gymnasium.make("InvertedPendulum-v5"), steady, tmp_path / "d.safetensors", 10, noise=0.1)
    words = [*QUIET, "ppo.epochs=4", "ppo.minibatch_size=256", f"policy.distribution={distribution}", "total_steps=20000",
             "ppo.learning_rate=3e-3", "imitate.every=10000", f"imitate.data={tmp_path / 'd.safetensors'}"]
    assert train("inverted-pendulum", *words) == 0
    assert last(runs / "inverted-pendulum", "imitate/held_out_error") < 0.05
    assert evaluate(runs / "inverted-pendulum", episodes=6).mean > 900  # 1000 at best, below 50 by chance


def test_a_clone_remembers_what_its_teacher_does_and_one_without_memory_cannot(runs: Path, tmp_path: Path) -> None:
    env, shown, found = RepeatPrevious(delay=2, length=24), [], {}

    def repeat(obs: Any) -> Any:
        if env.t == 0:
            shown.clear()
        shown.append(int(obs.argmax()))
        return np.int64(shown[-1 - env.delay] if len(shown) > env.delay else 0)

    demonstrate(env, repeat, tmp_path / "d.safetensors", 300)
    for kind in ("gru", "none"):
        words = [f"name={kind}", f"policy.memory.kind={kind}", "total_steps=50000", "imitate.every=25000", "policy.hidden=[32]",
                 "env.kwargs={delay: 2, length: 24}", "ppo.learning_rate=5e-3", "ppo.epochs=2", "policy.memory.size=32"]
        assert train("repeat-previous", *QUIET, f"imitate.data={tmp_path / 'd.safetensors'}", *words) == 0
        found[kind] = evaluate(runs / kind, episodes=20).mean
    assert found["gru"] > 0.9 and found["none"] < 0.0, found
