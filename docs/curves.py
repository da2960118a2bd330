"""Draws learning curves of runs as an SVG: python docs/curves.py docs/images/curves.svg runs/cartpole runs/pendulum

Every argument after the first is a folder of runs, which becomes one panel with a line for each run: the mean return of the
last 100 episodes or, with `=NAME` after the folder, another metric of metrics.jsonl, of which each point is the mean of ten.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 400, 260, 56, 36, 34
COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea")


RETURN = "recent/return"
MEAN_OF = 10


def read(folder: Path, name: str) -> list[list[tuple[float, float]]]:
    runs = []
    for path in sorted(folder.glob("**/metrics.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        points = [(line["steps"], line[name]) for line in lines if line.get(name) is not None]
        if name != RETURN:
            pieces = [points[i : i + MEAN_OF] for i in range(0, len(points) - MEAN_OF + 1, MEAN_OF)]
            points = [(piece[-1][0], sum(y for _, y in piece) / MEAN_OF) for piece in pieces]
        runs.append(points)
    return [run for run in runs if run]


def panel(argument: str, left: int) -> str:
    folder, _, name = argument.partition("=")
    runs = read(Path(folder), name or RETURN)
    title = f"{Path(folder).name}: {name or f'{len(runs)} seed' + 's' * (len(runs) > 1)}"
    most = max(x for run in runs for x, _ in run)
    low, high = min(y for run in runs for _, y in run), max(y for run in runs for _, y in run)
    low = min(low, 0.0)
    digits = 0 if high - low > 4 else 1
    right, bottom = WIDTH - 14, HEIGHT - BOTTOM

    def place(x: float, y: float) -> str:
        return f"{left + LEFT + (right - LEFT) * x / most:.1f},{bottom - (bottom - TOP) * (y - low) / (high - low):.1f}"

    parts = [f'<text x="{left + LEFT}" y="20" font-weight="bold">{title}</text>']
    for share in (0.0, 0.5, 1.0):
        y = low + share * (high - low)
        x0, y0 = place(0, y).split(",")
        parts.append(f'<line x1="{x0}" y1="{y0}" x2="{left + right}" y2="{y0}" stroke="#ddd"/>')
        parts.append(f'<text x="{left + LEFT - 6}" y="{float(y0) + 4:.0f}" text-anchor="end">{y:.{digits}f}</text>')
        x1 = place(share * most, low).split(",")[0]
        parts.append(f'<text x="{x1}" y="{bottom + 18}" text-anchor="middle">{in_short(share * most)}</text>')
    for run, colour in zip(runs, COLOURS, strict=False):
        points = " ".join(place(x, y) for x, y in run[:: max(1, len(run) // 200)])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return "\n".join(parts)


def in_short(steps: float) -> str:
    return f"{steps / 1e6:.0f}M" if steps >= 2e6 else f"{steps / 1000:.0f}k"


def main(out: str, *folders: str) -> None:
    panels = [panel(folder, WIDTH * index) for index, folder in enumerate(folders)]
    Path(out).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(panels) + "\n</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
