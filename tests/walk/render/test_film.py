"""A film of a trained policy, without a display."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence
from typer.testing import CliRunner

from wavedash.cli.app import app

WALKER = Path(__file__).parents[1] / "walker"
"""A policy that walks on flat ground"""


def render(*options: str):
    return CliRunner().invoke(app, ["render", str(WALKER), *options])


def frames(path):
    with Image.open(path) as film:
        for frame in ImageSequence.Iterator(film):
            yield np.asarray(frame.convert("RGB")).astype(int)


def test_a_film_shows_a_robot_that_walks(tmp_path):
    result = render("--video", str(tmp_path / "walk.gif"), "--seconds", "1.2")
    assert result.exit_code == 0, result.output
    first, *_, last = shown = list(frames(tmp_path / "walk.gif"))
    assert len(shown) == 30, "25 pictures for each second"
    assert first.shape == (360, 1012, 3), "the picture and the depth image beside it"
    assert np.abs(first[:, :640] - last[:, :640]).mean() > 1.0, "the ground has moved past the camera"
    metres = float(result.output.rpartition(": ")[2].split()[0])
    assert 0.15 < metres < 0.7, "at up to 0.5 m/s"


def test_the_depth_image_is_that_of_the_terrain(tmp_path):
    for terrain in ("flat", "stairs_up"):
        result = render("--video", str(tmp_path / f"{terrain}.gif"), "--seconds", "0.1", "--terrain", terrain, "--level", "9")
        assert result.exit_code == 0, result.output
    flat, stairs = (next(frames(tmp_path / f"{name}.gif"))[:, 640:] for name in ("flat", "stairs_up"))
    assert np.abs(flat - stairs).max() > 50


@pytest.mark.parametrize(("options", "message"), [
    (["--video", "walk.avi"], "must end in .mp4 or .gif"),
    (["--video", "walk.gif", "--level", "30"], "there is no level 30"),
    (["--video", "walk.gif", "--terrain", "stair_up"], "did you mean 'stairs_up'"),
    ([], "there is no display"),
])
def test_what_cannot_be_filmed_is_said(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    result = render(*options)
    assert result.exit_code != 0 and message in f"{result.output}{result.exception}"
    assert not list(tmp_path.iterdir())


def test_other_environments_cannot_be_filmed():
    result = CliRunner().invoke(app, ["render", "champion", "--video", "a.gif"])
    assert result.exit_code != 0 and "docs/watch.md" in f"{result.output}{result.exception}"
