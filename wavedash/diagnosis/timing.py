"""Stages are timed in turns: every stage once a round, so that a slow moment of the machine affects all of them."""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter

import torch

from wavedash.assembly import prepare_torch
from wavedash.diagnosis import stages
from wavedash.diagnosis.device import synchronize
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.learner import Learner

ROUND_SECONDS = 0.2
"""The least time of one stage in one round: a single call may take microseconds."""


@dataclass(frozen=True)
class Timing:
    """The time that each stage took for the samples of one iteration."""

    samples: int
    """The samples of an iteration"""
    seconds: Mapping[str, Sequence[float]]
    """The seconds of every round, by stage; `iteration` is a whole one"""
    parts: Mapping[str, float]
    """The seconds of a whole iteration by part, as its report says; empty where none was timed"""

    def rates(self, stage: str) -> list[float]:
        """Returns samples per second, of every round."""
        return [self.samples / seconds for seconds in self.seconds[stage]]

    def shares(self) -> dict[str, float]:
        """Returns the share of each part in a whole iteration, if one was timed. Where collection is one CUDA graph, its time
        is divided in proportion to its stages alone."""
        parts = dict(self.parts)
        collect = parts.pop("collect", None)
        if collect is not None:
            split = {stage: statistics.median(self.seconds[stage]) for stage in ("env", "inference", "gae")}
            parts = {stage: collect * x / sum(split.values()) for stage, x in split.items()} | parts
        return {part: seconds / sum(parts.values()) for part, seconds in parts.items()}


def time_stages(learner: Learner, names: Iterable[str], rounds: int) -> Timing:
    """Starts the learner and times its stages of these names. `iteration` trains it; the others leave it as it is."""
    names = set(names)
    learner.start()
    if names - {"env", "inference"}:
        warm_up(learner)
    reported: list[Mapping[str, float]] = []
    work = _stages(learner, names, reported)
    device = learner.env.device
    calls = {}
    for name, stage in work.items():
        with stages.unchanged(learner):
            for _ in range(WARM_UP + 1 if isinstance(stage, CapturedCall) else 1):
                stage()
            calls[name] = _calls(stage, device)
    reported.clear()
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, stage in work.items():
            with nullcontext() if name == "iteration" else stages.unchanged(learner):
                seconds[name].append(_seconds(stage, calls[name], device))
    parts = {part: statistics.mean(each[part] for each in reported) for part in (reported[-1] if reported else ())}
    return Timing(learner.config.ppo.rollout_steps * learner.env.num_rows, seconds, parts)


def time_in_turns(learners: Sequence[Learner], rounds: int) -> list[list[float]]:
    """Returns samples per second of whole iterations, of each learner in every round."""
    rates: list[list[float]] = [[] for _ in learners]
    calls = []
    for learner in learners:
        prepare_torch(learner.config)  # the number of threads belongs to the process, not to the learner
        learner.start()
        warm_up(learner)
        calls.append(_calls(learner.iterate, learner.env.device))
    for _ in range(rounds):
        for learner, count, own_rates in zip(learners, calls, rates, strict=True):
            prepare_torch(learner.config)
            samples = learner.config.ppo.rollout_steps * learner.env.num_rows
            own_rates.append(samples / _seconds(learner.iterate, count, learner.env.device))
    return rates


def warm_up(learner: Learner) -> None:
    """Iterates until the buffer is full and, on a GPU, everything is compiled and captured."""
    times = WARM_UP + 1 if learner.env.device.type == "cuda" else 1
    while learner.iteration < times * learner.buffer.capacity:
        learner.iterate()


def _stages(learner: Learner, names: set[str], reported: list[Mapping[str, float]]) -> dict[str, stages.Work]:
    work: dict[str, stages.Work] = {}
    play, spare = stages.RandomPlay(learner), stages.copy_of(learner.rollout)
    if "env" in names:
        work["env"] = stages.captured_like_training(learner, play, [play.generator])
    if "inference" in names:
        work["inference"] = stages.inference(learner, play, spare)
    if "gae" in names:
        work["gae"] = stages.advantages(learner, spare)
    if "update" in names:
        work["update"] = stages.update(learner)
    if "iteration" in names:
        work["iteration"] = lambda: reported.append(learner.iterate().seconds)
    return work


def _calls(work: stages.Work, device: torch.device) -> int:
    """Returns the number of calls that fill a round."""
    return math.ceil(ROUND_SECONDS / _seconds(work, 1, device))


def _seconds(work: stages.Work, calls: int, device: torch.device) -> float:
    """Returns the seconds per call, until the device has finished."""
    synchronize(device)
    began = perf_counter()
    for _ in range(calls):
        work()
    synchronize(device)
    return (perf_counter() - began) / calls
