"""The heights of the ground around each robot, one thread per robot and point."""
from __future__ import annotations

import warp as wp

from wavedash.walk.sensors.kernels.tiles import Tiles, height_at, to_cells

wp.set_module_options({"enable_backward": False})


@wp.func
def heading(q: wp.vec4) -> wp.vec2:
    """Where the robot's x axis points in the horizontal plane, (cos yaw, sin yaw); along x if it points straight up or down."""
    forward = wp.vec2(1.0 - 2.0 * (q[2] * q[2] + q[3] * q[3]), 2.0 * (q[1] * q[2] + q[0] * q[3]))
    length = wp.length(forward)
    if length < 1.0e-6:
        return wp.vec2(1.0, 0.0)
    return forward / length


@wp.kernel
def scan(first: int, tiles: Tiles, offsets: wp.array(dtype=wp.vec2), positions: wp.array(dtype=wp.vec3),
         orientations: wp.array(dtype=wp.vec4), tile: wp.array(dtype=wp.int32), out: wp.array2d(dtype=wp.float32), span: int):
    """Each thread does `span` points."""
    i, chunk = wp.tid()
    n = first + i
    forward = heading(orientations[n])
    for p in range(chunk * span, wp.min((chunk + 1) * span, offsets.shape[0])):
        offset = offsets[p]
        turned = wp.vec3(forward[0] * offset[0] - forward[1] * offset[1], forward[1] * offset[0] + forward[0] * offset[1], 0.0)
        out[n, p] = height_at(tiles, tile[n], to_cells(tiles, positions[n] + turned))
