"""RocketSim's names of fields by ours, and the numbers of its states in a fixed order.

`ball_values` and `car_values` read the numbers; `BALL_COLUMNS` and `CAR_COLUMNS` say, in the same order, which fields they are.
"""
from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

BODY = {"position": "pos", "velocity": "vel", "angular_velocity": "ang_vel"}
SCALARS = {
    "boost": "boost", "boost_time": "time_spent_boosting", "supersonic_time": "supersonic_time", "handbrake": "handbrake_val",
    "air_time": "air_time", "air_time_since_jump": "air_time_since_jump", "jump_time": "jump_time", "flip_time": "flip_time",
    "auto_flip_timer": "auto_flip_timer", "auto_flip_torque": "auto_flip_torque_scale", "demo_timer": "demo_respawn_timer",
    "contact_cooldown": "car_contact_cooldown_timer",
}
VECTORS = {**BODY, "flip_torque": "flip_rel_torque", "contact_normal": "world_contact_normal"}
HIT_VECTORS = {
    "ball_hit_offset": "relative_pos_on_ball", "ball_hit_position": "ball_pos", "ball_hit_impulse": "extra_hit_vel",
}
HIT_TICKS = {"ball_hit_tick": "tick_count_when_hit", "ball_hit_impulse_tick": "tick_count_when_extra_impulse_applied"}
FLAGS = {
    "on_ground": "is_on_ground", "has_jumped": "has_jumped", "has_double_jumped": "has_double_jumped",
    "has_flipped": "has_flipped", "is_jumping": "is_jumping", "is_flipping": "is_flipping",
    "is_auto_flipping": "is_auto_flipping", "is_supersonic": "is_supersonic", "is_demoed": "is_demoed",
    "has_contact": "has_world_contact",
}


class Column(NamedTuple):
    """One number of one of RocketSim's states."""

    field: str
    """Our field that holds it. Empty for `is_valid` of a hit, which only says whether its ticks mean anything"""
    position: int
    """Its index among the numbers of that field"""
    code: str
    """Its type in RocketSim, as in the module `struct`"""


def _vectors(names: dict[str, str]) -> list[Column]:
    return [Column(name, axis, "f") for name in names for axis in range(3)]


# RocketSim gives the axes of a rotation one after the other; they are the columns of our matrices.
_ROTATION = [Column("rotation", 3 * row + axis, "f") for axis in range(3) for row in range(3)]

BALL_COLUMNS = [*_vectors(BODY), *_ROTATION, Column("last_touch", 0, "I")]
CAR_COLUMNS = [
    *_vectors(VECTORS),
    *_ROTATION,
    *_vectors(HIT_VECTORS),
    *(Column(name, 0, "f") for name in SCALARS),
    Column("contact_car", 0, "I"),
    *(Column(name, 0, "Q") for name in HIT_TICKS),
    *(Column("wheel_contact", wheel, "?") for wheel in range(4)),
    *(Column(name, 0, "?") for name in FLAGS),
    Column("", 0, "?"),
]

_ball_vectors, _car_vectors, _hit_vectors = (attrgetter(*names.values()) for names in (BODY, VECTORS, HIT_VECTORS))
_scalars, _flags = attrgetter(*SCALARS.values(), "car_contact_id"), attrgetter(*FLAGS.values())
_hit_ticks = attrgetter(*HIT_TICKS.values())


def ball_values(state: Any) -> list[Any]:
    """The numbers of a `RocketSim.BallState`."""
    values: list[Any] = []
    for vector in _ball_vectors(state):
        values += vector.as_tuple()
    for axis in state.rot_mat.as_tuple():
        values += axis
    values.append(state.last_hit_car_id)
    return values


def car_values(state: Any) -> list[Any]:
    """The numbers of a `RocketSim.CarState`. Reading whole vectors is three times as fast as reading their coordinates."""
    hit = state.ball_hit_info
    values: list[Any] = []
    for vector in _car_vectors(state):
        values += vector.as_tuple()
    for axis in state.rot_mat.as_tuple():
        values += axis
    for vector in _hit_vectors(hit):
        values += vector.as_tuple()
    values += _scalars(state)
    values += _hit_ticks(hit)
    values += state.wheels_with_contact
    values += _flags(state)
    values.append(hit.is_valid)
    return values
