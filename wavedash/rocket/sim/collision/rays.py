"""Rays against the ball and against a car's body, on which wheels can stand as on the arena.

A ray that begins inside a body does not hit it. Each function returns whether the ray hits (1 or 0), the fraction of the ray at
which it does (0 at the source, 1 at the target), and the normal there.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.sim.collision.shapes import CarShape

wp.set_module_options({"enable_backward": False})


@wp.func
def ray_hits_sphere(source: wp.vec3, target: wp.vec3, center: wp.vec3):
    """Casts a ray at the ball around `center`."""
    way = target - source
    start = source - center
    outside = wp.length_sq(start) - BALL_RADIUS * BALL_RADIUS
    towards = -wp.dot(start, way)
    length_sq = wp.length_sq(way)
    root = towards * towards - length_sq * outside
    if outside <= 0.0 or towards <= 0.0 or root < 0.0:
        return 0, 1.0, wp.vec3()
    fraction = (towards - wp.sqrt(root)) / length_sq
    if fraction >= 1.0:
        return 0, 1.0, wp.vec3()
    return 1, fraction, (start + way * fraction) / BALL_RADIUS


@wp.func
def ray_hits_box(source: wp.vec3, target: wp.vec3, position: wp.vec3, rotation: wp.mat33, shape: CarShape):
    """Casts a ray at the body of the car at `position`. Its edges are sharp for a ray."""
    to_local = wp.transpose(rotation)
    start = to_local * (source - position) - shape.center
    way = to_local * (target - source)
    enters = float(-1.0)
    leaves = float(1.0)
    normal = wp.vec3()
    for i in range(3):
        if wp.abs(way[i]) < 1.0e-6:
            if wp.abs(start[i]) >= shape.half[i]:
                return 0, 1.0, normal
        else:
            near = (-wp.sign(way[i]) * shape.half[i] - start[i]) / way[i]
            if near > enters:
                enters = near
                normal = wp.vec3(rotation[0, i], rotation[1, i], rotation[2, i]) * -wp.sign(way[i])
            leaves = wp.min(leaves, (wp.sign(way[i]) * shape.half[i] - start[i]) / way[i])
    if enters < 0.0 or enters >= leaves:
        return 0, 1.0, normal
    return 1, enters, normal
