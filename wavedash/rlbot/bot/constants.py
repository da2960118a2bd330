"""Constants of the game that a bot needs. A test holds them against those of the trainer."""
from __future__ import annotations

import numpy as np

TICK_RATE = 120
DT = np.float32(1 / TICK_RATE)
UNIT = 5120.0
"""Length, in uu, of 1 in positions; also the distance of the goal lines from the center"""
SIDE_WALL_X, CEILING_Z = 4096.0, 2048.0
GOAL_HEIGHT = 642.775
BACK_NET_Y = 6000.0
BALL_RADIUS = 91.25
FLIP_SECONDS, FLIP_WINDOW = 0.65, 1.25
BOOST_SHORTEST = 0.1
HANDBRAKE_RISE, HANDBRAKE_FALL = 5.0, 2.0
AUTO_FLIP_SECONDS, AUTO_FLIP_ROLL = 0.4, 2.8
SMALL_PAD_SECONDS, BIG_PAD_SECONDS = 4.0, 10.0
AUTO_FLIP_GROUND = 0.70710678
RAY_SHORTENED = 2.5
BOX_MARGIN, BOX_MARGIN_SHARE, CONTACT_SHARE = 2.0, 0.05, 0.02

CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
JUMP, BOOST, HANDBRAKE = 5, 6, 7
STICKS = 5

_OWN_PADS = (
    (0, -4240, 0), (-1792, -4184, 0), (1792, -4184, 0), (-3072, -4096, 1), (3072, -4096, 1), (-940, -3308, 0),
    (940, -3308, 0), (0, -2816, 0), (-3584, -2484, 0), (3584, -2484, 0), (-1788, -2300, 0), (1788, -2300, 0),
    (-2048, -1036, 0), (0, -1024, 0), (2048, -1036, 0), (-3584, 0, 1), (-1024, 0, 0),
)
_HALF = [(float(x), float(y), 73.0 if big else 70.0, float(big)) for x, y, big in _OWN_PADS]
PADS = np.array([*_HALF, *((-x, -y, z, big) for x, y, z, big in reversed(_HALF))], np.float32)
"""[34, 4]: x, y, z and whether it is big, in the order of training"""

HITBOXES = {
    "octane": (120.507, 86.6994, 38.6591), "dominus": (130.427, 85.7799, 33.8), "plank": (131.32, 87.1704, 31.8944),
    "breakout": (133.992, 83.021, 32.8), "hybrid": (129.519, 84.6879, 36.6591), "merc": (123.22, 79.2103, 44.1591),
}
"""Length, width and height, by which the packet's hitbox is recognised"""
WHEELS = {
    "octane": ((12.5, 38.755, (51.25, 25.90, 20.755)), (15.0, 37.055, (-33.75, 29.50, 20.755))),
    "dominus": ((12.0, 33.95, (50.30, 31.10, 15.75)), (13.5, 33.85, (-34.75, 33.00, 15.75))),
    "plank": ((12.5, 31.9242, (49.97, 27.80, 12.0942)), (17.0, 27.9242, (-35.43, 20.28, 12.0942))),
    "breakout": ((13.5, 29.7, (51.50, 26.67, 11.75)), (15.0, 29.666, (-35.75, 35.00, 11.75))),
    "hybrid": ((12.5, 38.755, (51.25, 25.90, 20.755)), (15.0, 37.055, (-34.00, 29.50, 20.755))),
    "merc": ((15.0, 39.505, (51.25, 25.90, 21.505)), (15.0, 39.105, (-33.75, 29.50, 21.505))),
}
"""Front and back axle: radius, length of the suspension with its travel, mount of the right wheel"""
