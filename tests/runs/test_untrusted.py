"""Checkpoints may come from strangers: whatever is in one, reading it runs no code, stays in its folder and fails clearly."""
from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wavedash
from wavedash.runs.checkpoint import Checkpoint, CheckpointError, FileRecord, Manifest


def forge(folder: Path, files: dict[str, bytes]) -> Path:
    """A checkpoint of any content with right sizes and checksums, as an attacker would make it."""
    folder.mkdir(exist_ok=True)
    records = {}
    for name, data in files.items():
        records[name] = FileRecord(size=len(data), sha256=hashlib.sha256(data).hexdigest())
        if re.fullmatch(r"\w+\.\w+", name):
            (folder / name).write_bytes(data)
    manifest = Manifest.model_construct(format=1, step=1, saved_at=1, files=records, metadata={})
    (folder / "manifest.json").write_bytes(manifest.to_bytes())
    return folder


class Bomb:
    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def torch_zip(marker: Path) -> bytes:
    data = io.BytesIO()
    torch.save({"weight": Bomb(marker)}, data)
    return data.getvalue()


def zip_slip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("../../outside", "gotcha")
    return data.getvalue()


def header(content: object, body: bytes = b"") -> bytes:
    text = json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text + body


BAD_TENSORS = {
    "pickle": lambda marker: pickle.dumps(Bomb(marker)),
    "torch zip": torch_zip,
    "zip slip": lambda marker: zip_slip(),
    "empty": lambda marker: b"",
    "huge header": lambda marker: (2**63).to_bytes(8, "little") + b"{}",
    "long header": lambda marker: (101 * 2**20).to_bytes(8, "little") + b"{}",
    "no header": lambda marker: (0).to_bytes(8, "little"),
    "beyond the end": lambda marker: header({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"1234"),
    "overflow": lambda marker: header({"x": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}}, b"1234"),
    "overlap": lambda marker: header({n: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for n in "xy"}, b"1234"),
    "negative": lambda marker: header({"x": {"dtype": "U8", "shape": [-4], "data_offsets": [0, 4]}}, b"1234"),
    "nan shape": lambda marker: header({"x": {"dtype": "U8", "shape": [float("nan")], "data_offsets": [0, 4]}}, b"1234"),
    "unknown type": lambda marker: header({"x": {"dtype": "OBJECT", "shape": [4], "data_offsets": [0, 4]}}, b"1234"),
    "nested": lambda marker: header({}, b"")[:8] + b"[" * 100_000,
}


@pytest.mark.parametrize("kind", BAD_TENSORS)
def test_bad_tensor_files_with_right_checksums_are_refused(tmp_path, kind):
    path = forge(tmp_path / "c", {"policy.safetensors": BAD_TENSORS[kind](tmp_path / "marker"), "state.json": b"{}"})
    with pytest.raises(CheckpointError, match="use another checkpoint"):
        Checkpoint.open(path).load()
    assert [p.name for p in tmp_path.iterdir()] == ["c"]  # no code ran


@pytest.mark.parametrize("state", [b"", b"\xff", b"[" * 100_000, b'{"a": NaN}', b'{"__float__": []}', b"{'a': 1}", b"9" * 5_000,
                                   b'{"__float__": "__import__(\'os\').mkdir(\'marker\')"}'])
def test_bad_plain_values_are_refused(tmp_path, state):
    path = forge(tmp_path / "c", {"state.json": state})
    with pytest.raises(CheckpointError, match="use another checkpoint"):
        Checkpoint.open(path).load()


@pytest.mark.parametrize("name", ["../outside.json", "/etc/hostname", "a/b.json", "..\\outside.json", "C:\\x.json", "..", "",
                                  "x.json\n", ".hidden.json", "state.json/../../x.json", "policy.pt", "a.pkl", "x\x00.json"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    (tmp_path / "outside.json").write_text("{}")
    path = forge(tmp_path / "c", {"state.json": b"{}", name: b"{}"})
    with pytest.raises(CheckpointError, match="does not describe a checkpoint"):
        Checkpoint.open(path)


@pytest.mark.parametrize("name", ["state.json", "manifest.json"])
def test_links_and_pipes_are_refused(tmp_path, name):
    path = forge(tmp_path / "c", {"state.json": b"{}"})
    os.rename(path / name, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path / name)
    with pytest.raises(CheckpointError, match="not a plain file"):
        Checkpoint.open(path).load()
    os.unlink(path / name)
    os.mkfifo(path / name)  # opening one would wait for ever
    with pytest.raises(CheckpointError, match="not a plain file"):
        Checkpoint.open(path).load()


@pytest.mark.parametrize("manifest", [b"", b"[]", b"null", b"1", b'"text"', b"{}", b"{" * 50, b"[" * 100_000,
                                      b'{"sha256": "x"}', b'{"__float__": "nan"}', b"\x80\x04K\x01."])
def test_bad_manifests_are_refused(tmp_path, manifest):
    (tmp_path / "manifest.json").write_bytes(manifest)
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint.open(tmp_path)


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # it notices what is wrong already when the test writes it
@pytest.mark.parametrize("change", [{"step": -1}, {"step": "1"}, {"step": 1.5}, {"files": []}, {"files": {"state.json": {}}},
                                    {"metadata": 3}, {"format": -1}, {"format": "1"}, {"saved_at": None}])
def test_manifests_of_the_wrong_shape_are_refused(tmp_path, change):
    sound = Manifest(step=1, saved_at=1, files={}, metadata={}).model_dump()
    (tmp_path / "manifest.json").write_bytes(Manifest.model_construct(**{**sound, **change}).to_bytes())
    with pytest.raises(CheckpointError, match="does not describe a checkpoint"):
        Checkpoint.open(tmp_path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tensors=st.binary(max_size=200), state=st.binary(max_size=50), cut=st.integers(0, 100))
def test_random_content_is_loaded_or_refused_and_nothing_else(tmp_path, tensors, state, cut):
    prefix = header({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"1234")[:cut]
    path = forge(tmp_path / "c", {"policy.safetensors": prefix + tensors, "state.json": state})
    with suppress(CheckpointError):
        Checkpoint.open(path).load()


def test_nothing_in_the_package_loads_what_can_run_code():
    """Files of rlgym-ppo are read by torch's reader of plain tensors. Only messages through the pipe between a pool and a
    worker that it started are unpickled."""
    forbidden = re.compile(r"pickle\.loads?\b|\btorch\.load\(|(?<![\w.])(eval|exec)\(|yaml\.(unsafe_|full_)?load\(|marshal\.")
    found = [f"{path.name}:{number}: {line.strip()}"
             for path in Path(wavedash.__file__).parent.rglob("*.py")
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if forbidden.search(line)]
    assert sorted(re.sub(r":\d+", "", line, count=1) for line in found) == [
        "pool.py: share.notes = pickle.loads(news[len(NOTED) :])",
        "pool_program.py: batch.replay(pickle.loads(command[len(REPLAY) :]))",
        "ppo_learner.py: part.load_state_dict(torch.load(path, map_location=self.policy.device, weights_only=True))",
        'read_checkpoint.py: return torch.load(path, map_location="cpu", weights_only=True)']
