"""Pictures, checked by geometry: silhouettes, occlusion, shadows, and depths beside MuJoCo's rays."""
from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from tests.walk.fields import RESOLUTION, Field, random_heights
from tests.walk.quadruped import quadruped
from wavedash.errors import UserError
from wavedash.walk.render.picture import FAR, View, frame, trace
from wavedash.walk.render.scene import BOX, CAPSULE, CYLINDER, NOTHING, SPHERE, Look, Shapes
from wavedash.walk.sensors.tiles import Tiles

FLAT = Tiles(torch.zeros(1, 81, 81), 0.1)
RED, BLUE = (0.9, 0.1, 0.1), (0.1, 0.1, 0.9)


def shapes(*rows):
    """Of (kind, position, size, colour), upright."""
    kind, position, size, colour = zip(*rows, strict=True)
    size = [(*sizes, *[0.0] * (3 - len(sizes))) for sizes in size]
    return Shapes(np.array(kind), np.array(position), np.tile(np.eye(3), (len(rows), 1, 1)), np.array(size), np.array(colour))


def directions(view):
    """[rows, columns, 3]: rays through the centers of pixels, of length 1 along the optical axis."""
    forward, right, down = view.axes()
    x = (np.arange(view.columns) + 0.5 - view.columns / 2) * view.pixel
    y = (np.arange(view.rows) + 0.5 - view.rows / 2) * view.pixel
    return forward + x[None, :, None] * right + y[:, None, None] * down


def pixel_of(view, point):
    """(row, column) of a point."""
    forward, right, down = view.axes()
    way = np.array(point) - np.array(view.eye)
    depth = way @ forward
    return (int(np.floor(way @ down / depth / view.pixel + view.rows / 2)),
            int(np.floor(way @ right / depth / view.pixel + view.columns / 2)))


def is_red(picture):
    return (picture[..., 0].int() > 2 * picture[..., 2].int()).numpy()


def test_a_sphere_is_where_it_projects_to_with_its_radius():
    view = View((-3.0, -0.5, 1.5), (0.0, 0.0, 0.6), 90, 160, 50.0)
    center, radius = np.array([0.5, 0.4, 0.9]), 0.3
    rays = directions(view)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    way = center - np.array(view.eye)
    beside = np.linalg.norm(np.cross(rays, way), axis=-1)  # distance of each ray from the center
    picture = frame(FLAT, 0, view, shapes((SPHERE, center, (radius,), RED)), samples=1)
    clear = np.abs(beside - radius) > 1e-5
    assert 150 < (beside < radius).sum() < 2000
    assert (is_red(picture) == (beside < radius))[clear].all()
    assert pixel_of(view, center) == tuple(np.round(np.argwhere(is_red(picture)).mean(0)).astype(int))


def test_nearer_occludes_farther():
    view = View((-3.0, 0.0, 0.8), (0.0, 0.0, 0.8), 60, 80)
    near, far = (SPHERE, (-1.0, 0.0, 0.8), (0.2,), RED), (BOX, (1.0, 0.0, 0.8), (0.2, 1.5, 0.7), BLUE)
    for order in ((near, far), (far, near)):
        picture = frame(FLAT, 0, view, shapes(*order), samples=1).numpy().astype(int)
        assert picture[30, 40, 0] > 2 * picture[30, 40, 2]  # red in the middle
        assert picture[30, 55, 2] > 2 * picture[30, 55, 0]  # blue beside it
    hill = torch.zeros(1, 81, 81)
    hill[:, :, 50:53] = 1.5  # at x = 1
    hidden = frame(Tiles(hill, 0.1), 0, View((-3.0, 0.0, 0.8), (0.0, 0.0, 0.8), 60, 80),
                   shapes((SPHERE, (2.0, 0.0, 0.8), (0.3,), RED)), samples=1)
    assert not is_red(hidden).any()


def test_the_shadow_lies_on_the_far_side_of_the_light():
    light = np.array([-0.6, 0.3, 0.9])
    center = np.array([0.2, 0.1, 0.8])
    view = View((-0.5, -3.0, 3.0), (0.0, 0.0, 0.0), 120, 160)
    picture = frame(FLAT, 0, view, shapes((SPHERE, center, (0.2,), RED)), Look(light=tuple(light), line=0.0), samples=1)
    brightness = picture.numpy().astype(int).sum(-1)
    offset = light[:2] / light[2] * center[2]
    shadow, opposite = pixel_of(view, [*(center[:2] - offset), 0]), pixel_of(view, [*(center[:2] + offset), 0])
    assert brightness[shadow] < 0.65 * brightness[opposite]
    # It is as wide as the sphere across the light: just inside of it is dark, just outside is bright.
    across = np.array([-light[1], light[0]]) / np.linalg.norm(light[:2])
    for side in (-1, 1):
        inside, outside = (pixel_of(view, [*(center[:2] - offset + side * reach * across), 0]) for reach in (0.17, 0.24))
        assert brightness[inside] == brightness[shadow] and brightness[outside] == brightness[opposite]


def test_the_ground_shades_itself():
    step = torch.zeros(1, 81, 81)
    step[:, :, :30] = 0.5  # a bank at x < -1
    view = View((1.0, -3.0, 2.0), (-0.5, 0.0, 0.0), 120, 160)
    look = Look(light=(-1.0, 0.0, 1.0), line=0.0)
    dark = frame(Tiles(step, 0.1), 0, view, look=look, samples=1).numpy().astype(int).sum(-1)
    assert dark[pixel_of(view, (-0.8, 0.0, 0.0))] < 0.65 * dark[pixel_of(view, (-0.3, 0.0, 0.0))]


