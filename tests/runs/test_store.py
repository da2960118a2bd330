"""Saving, finding and keeping checkpoints, without faults; the faults are in test_store_faults.py."""
from __future__ import annotations

import base64
import math
import os

import pytest
import torch

from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.plain import NotPlainError, from_json, to_json
from wavedash.runs.store import CheckpointStore


def tensors(value: float = 1.0):
    return {"policy": {"weight": torch.full((3, 2), value), "bias": torch.zeros(())}, "optimizer": {"step": torch.tensor([7])}}


def names(store: CheckpointStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def test_what_is_saved_is_what_is_loaded(tmp_path):
    saved = {"all": {"half": torch.randn(3).bfloat16(), "flag": torch.tensor([True, False]), "scalar": torch.tensor(2.5),
                     "byte": torch.arange(9).byte(), "empty": torch.empty(0, 4), "nan": torch.tensor([-0.0, math.nan])}}
    path = CheckpointStore(tmp_path).save(5, saved, {"a": [1, 2.5, None, True, "ü"]}, {"exact": True})
    loaded, state = Checkpoint.open(path).load()
    assert path.name == "step-000000000005"
    assert state == {"a": [1, 2.5, None, True, "ü"]}
    assert loaded["all"].keys() == saved["all"].keys()
    for name, tensor in saved["all"].items():
        assert loaded["all"][name].dtype == tensor.dtype
        assert loaded["all"][name].shape == tensor.shape
        assert loaded["all"][name].reshape(-1).view(torch.uint8).tolist() == tensor.reshape(-1).view(torch.uint8).tolist()


def test_views_and_tied_tensors_are_saved_with_their_values(tmp_path):
    buffer = torch.arange(12.0).view(3, 4)
    views = {"turned": buffer.t(), "row": buffer[1], "same": buffer, "again": buffer}
    loaded, _ = Checkpoint.open(CheckpointStore(tmp_path).save(1, {"views": views}, {}, {})).load()
    assert loaded["views"].keys() == views.keys()
    assert all(torch.equal(loaded["views"][name], view) for name, view in views.items())


def test_only_the_groups_asked_for_are_read(tmp_path):
    path = CheckpointStore(tmp_path).save(1, tensors(), {"x": 1}, {})
    (path / "optimizer.safetensors").write_bytes(b"rotten")
    loaded, state = Checkpoint.open(path).load(["policy"])
    assert loaded.keys() == {"policy"}
    assert state == {"x": 1}
    with pytest.raises(CheckpointError, match=r"has no memory.safetensors: it holds optimizer.safetensors, policy"):
        Checkpoint.open(path).load(["memory"])


def test_the_newest_k_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, keep=3)
    for step in range(1, 8):
        store.save(step, tensors(), {}, {})
    assert names(store) == [f"step-{step:012d}" for step in (5, 6, 7)]
    assert store.newest().step == 7


def test_a_step_can_be_saved_again(tmp_path):
    store = CheckpointStore(tmp_path)
    for value in (1.0, 2.0, 3.0):
        path = store.save(10, tensors(value), {}, {})
        assert store.newest().path == path
        assert len(names(store)) == 1
        assert Checkpoint.open(path).load()[0]["policy"]["weight"][0, 0] == value


