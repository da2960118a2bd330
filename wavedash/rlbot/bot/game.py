"""Packets become the arrays of one game, by car. What packets do not carry is reconstructed from their history.

By RocketSim's rules: times of jump, flip, boost and supersonic speed, handbrake. Estimated: which wheels touch (all four on
the ground, none in the air), whether the body touches the arena (never), auto-flips (never).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import (
    BIG_PAD_SECONDS,
    BOOST,
    BOOST_SHORTEST,
    CONTROLS,
    DT,
    HANDBRAKE,
    HANDBRAKE_FALL,
    HANDBRAKE_RISE,
    PADS,
    SMALL_PAD_SECONDS,
)

Array = NDArray[Any]
ON_GROUND, JUMPING, DODGING = 0, 1, 3
"""Numbers of RLBot's AirState"""
VECTORS = ("position", "velocity", "angular_velocity", "flip_torque")
TIMES = ("boost", "boost_time", "supersonic_time", "handbrake", "air_time", "air_time_since_jump", "jump_time", "flip_time",
         "auto_flip_timer", "auto_flip_torque", "demo_timer")
FLAGS = ("present", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
         "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact")


def rotation_of(pitch: float, yaw: float, roll: float) -> Array:
    """[3, 3]: the columns are forward, right and up."""
    (cp, cy, cr), (sp, sy, sr) = np.cos([pitch, yaw, roll]), np.sin([pitch, yaw, roll])
    return np.array([[cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy],
                     [cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy], [sp, -cp * sr, cp * cr]], np.float32)


def motion_of(physics: Any) -> tuple[Array, Array, Array, Array]:
    """Position, rotation, velocity and spin."""
    at, v, w, r = physics.location, physics.velocity, physics.angular_velocity, physics.rotation
    return (np.array([at.x, at.y, at.z], np.float32), rotation_of(r.pitch, r.yaw, r.roll),
            np.array([v.x, v.y, v.z], np.float32), np.array([w.x, w.y, w.z], np.float32))


class Game:
    """`arrays` by name, [cars, ...]; `ball` [18] and `pads` [34], seconds until each is back, in the order of training."""

    def __init__(self, pads: Sequence[Any]) -> None:
        """`pads`: those of the field info, in the order of packets."""
        places = np.array([[pad.location.x, pad.location.y] for pad in pads], np.float32).reshape(-1, 2)
        distance = ((PADS[:, None, :2] - places) ** 2).sum(-1)
        self.order = distance.argmin(1) if len(places) else np.zeros(0, np.int64)
        self.arrays: dict[str, Array] = {}
        self.frame = -1
        self.seats: list[int] = []

    def update(self, packet: Any) -> int:
        """Takes a packet over and returns how many ticks have passed since the last one."""
        frame = packet.match_info.frame_num
        players = [i for i, player in enumerate(packet.players) if player.team in (0, 1)]  # others are spectators
        fresh = players != self.seats or self.frame < 0 or not 0 <= frame - self.frame <= 120
        ticks = 1 if fresh else frame - self.frame
        if fresh:
            self._empty(players)
        self.frame = frame
        for car, index in enumerate(players):
            self._car(car, packet.players[index], ticks)
        if packet.balls:
            self.arrays["ball"][:] = np.concatenate([x.reshape(-1) for x in motion_of(packet.balls[0].physics)])
        if len(self.order) and len(packet.boost_pads):
            self._pads(packet.boost_pads)
        return ticks

    def _empty(self, players: list[int]) -> None:
        n, self.seats = len(players), players
        self.arrays = {name: np.zeros((n, 3), np.float32) for name in VECTORS}
        self.arrays |= {name: np.zeros(n, np.float32) for name in TIMES} | {name: np.zeros(n, bool) for name in FLAGS}
        self.arrays |= {"rotation": np.zeros((n, 3, 3), np.float32), "controls": np.zeros((n, 8), np.float32),
                        "wheel_contact": np.zeros((n, 4), np.float32), "team": np.zeros(n, np.int64),
                        "ball": np.zeros(18, np.float32), "pads": np.zeros(len(PADS), np.float32)}

    def _pads(self, pads: Sequence[Any]) -> None:
        whole = np.where(PADS[:, 3] > 0, BIG_PAD_SECONDS, SMALL_PAD_SECONDS)
        gone = np.array([-1.0 if pad.is_active else pad.timer for pad in pads], np.float32)[self.order]
        self.arrays["pads"][:] = np.where(gone < 0, 0.0, np.maximum(whole - gone, 0.0))

    def _car(self, car: int, player: Any, ticks: int) -> None:
        a, step = self.arrays, DT * np.float32(ticks)
        a["team"][car], a["present"][car] = player.team, True
        a["position"][car], a["rotation"][car], a["velocity"][car], a["angular_velocity"][car] = motion_of(player.physics)
        controls = np.array([getattr(player.last_input, name) for name in CONTROLS], np.float32)
        state, was_jumping = int(player.air_state), bool(a["is_jumping"][car])
        a["is_jumping"][car], a["on_ground"][car] = state == JUMPING, state == ON_GROUND
        a["is_flipping"][car] = state == DODGING
        a["has_jumped"][car], a["has_double_jumped"][car] = player.has_jumped, player.has_double_jumped
        a["has_flipped"][car], a["is_supersonic"][car] = player.has_dodged, player.is_supersonic
        a["flip_time"][car] = max(player.dodge_elapsed, 0.0) if player.has_dodged else 0.0
        a["flip_torque"][car] = -player.dodge_dir.y, player.dodge_dir.x, 0.0
        a["demo_timer"][car], a["is_demoed"][car] = max(player.demolished_timeout, 0.0), player.demolished_timeout > 0
        a["wheel_contact"][car] = state == ON_GROUND

        new_jump = a["is_jumping"][car] and not was_jumping
        a["jump_time"][car] = (DT if new_jump else a["jump_time"][car] + step) if player.has_jumped else 0.0
        in_air = state != ON_GROUND
        falls = in_air and player.has_jumped and state != JUMPING
        a["air_time_since_jump"][car] = a["air_time_since_jump"][car] + step if falls else 0.0
        a["air_time"][car] = a["air_time"][car] + step if in_air else 0.0
        a["supersonic_time"][car] = a["supersonic_time"][car] + step if player.is_supersonic else 0.0
        burns = a["boost"][car] > 0 and (controls[BOOST] > 0 or 0 < a["boost_time"][car] < BOOST_SHORTEST)
        a["boost_time"][car] = a["boost_time"][car] + step if burns else 0.0
        brake = HANDBRAKE_RISE if controls[HANDBRAKE] > 0 else -HANDBRAKE_FALL
        a["handbrake"][car] = np.clip(a["handbrake"][car] + brake * step, 0.0, 1.0)
        a["boost"][car], a["controls"][car] = player.boost, controls
