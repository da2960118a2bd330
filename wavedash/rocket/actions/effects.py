"""Rules for which controls can have an effect now, taken from RocketSim's car (Car.cpp).

They are cautious: a control that may do something counts as having an effect. They hold unless what a car touches changes
before the action ends: a car that is bumped off the ground could have used its roll a few ticks earlier.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import FLIP_SECONDS, FLIP_WINDOW
from wavedash.rocket.state import JUMP, Cars

PITCH_LOCK = 0.95
"""Seconds after the beginning of a flip in which pitch does not turn the car"""
FREE, WHEELS, NO_PITCH = 0, 1, 8
FLIP = {(pitch, sideways): 4 + 2 * pitch + sideways for pitch in (-1, 0, 1) for sideways in (0, 1)}
STALL = FLIP[0, 0]
BALANCES = 9
"""Number of values of `balance`"""


def gone(cars: Cars, seconds: float) -> Tensor:
    """[E, C]: no control has an effect, because the seat is empty or the car stays demolished for longer than `seconds`."""
    return (cars.demo_timer > seconds) >= cars.present


def no_boost(cars: Cars) -> Tensor:
    """[E, C]: boost has no effect."""
    return cars.boost <= 0


def no_jump(cars: Cars, held: bool) -> Tensor:
    """[E, C]: jump has no effect, because there is nothing to jump off and no flip left. `held`: nor has it where the button is
    still pressed."""
    flip = torch.gt(cars.air_time_since_jump < FLIP_WINDOW, cars.has_flipped | cars.has_double_jumped)
    useful = cars.wheel_contact.any(-1) | cars.has_contact | flip
    if held:
        useful &= cars.controls[..., JUMP] == 0
    return ~(useful | cars.is_jumping)


def balance(cars: Cars, seconds: float) -> Tensor:
    """[E, C]: what pitch and roll can do.

    FREE: they turn the car. WHEELS: they do nothing unless the car jumps. FLIP: the car flips for at least `seconds` more, and
    they do nothing meanwhile; only pitch against the flip cancels it, and then roll turns the car. In a flip without direction,
    STALL, they turn the car. NO_PITCH: the flip is over, but pitch stays locked for at least `seconds` more."""
    on_wheels = torch.gt(cars.wheel_contact.all(-1), cars.is_jumping)
    flipping = cars.is_flipping & (cars.flip_time < FLIP_SECONDS - seconds)
    locked = cars.has_flipped & (cars.flip_time >= FLIP_SECONDS) & (cars.flip_time < PITCH_LOCK - seconds)
    side, pitch = cars.flip_torque[..., 0], cars.flip_torque[..., 1]
    flip = torch.add(side != 0, pitch.sign(), alpha=2) + 4
    return torch.where(flipping, flip, torch.where(locked, NO_PITCH, on_wheels)).long()
