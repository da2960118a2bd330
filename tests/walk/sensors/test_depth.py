"""Depth images beside MuJoCo's rays on the same height field."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.walk.fields import RESOLUTION, Field, random_heights, random_poses, rotation
from wavedash.errors import UserError
from wavedash.walk.sensors.depth import DepthImages, Optics
from wavedash.walk.sensors.scan import Scan
from wavedash.walk.sensors.tiles import Tiles

SMALL = Optics(rows=12, columns=18)
ROUNDING = 3e-6
"""Metres by which a ray in float32 may be beside the one of MuJoCo's doubles"""
SHIFTS = ROUNDING * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])


def rays(position, orientation, optics):
    """The eye and the directions [rows, columns, 3] of a pinhole camera; their length along the optical axis is 1."""
    trunk = rotation(orientation)
    pitch = np.radians(optics.pitch)
    axes = trunk @ np.array([[np.cos(pitch), 0, -np.sin(pitch)], [0, -1, 0], [-np.sin(pitch), 0, -np.cos(pitch)]]).T
    focal = optics.columns / 2 / np.tan(np.radians(optics.field_of_view) / 2)  # in pixels
    right = (np.arange(optics.columns) + 0.5 - optics.columns / 2) / focal
    down = (np.arange(optics.rows) + 0.5 - optics.rows / 2) / focal
    right, down = np.meshgrid(right, down)
    eye = position.double().numpy() + trunk @ np.array(optics.position)
    return eye, axes[:, 0] + right[..., None] * axes[:, 1] + down[..., None] * axes[:, 2]


def reference(field, eye, directions, far):
    return np.minimum(field.cast(eye, directions.reshape(-1, 3)), far)


def compare(heights, position, orientation, optics, found):
    """Every pixel is MuJoCo's to rounding: either nearly equal, or between the depths that MuJoCo reads from a few micrometres
    beside (a ray that grazes a slope or passes an edge)."""
    fields = [Field(tile) for tile in heights]
    hits = edges = 0
    for n in range(len(position)):
        field = fields[n % len(fields)]
        eye, directions = rays(position[n], orientation[n], optics)
        expected = reference(field, eye, directions, optics.far)
        image = found[n].double().numpy().ravel()
        off = np.flatnonzero(np.abs(image - expected) > 1e-5)
        hits, edges = hits + (expected < optics.far).sum(), edges + len(off)
        if len(off):
            near = np.stack([reference(field, eye + shift, directions.reshape(-1, 3)[off], optics.far) for shift in SHIFTS])
            assert (image[off] >= near.min(0) - 1e-5).all() and (image[off] <= near.max(0) + 1e-5).all()
    return hits, edges


