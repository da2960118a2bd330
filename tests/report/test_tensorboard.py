"""Event files are read back with TensorBoard's own reader."""
from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.report.reports import play, stand_in_learner
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


def test_what_was_changed_is_a_text_at_its_step(tmp_path: Path) -> None:
    """A change of a run that was killed before it was saved is gone with the points after its checkpoint."""
    def changed(steps: int, said: str) -> None:
        listener, learner = TensorBoard(tmp_path), stand_in_learner()
        learner.steps = steps
        listener.on_start(learner)
        listener.on_event(learner, said)
        learner.steps += 100
        listener.on_event(learner, "later")
        listener.on_stop(learner, None)

    changed(300, "ppo.clip_range: 0.2 -> 0.1")
    changed(300, "ppo.clip_range: 0.1 -> 0.2 (für ä)")
    events = plugin_event_accumulator.EventAccumulator(str(tmp_path)).Reload()  # of the page that shows texts
    assert events.SummaryMetadata("events").plugin_data.plugin_name == "text"
    assert [(event.step, event.tensor_proto.string_val[0].decode()) for event in events.Tensors("events")] == [
        (300, "ppo.clip_range: 0.2 -> 0.1"), (300, "ppo.clip_range: 0.1 -> 0.2 (für ä)"), (400, "later")]


def test_a_full_disk_leaves_a_file_that_tensorboard_still_reads(tmp_path: Path) -> None:
    output = run_on_full_disk("tensorboard", "TensorBoard", tmp_path)
    assert output[-1] == "dropped 3"
    assert [step for step, _ in read(tmp_path, "time/env")] == [100, 500, 600]
