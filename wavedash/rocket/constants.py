"""Constants of the game: field, ball, cars, pads, kick-offs. Lengths are in uu (1 cm), times in seconds, spins in rad/s.

They are the numbers of RocketSim 2.2 (`RLConst.h`), which are those of the game as the community has measured them. Constants
that only the physics needs are in `wavedash/rocket/sim/constants.py`.
"""
from __future__ import annotations

from typing import NamedTuple

TICK_RATE = 120
"""Ticks of physics per second"""

SIDE_WALL_X = 4096.0
BACK_WALL_Y = 5120.0
CEILING_Z = 2044.0
"""The height that is usually given; bodies collide with a plane at 2,048 (`sim/constants.py`)"""
BACK_NET_Y = 6000.0
GOAL_HALF_WIDTH = 892.755
GOAL_HEIGHT = 642.775
GOAL_Y = 5215.5
"""The ball is in the goal when its center is beyond (SOCCAR_GOAL_SCORE_BASE_THRESHOLD_Y plus its radius)"""
CORNER_LENGTH = 1152.0
"""Length of the slanted corners of the field along x and y"""
GRAVITY = 650.0
"""uu/s2 downwards"""

BALL_RADIUS = 91.25
BALL_REST_Z = 93.15
BALL_MAX_SPEED = 6000.0
BALL_MAX_SPIN = 6.0

CAR_REST_Z = 17.0
"""Height of the origin of an Octane on its wheels"""
CAR_MAX_SPEED = 2300.0
CAR_MAX_SPIN = 5.5
SUPERSONIC_SPEED = 2200.0
"""uu/s (SUPERSONIC_START_SPEED)"""
BOOST_MAX = 100.0
BOOST_START = 100.0 / 3.0
BOOST_PER_SECOND = 100.0 / 3.0
RESPAWN_SECONDS = 3.0
FLIP_SECONDS = 0.65
"""Seconds for which a flip has torque (FLIP_TORQUE_TIME)"""
FLIP_WINDOW = 1.25
"""Seconds after the end of a jump in which a flip or double jump is possible (DOUBLEJUMP_MAX_DELAY)"""


class Hitbox(NamedTuple):
    """Size of a car's body, and the offset of its center from the car's origin."""

    name: str
    size: tuple[float, float, float]
    offset: tuple[float, float, float]


HITBOXES = (
    Hitbox("octane", (120.507, 86.6994, 38.6591), (13.8757, 0.0, 20.755)),
    Hitbox("dominus", (130.427, 85.7799, 33.8), (9.0, 0.0, 15.75)),
    Hitbox("plank", (131.32, 87.1704, 31.8944), (9.00857, 0.0, 12.0942)),
    Hitbox("breakout", (133.992, 83.021, 32.8), (12.5, 0.0, 11.75)),
    Hitbox("hybrid", (129.519, 84.6879, 36.6591), (13.8757, 0.0, 20.755)),
    Hitbox("merc", (123.22, 79.2103, 44.1591), (11.3757, 0.0, 21.505)),
)
"""The hitboxes in the order of their numbers in RocketSim and RLGym"""


class Pad(NamedTuple):
    """A boost pad."""

    x: float
    y: float
    z: float
    big: bool


def _pads() -> tuple[Pad, ...]:
    """All pads: those of blue's half, then the same ones rotated by half a turn, in reverse order."""
    own = [
        (0, -4240, 0), (-1792, -4184, 0), (1792, -4184, 0), (-3072, -4096, 1), (3072, -4096, 1), (-940, -3308, 0),
        (940, -3308, 0), (0, -2816, 0), (-3584, -2484, 0), (3584, -2484, 0), (-1788, -2300, 0), (1788, -2300, 0),
        (-2048, -1036, 0), (0, -1024, 0), (2048, -1036, 0), (-3584, 0, 1), (-1024, 0, 0),
    ]
    half = [Pad(float(x), float(y), 73.0 if big else 70.0, bool(big)) for x, y, big in own]
    return (*half, *(Pad(-p.x, -p.y, p.z, p.big) for p in reversed(half)))


PADS = _pads()
"""28 small ones and 6 big ones, in RLGym's order. (RLGym's table has one y of 3310 where symmetry says 3308.)"""
SMALL_BOOST, BIG_BOOST = 12.0, 100.0
SMALL_PAD_SECONDS, BIG_PAD_SECONDS = 4.0, 10.0


class Spawn(NamedTuple):
    """A spot of a blue car; orange's is rotated by half a turn about the center of the field."""

    x: float
    y: float
    yaw: float


_QUARTER = 0.7853981633974483
KICKOFF_SPAWNS = (
    Spawn(-2048.0, -2560.0, _QUARTER),
    Spawn(2048.0, -2560.0, 3 * _QUARTER),
    Spawn(-256.0, -3840.0, 2 * _QUARTER),
    Spawn(256.0, -3840.0, 2 * _QUARTER),
    Spawn(0.0, -4608.0, 2 * _QUARTER),
)
RESPAWN_SPOTS = (
    Spawn(-2304.0, -4608.0, 2 * _QUARTER),
    Spawn(-2688.0, -4608.0, 2 * _QUARTER),
    Spawn(2304.0, -4608.0, 2 * _QUARTER),
    Spawn(2688.0, -4608.0, 2 * _QUARTER),
)
