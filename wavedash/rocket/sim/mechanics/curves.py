"""The game's piecewise linear curves: steering, torque, grip, hits and bumps as functions of speed or slip.

Beyond its ends a curve keeps its outermost value. The points are in `constants.py`.
"""
from __future__ import annotations

from typing import Any

import warp as wp

from wavedash.rocket.sim import constants

wp.set_module_options({"enable_backward": False})

Point = tuple[float, float]


@wp.func
def _line(x: float, x0: float, y0: float, x1: float, y1: float) -> float:
    """The segment from (x0, y0) to (x1, y1) at x; beyond its ends, the nearest end."""
    return y0 + (y1 - y0) * wp.clamp((x - x0) / (x1 - x0), 0.0, 1.0)


def curve(name: str, points: tuple[Point, ...]) -> Any:
    """A function for kernels that goes through the points, which ascend in x."""
    (x0, y0), (x1, y1), *later = points
    if later:
        rest = curve(f"{name}_from_{len(later)}", points[1:])

        def evaluate(x: float) -> float:
            if x < x1:
                return _line(x, x0, y0, x1, y1)
            return rest(x)
    else:
        def evaluate(x: float) -> float:
            return _line(x, x0, y0, x1, y1)

    evaluate.__name__ = evaluate.__qualname__ = name
    return wp.func(evaluate)


drive_torque = curve("drive_torque", constants.DRIVE_TORQUE)
steer_angle = curve("steer_angle", constants.STEER_ANGLE)
powerslide_steer_angle = curve("powerslide_steer_angle", constants.POWERSLIDE_STEER_ANGLE)
lateral_friction = curve("lateral_friction", constants.LATERAL_FRICTION)
handbrake_long_friction = curve("handbrake_long_friction", constants.HANDBRAKE_LONG_FRICTION)
non_sticky_friction = curve("non_sticky_friction", constants.NON_STICKY_FRICTION)
extra_hit_factor = curve("extra_hit_factor", constants.EXTRA_HIT)
bump_ground = curve("bump_ground", constants.BUMP_GROUND)
bump_air = curve("bump_air", constants.BUMP_AIR)
bump_up = curve("bump_up", constants.BUMP_UP)
