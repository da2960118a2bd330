"""The numbers that can be seen from a car, by name: `ball.relative_position.local.forward`, `opponent1.boost`, `pad7.timer`.

Own car, ball, `ally1`, ... and `opponent1`, ... are bodies; each has the numbers of `BODY`. Vectors are given by their x, y and
z as the own team sees the field, by `.local.forward`, `.local.right` and `.local.up` in the car's own frame, and by `.length`.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from wavedash.rocket.constants import BACK_WALL_Y, BOOST_MAX, CAR_MAX_SPEED, CAR_MAX_SPIN, FLIP_WINDOW, PADS, RESPAWN_SECONDS
from wavedash.rocket.state import CONTROLS

UNIT = BACK_WALL_Y
"""Length, in uu, of 1 in positions"""
XYZ, AXES = ("x", "y", "z"), ("forward", "right", "up")

MOTION = [
    *((f"position.{i}", 1 / UNIT) for i in XYZ), *((f"{axis}.{i}", 1.0) for i in XYZ for axis in AXES),
    *((f"velocity.{i}", 1 / CAR_MAX_SPEED) for i in XYZ), *((f"angular_velocity.{i}", 1 / CAR_MAX_SPIN) for i in XYZ),
]
"""Fields of the ball and of cars from `position` to `angular_velocity`, and their scales"""
TURNS = [-1.0 if name.endswith((".x", ".y")) else 1.0 for name, _ in MOTION]
"""Signs of MOTION for the orange team, which sees the field turned by half a turn"""
FLAGS = ["present", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
         "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact"]
BODY = [*MOTION, ("boost", 1 / BOOST_MAX), *((flag, 1.0) for flag in FLAGS), ("has_flip", 1.0)]
"""The numbers of every body, and their scales"""
PRESENT = len(MOTION) + 1
INNER = [
    ("boost_time", 1 / 0.1), ("supersonic_time", 1.0), ("handbrake", 1.0), ("air_time", 1.0),
    ("air_time_since_jump", 1 / FLIP_WINDOW), ("jump_time", 1 / 0.2), ("flip_time", 1 / 0.95), ("flip_torque.x", 1.0),
    ("flip_torque.y", 1.0), ("flip_torque.z", 1.0), ("auto_flip_timer", 1 / 0.4), ("auto_flip_torque", 1.0),
    ("demo_timer", 1 / RESPAWN_SECONDS),
]
"""Fields of cars from `boost_time` to `demo_timer`, known of the own car only. A time is 1 when it stops to matter: boost can
be let go, the jump no longer rises, the flip no longer locks the pitch"""
WHEELS = [f"wheel_contact.{i}" for i in range(4)]
PREVIOUS = [f"previous.{control}" for control in CONTROLS]
TIMERS = [f"pad{i}.timer" for i in range(len(PADS))]


class Names:
    """All names, where a team has `team_size` places and `pads` near the car and near the ball are seen."""

    def __init__(self, team_size: int, pads: int):
        self.team_size, self.pads = team_size, pads
        self.others = [f"ally{i}" for i in range(1, team_size)] + [f"opponent{i}" for i in range(1, team_size + 1)]
        self.bodies = ["own", "ball", *self.others]
        self.near_pads = [f"pad{i}_near_{what}" for i in range(1, pads + 1) for what in ("car", "ball")]
        self.vectors = [
            *(f"{body}.{what}" for what, body in product(("velocity", "angular_velocity"), ("own", "ball"))),
            *(f"{body}.relative_{what}" for what, body in product(("position", "velocity"), self.bodies[1:])),
            *(f"{goal}_goal.from_{what}" for goal, what in product(("other", "own"), ("car", "ball"))),
            *(f"{pad}.from_car" for pad in self.near_pads),
        ]
        self.blocks = {
            "bodies": [f"{body}.{name}" for (name, _), body in product(BODY, self.bodies)],
            "inner": [*(f"own.{name}" for name, _ in INNER), *(f"own.{name}" for name in WHEELS), *PREVIOUS],
            "vectors": [f"{vector}.{i}" for i, vector in product(XYZ, self.vectors)],
            "local": [f"{vector}.local.{axis}" for axis, vector in product(AXES, self.vectors)],
            "length": [f"{vector}.length" for vector in self.vectors],
            "near_big": [f"{pad}.big" for pad in self.near_pads],
            "near_timer": [f"{pad}.timer" for pad in self.near_pads],
            "timers": TIMERS,
        }
        """In the order of `CarNumbers`' memory: one row of it per name"""

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks.values():
            yield from block


def of(what: str, *numbers: str) -> list[str]:
    """`of("own", "boost")` is ["own.boost"]."""
    return [f"{what}.{number}" for number in numbers]


def vectors(what: str, *numbers: str) -> list[str]:
    """`vectors("ball", "velocity")` is ["ball.velocity.x", "ball.velocity.y", "ball.velocity.z"]."""
    return [f"{what}.{number}.{i}" for number in numbers for i in XYZ]


def local(what: str, *numbers: str) -> list[str]:
    """`local("ball", "velocity")` is ["ball.velocity.local.forward", ...]: in the frame of the own car."""
    return [f"{what}.{number}.local.{axis}" for number in numbers for axis in AXES]
