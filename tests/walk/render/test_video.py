"""Video files, and the depth image beside the picture."""
from __future__ import annotations

import builtins

import pytest
import torch
from PIL import Image, ImageSequence

from wavedash.errors import UserError
from wavedash.walk.render.video import MARGIN, PANEL, beside, check_video, false_colours, write_video


def frames(count=5, rows=30, columns=41):
    """A white bar that moves over blue."""
    for i in range(count):
        frame = torch.zeros(rows, columns, 3, dtype=torch.uint8)
        frame[..., 2] = 200
        frame[:, 8 * i:8 * i + 8] = 255
        yield frame


def test_a_gif_has_all_frames_at_their_pace(tmp_path):
    path = write_video(tmp_path / "new" / "a.gif", frames(), 25)
    with Image.open(path) as file:
        assert (len(list(ImageSequence.Iterator(file))), file.size, file.info["duration"]) == (5, (41, 30), 40)
        file.seek(3)
        assert file.convert("RGB").getpixel((28, 10)) == (255, 255, 255)
        assert file.convert("RGB").getpixel((4, 10)) == (0, 0, 200)


def test_an_mp4_has_all_frames_at_their_pace(tmp_path):
    av = pytest.importorskip("av")
    path = write_video(tmp_path / "a.mp4", frames(), 25)
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        found = [frame.to_ndarray(format="rgb24") for frame in file.decode(stream)]
        assert len(found) == 5 and found[0].shape == (30, 40, 3) and float(stream.average_rate) == 25
    assert found[3][10, 28].min() > 220 and found[3][10, 4].argmax() == 2


def test_what_is_missing_is_said_before_anything_is_filmed(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("av", "PIL"):
            raise ModuleNotFoundError(f"No module named '{name}'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"PyAV.*pip install 'wavedash\[walk\]', or write a \.gif"):
        check_video("walk.mp4")
    with pytest.raises(UserError, match=r"Pillow.*pip install 'wavedash\[walk\]'"):
        check_video("walk.gif")
    with pytest.raises(UserError, match=r"walk\.avi: a video must end in \.mp4 or \.gif"):
        check_video("walk.avi")


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_a_place_that_cannot_be_written_is_said(suffix, tmp_path):
    if suffix == "mp4":
        pytest.importorskip("av")
    (tmp_path / "file").touch()
    (tmp_path / f"folder.{suffix}").mkdir()
    for path in (tmp_path / "file" / f"a.{suffix}", tmp_path / f"folder.{suffix}"):
        with pytest.raises(UserError, match=f"cannot write {path}: .*; name another file"):
            write_video(path, frames(), 25)


def test_bad_frames_are_refused(tmp_path):
    with pytest.raises(UserError, match="one frame at least"):
        write_video(tmp_path / "a.gif", [], 25)
    with pytest.raises(UserError, match=r"must end in \.mp4 or \.gif"):
        write_video(tmp_path / "a.mkv", frames(), 25)
    with pytest.raises(UserError, match=r"frame 0 .* uint8, not \[3, 4\] float32"):
        write_video(tmp_path / "a.gif", [torch.zeros(3, 4)], 25)
    with pytest.raises(UserError, match=r"frame 1 of a video is \[4, 5, 3\], the others are \[3, 5, 3\]"):
        write_video(tmp_path / "a.gif", [torch.zeros(n, 5, 3, dtype=torch.uint8) for n in (3, 4)], 25)


def test_near_is_bright_and_far_is_dark():
    colours = false_colours(torch.linspace(0, 2, 50).view(1, 50), 2.0).float().mean(-1)[0]
    assert (colours.diff() < 0).all() and colours[0] > 200 and colours[-1] < 30
    assert torch.equal(false_colours(torch.tensor([[float("nan"), 9.0]]), 2.0), false_colours(torch.tensor([[2.0, 2.0]]), 2.0))


def test_the_depth_image_is_beside_the_picture_enlarged():
    picture = torch.full((360, 640, 3), 7, dtype=torch.uint8)
    depth = torch.full((58, 87), 2.0)
    depth[0, 0] = 0.0
    both = beside(picture, depth, 2.0)
    assert both.shape == (360, 640 + 4 * 87 + 2 * MARGIN, 3) and torch.equal(both[:, :640], picture)
    top, left = (360 - 4 * 58) // 2, 640 + MARGIN
    assert (both[top:top + 4, left:left + 4].float().mean(-1) > 200).all()  # the pixel that is near: four times as large
    assert (both[top + 4:top + 232, left + 4:left + 348].float().mean(-1) < 30).all()
    assert (both[0, 640:] == torch.tensor(PANEL)).all()
