"""MetricsLogger is the base of loggers that read states of the game. It runs in worker processes, without torch.

What is collected in one step is sent as one float32 vector, as in rlgym-ppo: for every metric the number of its axes, their
sizes, and its numbers. Loggers that override `report_metrics` read these vectors themselves.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavedash.envs.host import Array


class MetricsLogger:
    """Collects metrics from every state of the game in the worker processes, and reports once an iteration. Override the two
    methods with an underscore; the logger is sent to the workers, so it must be picklable."""

    def collect_metrics(self, game_state: Any) -> Array:
        return packed(self._collect_metrics(game_state))

    def report_metrics(self, collected_metrics: Sequence[Array], wandb_run: Any, cumulative_timesteps: int) -> None:
        self._report_metrics([unpacked(vector) for vector in collected_metrics], wandb_run, cumulative_timesteps)

    def _collect_metrics(self, game_state: Any) -> Sequence[Any]:
        """Is called in a worker after every step; returns numbers and arrays of any shape."""
        raise NotImplementedError

    def _report_metrics(self, collected_metrics: Sequence[list[Array]], wandb_run: Any, cumulative_timesteps: int) -> None:
        """Is called in the learner's process. `collected_metrics` has one entry per step, with every metric as a flat float32
        array. Report metrics with `wandb_run.log({...})`."""
        raise NotImplementedError


def packed(metrics: Sequence[Any]) -> Array:
    """Packs all metrics of a step into one vector."""
    parts: list[Array] = []
    for metric in metrics:
        array = np.asarray(metric, np.float32)
        parts += [np.asarray([array.ndim, *array.shape], np.float32), array.ravel()]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def unpacked(vector: Array) -> list[Array]:
    """Returns the metrics of a step, each flat."""
    metrics, at = [], 0
    while at < len(vector):
        axes = int(vector[at])
        begin = at + 1 + axes
        at = begin + int(np.prod(vector[at + 1 : begin]))
        metrics.append(vector[begin:at])
    return metrics
