"""Car: what packets say of a car, and what they do not, reconstructed tick by tick by the rules of RocketSim.

A packet says which controls were in force in its tick, whether the car jumps, flips or stands, and where it is. From that
follow the times of jump, flip, boost and supersonic speed, the handbrake, and the auto-flip of a car on its roof. Which wheels
touch, and whether the body does, is decided at the beginning of a tick: it is found by geometry where the car was in the packet
before.
"""
from __future__ import annotations

from math import atan2, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import (
    AUTO_FLIP_GROUND,
    AUTO_FLIP_ROLL,
    AUTO_FLIP_SECONDS,
    BOOST,
    BOOST_SHORTEST,
    CONTROLS,
    DT,
    FLIP_SECONDS,
    FLIP_WINDOW,
    HANDBRAKE,
    HANDBRAKE_FALL,
    HANDBRAKE_RISE,
    JUMP,
)
from .field import Field, shape_of
from .motion import Motion, motion_of

Array = NDArray[Any]
ZERO = np.float32(0.0)
ON_GROUND, JUMPING, DODGING = 0, 1, 3
"""Numbers of RLBot's AirState"""


def inputs_of(player: Any) -> Array:
    """[8]: the controls that were in force in the tick of this packet."""
    return np.array([getattr(player.last_input, name) for name in CONTROLS], np.float32)