def test_after_going_back_to_an_earlier_step_the_new_checkpoints_count_and_are_not_pruned(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    for step in (100, 200, 300, 50):  # the last one was resumed by hand from a copy of step 0
        store.save(step, tensors(), {}, {})
    assert store.newest().step == 50
    assert names(store) == ["step-000000000050", "step-000000000300"]


def test_a_clock_that_goes_back_does_not_change_the_order(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    store.save(1, tensors(), {}, {})
    monkeypatch.setattr("time.time_ns", lambda: 10**15)
    store.save(2, tensors(), {}, {})
    assert store.newest().step == 2


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    store = CheckpointStore(tmp_path, keep=1)
    for name in ("step-", "step-abc", "step-000000000009", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-000000000003").write_text("a file")
    os.symlink(tmp_path / "nowhere", tmp_path / "step-000000000004")
    before = set(names(store))
    assert store.newest() is None
    for step in (3, 4, 9):
        store.save(step, tensors(), {}, {})
        assert store.newest().step == step
    assert before < set(names(store))


def test_an_empty_or_missing_store_has_no_newest(tmp_path):
    assert CheckpointStore(tmp_path / "missing").newest() is None
    assert CheckpointStore(tmp_path).newest() is None


def test_a_newer_format_is_refused_with_what_to_do(tmp_path):
    store = CheckpointStore(tmp_path)
    path = store.save(1, tensors(), {}, {})
    newer = Checkpoint.open(path).manifest.model_copy(update={"format": 2})
    (path / "manifest.json").write_bytes(newer.to_bytes())
    with pytest.raises(CheckpointError, match=r"format 2.*reads up to 1; upgrade with: pip install -U wavedash"):
        Checkpoint.open(path)


GOLDEN = {  # step 42 as the first release wrote it; every later one must read it
    "manifest.json":
        "ewogImZvcm1hdCI6IDEsCiAic3RlcCI6IDQyLAogInNhdmVkX2F0IjogMTc2MDAwMDAwMDAwMCwKICJmaWxlcyI6IHsKICAicG9saWN5LnNhZmV0"
        "ZW5zb3JzIjogewogICAic2l6ZSI6IDE1NiwKICAgInNoYTI1NiI6ICI0YjYxMGZjMzhmZDAxNWM3M2VmMWRiODQ5Zjc4OTdlOWY3YWIzYTBkZTA4"
        "YWRkM2Q4ZGJlYzdkZThhYjA1ZGRhIgogIH0sCiAgInN0YXRlLmpzb24iOiB7CiAgICJzaXplIjogNTMsCiAgICJzaGEyNTYiOiAiMjAzZGQxMWM5"
        "Zjc3OGNlOWQ1NTgxZjZhMWQ5MWE4ZjgwYjgyZjFjNjAwMjI0YjZiOWY2Nzc5MTBiZWE2N2EwZSIKICB9CiB9LAogIm1ldGFkYXRhIjogewogICJl"
        "eGFjdCI6IHRydWUsCiAgImZpZ3VyZXMiOiB7CiAgICJyZWNlbnQvcmV0dXJuIjogMTIuNQogIH0KIH0sCiAic2hhMjU2IjogImI5YzUyODc4NGZl"
        "MmQ4N2IzMDk5ZDgwMjU0OTU4ZGE0MWUyZDgxOTcxZjAwOGUyNDlkMmFhZTdiMzE3NzBiYTAiCn0=",
    "policy.safetensors":
        "iAAAAAAAAAB7ImFjdG9yLmJpYXMiOnsiZHR5cGUiOiJGMzIiLCJzaGFwZSI6WzFdLCJkYXRhX29mZnNldHMiOlswLDRdfSwiYWN0b3Iud2VpZ2h0"
        "Ijp7ImR0eXBlIjoiRjMyIiwic2hhcGUiOlsxLDJdLCJkYXRhX29mZnNldHMiOls0LDEyXX19ICAgICAgAADAfwAAwD8AAADA",
    "state.json":
        "ewogImJlc3QiOiB7CiAgIl9fZmxvYXRfXyI6ICItaW5mIgogfSwKICJzdGVwcyI6IDQyCn0=",
}


def test_a_checkpoint_of_format_1_can_be_read_for_ever(tmp_path):
    for name, text in GOLDEN.items():
        (tmp_path / name).write_bytes(base64.b64decode(text))
    checkpoint = Checkpoint.open(tmp_path)
    loaded, state = checkpoint.load()
    assert (checkpoint.step, checkpoint.metadata) == (42, {"exact": True, "figures": {"recent/return": 12.5}})
    assert checkpoint.metrics == {"recent/return": 12.5}
    assert loaded["policy"]["actor.weight"].tolist() == [[1.5, -2.0]]
    assert loaded["policy"]["actor.bias"].isnan().tolist() == [True]
    assert state == {"best": -math.inf, "steps": 42}


@pytest.mark.parametrize("value", [
    None, True, 3, -2**80, 0.1, -0.0, 1e300, math.inf, -math.inf, "text", "NaN", [], {},
    [1, [2.5, {"a": None}]], {"a": {"b": math.inf}},
])
def test_plain_values_read_back_exactly(value):
    assert repr(from_json(to_json(value))) == repr(value)


def test_nan_reads_back_and_the_file_is_strict_json():
    text = to_json({"best": math.nan})
    assert math.isnan(from_json(text)["best"])
    assert "NaN" not in text
    with pytest.raises(ValueError, match="not JSON"):
        from_json('{"best": NaN}')


@pytest.mark.parametrize(("value", "message"), [
    ({"a": [torch.zeros(1)]}, r"\$\.a\[0\]: a Tensor cannot be saved"),
    ({"a": {1: 2}}, r"\$\.a: the key 1"),
    ({"__float__": 1.0}, "the key '__float__'"),
    ({"a": {1, 2}}, "a set cannot be saved"),
])
def test_what_json_would_change_is_refused_with_its_place(value, message, tmp_path):
    with pytest.raises(NotPlainError, match=message):
        to_json(value)
    with pytest.raises(CheckpointError, match=message):
        CheckpointStore(tmp_path).save(1, {}, value, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("group", ["../outside", "a/b", "", ".", "a b"])
def test_tensors_whose_name_is_no_file_name_is_refused(group, tmp_path):
    with pytest.raises(CheckpointError, match="cannot name a file of tensors"):
        CheckpointStore(tmp_path / "store").save(1, {group: {"x": torch.zeros(1)}}, {}, {})
    assert list(tmp_path.rglob("*.safetensors")) == []
