"""Depth images of the ground: one ray per pixel."""
from __future__ import annotations

import warp as wp

from wavedash.walk.sensors.kernels.tiles import Tiles, cast_ray

wp.set_module_options({"enable_backward": False})


@wp.struct
class Optics:
    """A pinhole camera, where it is mounted, and its noise."""

    rows: int
    columns: int
    pixel: float
    """Width of a pixel at depth 1"""
    far: float
    position: wp.vec3
    """In the frame of the trunk"""
    cos_pitch: float
    sin_pitch: float
    """Of the angle by which the camera looks down"""
    noise: float
    dropout: float


@wp.func
def with_noise(optics: Optics, seed: int, pixel: int, depth: float) -> float:
    state = wp.rand_init(seed, pixel)
    if wp.randf(state) < optics.dropout:
        return optics.far
    if depth >= optics.far:
        return optics.far
    return wp.clamp(depth + optics.noise * wp.randn(state), 0.0, optics.far)


@wp.kernel
def depth_images(first: int, tiles: Tiles, optics: Optics, robots: wp.array(dtype=wp.int32), wanted: wp.array(dtype=wp.bool),
                 positions: wp.array(dtype=wp.vec3), orientations: wp.array(dtype=wp.vec4), tile: wp.array(dtype=wp.int32),
                 seeds: wp.array(dtype=wp.int32), out: wp.array3d(dtype=wp.float32), span: int):
    """The images of those of `robots` that are wanted. Each thread does `span` pixels of a row."""
    i, row, chunk = wp.tid()
    n = robots[first + i]
    if not wanted[n]:
        return
    q = orientations[n]
    trunk = wp.quat_to_matrix(wp.normalize(wp.quat(q[1], q[2], q[3], q[0])))
    eye = positions[n] + trunk * optics.position
    forward = trunk * wp.vec3(optics.cos_pitch, 0.0, -optics.sin_pitch)
    down = trunk * wp.vec3(-optics.sin_pitch, 0.0, -optics.cos_pitch)
    right = trunk * wp.vec3(0.0, -1.0, 0.0)
    # Along the optical axis the direction has length 1: t of the ray is the depth.
    start = forward + down * ((float(row) + 0.5 - 0.5 * float(optics.rows)) * optics.pixel)
    for column in range(chunk * span, wp.min((chunk + 1) * span, optics.columns)):
        direction = start + right * ((float(column) + 0.5 - 0.5 * float(optics.columns)) * optics.pixel)
        depth = cast_ray(tiles, tile[n], eye, direction, optics.far)
        if optics.noise > 0.0 or optics.dropout > 0.0:
            depth = with_noise(optics, seeds[n], row * optics.columns + column, depth)
        out[n, row, column] = depth
