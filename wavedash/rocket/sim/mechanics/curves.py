"""The game's piecewise linear curves: how much a car steers, drives, grips, hits and bumps, by speed or slip.

Each holds its outermost value beyond its ends. The points are RocketSim 2.2's (`RLConst.h`), which the community has measured.
"""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.func
def _line(x: float, x0: float, y0: float, x1: float, y1: float) -> float:
    """The line through (x0, y0) and (x1, y1) at x, not beyond its two points."""
    return y0 + (y1 - y0) * wp.clamp((x - x0) / (x1 - x0), 0.0, 1.0)


@wp.func
def drive_torque(speed: float) -> float:
    """Part of the engine's full acceleration that is left at a forward speed (uu/s, not negative)."""
    if speed < 1400.0:
        return _line(speed, 0.0, 1.0, 1400.0, 0.1)
    return _line(speed, 1400.0, 0.1, 1410.0, 0.0)


@wp.func
def steer_angle(speed: float) -> float:
    """Angle of the front wheels at full steer (radians) at a forward speed (uu/s, not negative)."""
    if speed < 500.0:
        return _line(speed, 0.0, 0.53356, 500.0, 0.31930)
    if speed < 1000.0:
        return _line(speed, 500.0, 0.31930, 1000.0, 0.18203)
    if speed < 1500.0:
        return _line(speed, 1000.0, 0.18203, 1500.0, 0.10570)
    if speed < 1750.0:
        return _line(speed, 1500.0, 0.10570, 1750.0, 0.08507)
    return _line(speed, 1750.0, 0.08507, 3000.0, 0.03454)


@wp.func
def powerslide_steer_angle(speed: float) -> float:
    """Angle of the front wheels (radians) at full steer and handbrake, at a forward speed (uu/s, not negative)."""
    return _line(speed, 0.0, 0.39235, 2500.0, 0.12610)


@wp.func
def lateral_friction(slip: float) -> float:
    """Grip of a tyre sideways, by the share of its motion that goes sideways (0: rolls, 1: slides)."""
    return _line(slip, 0.0, 1.0, 1.0, 0.2)


@wp.func
def handbrake_long_friction(slip: float) -> float:
    """Part of a tyre's grip along its rolling direction that a full handbrake leaves, by its slip (0 to 1)."""
    return _line(slip, 0.0, 0.5, 1.0, 0.9)


@wp.func
def non_sticky_friction(normal_z: float) -> float:
    """Part of a tyre's grip that is left without throttle, by the ground's slope (z of its normal)."""
    if normal_z < 0.7075:
        return _line(normal_z, 0.0, 0.1, 0.7075, 0.5)
    return _line(normal_z, 0.7075, 0.5, 1.0, 1.0)


@wp.func
def extra_hit_factor(speed: float) -> float:
    """Velocity that a hit adds to the ball on top of the collision, as a part of the speed between car and ball (uu/s)."""
    if speed < 2300.0:
        return _line(speed, 500.0, 0.65, 2300.0, 0.55)
    return _line(speed, 2300.0, 0.55, 4600.0, 0.30)


@wp.func
def bump_ground(speed: float) -> float:
    """Velocity (uu/s) that a bump adds to a car on the ground, by the speed at which the other drives towards it (uu/s)."""
    if speed < 1400.0:
        return _line(speed, 0.0, 5.0 / 6.0, 1400.0, 1100.0)
    return _line(speed, 1400.0, 1100.0, 2200.0, 1530.0)


@wp.func
def bump_air(speed: float) -> float:
    """Velocity (uu/s) that a bump adds to a car in the air, by the speed at which the other moves towards it (uu/s)."""
    if speed < 1400.0:
        return _line(speed, 0.0, 5.0 / 6.0, 1400.0, 1390.0)
    return _line(speed, 1400.0, 1390.0, 2200.0, 1945.0)


@wp.func
def bump_up(speed: float) -> float:
    """Velocity (uu/s) that a bump adds upwards, by the speed at which the other car moves towards it (uu/s)."""
    if speed < 1400.0:
        return _line(speed, 0.0, 1.0 / 3.0, 1400.0, 278.0)
    return _line(speed, 1400.0, 278.0, 2200.0, 417.0)
