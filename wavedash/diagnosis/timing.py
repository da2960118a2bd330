"""Times stages in turns: every stage once a round, so that a slow moment of the machine hits all of them."""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter

import torch

from wavedash.diagnosis import alone
from wavedash.diagnosis.device import wait_for
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.learner import Learner
from wavedash.training import prepare_torch

ROUND_SECONDS = 0.2
"""Of one stage in one round, at least: a single call may take microseconds."""


@dataclass(frozen=True)
class Timing:
    """How long each stage took for the samples of one iteration."""

    samples: int
    """Of an iteration"""
    seconds: Mapping[str, Sequence[float]]
    """By stage, of every round; `iteration` is a whole one"""
    parts: Mapping[str, float]
    """Seconds of a whole iteration by part, as it told itself; empty where none was timed"""

    def rates(self, stage: str) -> list[float]:
        """Samples per second, of every round."""
        return [self.samples / seconds for seconds in self.seconds[stage]]

    def shares(self) -> dict[str, float]:
        """Of a whole iteration, if one was timed. Where collection is one CUDA graph, its time is divided as its stages take it
        alone."""
        parts = dict(self.parts)
        collect = parts.pop("collect", None)
        if collect is not None:
            split = {stage: statistics.median(self.seconds[stage]) for stage in ("env", "inference", "gae")}
            parts = {stage: collect * x / sum(split.values()) for stage, x in split.items()} | parts
        return {part: seconds / sum(parts.values()) for part, seconds in parts.items()}


def time_stages(learner: Learner, stages: Iterable[str], rounds: int) -> Timing:
    """Starts the learner and times these stages of it. `iteration` trains it on; the others leave it as it is."""
    names = set(stages)
    learner.start()
    if names - {"env", "inference"}:
        warm_up(learner)
    told: list[Mapping[str, float]] = []
    work = _stages(learner, names, told)
    device = learner.env.device
    calls = {}
    for name, stage in work.items():
        with alone.unchanged(learner):
            for _ in range(WARM_UP + 1 if isinstance(stage, CapturedCall) else 1):
                stage()
            calls[name] = _calls(stage, device)
    told.clear()
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, stage in work.items():
            with nullcontext() if name == "iteration" else alone.unchanged(learner):
                seconds[name].append(_seconds(stage, calls[name], device))
    parts = {part: statistics.mean(each[part] for each in told) for part in (told[-1] if told else ())}
    return Timing(learner.config.ppo.rollout_steps * learner.env.num_rows, seconds, parts)


def race(learners: Sequence[Learner], rounds: int) -> list[list[float]]:
    """Samples per second of whole iterations, of each learner in every round."""
    rates: list[list[float]] = [[] for _ in learners]
    calls = []
    for learner in learners:
        prepare_torch(learner.config)  # threads are the process's, not the learner's
        learner.start()
        warm_up(learner)
        calls.append(_calls(learner.iterate, learner.env.device))
    for _ in range(rounds):
        for learner, count, mine in zip(learners, calls, rates, strict=True):
            prepare_torch(learner.config)
            samples = learner.config.ppo.rollout_steps * learner.env.num_rows
            mine.append(samples / _seconds(learner.iterate, count, learner.env.device))
    return rates


def warm_up(learner: Learner) -> None:
    """Iterations until the buffer is full and, on a GPU, everything is compiled and recorded."""
    times = WARM_UP + 1 if learner.env.device.type == "cuda" else 1
    while learner.iteration < times * learner.buffer.capacity:
        learner.iterate()


def _stages(learner: Learner, names: set[str], told: list[Mapping[str, float]]) -> dict[str, alone.Work]:
    work: dict[str, alone.Work] = {}
    play, spare = alone.RandomPlay(learner), alone.copy_of(learner.rollout)
    if "env" in names:
        work["env"] = alone.as_trained(learner, play, [play.generator])
    if "inference" in names:
        work["inference"] = alone.inference(learner, play, spare)
    if "gae" in names:
        work["gae"] = alone.advantages(learner, spare)
    if "update" in names:
        work["update"] = alone.update(learner)
    if "iteration" in names:
        work["iteration"] = lambda: told.append(learner.iterate().seconds)
    return work


def _calls(work: alone.Work, device: torch.device) -> int:
    """That fill a round."""
    return math.ceil(ROUND_SECONDS / _seconds(work, 1, device))


def _seconds(work: alone.Work, calls: int, device: torch.device) -> float:
    """Per call, until the device has finished."""
    wait_for(device)
    began = perf_counter()
    for _ in range(calls):
        work()
    wait_for(device)
    return (perf_counter() - began) / calls
