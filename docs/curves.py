"""Draws learning curves of runs as an SVG: python docs/curves.py docs/images/curves.svg runs/cartpole runs/pendulum

Every argument after the first is a folder of runs (one panel), each run a line: the mean return of the last 100 episodes.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 400, 260, 56, 36, 34
COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea")


def read(folder: Path) -> list[list[tuple[float, float]]]:
    runs = []
    for path in sorted(folder.glob("**/metrics.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        runs.append([(line["steps"], line["recent/return"]) for line in lines if line.get("recent/return") is not None])
    return [run for run in runs if run]


def panel(folder: Path, left: int) -> str:
    runs = read(folder)
    most = max(x for run in runs for x, _ in run)
    low, high = min(y for run in runs for _, y in run), max(y for run in runs for _, y in run)
    low = min(low, 0.0)
    right, bottom = WIDTH - 14, HEIGHT - BOTTOM

    def place(x: float, y: float) -> str:
        return f"{left + LEFT + (right - LEFT) * x / most:.1f},{bottom - (bottom - TOP) * (y - low) / (high - low):.1f}"

    parts = [f'<text x="{left + LEFT}" y="20" font-weight="bold">{folder.name}: {len(runs)} seeds</text>']
    for share in (0.0, 0.5, 1.0):
        y = low + share * (high - low)
        x0, y0 = place(0, y).split(",")
        parts.append(f'<line x1="{x0}" y1="{y0}" x2="{left + right}" y2="{y0}" stroke="#ddd"/>')
        parts.append(f'<text x="{left + LEFT - 6}" y="{float(y0) + 4:.0f}" text-anchor="end">{y:.0f}</text>')
        x1 = place(share * most, low).split(",")[0]
        parts.append(f'<text x="{x1}" y="{bottom + 18}" text-anchor="middle">{share * most / 1000:.0f}k</text>')
    for run, colour in zip(runs, COLOURS, strict=False):
        points = " ".join(place(x, y) for x, y in run[:: max(1, len(run) // 200)])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return "\n".join(parts)


def main(out: str, *folders: str) -> None:
    panels = [panel(Path(folder), WIDTH * index) for index, folder in enumerate(folders)]
    Path(out).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(panels) + "\n</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
