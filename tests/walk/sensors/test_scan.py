"""Scandots: heights at points that turn with the robot, beside MuJoCo's rays straight down."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.walk.fields import RESOLUTION, Field, random_heights, random_poses, rotation
from wavedash.errors import UserError
from wavedash.walk.sensors.scan import Scan, legged_gym_grid, parkour_grid
from wavedash.walk.sensors.tiles import Tiles


def points(position, orientation, offsets):
    """[P, 2]: where the points of one robot are, by its yaw as a person would compute it."""
    forward = rotation(orientation)[:, 0]
    yaw = np.arctan2(forward[1], forward[0])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    return position[:2].numpy() + offsets.numpy() @ turn.T


def test_heights_are_those_of_mujocos_triangles():
    heights = random_heights()
    fields = [Field(tile) for tile in heights]
    position, orientation = random_poses(24, reach=1.3, height=1)
    tile = torch.arange(24) % len(heights)
    offsets = parkour_grid()
    found = Scan(Tiles(heights, RESOLUTION), 24, offsets)(position, orientation, tile)
    compared = 0
    for n in range(24):
        for p, (x, y) in enumerate(points(position[n], orientation[n], offsets)):
            if abs(x) < 1.499 and abs(y) < 1.999:
                # A point on the brink of a pit of 0.9 m is 9 times as far off in height as in x.
                assert found[n, p].item() == pytest.approx(fields[tile[n]].height(x, y), abs=1e-5)
                compared += 1
    assert compared > 1000


def test_outside_of_a_tile_the_height_is_that_of_its_border():
    heights = random_heights()[1:2]
    corners = np.linspace(-2, 2, 41), np.linspace(-1.5, 1.5, 31)  # y, x
    scan = Scan(Tiles(heights, RESOLUTION), 6, torch.zeros(1, 2))
    outside = torch.tensor([[9, 0.33, 0], [-1.7, -1.22, 0], [0.41, 50, 0], [0.07, -2.2, 0], [9, 9, 0], [-9, 9, 0]])
    found = scan(outside, torch.tensor([[1.0, 0, 0, 0]]).expand(6, 4), torch.zeros(6))
    border = heights[0].numpy()
    expected = [np.interp(0.33, corners[0], border[:, -1]), np.interp(-1.22, corners[0], border[:, 0]),
                np.interp(0.41, corners[1], border[-1]), np.interp(0.07, corners[1], border[0]), border[-1, -1], border[-1, 0]]
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-6)


def test_each_robot_sees_its_own_tile_and_a_scan_follows_its_pose():
    heights = torch.arange(3.0).view(3, 1, 1).expand(3, 5, 5)
    scan = Scan(Tiles(heights, 1.0), 3)
    still = torch.tensor([[1.0, 0, 0, 0]]).expand(3, 4)
    assert scan(torch.zeros(3, 3), still, torch.tensor([2, 0, 1])).mean(1).tolist() == [2, 0, 1]
    assert scan(torch.zeros(3, 3), still, torch.tensor([1, 1, 2])).mean(1).tolist() == [1, 1, 2]
    slope = Scan(Tiles(torch.arange(9.0).expand(1, 9, 9), 0.5), 1, torch.tensor([[1.0, 0], [0, 1.0]]))  # 2 m higher per metre
    quarter = torch.tensor([[0.5**0.5, 0, 0, 0.5**0.5]])  # looks along y: left is -x
    torch.testing.assert_close(slope(torch.tensor([[0.5, 0, 0]]), quarter, torch.zeros(1)), torch.tensor([[5.0, 3.0]]))
    tilted = torch.tensor([[0.5**0.5, 0, 0.5**0.5, 0]])  # nose straight down: the grid points along x
    torch.testing.assert_close(slope(torch.tensor([[0.5, 0, 0]]), tilted, torch.zeros(1)), torch.tensor([[7.0, 5.0]]))


def test_grids():
    assert legged_gym_grid().shape == (187, 2) and legged_gym_grid().amax(0).tolist() == pytest.approx([0.8, 0.5])
    assert parkour_grid().shape == (132, 2) and parkour_grid().amax(0).tolist() == pytest.approx([1.2, 0.75])
    assert parkour_grid().amin(0).tolist() == pytest.approx([-0.45, -0.75])
    torch.testing.assert_close(parkour_grid().view(12, 11, 2)[1, 2], torch.tensor([-0.3, -0.45]))


def test_threads_do_not_change_a_scan():
    tiles = Tiles(random_heights(), RESOLUTION)
    position, orientation = random_poses(1000, reach=2, height=1)
    one, three = (Scan(tiles, 1000, threads=threads)(position, orientation, torch.arange(1000) % 3) for threads in (1, 3))
    assert torch.equal(one, three)


def test_heights_without_cells_are_refused():
    with pytest.raises(UserError, match=r"two rows and columns at least, not \[3, 1, 5\]"):
        Tiles(torch.zeros(3, 1, 5), 0.1)
