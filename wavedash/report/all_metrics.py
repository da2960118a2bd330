"""All metrics of an iteration, under the names that every file and tracker uses."""
from __future__ import annotations

from wavedash.ppo.listener import IterationReport


def all_metrics(report: IterationReport) -> dict[str, float]:
    """Returns the learner's metrics, episodes so far, speed, and the seconds spent on each part."""
    return {
        "run/iteration": report.iteration,
        "run/episodes": report.episodes,
        **report.metrics,
        "time/steps_per_second": report.steps_per_second,
        **{f"time/{part}": seconds for part, seconds in report.seconds.items()},
    }
