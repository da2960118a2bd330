"""Kills, full disks and flipped bits: a save that was acknowledged stays, and a damaged checkpoint is never loaded."""
from __future__ import annotations

import builtins
import itertools
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.runs.stand_in import forked
from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.store import HIDDEN, CheckpointStore

pytestmark = pytest.mark.slow

KEEP = 3


def tensors(value: float, size: int = 8):
    return {"policy": {"weight": torch.full((size,), value)}, "optimizer": {"moment": torch.full((size,), value + 0.5)}}


def assert_sound(folder: Path, acknowledged: list[int]) -> None:
    """After the kill every checkpoint is whole, and none of the newest acknowledged ones is lost."""
    store = CheckpointStore(folder, KEEP)
    store.sweep()
    assert [path.name for path in folder.iterdir() if not path.name.startswith("step-")] == []
    found = [Checkpoint.open(path) for path in folder.iterdir()]
    for checkpoint in found:
        loaded, state = checkpoint.load()
        assert state == {"step": checkpoint.step}
        assert loaded["policy"]["weight"].eq(checkpoint.step).all()
        assert loaded["optimizer"]["moment"].eq(checkpoint.step + 0.5).all()
    kept = sorted(set(acknowledged))[-KEEP + 1:]  # a save under way may have made room already
    assert set(kept) <= {checkpoint.step for checkpoint in found}
    if acknowledged:
        assert store.newest().step >= acknowledged[-1]


def save_for_ever(folder: Path, first: int, tell) -> None:
    store = CheckpointStore(folder, KEEP)
    store.sweep()
    for step in itertools.count(first):
        for _ in range(1 + step % 2):  # every other step twice, as after a resume
            store.save(step, tensors(step, size=100_000), {"step": step}, {})
            tell(step)


def test_30_kills_at_random_instants_lose_nothing(tmp_path):
    clock, stray = random.Random(0), 0
    acknowledged = [0]

    def train(tell):
        save_for_ever(tmp_path, acknowledged[-1] + 1, tell)

    for _ in range(30):
        with forked(train) as child:
            acknowledged.append(int(child.line()))
            time.sleep(clock.uniform(0, 0.06))
            child.kill()
            assert child.wait() == -9
            acknowledged += map(int, child.rest())
        stray += len(list(tmp_path.glob(f"{HIDDEN}*")))
        assert_sound(tmp_path, acknowledged[1:])
    assert stray >= 5  # some kills must have hit a save


@pytest.mark.parametrize("when", ["before", "after"])
def test_dying_at_any_system_call_of_a_save_loses_nothing(tmp_path, when):
    """The process dies at the first, the second, ... call that changes the disk, until the whole script of saves succeeds."""

    def script(folder: Path, fatal: int, tell) -> None:
        calls = itertools.count(1)

        def mortal(call):
            def dying(*args, **kwargs):
                number = next(calls)
                if number == fatal and when == "before":
                    os._exit(7)
                try:
                    return call(*args, **kwargs)
                finally:
                    if number == fatal:
                        os._exit(7)
            return dying

        builtins.open = mortal(open)
        for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
            setattr(os, name, mortal(getattr(os, name)))
        store = CheckpointStore(folder, KEEP)
        for step in (4, 4):  # a new step that prunes the oldest, then the same step again
            store.save(step, tensors(step), {"step": step}, {})
            tell(step)

    for fatal in itertools.count(1):
        folder = tmp_path / str(fatal)
        store = CheckpointStore(folder, KEEP)
        for step in (1, 2, 3):
            store.save(step, tensors(step), {"step": step}, {})
        with forked(partial(script, folder, fatal)) as child:
            code, told = child.wait(), [int(line) for line in child.rest()]
        assert_sound(folder, [1, 2, 3, *told])
        if code == 0:
            break
        assert code == 7
        CheckpointStore(folder, KEEP).save(5, tensors(5), {"step": 5}, {})  # and the next start goes on
        assert_sound(folder, [3, *told, 5])
    assert fatal > 40
    assert told == [4, 4]


@pytest.fixture
def two(tmp_path) -> tuple[CheckpointStore, Checkpoint, Checkpoint]:
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(step, tensors(step), {"step": step}, {"mean_return": 12.5, "exact": True})
    return store, Checkpoint.open(tmp_path / "step-000000000001"), Checkpoint.open(tmp_path / "step-000000000002")


