"""A diagnosis is shown as tables of stages and device, each rate with its change since the baseline."""
from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from wavedash.diagnosis.baseline import Baseline, compare
from wavedash.diagnosis.timing import Timing

COLOURS = {"faster": "green", "slower": "bold red", "noise": "dim"}


def stage_table(timing: Timing, then: Baseline | None) -> Table:
    """Shows each stage alone and, where whole iterations were timed, its part of one."""
    shares, whole = timing.shares(), sum(timing.parts.values())
    in_iteration = ["ms in an iteration", "share"] if shares else []
    table = _table(["stage", "samples/s alone", "range", "ms alone", *in_iteration], then)
    for stage in dict.fromkeys([*timing.seconds, *shares]):
        if stage != "iteration":
            parts = [f"{1e3 * whole * shares[stage]:,.2f}", f"{shares[stage]:.1%}"] if shares else []
            table.add_row(stage, *_rate(timing, stage), *parts, *_change(then, stage, timing))
    if shares:
        table.add_section()
        table.add_row("iteration", *_rate(timing, "iteration"), f"{1e3 * whole:,.2f}", f"{sum(shares.values()):.1%}",
                      *_change(then, "iteration", timing))
    return table


def device_table(facts: Mapping[str, str], probed: Mapping[str, Sequence[float]], then: Baseline | None) -> Table:
    table = _table(["the device", "", "range"], then)
    for name, fact in facts.items():
        table.add_row(name, escape(fact))
    for name, rates in probed.items():
        change = [] if then is None or name not in then.rates else [_change_text(then.rates[name], rates)]
        table.add_row(name, f"{statistics.median(rates):,.1f}", f"{min(rates):,.1f} - {max(rates):,.1f}", *change)
    return table


def _table(columns: Sequence[str], then: Baseline | None) -> Table:
    table = Table()
    for index, column in enumerate([*columns, *([] if then is None else [f"since {then.saved}"])]):
        table.add_column(column, justify="right" if index else "left")
    return table


def _rate(timing: Timing, stage: str) -> list[str]:
    if stage not in timing.seconds:
        return ["", "", ""]
    rates = timing.rates(stage)
    return [f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f} - {max(rates):,.0f}",
            f"{1e3 * statistics.median(timing.seconds[stage]):,.2f}"]


def _change(then: Baseline | None, stage: str, timing: Timing) -> list[str]:
    known = then is not None and stage in then.rates and stage in timing.seconds
    return [_change_text(then.rates[stage], timing.rates(stage))] if then is not None and known else []


def _change_text(then: Sequence[float], now: Sequence[float]) -> str:
    change = compare(then, now)
    return f"[{COLOURS[change.verdict]}]{change}"
