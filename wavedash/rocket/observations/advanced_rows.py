"""The numbers of AdvancedObsPlus by name: those that are worked out for every car, and those of them that it sees."""
from __future__ import annotations

from itertools import product

from wavedash.rocket.constants import BACK_WALL_Y, BOOST_MAX, CAR_MAX_SPEED, CAR_MAX_SPIN, FLIP_WINDOW, PADS, RESPAWN_SECONDS
from wavedash.rocket.state import CONTROLS

UNIT = BACK_WALL_Y
"""Length of 1 in positions"""
XYZ, AXES = ("x", "y", "z"), ("forward", "right", "up")

MOTION = [
    *((f"position.{i}", 1 / UNIT) for i in XYZ), *((f"{axis}.{i}", 1.0) for i in XYZ for axis in AXES),
    *((f"velocity.{i}", 1 / CAR_MAX_SPEED) for i in XYZ), *((f"angular_velocity.{i}", 1 / CAR_MAX_SPIN) for i in XYZ),
]
"""Of ball and cars: the fields `position` to `angular_velocity`, and their scale"""
TURNS = [-1.0 if name.endswith((".x", ".y")) else 1.0 for name, _ in MOTION]
"""Signs of the same, seen from the other side"""
FLAGS = ["present", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
         "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact"]
BODY = [*MOTION, ("boost", 1 / BOOST_MAX), *((flag, 1.0) for flag in FLAGS), ("has_flip", 1.0)]
"""What is gathered of every body that a car sees"""
PRESENT = len(MOTION) + 1
INNER = [
    ("boost_time", 1 / 0.1), ("supersonic_time", 1.0), ("handbrake", 1.0), ("air_time", 1.0),
    ("air_time_since_jump", 1 / FLIP_WINDOW), ("jump_time", 1 / 0.2), ("flip_time", 1 / 0.95), ("flip_torque.x", 1.0),
    ("flip_torque.y", 1.0), ("flip_torque.z", 1.0), ("auto_flip_timer", 1 / 0.4), ("auto_flip_torque", 1.0),
    ("demo_timer", 1 / RESPAWN_SECONDS),
]
"""What a car knows of itself alone: the fields `boost_time` to `demo_timer`. A time is 1 where the game stops to look at it:
boost that cannot be let go, the jump that rises, the pitch that is locked by a flip, ..."""
WHEELS = [f"wheel_contact.{i}" for i in range(4)]
PREVIOUS = [f"previous.{control}" for control in CONTROLS]
TIMERS = [f"pad{i}.timer" for i in range(len(PADS))]


class Rows:
    """Names of all numbers for given places and pads."""

    def __init__(self, team_size: int, pads: int):
        self.others = [f"ally{i}" for i in range(1, team_size)] + [f"opponent{i}" for i in range(1, team_size + 1)]
        self.bodies = ["own", "ball", *self.others]
        self.near = [f"pad{i}_near_{what}" for i in range(1, pads + 1) for what in ("car", "ball")]
        self.vectors = [
            *(f"{body}.{what}" for what, body in product(("velocity", "angular_velocity"), ("own", "ball"))),
            *(f"{body}.relative_{what}" for what, body in product(("position", "velocity"), self.bodies[1:])),
            *(f"{goal}_goal.from_{what}" for goal, what in product(("other", "own"), ("car", "ball"))),
            *(f"{pad}.from_car" for pad in self.near),
        ]

    def worked_out(self) -> dict[str, list[str]]:
        """In blocks, in the order of the work memory."""
        return {
            "bodies": [f"{body}.{name}" for (name, _), body in product(BODY, self.bodies)],
            "inner": [*(f"own.{name}" for name, _ in INNER), *(f"own.{name}" for name in WHEELS), *PREVIOUS],
            "vectors": [f"{vector}.{i}" for i, vector in product(XYZ, self.vectors)],
            "local": [f"{vector}.local.{axis}" for axis, vector in product(AXES, self.vectors)],
            "length": [f"{vector}.length" for vector in self.vectors],
            "near_big": [f"{pad}.big" for pad in self.near],
            "near_timer": [f"{pad}.timer" for pad in self.near],
            "timers": TIMERS,
        }

    def seen(self, timers: bool) -> list[str]:
        """In the order of the observation."""
        moves = ("position", "forward", "up", "velocity", "angular_velocity")
        relative = ("relative_position", "relative_velocity")
        return [
            *_vectors("own", *moves), *_local("own", "velocity", "angular_velocity"),
            *_of("own", "velocity.length", "angular_velocity.length", "boost", "has_flip", *FLAGS[1:], *WHEELS, "boost_time",
                 "handbrake", "air_time_since_jump", "jump_time", "flip_time", "flip_torque.x", "flip_torque.y", "demo_timer"),
            *_vectors("ball", "position", "velocity", "angular_velocity", *relative), *_local("ball", *relative),
            *_of("ball", "relative_position.length", "relative_velocity.length", "velocity.length"),
            *(name for goal in ("other_goal", "own_goal")
              for name in (*_local(goal, "from_car"), *_of(goal, "from_car.length", "from_ball.length"))),
            *(name for other in self.others
              for name in (*_of(other, "present"), *_vectors(other, *moves), *_local(other, *relative), *_of(
                  other, "relative_position.length", "boost", "on_ground", "has_flip", "is_supersonic", "is_demoed"))),
            *(name for pad in self.near for name in (*_local(pad, "from_car"), *_of(pad, "from_car.length", "big", "timer"))),
            *(TIMERS if timers else []),
            *PREVIOUS,
        ]


def _of(what: str, *parts: str) -> list[str]:
    return [f"{what}.{part}" for part in parts]


def _vectors(what: str, *parts: str) -> list[str]:
    return [f"{what}.{part}.{i}" for part in parts for i in XYZ]


def _local(what: str, *parts: str) -> list[str]:
    return [f"{what}.{part}.local.{axis}" for part in parts for axis in AXES]
