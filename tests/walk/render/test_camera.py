"""The camera that follows a robot."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.walk.fields import Field
from wavedash.walk.render.camera import Follow, FollowCamera
from wavedash.walk.sensors.tiles import Tiles

FLAT = Tiles(torch.zeros(1, 81, 81), 0.1)
STILL = torch.tensor([1.0, 0.0, 0.0, 0.0])


def quarter_turn(turns):
    angle = torch.tensor(np.pi / 4 * turns)
    return torch.stack((angle.cos(), torch.zeros(()), torch.zeros(()), angle.sin())).float()


@pytest.mark.parametrize("turns", range(4))
def test_it_looks_from_the_side_and_behind(turns):
    options = Follow()
    view = FollowCamera(FLAT, 0.04, options).view(torch.tensor([0.5, -0.3, 0.3]), quarter_turn(turns), 0)
    assert view.target == pytest.approx((0.5, -0.3, 0.3))
    way = np.array(view.eye) - np.array(view.target)
    assert np.linalg.norm(way) == pytest.approx(options.distance)
    assert np.degrees(np.arcsin(way[2] / options.distance)) == pytest.approx(options.elevation)
    ahead = np.array([np.cos(np.pi / 2 * turns), np.sin(np.pi / 2 * turns)])
    left = np.array([-ahead[1], ahead[0]])
    assert way[:2] @ ahead < -0.5 and way[:2] @ left > 0.5


def test_it_follows_smoothly_and_cuts_at_a_new_episode():
    camera = FollowCamera(FLAT, 0.04)
    camera.view(torch.tensor([0.0, 0.0, 0.3]), STILL, 0)
    second = camera.view(torch.tensor([1.0, 0.0, 0.3]), STILL, 0)
    assert 0.1 < second.target[0] < 0.5
    for _ in range(100):
        last = camera.view(torch.tensor([1.0, 0.0, 0.3]), STILL, 0)
    assert last.target[0] == pytest.approx(1.0, abs=1e-3)
    camera.cut()
    assert camera.view(torch.tensor([-2.0, 0.0, 0.3]), STILL, 0).target[0] == pytest.approx(-2.0)


@pytest.mark.parametrize("turns", range(4))
def test_ground_is_never_between_it_and_the_robot(turns):
    """A robot at the bottom of a pit 0.9 m deep and 1.2 m wide, on the second of two tiles."""
    heights = torch.zeros(2, 81, 81)
    heights[1, 35:46, 35:46] = -0.9
    position = torch.tensor([0.1, -0.1, -0.6])
    view = FollowCamera(Tiles(heights, 0.1), 0.04).view(position, quarter_turn(turns), 1)
    way = position.double().numpy() - np.array(view.eye)
    assert Field(heights[1], 0.1).cast(np.array(view.eye), way[None])[0] > 1
    assert view.eye[2] > 0