def test_light_is_that_of_lambert():
    """Flat ground has the colour of the middle, times the light from the sky and, by the cosine, from the sun."""
    look = Look(light=(1.0, 0.0, 2.0), line=0.0)
    picture = frame(FLAT, 0, View((0.3, -2.0, 2.0), (0.3, 0.0, 0.0), 9, 9), look=look)
    light = look.ambient + look.sun * 2 / 5**0.5
    np.testing.assert_allclose(picture[4, 4], np.array(look.middle) * light * 255, atol=0.51)
    faces = Look(light=(1.0, 0.0, 0.0), sun=1.0, ambient=0.0)
    box = shapes((BOX, (0.0, 0.0, 0.5), (0.2, 0.2, 0.2), (0.5, 0.5, 0.5)))
    view = View((2.0, -2.0, 2.5), (0.0, 0.0, 0.5), 60, 60)
    picture = frame(FLAT, 0, view, box, faces)
    assert picture[pixel_of(view, (0.2, 0.0, 0.5))].tolist() == pytest.approx([127.5] * 3, abs=0.51)
    assert picture[pixel_of(view, (0.0, -0.2, 0.5))].tolist() == [0, 0, 0]
    assert picture[pixel_of(view, (0.0, 0.0, 0.7))].tolist() == [0, 0, 0]


@pytest.mark.parametrize("tile", range(3))
def test_depths_of_the_ground_are_mujocos(tile):
    """A view from outside of the tile, over its wall."""
    heights = random_heights()
    field, view = Field(heights[tile]), View((-2.6, -2.9, 1.9), (0.0, 0.0, 0.2), 36, 48, 60.0)
    depths = trace(Tiles(heights, RESOLUTION), tile, view, samples=1).depths.double().numpy()
    expected = field.cast(np.array(view.eye), directions(view).reshape(-1, 3)).reshape(36, 48)
    # The base of the height field of MuJoCo ends ten metres below, our wall does not.
    seen = np.where(np.array(view.eye)[2] + expected * directions(view)[..., 2] < -9, FAR, expected)
    seen = np.minimum(seen, FAR)
    close = np.abs(depths - seen) < 1e-4
    assert close.mean() > 0.995 and (seen < FAR).sum() > 700


def test_depths_of_the_robot_are_mujocos():
    model, data = quadruped((0.1, 0.2, 0.6), yaw=30.0, pitch=-20.0)
    robot = Shapes(model.geom_type, data.geom_xpos, data.geom_xmat, model.geom_size, model.geom_rgba)
    assert {SPHERE, CAPSULE, CYLINDER, BOX} == set(model.geom_type.tolist())
    view = View((-0.6, -0.7, 1.0), (0.1, 0.2, 0.5), 60, 80)
    depths = trace(Tiles(torch.zeros(1, 2, 2), 0.01), 0, view, robot, samples=1).depths.numpy()
    rays, geom = directions(view), np.zeros(1, np.int32)
    off = hits = 0
    for row, column in np.ndindex(60, 80):
        length = np.linalg.norm(rays[row, column])
        found = mujoco.mj_ray(model, data, np.array(view.eye), rays[row, column] / length, None, 1, -1, geom) / length
        hits += geom[0] >= 0
        off += abs((found if geom[0] >= 0 else FAR) - depths[row, column]) > 1e-4
    assert hits > 400 and off <= 3  # rays that pass an edge


def test_several_rays_of_a_pixel_are_the_mean_of_a_larger_picture():
    model, data = quadruped((0.0, 0.0, 0.4))
    robot = Shapes(model.geom_type, data.geom_xpos, data.geom_xmat, model.geom_size, model.geom_rgba)
    look = Look(line=0.0)
    large = frame(FLAT, 0, View((-1.0, -1.0, 1.0), (0.0, 0.0, 0.3), 60, 80), robot, look, samples=1).float()
    small = frame(FLAT, 0, View((-1.0, -1.0, 1.0), (0.0, 0.0, 0.3), 30, 40), robot, look, samples=2).float()
    assert (large.view(30, 2, 40, 2, 3).mean((1, 3)) - small).abs().max() <= 1.01


def test_sky_above_and_what_is_not_drawn():
    view = View((0.0, 0.0, 1.0), (5.0, 0.0, 3.0), 20, 30)
    assert (trace(FLAT, 0, view).depths == FAR).all()
    sky = frame(FLAT, 0, view, NOTHING).int()
    assert (sky[0, :, 0] < sky[-1, :, 0]).all()  # more blue above
    # One is transparent, the other a plane.
    ghost = shapes((SPHERE, (3.0, 0.0, 2.0), (0.5,), (*RED, 0.0)), (0, (0.0, 0.0, 0.0), (1.0,), (*RED, 1.0)))
    assert torch.equal(frame(FLAT, 0, view, ghost).int(), sky)


def test_bad_scenes_are_refused():
    with pytest.raises(UserError, match="straight up or down"):
        frame(FLAT, 0, View((0.0, 0.0, 2.0), (0.0, 0.0, 0.0)))
    with pytest.raises(UserError, match=r"\[1, 2, 1, 1, 1\]"):
        Shapes(np.zeros(1, int), np.zeros((2, 3)), np.zeros((1, 9)), np.zeros((1, 3)), np.zeros((1, 3)))
