"""What tests of recordings share: small recordings, and a reader that was written from docs/recordings.md alone."""
from __future__ import annotations

import gzip
import json
import struct
from typing import Any

import numpy as np

from wavedash.recordings import Field, Layout, Recording, event, make_header

CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "f32": "f"}


def read_by_the_page(data: bytes) -> tuple[dict[str, Any], list[dict[str, list[float]]]]:
    """The header, and of every frame the values of every field, flat: by nothing but what docs/recordings.md says."""
    whole = gzip.decompress(data)
    assert whole[:4] == b"WDR1"
    (length,) = struct.unpack_from("<I", whole, 4)
    header = json.loads(whole[8:8 + length].decode("utf-8"))
    frames, at = [], 8 + length
    while at < len(whole):
        frame = {}
        for field in header["record"]:
            count = 1
            for size in field["shape"]:
                count *= size
            code = f"<{count}{CODES[field['type']]}"
            frame[field["name"]] = [number * field["scale"] for number in struct.unpack_from(code, whole, at)]
            at += struct.calcsize(code)
        frames.append(frame)
    assert at == len(whole)
    return header, frames


def small(frames: int = 5, title: str = "two cars, a ball") -> Recording:
    """A recording with a field of every type."""
    layout = Layout((Field("tick", "i32"), *(Field(f"numbers.of_{kind}", kind, (2, 3), 0.5) for kind in CODES)))
    rng = np.random.default_rng(0)
    values = {field.name: rng.integers(0, 100, (frames, *field.shape)) * field.scale for field in layout.fields}
    header = make_header("rocket", title, "match", 8, 1 / 120, layout, events=[event(0, "goal", None, "Tor! ⚽")], score=[1, 0])
    return Recording({**header, "created": "2026-11-18T09:00:00Z"}, layout, layout.encode(values))
