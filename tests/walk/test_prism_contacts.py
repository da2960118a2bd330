"""The contacts of feet and legs with a prism of a height field, in closed form: those that MuJoCo Warp's own search finds.

Compiling the search takes about half a minute, once on a machine."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch

from wavedash.warp_package import start_warp

start_warp("tests", "pip install 'wavedash[walk]'")

import warp as wp  # noqa: E402
from mujoco_warp._src import collision_gjk as gjk  # noqa: E402

from wavedash.walk.contacts.field_contacts import patch  # noqa: E402
from wavedash.walk.contacts.prism_contacts import is_out_of_reach, touch  # noqa: E402
from wavedash.walk.contacts.prisms import Prism, corners, is_box_out_of_reach  # noqa: E402

patch()  # of the steep parts: else the search has other contacts than MuJoCo

pytestmark = pytest.mark.slow

PAIRS = 20_000
SPHERE, CAPSULE, BOX = int(gjk.GeomType.SPHERE), int(gjk.GeomType.CAPSULE), int(gjk.GeomType.BOX)
SIZES = {SPHERE: (0.02, 0.0, 0.0), CAPSULE: (0.012, 0.09, 0.0), BOX: (0.1335, 0.097, 0.057)}
FIELD = wp.constant(int(gjk.GeomType.HFIELD))
IS_CAPSULE, IS_BOX = wp.constant(CAPSULE), wp.constant(BOX)
BOTTOM = wp.constant(-0.5)
STEPS = wp.constant(35)
NO_CONTACT = wp.constant(1e10)


@wp.kernel(enable_backward=False, module="unique")
def touch_in_both_ways(
        top: wp.array2d[wp.vec3], position: wp.array[wp.vec3], rotation: wp.array[wp.mat33], size: wp.vec3, kind: int,
        vertices: wp.array[wp.vec3], numbers: wp.array[int], faces: wp.array[int], feet: wp.array[wp.vec3],
        squares: wp.array[float], horizon: wp.array[int], overflow: wp.array[int],
        distance: wp.array2d[float], on_prism: wp.array2d[wp.vec3], on_geom: wp.array2d[wp.vec3]):
    i = wp.tid()
    prism = Prism()
    prism.a = top[i, 0]
    prism.b = top[i, 1]
    prism.c = top[i, 2]
    shape = gjk.Geom()
    shape.polyvert = corners(prism, BOTTOM)
    shape.rot = wp.identity(n=3, dtype=float)
    shape.index = -1
    geom = gjk.Geom()
    geom.pos = position[i]
    geom.rot = rotation[i]
    geom.size = size
    geom.index = -1
    inside = (prism.a + prism.b + prism.c) / 3.0
    inside[2] = 0.5 * (inside[2] + BOTTOM)
    searched, count, searched_prism, searched_geom, _face = gjk.ccd(
        1e-6, 0.0, STEPS, STEPS, shape, geom, FIELD, kind, inside, geom.pos, vertices, numbers, faces, feet, squares, horizon,
        False, 0, overflow)
    distance[i, 0] = wp.where(count > 0, searched, NO_CONTACT)
    on_prism[i, 0] = searched_prism
    on_geom[i, 0] = searched_geom
    if kind == IS_BOX:
        distance[i, 1] = wp.where(is_box_out_of_reach(prism, geom), NO_CONTACT, distance[i, 0])
        on_prism[i, 1] = searched_prism
        on_geom[i, 1] = searched_geom
        return
    half = wp.vec3()
    if kind == IS_CAPSULE:
        half = size[1] * (geom.rot @ wp.vec3(0.0, 0.0, 1.0))
    ours, ours_prism, ours_geom = touch(prism.a, prism.b, prism.c, BOTTOM, geom.pos - half, 2.0 * half, size[0])
    distance[i, 1] = ours
    if is_out_of_reach(prism.a, prism.b, prism.c, geom.pos - half, 2.0 * half, size[0]):
        distance[i, 1] = NO_CONTACT
    on_prism[i, 1] = ours_prism
    on_geom[i, 1] = ours_geom


class Touches(NamedTuple):
    """Of MuJoCo Warp's search and of ours: [pairs] and [pairs, 3]."""

    searched: torch.Tensor
    ours: torch.Tensor
    normals: tuple[torch.Tensor, torch.Tensor]
    middles: tuple[torch.Tensor, torch.Tensor]


