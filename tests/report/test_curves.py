"""The picture of a run: its lines are its metrics, its bands are its phases, its marks are what was changed."""
from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.report.curves import DEFAULT, LEFT, PANEL, POINTS, RIGHT, Curves, draw

SVG = "{http://www.w3.org/2000/svg}"


def written(folder: Path, rows: list[dict[str, object]], events: list[dict[str, object]] | None = None) -> Path:
    run = folder / "bot" / "20260101"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text("")
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if events is not None:
        (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return run


def elements(svg: str, tag: str, style: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(svg).iter(f"{SVG}{tag}") if style in (one.get("class") or "").split()]


def test_the_line_goes_through_the_values_at_their_steps(tmp_path):
    values = [0.0, 10.0, 5.0, 7.0]
    rows = [{"steps": 100 * (i + 1), "recent/return": y} for i, y in enumerate(values)]
    (line,) = elements(draw(Curves.read(written(tmp_path, rows))), "polyline", "line")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    places = [LEFT + (RIGHT - LEFT) * steps / 400 for steps in (100, 200, 300, 400)]
    assert [x for x, _ in points] == pytest.approx(places, abs=0.06)
    heights = [y for _, y in points]
    spread = max(heights) - min(heights)
    assert [(heights[0] - y) / spread for y in heights] == pytest.approx([y / 10 for y in values], abs=0.01)
    assert spread == pytest.approx(PANEL / 1.12, abs=0.2), "with a margin of 6 % above and below"


def test_phases_are_bands_with_their_names_from_where_they_began(tmp_path):
    rows = [{"steps": 100 * i, "recent/return": float(i), "phase": "Phase1-First" if i <= 4 else "Phase2-Second one"}
            for i in range(1, 11)]
    svg = draw(Curves.read(written(tmp_path, rows)))
    (band,) = elements(svg, "rect", "phase")  # every other one is shaded
    assert (float(band.get("x", 0)), float(band.get("width", 0))) == pytest.approx((LEFT, 0.4 * (RIGHT - LEFT)), abs=0.1)
    texts = [one.text for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "1 First" in texts and "2 Second one" in texts


def test_changes_are_marked_and_told_and_what_was_refused_is_not(tmp_path):
    rows = [{"steps": 100 * i, "recent/return": float(i)} for i in range(1, 11)]
    events: list[dict[str, object]] = [
        {"step": 300, "key": "ppo.clip_range", "old": 0.2, "new": 0.1}, {"step": 400, "key": "ppo.lr", "refused": "no"},
        {"step": 500, "key": "phase", "old": "A", "new": "B"}, {"step": 600, "key": "milestone", "argument": "<good>"}]
    svg = draw(Curves.read(written(tmp_path, rows, events)))
    marks = [float(one.get("x1", 0)) for one in elements(svg, "line", "fixed")]
    assert marks == pytest.approx([LEFT + (RIGHT - LEFT) * share for share in (0.3, 0.6)], abs=0.06)
    texts = [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "1  at 300: ppo.clip_range: 0.2 -> 0.1" in texts and "2  at 600: milestone: <good>" in texts


def test_many_iterations_become_means_and_nothing_is_left_out(tmp_path):
    count = 3 * POINTS + 7
    rows = [{"steps": i, "x": float(i), "recent/return": 1.0} for i in range(1, count + 1)]
    curves = Curves.read(written(tmp_path, rows))
    points = curves.points("x")
    assert len(points) <= POINTS and points[-1][0] == count
    sizes = [b[0] - a[0] for a, b in zip([(0, 0), *points], points, strict=False)]
    assert sum(size * y for size, (_, y) in zip(sizes, points, strict=True)) == pytest.approx(count * (count + 1) / 2)


def test_without_names_the_known_ones_are_drawn_and_a_wrong_name_is_answered_with_the_nearest(tmp_path):
    rows: list[dict[str, object]] = [{"steps": 1, "recent/return": 1.0, "env/per_minute/goals": 2.0, "phase": "Phase1-A"},
                                     {"steps": 2, "recent/return": 2.0}]
    curves = Curves.read(written(tmp_path, rows))
    assert curves.metrics(()) == [name for name in DEFAULT if name in rows[0]]
    with pytest.raises(UserError, match="did you mean 'recent/return'"):
        curves.metrics(["recent/retrun"])
    draw(curves, ["env/per_minute/goals"])  # a single value has no spread


def test_a_run_without_metrics_and_a_line_that_a_kill_has_cut(tmp_path):
    run = written(tmp_path, [])
    with pytest.raises(UserError, match="no metrics yet"):
        Curves.read(run)
    (run / "metrics.jsonl").write_text('{"steps": 1, "recent/return": 2}\n{"steps": 2, "rec')
    assert len(Curves.read(run).rows) == 1


def test_the_command_writes_a_picture_of_the_newest_run(tmp_path, capsys):
    written(tmp_path, [{"steps": 1, "recent/return": 1.0}])
    out = tmp_path / "picture.svg"
    app(["curves", str(tmp_path), "--out", str(out)], standalone_mode=False)
    assert elements(out.read_text(), "polyline", "line")
    with pytest.raises(UserError, match="cannot write"):
        app(["curves", str(tmp_path), "--out", str(tmp_path / "none" / "x.svg")], standalone_mode=False)
