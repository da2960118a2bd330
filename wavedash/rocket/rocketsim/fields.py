"""Our names of fields and RocketSim's."""
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
FLAGS = {
    "on_ground": "is_on_ground", "has_jumped": "has_jumped", "has_double_jumped": "has_double_jumped",
    "has_flipped": "has_flipped", "is_jumping": "is_jumping", "is_flipping": "is_flipping",
    "is_auto_flipping": "is_auto_flipping", "is_supersonic": "is_supersonic", "is_demoed": "is_demoed",
    "has_contact": "has_world_contact",
}


class Value(NamedTuple):
    """One number in one of RocketSim's states."""

    field: str
    """Of ours that it is for, and which of its numbers"""
    position: int
    code: str
    """Type of RocketSim's, as in the module `struct`"""
    path: str
    """Attributes that lead to it"""

    def of(self, state: Any) -> Any:
        if self.field == "wheel_contact":
            return getattr(state, self.path)[self.position]
        return attrgetter(self.path)(state)


def _vectors(names: dict[str, str], prefix: str = "") -> list[Value]:
    return [Value(ours, i, "f", f"{prefix}{theirs}.{axis}") for ours, theirs in names.items() for i, axis in enumerate("xyz")]


_ROTATION = [Value("rotation", 3 * row + column, "f", f"rot_mat.{axis}.{component}")
             for column, axis in enumerate(("forward", "right", "up")) for row, component in enumerate("xyz")]

BALL_VALUES = [*_vectors(BODY), *_ROTATION, Value("last_touch", 0, "I", "last_hit_car_id")]
CAR_VALUES = [
    *_vectors(VECTORS),
    *_ROTATION,
    *(Value(ours, 0, "f", theirs) for ours, theirs in SCALARS.items()),
    *_vectors(HIT_VECTORS, "ball_hit_info."),
    Value("contact_car", 0, "I", "car_contact_id"),
    Value("ball_hit_tick", 0, "Q", "ball_hit_info.tick_count_when_hit"),
    Value("ball_hit_impulse_tick", 0, "Q", "ball_hit_info.tick_count_when_extra_impulse_applied"),
    *(Value("wheel_contact", i, "?", "wheels_with_contact") for i in range(4)),
    *(Value(ours, 0, "?", theirs) for ours, theirs in FLAGS.items()),
    Value("", 0, "?", "ball_hit_info.is_valid"),  # for none of ours: it says whether the ticks mean anything
]
