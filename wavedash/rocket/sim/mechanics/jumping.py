"""Jumps: off the ground, the second one in the air, dodges, and the flip of a car that lies on its roof."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import DT, Body
from wavedash.rocket.sim.kernels.records import Car, vec8

wp.set_module_options({"enable_backward": False})

JUMP_SPEED = wp.constant(875.0 / 3.0)
JUMP_HOLD = wp.constant(4375.0 / 3.0)
"""uu/s2 while the button is held"""
JUMP_HOLD_EARLY = wp.constant(0.62)
JUMP_SHORTEST = wp.constant(0.025)
JUMP_LONGEST = wp.constant(0.2)
JUMP_RESET = wp.constant(0.025 + 1.0 / 40.0)
DOUBLE_JUMP_WITHIN = wp.constant(1.25)
DODGE_STICK = wp.constant(0.5)
"""Sum of the stick's deflections from which a second jump is a dodge"""
DODGE_SPEED = wp.constant(500.0)
DODGE_SECONDS = wp.constant(0.65)
DODGE_FALL_BEGINS = wp.constant(0.15)
DODGE_FALL_ENDS = wp.constant(0.21)
DODGE_FALL_KEPT = wp.constant(0.65)
AUTO_FLIP_SPEED = wp.constant(200.0)
AUTO_FLIP_TORQUE = wp.constant(50.0)
AUTO_FLIP_SECONDS = wp.constant(0.4)
AUTO_FLIP_ROLL = wp.constant(2.8)
LEVEL_GROUND = wp.constant(0.70710678)


@wp.func
def jump(car: Car, controls: vec8, pressed: bool, body: Body):
    """Off the ground: a kick, and a push for as long as the button is held, up to 0.2 s."""
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    if car.on_ground and not car.is_jumping:
        if not (car.has_jumped and car.jump_time < JUMP_RESET):
            car.has_jumped = False
            car.jump_time = 0.0
    if car.is_jumping:
        car.is_jumping = car.jump_time < JUMP_SHORTEST or (controls[5] > 0.5 and car.jump_time < JUMP_LONGEST)
    elif car.on_ground and pressed:
        car.is_jumping = True
        car.jump_time = 0.0
        body.velocity = body.velocity + up * JUMP_SPEED
    if car.is_jumping:
        car.has_jumped = True
        strength = JUMP_HOLD
        if car.jump_time < JUMP_SHORTEST:
            strength = JUMP_HOLD * JUMP_HOLD_EARLY
        body.kick = body.kick + up * (strength * DT)
    if car.is_jumping or car.has_jumped:
        car.jump_time += DT
    return car, body


@wp.func
def auto_flip(car: Car, pressed: bool, body: Body):
    """A car on its roof that jumps is turned over."""
    if pressed and car.has_contact and car.contact_normal[2] > LEVEL_GROUND:
        roll = wp.atan2(-body.rotation[2, 1], body.rotation[2, 2])
        if wp.abs(roll) > AUTO_FLIP_ROLL:
            car.auto_flip_timer = AUTO_FLIP_SECONDS * wp.abs(roll) / wp.pi
            car.auto_flip_torque = wp.where(roll > 0.0, 1.0, -1.0)
            car.is_auto_flipping = True
            up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
            body.velocity = body.velocity - up * AUTO_FLIP_SPEED
    if car.is_auto_flipping:
        if car.auto_flip_timer <= 0.0:
            car.is_auto_flipping = False
            car.auto_flip_timer = 0.0
        else:
            forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
            body.spin = body.spin + forward * (AUTO_FLIP_TORQUE * car.auto_flip_torque * DT)
            car.auto_flip_timer -= DT
    return car, body


@wp.func
def second_jump(car: Car, controls: vec8, pressed: bool, speed: float, body: Body):
    """In the air, once, up to 1.25 s after the jump: straight up, or a dodge where the stick points."""
    if car.on_ground:
        car.has_double_jumped = False
        car.has_flipped = False
        car.air_time = 0.0
        car.air_time_since_jump = 0.0
        car.flip_time = 0.0
    else:
        car.air_time += DT
        if car.has_jumped and not car.is_jumping:
            car.air_time_since_jump += DT
        else:
            car.air_time_since_jump = 0.0
        left = not car.has_double_jumped and not car.has_flipped and not car.is_auto_flipping
        if pressed and left and car.air_time_since_jump < DOUBLE_JUMP_WITHIN:
            if wp.abs(controls[2]) + wp.abs(controls[3]) + wp.abs(controls[4]) >= DODGE_STICK:
                car.flip_time = 0.0
                car.has_flipped = True
                car.is_flipping = True
                torque, velocity = dodge(controls, speed, body)
                car.flip_torque = torque
                body.velocity = velocity
            else:
                up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
                body.velocity = body.velocity + up * JUMP_SPEED
                car.has_double_jumped = True
    if car.is_flipping:
        car.flip_time += DT
        falling = body.velocity[2] < 0.0 or car.flip_time < DODGE_FALL_ENDS
        if car.flip_time <= DODGE_SECONDS and car.flip_time >= DODGE_FALL_BEGINS and falling:
            body.velocity = wp.vec3(body.velocity[0], body.velocity[1], body.velocity[2] * DODGE_FALL_KEPT)
    elif car.has_flipped:
        car.flip_time += DT
    return car, body


@wp.func
def dodge(controls: vec8, speed: float, body: Body):
    """(The axis about which the car flips, its velocity after a kick along the ground where the stick points). No axis: a
    stall."""
    ahead = -controls[2]
    aside = controls[3] + controls[4]
    if wp.abs(aside) < 0.1 and wp.abs(ahead) < 0.1:
        ahead = 0.0
        aside = 0.0
    else:
        size = wp.sqrt(ahead * ahead + aside * aside)
        ahead /= size
        aside /= size
    torque = wp.vec3(-aside, ahead, 0.0)
    if wp.abs(ahead) < 0.1:
        ahead = 0.0
    if wp.abs(aside) < 0.1:
        aside = 0.0
    backward = ahead < 0.0
    if wp.abs(speed) >= 100.0:
        backward = (ahead >= 0.0) != (speed >= 0.0)
    part = wp.abs(speed) / 2300.0
    kick_ahead = ahead * DODGE_SPEED
    if backward:
        kick_ahead *= (1.0 + 1.5 * part) * (16.0 / 15.0)
    kick_aside = aside * DODGE_SPEED * (1.0 + 0.9 * part)
    flat = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], 0.0)
    flat = wp.normalize(flat)
    return torque, body.velocity + flat * kick_ahead + wp.vec3(-flat[1], flat[0], 0.0) * kick_aside
