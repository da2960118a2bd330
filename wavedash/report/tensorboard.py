"""TensorBoard event files are written with TensorBoard's own encoder, but through `AppendFile`.

TensorBoard's writer uses a thread that dies with a traceback when the disk is full, and with it all later points.
"""
from __future__ import annotations

import io
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DataType
from tensorboard.plugins.text.metadata import create_summary_metadata
from tensorboard.summary.writer.record_writer import RecordWriter

from wavedash.ppo.listener import IterationReport, Listener
from wavedash.report.all_metrics import all_metrics
from wavedash.report.append_file import AppendFile

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner


class TensorBoard(Listener):
    """Writes one event file per start of the run, one event per iteration. `tensorboard --logdir runs` shows all runs."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._file: AppendFile | None = None

    def on_start(self, learner: Learner) -> None:
        # TensorBoard reads the files of a folder in the order of their names, so the time comes first.
        self._file = AppendFile(self.folder / f"events.out.tfevents.{time.time_ns():019d}.{platform.node()}.{os.getpid()}")
        self._write(Event(file_version="brain.Event:2"))
        # This tells TensorBoard to drop later points that an earlier start wrote before it was killed.
        self._write(Event(step=learner.steps + 1, session_log=SessionLog(status=SessionLog.START)))

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        values = [Summary.Value(tag=name, simple_value=value) for name, value in all_metrics(report).items()]
        self._write(Event(step=report.steps, summary=Summary(value=values)))

    def on_event(self, learner: Learner, event: str) -> None:
        """Marks what was changed, as a text of this step."""
        self._write(Event(step=learner.steps, summary=Summary(value=[_text("events", event)])))

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, event: Event) -> None:
        assert self._file is not None
        event.wall_time = time.time()
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._file.append(record.getvalue())


def _text(tag: str, text: str) -> Summary.Value:
    """A text for the page of texts."""
    tensor = TensorProto(dtype=DataType.DT_STRING, string_val=[text.encode()], tensor_shape=TensorShapeProto())
    return Summary.Value(tag=tag, metadata=create_summary_metadata("", ""), tensor=tensor)
