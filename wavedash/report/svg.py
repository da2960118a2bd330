"""What the pictures of this package share: colours for light and dark pages, round numbers for axes."""
from __future__ import annotations

import math

COLOURS = (("#2563eb", "#6ea8fe"), ("#ea580c", "#fb923c"), ("#059669", "#34d399"), ("#9333ea", "#c084fc"),
           ("#be123c", "#fb7185"), ("#0e7490", "#22d3ee"))
"""Colours of the lines, on light and on dark pages"""


def in_short(steps: float) -> str:
    """`1500000` -> `1.5M`."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if steps >= unit:
            return f"{steps / unit:.4g}{letter}"
    return f"{steps:g}"


def round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * power for factor in (1, 2, 5, 10) if factor * power >= rough), default=power)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _style() -> str:
    def colours(index: int) -> str:
        return " ".join(f".c{i} {{ stroke: {pair[index]}; fill: {pair[index]} }}" for i, pair in enumerate(COLOURS))

    return f"""<style>
.page {{ fill: #ffffff }} .ink {{ fill: #1f2328 }} .muted {{ fill: #59636e }} .grid {{ stroke: #e3e6ea }}
.fixed {{ stroke: #8b949e; stroke-dasharray: 5 4 }} .phase {{ fill: #eef3fb }}
{colours(0)}
@media (prefers-color-scheme: dark) {{
.page {{ fill: #0d1117 }} .ink {{ fill: #e6edf3 }} .muted {{ fill: #9198a1 }} .grid {{ stroke: #262c36 }}
.fixed {{ stroke: #6e7681 }} .phase {{ fill: #151d2b }}
{colours(1)}
}}
.band {{ stroke: none; fill-opacity: 0.18 }} .line {{ fill: none; stroke-width: 2 }} .dot {{ stroke: none }}
.label {{ stroke: none }} .mark {{ stroke-width: 1; stroke-opacity: 0.45; stroke-dasharray: 2 3 }}
</style>"""


STYLE = _style()
"""The style sheet: classes page, ink, muted, grid, fixed, phase, band, line, dot, label, mark, and the colours c0, c1, ..."""