def test_200_flipped_bits_are_detected_and_the_previous_checkpoint_is_used(two):
    store, previous, newest = two
    chance = random.Random(1)
    same_meaning = 0
    for _ in range(200):
        file = chance.choice(sorted(newest.path.iterdir()))
        good = file.read_bytes()
        position = chance.randrange(len(good))
        file.write_bytes(good[:position] + bytes([good[position] ^ 1 << chance.randrange(8)]) + good[position + 1:])
        found = store.newest()
        if found == newest:  # e.g. 1e5 became 1E5 in the manifest: nothing is lost
            same_meaning += 1
            assert file.name == "manifest.json"
        else:
            assert found == previous
            with pytest.raises(CheckpointError, match="damaged"):
                Checkpoint.open(newest.path).load()
        file.write_bytes(good)
    assert same_meaning < 3
    assert store.newest() == newest


def test_200_truncated_files_are_detected_and_the_previous_checkpoint_is_used(two):
    store, previous, newest = two
    chance = random.Random(2)
    for _ in range(200):
        file = chance.choice(sorted(newest.path.iterdir()))
        good = file.read_bytes()
        file.write_bytes(good[:chance.randrange(len(good))])
        assert store.newest() == previous
        with pytest.raises(CheckpointError, match="damaged"):
            Checkpoint.open(newest.path).load()
        file.write_bytes(good)
    assert store.newest() == newest


def test_what_was_skipped_is_logged_with_the_reason(two, caplog):
    store, previous, newest = two
    (newest.path / "policy.safetensors").unlink()
    (previous.path / "manifest.json").write_text("{}")
    assert store.newest() is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert f"{previous.path / 'manifest.json'} is damaged" in caplog.text
    assert f"cannot read {newest.path / 'policy.safetensors'}: No such file" in caplog.text


@pytest.fixture(params=["tmpfs", "largest file"])
def small_disk(request, tmp_path) -> Iterator[Path]:
    """A real disk of 1 MiB where the tests may mount one, or a limit on the size of files, which needs no privilege."""
    if request.param == "largest file":
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, old[1]))
        yield tmp_path
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    else:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True).returncode:
            pytest.skip("may not mount a file system; 'largest file' tests the same without")
        yield tmp_path
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("size", [250_000, 261_000, 400_000])
def test_a_full_disk_leaves_the_old_checkpoints_and_says_so(small_disk, size, monkeypatch):
    # Another program may fill the disk between the check of the free space and the writing.
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**40, 0, 2**40))
    store = CheckpointStore(small_disk / "store", KEEP)
    store.save(1, tensors(1), {"step": 1}, {})
    with pytest.raises(CheckpointError, match=r"step 2 was not saved into .*: (No space left|File too large).* MiB needed"):
        store.save(2, {"policy": {"weight": torch.zeros(size)}, "optimizer": {"moment": torch.zeros(size)}}, {"step": 2}, {})
    assert_sound(store.folder, [1])
    store.save(3, tensors(3), {"step": 3}, {})  # there is room for a small one again
    assert_sound(store.folder, [1, 3])


def test_too_little_space_is_noticed_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**30, 2**30 - 2**20, 2**20))
    with pytest.raises(CheckpointError, match=r"\(2\.0 MiB needed, 1\.0 MiB free\).*untouched. Make room"):
        CheckpointStore(tmp_path).save(1, {"policy": {"weight": torch.zeros(2**18)}}, {}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def forbidden(tmp_path) -> Iterator[Path]:
    """A folder with room, which may not be written. A super user may write everywhere but on a read-only file system."""
    folder = tmp_path / "forbidden"
    folder.mkdir(mode=0o555)
    if os.geteuid() != 0:
        yield folder
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=9m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_where_nothing_may_be_written_room_is_not_the_advice(forbidden):
    with pytest.raises(CheckpointError, match=r"not saved into .* untouched. See that the folder can be written$"):
        CheckpointStore(forbidden / "store").save(1, tensors(1), {}, {})
    with pytest.raises(RunError, match=r"cannot make the run folder .*; see that it can be written, or set WAVEDASH_RUNS"):
        RunFolder.create("toy", forbidden)


def test_a_store_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "store").write_text("a file is in the way")
    with pytest.raises(CheckpointError, match="was not saved into"):
        CheckpointStore(tmp_path / "store").save(1, tensors(1), {}, {})
