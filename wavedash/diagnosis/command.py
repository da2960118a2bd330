"""`wavedash diagnose` measures, compares with the baseline, prints, and gives advice."""
from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape

from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.diagnosis import STAGES
from wavedash.diagnosis import device as machine
from wavedash.diagnosis.advice import Advice, Facts, advise
from wavedash.diagnosis.baseline import Baseline, BaselineError, compare, default_path, differences
from wavedash.diagnosis.tables import device_table, stage_table
from wavedash.diagnosis.timing import Timing, time_in_turns, time_stages, warm_up
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.runs.trust import read_config
from wavedash.threads import allowed_cores, compute_threads

BUSY_SECONDS = 2.0
"""How long iterations run while the load of the machine is measured"""


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was measured of a configuration on this machine."""

    title: str
    timing: Timing
    device: dict[str, str]
    """Facts about the device as text; empty where it was not examined"""
    probed: dict[str, list[float]]
    advice: Advice | None
    """None unless all stages were measured"""
    measured: Baseline


def diagnose(
    stage: str, source: str, overrides: Sequence[str] = (), *,
    baseline: Path | None = None, save: bool = False, rounds: int = 5, try_advice: bool = False, trust: bool = False,
) -> Diagnosis:
    """Measures one of STAGES of a preset or file and prints the result. With `trust` it also runs code that the configuration
    of somebody else's run names."""
    config = read_config(source, overrides, trust)
    console = Console(width=110, highlight=False)
    console.print(f"[dim]measuring {', '.join(STAGES[stage]) or 'the device'} in {rounds} rounds")
    with assembled(config) as learner:
        found = examine(learner, stage, rounds)
    path = baseline or default_path(config)
    then, problem = _read(path)
    show(console, found, then)
    if found.advice is not None:
        _print_advice(console, found, source, overrides, rounds if try_advice else 0)
    console.print()
    _update_baseline(console, found.measured, then, path, problem, save)
    return found


def examine(learner: Learner, stage: str, rounds: int = 5) -> Diagnosis:
    """Measures one of STAGES of this learner. Whole iterations train it; everything else leaves it as it is."""
    config, device = learner.config, learner.env.device
    timing = time_stages(learner, STAGES[stage], rounds)
    facts: dict[str, str] = {}
    probed: dict[str, list[float]] = {}
    advice = None
    if stage in ("gpu", "all"):
        warm_up(learner)
        busy = machine.measure_load(learner.iterate, device, BUSY_SECONDS)
        facts, probed = machine.describe(device, busy), machine.probe(device, rounds)
        advice = advise(gather_facts(learner, timing, probed, busy)) if stage == "all" else None
    rates = {name: timing.rates(name) for name in timing.seconds}
    about: dict[str, str | int] = {"device": machine.device_name(device), "cores": allowed_cores(),
                                   "threads": compute_threads(), "torch": str(torch.__version__)}
    title = (f"{config.name}: {timing.samples:,} samples an iteration ({learner.env.num_rows:,} rows x "
             f"{config.ppo.rollout_steps} steps), {about['device']}, torch {about['torch']}")
    return Diagnosis(title, timing, facts, probed, advice, Baseline.of(config, about, {**rates, **probed}))


def gather_facts(learner: Learner, timing: Timing, probed: dict[str, list[float]], busy: machine.Busy) -> Facts:
    config, policy = learner.config, learner.policy
    alone = {stage: statistics.median(seconds) for stage, seconds in timing.seconds.items()}
    samples = timing.samples * learner.buffer.filled
    # Every weight of a linear or recurrent layer takes a multiplication and an addition per sample, and twice as many for the
    # gradients of its input and of itself. Convolutions use a weight more often, so for them this is a lower bound.
    weights = sum(p.numel() for p in policy.parameters() if p.dim() > 1)
    operations = {"inference": 2 * weights * timing.samples, "update": 6 * weights * samples * config.ppo.epochs}
    speed = machine.arithmetic_speed(probed, config.precision)
    return Facts(
        config=config, share=timing.shares(), step_seconds=alone["env"] / config.ppo.rollout_steps,
        efficiency={stage: count / alone[stage] / speed for stage, count in operations.items()},
        rows=max(group.stop - group.start for group in learner.env.groups), samples=samples,
        cores=allowed_cores(), threads=compute_threads(), cuda=learner.env.device.type == "cuda",
        capturable=learner.env.capturable, gpu_busy=busy.gpu, busy_cores=busy.cores,
    )


def show(console: Console, found: Diagnosis, then: Baseline | None) -> None:
    console.print(escape(found.title))
    if found.timing.seconds:
        console.print(stage_table(found.timing, then))
    if "collect" in found.timing.parts:
        console.print("collection is one CUDA graph: its time is divided in proportion to its stages alone")
    if found.device:
        console.print(device_table(found.device, found.probed, then))


def _print_advice(console: Console, found: Diagnosis, source: str, overrides: Sequence[str], rounds: int) -> None:
    """Prints advice. Each suggestion is tried in so many `rounds` of whole iterations; with 0 it is only printed."""
    assert found.advice is not None
    console.print(f"[bold]{escape(str(found.advice))}")
    for suggestion in found.advice.suggestions:
        console.print(f"  try: [bold]{escape(suggestion.settings)}[/bold]  ({escape(suggestion.why)})")
        if rounds:
            console.print(f"       tried: {_try(source, overrides, suggestion.settings.split(), rounds)}")
    if not found.advice.suggestions:
        console.print("  no setting changes this; only less work in the stage itself does")


def _try(source: str, overrides: Sequence[str], settings: Sequence[str], rounds: int) -> str:
    """Times iterations with and without the settings, in turns."""
    gc.collect()  # frees memory of the device that the last learner still holds
    before, after = (load_config(source, changes) for changes in (overrides, [*overrides, *settings]))
    try:
        with assembled(before) as usual, assembled(after) as changed:
            then, now = time_in_turns([usual, changed], rounds)
    except (UserError, torch.OutOfMemoryError) as error:
        return escape(f"does not run here: {error}")
    return f"{statistics.median(then):,.0f} -> {statistics.median(now):,.0f} samples/s ({compare(then, now)})"


def _update_baseline(console: Console, now: Baseline, then: Baseline | None, path: Path, problem: str, save: bool) -> None:
    """Prints what was compared with what. It keeps the measurement if `save` is set or there was none like it before."""
    different = [] if then is None else list(differences(then, now))
    if problem:
        hint = "" if save else "; --save puts a new one in its place"
        console.print(f"[yellow]{escape(problem)}: nothing was compared{hint}")
    if then is not None:
        console.print(f"compared with {escape(str(path))} of {then.saved}")
    if different:
        console.print(f"[yellow]which was measured under other conditions: {escape('; '.join(different))}")
    new = sorted(set(now.rates) - set(then.rates if then else ()))
    if save or (new and not problem and not different):
        try:
            (now.over(then) if save or then is None else then.over(now)).write(path)
        except BaselineError as error:
            console.print(f"[yellow]{escape(str(error))}; --baseline FILE names another place")
        else:
            added = "" if save or then is None else f", added: {'; '.join(new)}"
            console.print(f"kept in {escape(str(path))} as the baseline of later measurements{added}")


def _read(path: Path) -> tuple[Baseline | None, str]:
    try:
        return Baseline.read(path), ""
    except BaselineError as error:
        return None, str(error)
