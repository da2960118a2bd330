"""Recordings are read as docs/recordings.md says, and files that are damaged, cut or made to do harm are refused in words."""
from __future__ import annotations

import gzip
import io
import json
import math
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.recordings.made import CODES, read_by_the_page, small
from wavedash.recordings import Field, Layout, Recording, RecordingError, read, summary
from wavedash.recordings.file import MOST_HEADER, MOST_UNPACKED
from wavedash.recordings.layout import MOST_FIELDS

WHOLE = small().to_bytes()
SHAPES = st.lists(st.integers(1, 3), max_size=3).map(tuple)


def packed(header: Any, body: bytes = b"", magic: bytes = b"WDR1", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return gzip.compress(magic + struct.pack("<I", len(text) if length is None else length) + text + body, mtime=0)


def header_with(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(small().header)), **changes}


# --- reading and writing ---------------------------------------------------------------------------------------------


FIELDS = st.tuples(st.sampled_from(sorted(CODES)), SHAPES, st.sampled_from([1.0, 0.25, 1 / 127]))


@given(st.lists(FIELDS, min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_reader_made_from_the_page_alone_reads_the_same(fields: list[tuple[str, tuple[int, ...], float]], frames: int,
                                                          seed: int) -> None:
    layout = Layout(tuple(Field(f"field.n{n}", *field) for n, field in enumerate(fields)))
    rng = np.random.default_rng(seed)
    records = np.frombuffer(rng.bytes(frames * layout.dtype.itemsize), layout.dtype)
    recording = Recording({**small().header, "events": [], "title": "ein Spiel ⚽"}, layout, records)
    data = recording.to_bytes()
    header, found = read_by_the_page(data)
    ours = read(data)
    assert header == ours.header == recording.header and len(found) == ours.frames == frames
    for number, frame in enumerate(found):
        for name, values in frame.items():
            assert np.array_equal(ours[name][number].astype(np.float64).flatten(), np.array(values), equal_nan=True)
    assert ours.to_bytes() == data, "the same recording gives the same bytes"


@given(st.sampled_from(sorted(CODES)), st.sampled_from([1.0, 0.25, 0.0005]),
       st.lists(st.floats(width=32) | st.integers(-2**40, 2**40), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_values_come_back_within_half_a_step_or_at_the_nearest_end(kind: str, scale: float, values: list[float]) -> None:
    layout = Layout((Field("x", kind, (), scale),))
    found = layout.decode(layout.encode({"x": np.array(values, np.float64)}), "x")
    if kind == "f32":
        with np.errstate(over="ignore"):
            expected = (np.array(values, np.float64) / scale).astype(np.float32).astype(np.float64) * scale
        assert np.allclose(found, expected, rtol=1e-6, equal_nan=True)
        return
    low, high = (limit * scale for limit in (np.iinfo(layout.fields[0].dtype).min, np.iinfo(layout.fields[0].dtype).max))
    for given_value, back in zip(values, found.tolist(), strict=True):
        wanted = 0.0 if math.isnan(given_value) else min(max(given_value, low), high)
        assert abs(back - wanted) <= scale / 2 * (1 + 1e-9) + 1e-9 * abs(wanted)


def test_a_summary_is_what_reading_says(tmp_path: Path) -> None:
    path = small(7).write(tmp_path / "a" / "b.wdr")
    found, whole = summary(path), read(path)
    assert (found.header, found.frames, found.seconds) == (whole.header, 7, whole.seconds)
    assert found.bytes == path.stat().st_size
    assert [one.name for one in path.parent.iterdir()] == ["b.wdr"], "nothing else is left behind"


# --- what is refused -------------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_file_is_refused_or_says_the_same(data: st.DataObject) -> None:
    """Only what gzip itself ignores, such as the time in its header, may change without notice. A file that was cut or made
    longer is always refused."""
    changed = bytearray(WHOLE)
    what = data.draw(st.sampled_from(["flip", "cut", "insert", "append"]))
    at = data.draw(st.integers(0, len(WHOLE) - 1))
    if what == "flip":
        changed[at] ^= data.draw(st.integers(1, 255))
    elif what == "cut":
        del changed[at:]
    elif what == "insert":
        changed[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    else:
        changed += data.draw(st.binary(min_size=1, max_size=8))
    try:
        found = read(bytes(changed))
    except RecordingError:
        return
    assert found.header == small().header and np.array_equal(found.records, small().records)
    assert what in ("flip", "insert")


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_file_that_was_damaged_before_it_was_packed_is_refused_or_is_a_whole_recording(data: st.DataObject) -> None:
    """gzip's checksum is right here, so that all other checks are reached."""
    inside = bytearray(gzip.decompress(WHOLE))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(inside) - 1))
        inside[at:at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        assume(inside)
    try:
        found = read(gzip.compress(bytes(inside)))
    except RecordingError:
        return
    assert found.frames * found.layout.dtype.itemsize == found.records.nbytes
    for field in found.layout.fields:
        assert found[field.name].shape == (found.frames, *field.shape)


json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                           lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                           max_leaves=6)


@given(st.sampled_from(sorted({*small().header, "score"})), json_values)
@example("record", [{"name": "tick", "type": "i32", "shape": [2**20, 2**20], "scale": 1}])
@example("record", [{"name": "tick", "type": "i32", "shape": [], "scale": float("inf")}])
@example("record", [{"name": f"n{n}", "type": "i8", "shape": [], "scale": 1} for n in range(MOST_FIELDS + 1)])
@example("record", [{"name": "tick", "type": "i32", "shape": [], "scale": 1}] * 2)
@example("events", [{"frame": 5, "kind": "goal", "car": 0, "text": ""}])
@example("events", [{"frame": True, "kind": "goal", "car": 0, "text": ""}])
@example("events", [{"frame": 0, "kind": "goal", "text": "whose?"}])
@example("score", [1])
@example("score", [1, -1])
@example("format", 2)
@settings(max_examples=300, deadline=None)
def test_whatever_a_header_says_it_is_checked(key: str, value: Any) -> None:
    data, said = packed(header_with(**{key: value}), small().records.tobytes()), ""
    try:
        found = read(data)
        assert read(found.to_bytes()).header == found.header, "whatever is read can be written again"
    except RecordingError as error:
        said = str(error)
    assert len(said) < 500, "a message does not repeat what somebody has filled a header with"


@pytest.mark.parametrize(("data", "why"), [
    (b"", "not packed with gzip|no recording"),
    (b"PK\x03\x04" + bytes(200), "gzip"),
    (gzip.compress(b"", mtime=0), "does not begin with WDR1"),
    (packed({}, magic=b"WDR2"), "does not begin with WDR1"),
    (packed(header_with(), length=MOST_HEADER + 1), "header"),
    (packed(b"[" * 100_000), "no JSON"),
    (packed(b'{"a": NaN}'), "no JSON"),
    (packed(b"\xff\xfe"), "no JSON in UTF-8"),
    (packed(header_with(title="\ud800")), "no JSON in UTF-8"),
    (packed(json.dumps(header_with(scene={"far": 0.5})).replace("0.5", "1e999").encode()), "no JSON"),
    (packed(b"[]"), "JSON object"),
    (packed(header_with(format=2), small().records.tobytes()), "format 2"),
    (packed(header_with(), bytes(3)), "no whole number"),
    (packed(header_with(), length=10_000), "ends within its header"),
    (WHOLE + WHOLE, "follows the end"),
    (WHOLE[:-1], "its end is missing"),
])
def test_what_is_no_recording_is_refused_by_its_cause(data: bytes, why: str) -> None:
    with pytest.raises(RecordingError, match=why):
        read(data)


@pytest.mark.slow
def test_a_small_file_cannot_fill_the_memory(tmp_path: Path) -> None:
    """A quarter of a gigabyte of zeros packs to a quarter of a megabyte. It is unpacked up to the limit, and no further."""
    head = gzip.decompress(packed(header_with()))
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", mtime=0) as file:
        file.write(head)
        for _ in range(16):
            file.write(bytes(1 << 24))
    assert len(bomb.getvalue()) < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(RecordingError, match="unpacks to more than"):
            read(bomb.getvalue())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        (tmp_path / "bomb.wdr").write_bytes(bomb.getvalue())
        with pytest.raises(RecordingError, match="not complete"):
            summary(tmp_path / "bomb.wdr")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20, "a summary unpacks only the header"
    finally:
        tracemalloc.stop()
    assert peak < 4 * MOST_UNPACKED


def test_what_is_too_large_is_not_written(tmp_path: Path) -> None:
    recording = small()
    with pytest.raises(RecordingError, match="too large"):
        Recording({**recording.header, "title": "x" * (MOST_HEADER + 1)}, recording.layout, recording.records).to_bytes()
    layout = Layout((Field("x", "u8", (1 << 20,)),))
    with pytest.raises(RecordingError, match="too large"):
        Recording({**recording.header, "events": []}, layout, np.zeros(65, layout.dtype)).write(tmp_path / "a.wdr")
    assert not list(tmp_path.iterdir())


def test_what_is_no_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "folder.wdr").mkdir()
    places = [tmp_path / "folder.wdr", tmp_path / "nothing.wdr"]
    if hasattr(os, "mkfifo"):  # to open a pipe would wait for a writer
        os.mkfifo(tmp_path / "pipe.wdr")
        places.append(tmp_path / "pipe.wdr")
    for path in places:
        for look in (read, summary):
            with pytest.raises(RecordingError, match=path.name):
                look(path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RecordingError, match="cannot write"):
        small().write(tmp_path / "file" / "a.wdr")


def test_what_the_end_of_a_file_claims_is_checked_against_its_header(tmp_path: Path) -> None:
    for claimed in (0, 1 << 31, len(gzip.decompress(WHOLE)) + 1):
        (tmp_path / "a.wdr").write_bytes(WHOLE[:-4] + struct.pack("<I", claimed))
        with pytest.raises(RecordingError, match="not complete"):
            summary(tmp_path / "a.wdr")
        with pytest.raises(RecordingError):
            read(tmp_path / "a.wdr")
