"""A shelf keeps the best few of each kind, whatever happens to its files, and never more."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recordings.made import small
from wavedash.recordings import RecordingError, read
from wavedash.rocket.recording import shelf as module
from wavedash.rocket.recording.shelf import Shelf

OFFERS = st.lists(st.tuples(st.sampled_from(["goal", "save", "flip_reset"]), st.integers(0, 6), st.integers(1, 1000)),
                  max_size=40)


def offer(shelf: Shelf, kind: str, score: int, step: int) -> bool:
    if not shelf.wants(kind, score, step):
        return False
    shelf.put(small(1), kind, score, step)
    return True


@given(OFFERS, st.integers(1, 3), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_the_best_scores_of_each_kind_stay(tmp_path_factory, offers, each, resumed_after):
    """By sorting all that was offered, in the order of a run. It makes no difference if another process goes on."""
    folder = tmp_path_factory.mktemp("shelf")
    shelf, offers = Shelf(folder, each), sorted(offers, key=lambda one: one[2])
    for number, one in enumerate(offers):
        offer(shelf, *one)
        if number == resumed_after:
            shelf = Shelf(folder, each)
            shelf.look()
    for kind in ("goal", "save", "flip_reset"):
        # Two of one kind, score and step have one name: one file.
        scores = sorted((score for _, score, _ in {one for one in offers if one[0] == kind}), reverse=True)[:each]
        names = [path.name for path in folder.iterdir() if f"-{kind}-" in path.name]
        found = sorted((int(name.removesuffix(".wdr").rpartition("-")[2]) for name in names), reverse=True)
        assert found[:1] == scores[:1] and len(found) <= each
        assert all(score >= wanted for score, wanted in zip(found, scores, strict=False))
    assert {one.path for one in shelf.kept} == set(folder.iterdir())


def test_an_equal_one_is_renewed_now_and_then(tmp_path):
    """A bot that always succeeds writes some files in the course of a run, not one in every iteration."""
    shelf = Shelf(tmp_path, 2)
    written = [step for step in range(1000, 1_000_000, 1000) if offer(shelf, "turtle", 1, step)]
    assert 8 < len(written) < 30 and written[:3] == [1000, 2000, 3000]
    assert max(one.step for one in shelf.kept) > 400_000


def test_names_are_steps_kind_and_score_and_files_of_others_are_left_alone(tmp_path):
    for name in ("notes.txt", "20261116-150405-123456-001-a-vs-b.wdr", "000000000001-Goal-1.wdr", "x-goal-1.wdr"):
        (tmp_path / name).write_bytes(b"mine")
    shelf = Shelf(tmp_path, 1)
    shelf.look()
    assert shelf.kept == []
    offer(shelf, "goal", 50, 123_456)
    offer(shelf, "goal", 51, 123_457)
    assert sorted(path.name for path in tmp_path.iterdir() if b"mine" not in path.read_bytes()) == ["000000123457-goal-51.wdr"]
    assert read(tmp_path / "000000123457-goal-51.wdr").frames == 1 and len(list(tmp_path.iterdir())) == 5


def test_a_file_that_was_deleted_is_missed_by_nobody(tmp_path):
    shelf = Shelf(tmp_path, 1)
    offer(shelf, "goal", 1, 10)
    for path in tmp_path.iterdir():
        path.unlink()
    offer(shelf, "goal", 2, 11)
    assert [path.name for path in tmp_path.iterdir()] == ["000000000011-goal-2.wdr"]


def test_a_folder_that_cannot_be_written_is_said_and_what_is_there_stays(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path / "file" / "recordings", 1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordingError, match="recordings"):
        offer(shelf, "goal", 1, 10)
    gone = Shelf(tmp_path / "run" / "recordings", 1)
    with pytest.raises(RecordingError):
        offer(gone, "goal", 1, 10)
    assert not (tmp_path / "run").exists(), "a run folder that was moved away is not made anew"
    kept = Shelf(tmp_path, 1)
    offer(kept, "goal", 1, 10)
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    offer(kept, "goal", 2, 11)
    assert [Path(one.path).name for one in kept.kept] == ["000000000010-goal-1.wdr"], "what is too large is not kept"