def above_ground(heights, reach, seed, up=1.2):
    """Poses whose camera is above the ground or beside the tile."""
    tiles = Tiles(heights, RESOLUTION)
    position, orientation = random_poses(4000, reach, up, seed)
    position[:, 2] += heights.amin()
    position = position[:4000 // len(heights) * len(heights)]
    orientation = orientation[:len(position)]
    eyes = torch.stack([p + torch.from_numpy(rotation(q) @ np.array(SMALL.position)).float()
                        for p, q in zip(position, orientation, strict=True)])
    tile = torch.arange(len(position)) % len(heights)
    ground = Scan(tiles, len(position), torch.zeros(1, 2))(eyes, orientation, tile)[:, 0]
    half = torch.tensor([heights.shape[2] - 1, heights.shape[1] - 1]) * RESOLUTION / 2
    beside = (eyes[:, :2].abs() > half + 1e-3).any(1)
    free = beside | (eyes[:, 2] > ground + 1e-3)
    # In the order of tiles 0, 1, 2, 0, 1, 2, ...
    chosen = torch.stack([torch.nonzero(free & (tile == k)).flatten()[:20] for k in range(len(heights))], 1).flatten()
    return tiles, position[chosen], orientation[chosen], beside[chosen]


@pytest.mark.parametrize("seed", range(3))
def test_images_are_mujocos_inside_of_a_tile(seed):
    heights = random_heights(seed=seed)
    tiles, position, orientation, beside = above_ground(heights, 1.2, seed)
    found = DepthImages(tiles, len(position), SMALL)(position, orientation, torch.arange(len(position)) % 3)
    hits, edges = compare(heights, position, orientation, SMALL, found)
    assert not beside.any() and hits > 2000 and edges < 0.02 * hits


@pytest.mark.parametrize("seed", range(3))
def test_images_are_mujocos_beside_a_tile(seed):
    heights = random_heights(seed=seed)
    tiles, position, orientation, beside = above_ground(heights, 3.5, seed, up=0.8)
    found = DepthImages(tiles, len(position), SMALL)(position, orientation, torch.arange(len(position)) % 3)
    hits, edges = compare(heights, position, orientation, SMALL, found)
    assert beside.sum() > 20 and hits > 300 and edges < 0.02 * hits


def test_a_large_image_of_a_robot_that_walks():
    """The default optics, 0.3 m above stairs."""
    heights = random_heights()[1:2]
    tiles = Tiles(heights, RESOLUTION)
    position, orientation = torch.tensor([[-0.4, 0.2, 0.0]]), torch.tensor([[1.0, 0.02, -0.03, 0.1]])
    orientation /= orientation.norm()
    position[:, 2] = Scan(tiles, 1, torch.zeros(1, 2))(position, orientation, torch.zeros(1))[:, 0] + 0.3
    found = DepthImages(tiles, 1)(position, orientation, torch.zeros(1))
    assert found.shape == (1, 58, 87)
    hits, _ = compare(heights, position, orientation, Optics(), found)
    assert hits > 4000


def test_depth_is_along_the_optical_axis():
    """A camera that looks straight down at flat ground reads the same depth in every pixel."""
    tiles = Tiles(torch.zeros(1, 81, 81), 0.1)
    down = Optics(pitch=90.0, position=(0.0, 0.0, 0.0))
    found = DepthImages(tiles, 1, down)(torch.tensor([[0.0, 0.0, 1.25]]), torch.tensor([[1.0, 0, 0, 0]]), torch.zeros(1))
    torch.testing.assert_close(found, torch.full((1, 58, 87), 1.25))


def test_the_image_is_upright_and_not_mirrored():
    heights = torch.zeros(1, 81, 81)
    heights[0, 50:, :] = 0.2  # higher ground on the left, y > 1
    images = DepthImages(Tiles(heights, 0.1), 1)
    found = images(torch.tensor([[0.0, 0.5, 0.3]]), torch.tensor([[1.0, 0, 0, 0]]), torch.zeros(1))[0]
    assert found[0].mean() > found[29].mean() > found[-1].mean()
    assert found[40, 5] < found[40, 80]


def test_rays_that_meet_nothing_read_far():
    optics = Optics(rows=6, columns=9, pitch=-90.0)  # straight up
    images = DepthImages(Tiles(random_heights(), RESOLUTION), 3, optics)
    still = torch.tensor([[1.0, 0, 0, 0]]).expand(3, 4)
    assert (images(torch.tensor([[0, 0, 3.0], [0, 0, 3.0], [0, 0, 3.0]]), still, torch.arange(3)) == 2).all()
    assert (images(torch.full((3, 3), 99.0), still, torch.arange(3)) == 2).all()
    assert (images(torch.full((3, 3), torch.nan), still, torch.arange(3)) == 2).all()
    assert (images(torch.full((3, 3), torch.inf), still, torch.arange(3)) == 2).all()
    broken = images(torch.zeros(3, 3), still * torch.nan, torch.arange(3))
    assert ((broken >= 0) & (broken <= 2)).all()


def test_a_camera_inside_of_the_ground_reads_zero():
    images = DepthImages(Tiles(torch.ones(1, 9, 9), 0.5), 1, SMALL)
    assert (images(torch.tensor([[0, 0, 0.5]]), torch.tensor([[1.0, 0, 0, 0]]), torch.zeros(1)) == 0).all()


@pytest.mark.parametrize("shape", [(2, 2), (9, 9), (10, 17), (18, 8)])
def test_every_size_of_a_tile(shape):
    """Blocks of eight cells do not fit into all of them."""
    heights = torch.rand(1, *shape, generator=torch.Generator().manual_seed(1)) * 0.05
    tiles = Tiles(heights, RESOLUTION)
    position, orientation = torch.tensor([[-0.5, 0.1, 0.3], [0.0, 0.0, 0.4]]), torch.tensor([[1.0, 0, 0, 0], [0.8, 0, 0, 0.6]])
    optics = Optics(rows=12, columns=18, pitch=60.0)
    compare(heights, position, orientation, optics, DepthImages(tiles, 2, optics)(position, orientation, torch.zeros(2)))


def test_only_wanted_images_are_written():
    tiles = Tiles(random_heights(), RESOLUTION)
    position, orientation = random_poses(5, 1, 1)
    images = DepthImages(tiles, 5, SMALL)
    every = images(position, orientation, torch.zeros(5)).clone()
    images.images.fill_(-1)
    wanted = torch.tensor([False, True, False, True, True])
    some = images(position, orientation, torch.zeros(5), wanted)
    assert torch.equal(some[wanted], every[wanted]) and (some[~wanted] == -1).all()
    images.images.fill_(-1)
    assert (images(position, orientation, torch.zeros(5), torch.zeros(5, dtype=torch.bool)) == -1).all()


def test_threads_do_not_change_images():
    tiles = Tiles(random_heights(), RESOLUTION)
    position, orientation = random_poses(7, 1, 1)
    one, three = (DepthImages(tiles, 7, SMALL, threads=threads)(position, orientation, torch.arange(7) % 3)
                  for threads in (1, 3))
    assert torch.equal(one, three)


def test_noise_has_its_size_and_holes_their_share():
    tiles = Tiles(torch.zeros(1, 81, 81), 0.1)
    down = {"pitch": 90.0, "position": (0.0, 0.0, 0.0)}
    pose = torch.tensor([[0.0, 0.0, 1.0]] * 2), torch.tensor([[1.0, 0, 0, 0]] * 2), torch.zeros(2)
    noisy = DepthImages(tiles, 2, Optics(**down, noise=0.02))(*pose, seeds=torch.tensor([3, 4])) - 1
    assert noisy.std().item() == pytest.approx(0.02, rel=0.05) and abs(noisy.mean().item()) < 0.001
    assert abs(torch.corrcoef(noisy.flatten(1))[0, 1].item()) < 0.05
    assert abs(torch.corrcoef(torch.stack((noisy[0, :, 1:].flatten(), noisy[0, :, :-1].flatten())))[0, 1].item()) < 0.05
    with pytest.raises(UserError, match="seeds"):
        DepthImages(tiles, 2, Optics(**down, noise=0.02))(*pose)
    holes = DepthImages(tiles, 2, Optics(**down, dropout=0.1))(*pose, seeds=torch.tensor([3, 4]))
    assert (holes == 2).float().mean().item() == pytest.approx(0.1, abs=0.01) and ((holes == 2) | (holes == 1)).all()


def test_impossible_optics_are_refused():
    for options in ({"field_of_view": 180.0}, {"rows": 0}, {"dropout": 1.5}):
        with pytest.raises(UserError):
            Optics(**options)