def touches(kind: int, above: float, seed: int) -> Touches:
    """Geoms of this kind in random poses near prisms whose tops are flat, tilted or nearly vertical."""
    random = np.random.default_rng(seed)
    top = np.zeros((PAIRS, 3, 3), np.float32)
    top[:, 1, 0] = top[:, 2, 1] = 0.05
    top[:, :, :2] += random.uniform(-1, 1, (PAIRS, 1, 2))
    steep = random.choice([0.0, 0.05, 0.25], (PAIRS, 1))
    top[..., 2] = random.uniform(0, 1, (PAIRS, 3)) * steep
    w, x, y, z = (lambda q: q / np.linalg.norm(q, axis=0))(random.normal(size=(4, PAIRS)))
    rotation = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                         2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1).reshape(-1, 3, 3)
    position = top.mean(1) + 0.04 * random.normal(size=(PAIRS, 3)) + [0, 0, above]
    distance = wp.zeros((PAIRS, 2), dtype=float, device="cpu")
    on_prism, on_geom = (wp.zeros((PAIRS, 2), dtype=wp.vec3, device="cpu") for _ in range(2))
    given = [wp.array(np.ascontiguousarray(x, np.float32), dtype=dtype, device="cpu")
             for x, dtype in ((top, wp.vec3), (position, wp.vec3), (rotation, wp.mat33))]
    inputs = [*given, wp.vec3(*SIZES[kind]), kind, *gjk_memory(), distance, on_prism, on_geom]
    wp.launch(touch_in_both_ways, PAIRS, inputs, device="cpu")
    d, p, g = (torch.from_numpy(x.numpy()) for x in (distance, on_prism, on_geom))
    normals = [torch.nn.functional.normalize(p[:, i] - g[:, i], dim=-1) for i in (0, 1)]
    return Touches(d[:, 0], d[:, 1], (normals[0], normals[1]), ((p[:, 0] + g[:, 0]) / 2, (p[:, 1] + g[:, 1]) / 2))


def gjk_memory() -> list[wp.array]:
    return [wp.zeros(1000, dtype=dtype, device="cpu") for dtype in (wp.vec3, int, int, wp.vec3, float, int, int)]


@pytest.mark.parametrize("above", [0.03, -0.03], ids=["at the surface", "deep inside"])
@pytest.mark.parametrize("kind", [SPHERE, CAPSULE], ids=["feet", "legs"])
def test_contacts_are_those_of_the_search(kind, above):
    found = touches(kind, above, seed=0)
    # The search ends when an iteration improves the distance by less than 1e-6.
    sure = found.searched.abs() > 2e-6
    assert torch.equal((found.searched < 0)[sure], (found.ours < 0)[sure])
    both = (found.searched < -1e-5) & (found.ours < -1e-5)
    assert both.sum() > PAIRS / 10
    wrong = (found.searched - found.ours)[both].abs() > 2e-6
    assert wrong.float().mean() < 1e-3, "where the search was not finished"
    # Where two ways out are equally long, either is right.
    turned = (found.normals[0] * found.normals[1]).sum(-1)[both] < 0.9999
    moved = (found.middles[0] - found.middles[1])[both].norm(dim=-1) > 1e-3
    assert turned.float().mean() < 2e-3 and moved.float().mean() < 2e-3


@pytest.mark.parametrize("above", [0.1, 0.0])
def test_trunks_lose_no_contact_with_prisms_that_are_left_out(above):
    found = touches(BOX, above, seed=1)
    left_out = found.ours == found.ours.max()
    assert found.ours.max() > 1e9
    assert left_out.float().mean() > 0.02
    assert not (left_out & (found.searched < -1e-6)).any()
    either = (found.searched < 0) | (found.ours < 0)
    assert torch.equal(found.searched[either & ~left_out], found.ours[either & ~left_out])
