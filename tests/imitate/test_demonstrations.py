"""The file format of demonstrations: what is written is read, and what cannot be learned from is named."""
from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import prepare, read, write_samples, write_states

OBS, ACTION, EPISODE = torch.arange(12.0).view(6, 2), torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 0, 0, 4, 4, 2])
METADATA = {"format": "wavedash-demonstrations", "version": "1", "kind": "samples"}


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "made" / "d.safetensors"
    mask = torch.ones(6, 3, dtype=torch.bool)
    write_samples(file, {"a": OBS, "b": OBS + 1}, ACTION, EPISODE, mask, {"player": "chaser"})
    found = read(file, "samples")
    assert found.count == 6 and found.metadata["player"] == "chaser"
    assert torch.equal(found.tensors["obs.b"], OBS + 1) and torch.equal(found.tensors["mask"], mask)
    assert found.begins().tolist() == [True, False, False, True, False, True]
    assert [path.name for path in file.parent.iterdir()] == ["d.safetensors"]


def test_the_file_is_what_the_page_says(tmp_path: Path) -> None:
    """Read without our code: eight bytes of length, a JSON header, then numbers."""
    write_samples(tmp_path / "d.safetensors", OBS, ACTION, EPISODE)
    raw = (tmp_path / "d.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    assert header["__metadata__"] == METADATA
    assert header["episode"]["dtype"] == "I32" and header["obs"]["shape"] == [6, 2]


def test_states_hold_controls_and_ticks(tmp_path: Path) -> None:
    file = tmp_path / "s.safetensors"
    write_states(file, {"ball.position": torch.zeros(6, 3)}, torch.zeros(6, 2, 8), torch.ones(6, 2), EPISODE, ticks=8)
    found = read(file)
    assert found.kind == "states" and found.ticks == 8 and found.tensors["known"].dtype == torch.bool
    with pytest.raises(UserError, match="holds states, but samples are needed"):
        read(file, "samples")


@pytest.mark.parametrize(("change", "message"), [
    ({"obs": torch.full((6, 2), torch.nan)}, "obs holds NaN or infinity in row 0"),
    ({"obs": torch.where(torch.arange(6).view(6, 1) == 4, torch.inf, OBS)}, "infinity in row 4"),
    ({"obs": OBS[:5].clone()}, "obs must have 6 rows"),
    ({"episode": EPISODE.float()}, "episode must be int32"),
    ({"obs": OBS[:0].clone(), "action": ACTION[:0].clone(), "episode": EPISODE[:0].int()}, "is empty"),
    ({"action": None}, "holds no action"),
    ({"obs": None}, "holds no obs"),
])
def test_wrong_tensors_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    tensors = {"obs": OBS, "action": ACTION, "episode": EPISODE.int(), **change}
    save_file({name: x for name, x in tensors.items() if x is not None}, tmp_path / "d.safetensors", METADATA)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "d.safetensors")


@pytest.mark.parametrize(("change", "message"), [
    ({"format": "other"}, "holds no demonstrations"), ({"version": "2"}, "has version 2"), ({"kind": "films"}, "unknown kind"),
])
def test_other_files_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    save_file({"obs": OBS, "action": ACTION, "episode": EPISODE.int()}, tmp_path / "d.safetensors", {**METADATA, **change})
    with pytest.raises(UserError, match=message):
        read(tmp_path / "d.safetensors")


def test_damaged_and_missing_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "d.safetensors"
    with pytest.raises(UserError, match="no such file"):
        read(file)
    write_samples(file, OBS, ACTION, EPISODE)
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(UserError, match="cannot be read"):
        read(file)
    with pytest.raises(UserError, match="choose this ending"):
        write_samples(tmp_path / "d.npz", OBS, ACTION, EPISODE)


def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.safetensors").mkdir()
    for path in (tmp_path / "file" / "d.safetensors", tmp_path / "folder.safetensors"):
        for begin in (lambda path=path: prepare(path), lambda path=path: write_samples(path, OBS, ACTION, EPISODE)):
            with pytest.raises(UserError, match=r"cannot write .*safetensors: .*; name another file"):
                begin()
    prepare(tmp_path / "new" / "d.safetensors")
    assert not list((tmp_path / "new").iterdir()) and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", [
    ["imitate", "record", "chaser", "{}.safetensors", "--games", "1"],
    ["replays", "train-inverse", "{}.safetensors"],
    ["replays", "import", "{folder}", "{}"],
])
def test_commands_do_not_work_for_nothing(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would play or parse for minutes. Here nothing of that could: there is no arena, and the replay is none."""
    (tmp_path / "x.replay").write_text("no replay")
    (tmp_path / "file").write_text("mine")
    out = str(tmp_path / "file" / "out")
    words = [word.format(out, folder=tmp_path) for word in command]
    monkeypatch.setattr("wavedash.rocket.sim.simulator.WarpSimulator.__init__", _too_late)
    with pytest.raises(UserError, match=r"cannot write "):
        app(words, standalone_mode=False)


def _too_late(*arguments: Any, **named: Any) -> None:
    raise AssertionError("it is too late: the work has begun")
