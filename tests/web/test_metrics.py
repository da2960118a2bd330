"""The metrics of a run are read as its file grows, is torn and is cut."""
from __future__ import annotations

import json
from pathlib import Path

from wavedash.web.metrics import MetricsTail


def test_metrics_are_followed_through_torn_lines_and_cuts(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"steps": i, "x": float(i), "phase": f"Phase{1 + i // 4}-P"}) + "\n" for i in range(1, 9)]
    tail = MetricsTail(path)
    tail.refresh()
    assert tail.rows == 0
    whole = "".join(lines).encode()
    for end in range(len(whole) + 1):  # the writer may be seen at any byte
        path.write_bytes(whole[:end])
        tail.refresh()
        fresh = MetricsTail(path)
        fresh.refresh()
        assert {**tail.table(), "edition": 0} == {**fresh.table(), "edition": 0} and tail.rows == whole[:end].count(b"\n")
    assert [phase["step"] for phase in tail.table()["phases"]] == [0, 3, 7]
    other = "".join(lines[:4]) + "".join(json.dumps({"steps": i, "x": -1.0}) + "\n" for i in range(5, 30))
    path.write_text(other)  # a resumed run has cut the file and is past where it was read to
    tail.refresh()
    assert tail.table()["columns"]["x"] == [1.0, 2.0, 3.0, 4.0, *[-1.0] * 25]
    with path.open("a") as file:
        file.write('nonsense\n[1]\n{"steps": 10, "x": 7}\n')  # a file that could not be cut
    tail.refresh()
    assert tail.table()["steps"] == [*range(1, 11)] and tail.table()["columns"]["x"][-1] == 7
    path.unlink()
    tail.refresh()
    assert tail.rows == 0
