"""Event files are read back with TensorBoard's own reader."""
from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.report.reports import play
from tests.report.test_metrics_file import run_on_full_disk
from wavedash.report.tensorboard import TensorBoard


def read(folder: Path, tag: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_tensorboard_shows_every_metric_at_its_step(tmp_path: Path) -> None:
    play(TensorBoard(tmp_path), range(1, 4), loss__value=0.25)
    assert read(tmp_path, "loss/value") == [(100, 0.25), (200, 0.25), (300, 0.25)]
    assert read(tmp_path, "time/env")[0] == pytest.approx((100, 0.2))


def test_points_past_the_checkpoint_of_a_killed_run_are_replaced(tmp_path: Path) -> None:
    play(TensorBoard(tmp_path), range(1, 7), stop=False, loss__value=1.0)
    play(TensorBoard(tmp_path), range(5, 8), loss__value=2.0)
    assert read(tmp_path, "loss/value") == [(100, 1.0), (200, 1.0), (300, 1.0), (400, 1.0), (500, 2.0), (600, 2.0), (700, 2.0)]


def test_a_full_disk_leaves_a_file_that_tensorboard_still_reads(tmp_path: Path) -> None:
    output = run_on_full_disk("tensorboard", "TensorBoard", tmp_path)
    assert output[-1] == "dropped 3"
    assert [step for step, _ in read(tmp_path, "time/env")] == [100, 500, 600]
