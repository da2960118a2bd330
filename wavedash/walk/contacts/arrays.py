"""What the kernels are given: the arrays of MuJoCo Warp's model and data that they read and write, in groups, and memory of
their own."""
from __future__ import annotations

import warp as wp
from mujoco_warp._src.types import vec5


@wp.struct
class Pairs:
    """Two geoms each, of the same world, which the broad phase has found near each other; and all geoms."""

    count: wp.array[int]
    geoms: wp.array[wp.vec2i]
    world: wp.array[int]
    number: wp.array[wp.vec2i]
    kind: wp.array[int]
    size: wp.array2d[wp.vec3]
    position: wp.array2d[wp.vec3]
    rotation: wp.array2d[wp.mat33]


@wp.struct
class Fields:
    """Height fields, and which of them the geoms are."""

    of_geom: wp.array2d[int]
    size: wp.array[wp.vec4]
    rows: wp.array[int]
    columns: wp.array[int]
    first: wp.array[int]
    heights: wp.array[float]


@wp.struct
class Found:
    """Contacts of pairs, [number, pair], and how many there are. There may be more than are kept here."""

    count: wp.array[int]
    distance: wp.array2d[float]
    position: wp.array2d[wp.vec3]
    normal: wp.array2d[wp.vec3]


@wp.struct
class Surfaces:
    """What of geoms and pairs makes the other numbers of a contact."""

    dimension: wp.array[int]
    priority: wp.array[int]
    mix: wp.array2d[float]
    reference: wp.array2d[wp.vec2]
    impedance: wp.array2d[vec5]
    friction: wp.array2d[wp.vec3]
    margin: wp.array2d[float]
    gap: wp.array2d[float]
    adhesion: wp.array2d[float]
    pair_dimension: wp.array[int]
    pair_reference: wp.array2d[wp.vec2]
    pair_friction_reference: wp.array2d[wp.vec2]
    pair_impedance: wp.array2d[vec5]
    pair_margin: wp.array2d[float]
    pair_gap: wp.array2d[float]
    pair_adhesion: wp.array2d[float]
    pair_friction: wp.array2d[vec5]


@wp.struct
class Contacts:
    """MuJoCo Warp's contacts of all worlds."""

    count: wp.array[int]
    distance: wp.array[float]
    position: wp.array[wp.vec3]
    frame: wp.array[wp.mat33]
    margin: wp.array[float]
    friction: wp.array[vec5]
    reference: wp.array[wp.vec2]
    friction_reference: wp.array[wp.vec2]
    impedance: wp.array[vec5]
    dimension: wp.array[int]
    geoms: wp.array[wp.vec2i]
    rows: wp.array2d[int]
    world: wp.array[int]
    kind: wp.array[int]
    number: wp.array[int]
    adhesion: wp.array[float]
    overflow: wp.array[int]


@wp.struct
class Search:
    """Memory of MuJoCo Warp's search, a row for each thread that searches."""

    used: wp.array[int]
    tolerance: wp.array[float]
    iterations: int
    corners: wp.array2d[wp.vec3]
    numbers: wp.array2d[int]
    faces: wp.array2d[int]
    feet: wp.array2d[wp.vec3]
    squares: wp.array2d[float]
    horizon: wp.array2d[int]


def filled(struct, **arrays):
    """The struct, with these arrays in its fields."""
    for name, x in arrays.items():
        setattr(struct, name, x)
    return struct
