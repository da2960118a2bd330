"""Reports an iteration as rlgym-ppo does: the same metrics under the same names, printed and sent to Weights & Biases."""
from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from wavedash.policy.heads import ContinuousHead
from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

BLOCKS = (
    ("Policy Reward", "Policy Entropy", "Value Function Loss"),
    ("Mean KL Divergence", "SB3 Clip Fraction", "Policy Update Magnitude", "Value Function Update Magnitude"),
    ("Collected Steps per Second", "Overall Steps per Second"),
    ("Timestep Collection Time", "Timestep Consumption Time", "PPO Batch Consumption Time", "Total Iteration Time"),
    ("Cumulative Model Updates", "Cumulative Timesteps"),
    ("Timesteps Collected",),
)
AVERAGE_DECAY = 0.9
"""The share of the old average reward after an episode"""


def iteration_report(learner: Learner, report: IterationReport, average_reward: float | None) -> dict[str, float]:
    """Returns the metrics of an iteration under rlgym-ppo's names. Those that could not be measured are NaN."""
    metrics, seconds = report.metrics, report.seconds
    steps, total = int(metrics["rollout/steps"]), sum(seconds.values())
    collection = sum(seconds.get(part, 0.0) for part in ("collect", "env", "inference"))
    head = learner.policy.head
    dimensions = head.size if isinstance(head, ContinuousHead) else 1  # rlgym-ppo takes the mean over them
    policy_moved, value_moved = _update_sizes(learner)
    return {
        "Policy Reward": math.nan if average_reward is None else average_reward,
        "Policy Entropy": metrics.get("policy/entropy", math.nan) / dimensions,
        "Value Function Loss": metrics.get("loss/value", math.nan),
        "Mean KL Divergence": metrics.get("policy/kl", math.nan),
        "SB3 Clip Fraction": metrics.get("policy/clip_fraction", math.nan),
        "Policy Update Magnitude": policy_moved,
        "Value Function Update Magnitude": value_moved,
        "Collected Steps per Second": steps / max(collection, 1e-9),
        "Overall Steps per Second": report.steps_per_second,
        "Timestep Collection Time": collection,
        "Timestep Consumption Time": total - collection,
        "PPO Batch Consumption Time": seconds.get("update", 0.0) / max(metrics["optim/gradient_steps"], 1.0),
        "Total Iteration Time": total,
        "Cumulative Model Updates": model_updates(learner),
        "Cumulative Timesteps": report.steps,
        "Timesteps Collected": steps,
    }


def model_updates(learner: Learner) -> int:
    return int(learner.updater.optimizer.steps["actor"])


def _update_sizes(learner: Learner) -> list[float]:
    """Returns how far the weights of actor and critic moved in the last update."""
    optimizer = learner.updater.optimizer
    now = [optimizer.parts[group][0][0] for group in ("actor", "critic")]
    before = learner.before_update["parameters"].split([len(part) for part in now])  # type: ignore[no-untyped-call]
    return torch.stack([torch.linalg.vector_norm(a - b) for a, b in zip(now, before, strict=True)]).tolist()


def as_text(metrics: Mapping[str, float]) -> str:
    """Returns the text that rlgym-ppo prints."""
    blocks = ["\n".join(f"{name}: {_number(metrics[name])}" for name in block) for block in BLOCKS]
    return "\n".join(["-" * 8 + "BEGIN ITERATION REPORT" + "-" * 8, "\n\n".join(blocks),
                      "-" * 8 + "END ITERATION REPORT" + "-" * 8, "", ""])


def _number(value: float) -> str:
    return f"{value:,d}" if isinstance(value, int) else f"{value:7,.5f}"


class TrackerRun:
    """The `wandb_run` that loggers are given: metrics go into our own files too, and a tracker that fails does not end the
    training."""

    def __init__(self, run: Any = None) -> None:
        self.run = run
        self.metrics: dict[str, float] = {}
        self._failed = False

    def log(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        self.metrics |= numbers_of(data)
        self.send(data, *args, **options)

    def send(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        """Sends data to the script's run without keeping it."""
        if self.run is None:
            return
        try:
            self.run.log(data, *args, **options)
        except Exception as error:
            if not self._failed:
                log.warning("Weights & Biases did not take a report (%s); training and metrics.jsonl go on without it", error)
            self._failed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """Returns the entries that are single numbers."""
    numbers: dict[str, float] = {}
    for name, value in data.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            numbers[name] = float(value)
    return numbers


class Reporter(Listener):
    """Prints the report and calls the user's logger. The listeners after this one see the user's metrics as `user/<name>`, and
    the average reward is saved with the run."""

    def __init__(self, metrics_logger: Any, run: TrackerRun, notes: Callable[[], Iterable[Iterable[Any]]]) -> None:
        """`notes` returns what the logger has collected in each environment since the last call."""
        self.average_reward: float | None = None
        self.run = run
        self.logger = metrics_logger
        self._notes = notes

    def on_iteration(self, learner: Learner, report: IterationReport) -> dict[str, float]:
        self._average(report.metrics)
        self.run.metrics = {}
        if self.logger is not None:
            collected = [metrics for environment in self._notes() for metrics in environment]
            self.logger.report_metrics(collected, self.run, learner.steps)
        own = iteration_report(learner, report, self.average_reward)
        self.run.send(own)
        with contextlib.suppress(OSError):  # the output may go to a full disk or a closed terminal
            print(as_text(own), flush=True)
        return {f"user/{name}": value for name, value in self.run.metrics.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"average_reward": self.average_reward}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        average = state["average_reward"]
        self.average_reward = None if average is None else float(average)

    def _average(self, metrics: Mapping[str, float]) -> None:
        """Updates the moving average over episodes; those of one iteration have equal weights."""
        if "rollout/return" not in metrics:
            return
        mean = metrics["rollout/return"]
        old = AVERAGE_DECAY ** metrics["rollout/episodes"]
        self.average_reward = mean if self.average_reward is None else old * self.average_reward + (1.0 - old) * mean