class Car:
    """The fields are those of the trainer's state. `team` stays; a car of another team is another one."""

    def __init__(self, player: Any, field: Field) -> None:
        self.field, self.team = field, int(player.team)
        self.length = 0.0
        self.present = True
        self.forget()
        self._read(player)
        self._read_air(player)

    def forget(self) -> None:
        """The car is as one that was just placed: nothing of its past counts."""
        self.boost_time = self.supersonic_time = self.handbrake = self.air_time = self.air_time_since_jump = ZERO
        self.jump_time = self.flip_time = self.auto_flip_timer = self.auto_flip_torque = ZERO
        self.flip_torque = np.zeros(3, np.float32)
        self.wheel_contact = np.zeros(4, bool)
        self.is_auto_flipping = self.has_contact = False
        self.ground = 0.0
        """z of the normal of the field where the body touches it"""
        self.controls, self.boost = np.zeros(8, np.float32), ZERO
        self.is_demoed = self.is_jumping = False

    def began(self, player: Any, ticks: int) -> Motion:
        """Where the tick of this packet began, `ticks` after the last packet."""
        return self.motion if ticks == 1 and not self.is_demoed else motion_of(player.physics).earlier(DT if ticks else ZERO)

    def update(self, player: Any, ticks: int, began: Motion, standing: Array) -> None:
        """Takes over the packet of `ticks` ticks later, whose tick began with the car at `began`. `standing` [4]: the wheels
        that stand on the ball or on another car."""
        if self.is_demoed and player.demolished_timeout > 0:
            self._read(player)  # a demolished car stays as it was
            return
        if self.is_demoed:
            self.forget()  # one that comes back is new, and has its first tick at once
        was_jumping, burnt = self.is_jumping, self.boost
        held, roof = self.controls[JUMP] > 0, self._on_roof()
        self._read(player)
        self.feel_ground(player, began, standing)
        for tick in range(ticks):
            self._pass_tick(player, burnt, new_jump=tick == 0 and self.is_jumping and not was_jumping)
        if self.controls[JUMP] > 0 and not held and roof:
            self.is_auto_flipping = True
            self.auto_flip_timer = np.float32(AUTO_FLIP_SECONDS * abs(roof) / pi)
            self.auto_flip_torque = np.float32(1.0 if roof > 0 else -1.0)
        for _ in range(ticks if self.is_auto_flipping else 0):
            self._turn_over()

    def _read(self, player: Any) -> None:
        """Reads what the packet says."""
        self.motion: Motion = motion_of(player.physics)
        if player.hitbox.length != self.length:  # at first, and if somebody chooses another body
            self._read_shape(player)
        self.controls = inputs_of(player)
        self.boost = np.float32(player.boost)
        self.is_demoed = player.demolished_timeout > 0
        self.demo_timer = np.float32(max(player.demolished_timeout, 0.0))
        self.is_supersonic = bool(player.is_supersonic)
        self.has_jumped, self.has_double_jumped = bool(player.has_jumped), bool(player.has_double_jumped)
        self.has_flipped = bool(player.has_dodged)
        self.flip_time = np.float32(max(player.dodge_elapsed, 0.0)) if self.has_flipped else ZERO
        if self.has_flipped:  # afterwards the last flip stays, which some policies see
            self.flip_torque = np.array([-player.dodge_dir.y, player.dodge_dir.x, 0.0], np.float32)
        state = int(player.air_state)
        self.is_jumping = state == JUMPING
        self.is_flipping = state == DODGING or (self.is_jumping and self.has_flipped and self.flip_time - DT < FLIP_SECONDS)

    def _read_shape(self, player: Any) -> None:
        size, offset = player.hitbox, player.hitbox_offset
        self.length = size.length
        self.shape = shape_of(np.array([size.length, size.width, size.height]), np.array([offset.x, offset.y, offset.z]))

    def _read_air(self, player: Any) -> None:
        """How long ago the jump of a car ended that is first seen in the air."""
        if int(player.air_state) in (ON_GROUND, JUMPING) or not self.has_jumped or self.has_flipped or self.has_double_jumped:
            return
        left = player.dodge_timeout if player.dodge_timeout > 0 else 0.0
        self.air_time_since_jump = np.float32(max(FLIP_WINDOW - left, 0.0))

    def feel_ground(self, player: Any, at: Motion, standing: Array) -> None:
        """Finds what wheels and body touch. The packet is right where it tells more: whether three wheels or more touch."""
        state = int(player.air_state)
        wheels = self.field.wheels(self.shape, at.position, at.rotation) | standing
        self.on_ground = state == ON_GROUND or (state == JUMPING and int(wheels.sum()) >= 3)
        if state == ON_GROUND and wheels.sum() < 3:
            wheels = np.ones(4, bool)
        elif state not in (ON_GROUND, JUMPING) and wheels.sum() >= 3:
            wheels = np.zeros(4, bool)
        normal = self.field.body(self.shape, at.position, at.rotation)
        self.wheel_contact, self.has_contact = wheels, normal is not None
        self.ground = 0.0 if normal is None else float(normal[2])

    def _pass_tick(self, player: Any, boost: Any, new_jump: bool) -> None:
        brakes = self.controls[HANDBRAKE] > 0
        change = np.float32(HANDBRAKE_RISE if brakes else -HANDBRAKE_FALL) * DT
        self.handbrake = np.float32(min(max(self.handbrake + change, ZERO), np.float32(1.0)))
        if self.is_jumping or self.has_jumped:
            self.jump_time = DT if new_jump else self.jump_time + DT
        else:
            self.jump_time = ZERO
        falls = self.has_jumped and not self.is_jumping and not self.on_ground
        self.air_time_since_jump = self.air_time_since_jump + DT if falls else ZERO
        self.air_time = ZERO if self.on_ground else self.air_time + DT
        burns = boost > 0 and (self.controls[BOOST] > 0 or 0 < self.boost_time < BOOST_SHORTEST)
        self.boost_time = self.boost_time + DT if burns else ZERO
        self.supersonic_time = self.supersonic_time + DT if self.is_supersonic else ZERO

    def _on_roof(self) -> float:
        """The roll of a car that lies on its roof, from where a jump turns it over; 0 for all others."""
        if not (self.has_contact and self.ground > AUTO_FLIP_GROUND):
            return 0.0
        rotation = self.motion.rotation
        roll = atan2(-rotation[2, 1], rotation[2, 2])
        return roll if abs(roll) > AUTO_FLIP_ROLL else 0.0

    def _turn_over(self) -> None:
        if self.auto_flip_timer <= 0:
            self.is_auto_flipping, self.auto_flip_timer = False, ZERO
        else:
            self.auto_flip_timer = self.auto_flip_timer - DT
