"""Synthetic iterations for the report tests."""
from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from wavedash.envs.headline import Headline
from wavedash.ppo.listener import IterationReport, Listener

STEPS = 100
"""Steps of each iteration."""


def make_report(iteration: int, total_steps: int = 1_000, **metrics: float) -> IterationReport:
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return IterationReport(
        iteration=iteration, steps=STEPS * iteration, total_steps=total_steps, episodes=3 * iteration,
        metrics={"rollout/steps": float(STEPS), **named},
        seconds={"env": 0.2, "inference": 0.1, "gae": 0.01, "update": 0.6, "other": 0.09},
    )


def stand_in_learner(steps: int = 0, headlines: Sequence[Headline] = ()) -> Any:
    """It has what reports read of a learner."""
    return SimpleNamespace(steps=steps, env=SimpleNamespace(headlines=headlines))


def play(
    listener: Listener, iterations: range, stop: bool = True, headlines: Sequence[Headline] = (), **metrics: float
) -> None:
    """Tells the listener of a whole run; with `stop=False` the run was killed."""
    learner = stand_in_learner(STEPS * (iterations.start - 1), headlines)
    listener.on_start(learner)
    for iteration in iterations:
        listener.on_iteration(learner, make_report(iteration, **metrics))
    if stop:
        listener.on_stop(learner, None)
