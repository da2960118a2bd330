"""What rlgym-ppo tells about an iteration: the same figures under the same names, printed and sent to Weights & Biases."""
from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from wavedash.policy.heads import ContinuousHead
from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

GROUPS = (
    ("Policy Reward", "Policy Entropy", "Value Function Loss"),
    ("Mean KL Divergence", "SB3 Clip Fraction", "Policy Update Magnitude", "Value Function Update Magnitude"),
    ("Collected Steps per Second", "Overall Steps per Second"),
    ("Timestep Collection Time", "Timestep Consumption Time", "PPO Batch Consumption Time", "Total Iteration Time"),
    ("Cumulative Model Updates", "Cumulative Timesteps"),
    ("Timesteps Collected",),
)
AVERAGE_DECAY = 0.9
"""Of the average reward, per episode"""


def iteration_report(learner: Learner, report: IterationReport, average_reward: float | None) -> dict[str, float]:
    """Figures that could not be measured are NaN."""
    figures, seconds = report.figures, report.seconds
    steps, total = int(figures["rollout/steps"]), sum(seconds.values())
    collection = sum(seconds.get(part, 0.0) for part in ("collect", "env", "inference"))
    head = learner.policy.head
    dimensions = head.size if isinstance(head, ContinuousHead) else 1  # there it is a mean over them
    policy_moved, value_moved = _update_sizes(learner)
    return {
        "Policy Reward": math.nan if average_reward is None else average_reward,
        "Policy Entropy": figures.get("policy/entropy", math.nan) / dimensions,
        "Value Function Loss": figures.get("loss/value", math.nan),
        "Mean KL Divergence": figures.get("policy/kl", math.nan),
        "SB3 Clip Fraction": figures.get("policy/clip_fraction", math.nan),
        "Policy Update Magnitude": policy_moved,
        "Value Function Update Magnitude": value_moved,
        "Collected Steps per Second": steps / max(collection, 1e-9),
        "Overall Steps per Second": report.steps_per_second,
        "Timestep Collection Time": collection,
        "Timestep Consumption Time": total - collection,
        "PPO Batch Consumption Time": seconds.get("update", 0.0) / max(figures["optim/gradient_steps"], 1.0),
        "Total Iteration Time": total,
        "Cumulative Model Updates": model_updates(learner),
        "Cumulative Timesteps": report.steps,
        "Timesteps Collected": steps,
    }


def model_updates(learner: Learner) -> int:
    return int(learner.updater.optimizer.steps["actor"])


def _update_sizes(learner: Learner) -> list[float]:
    """How far the actor's and the critic's weights moved."""
    optimizer = learner.updater.optimizer
    now = [optimizer.parts[group][0][0] for group in ("actor", "critic")]
    before = learner.before_update["parameters"].split([len(part) for part in now])  # type: ignore[no-untyped-call]
    return torch.stack([torch.linalg.vector_norm(a - b) for a, b in zip(now, before, strict=True)]).tolist()


def as_text(figures: Mapping[str, float]) -> str:
    """The block that rlgym-ppo prints."""
    blocks = ["\n".join(f"{name}: {_number(figures[name])}" for name in group) for group in GROUPS]
    return "\n".join(["-" * 8 + "BEGIN ITERATION REPORT" + "-" * 8, "\n\n".join(blocks),
                      "-" * 8 + "END ITERATION REPORT" + "-" * 8, "", ""])


def _number(value: float) -> str:
    return f"{value:,d}" if isinstance(value, int) else f"{value:7,.5f}"


class RecordingRun:
    """What loggers know as `wandb_run`: figures go into our own files too, and a failing tracker does not end the training."""

    def __init__(self, run: Any = None) -> None:
        self.run = run
        self.figures: dict[str, float] = {}
        self._failed = False

    def log(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        self.figures |= numbers_of(data)
        self.send(data, *args, **options)

    def send(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        """Without keeping it."""
        if self.run is None:
            return
        try:
            self.run.log(data, *args, **options)
        except Exception as error:
            if not self._failed:
                log.warning("Weights & Biases did not take a report (%s); training and metrics.jsonl go on without", error)
            self._failed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """The entries that are single numbers."""
    numbers: dict[str, float] = {}
    for name, value in data.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            numbers[name] = float(value)
    return numbers


class Reporter(Listener):
    """Prints the report, lets the user's logger report, and passes everything on to the other listeners of the run, to which
    the user's figures come as `user/<name>`."""

    def __init__(self, metrics_logger: Any, run: RecordingRun) -> None:
        self.listeners: Sequence[Listener] = ()
        self.average_reward: float | None = None
        self.run = run
        self.logger = metrics_logger
        self.before_next: Callable[[], None] = lambda: None
        """Called at the end of every iteration, when all have had their say."""

    @property
    def health(self) -> Mapping[str, int]:  # type: ignore[override]
        return {name: count for listener in self.listeners for name, count in listener.health.items()}

    def on_start(self, learner: Learner) -> None:
        for listener in self.listeners:
            listener.on_start(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self._average(report.figures)
        self.run.figures = {}
        if self.logger is not None:
            collected = [metrics for world in learner.env.notes() for metrics in world]  # type: ignore[attr-defined]
            self.logger.report_metrics(collected, self.run, learner.steps)
        own = iteration_report(learner, report, self.average_reward)
        self.run.send(own)
        with contextlib.suppress(OSError):  # output that goes to a full disk or a closed terminal
            print(as_text(own), flush=True)
        user = {f"user/{name}": value for name, value in self.run.figures.items()}
        told = replace(report, figures={**report.figures, **user})
        for listener in self.listeners:
            listener.on_iteration(learner, told)
        self.before_next()

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """The last first: the run is saved before anything is waited for."""
        with ExitStack() as each:  # all are told, whatever one of them does
            for listener in self.listeners:
                each.callback(listener.on_stop, learner, error)

    def _average(self, figures: Mapping[str, float]) -> None:
        """Over episodes, the latest count most; those of one iteration count alike."""
        if "rollout/return" not in figures:
            return
        mean = figures["rollout/return"]
        old = AVERAGE_DECAY ** figures["rollout/episodes"]
        self.average_reward = mean if self.average_reward is None else old * self.average_reward + (1.0 - old) * mean
