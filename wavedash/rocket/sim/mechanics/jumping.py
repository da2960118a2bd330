"""Jumping: the jump off the ground, the double jump in the air, flips, and the auto-flip of a car that lies on its roof."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import CAR_MAX_SPEED, FLIP_SECONDS, FLIP_WINDOW
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.constants import (
    AUTO_FLIP_GROUND,
    AUTO_FLIP_ROLL,
    AUTO_FLIP_SECONDS,
    AUTO_FLIP_SPEED,
    AUTO_FLIP_TORQUE,
    DT,
    FLIP_AXIS_DEADZONE,
    FLIP_BACKWARD_GAIN,
    FLIP_BACKWARD_SCALE,
    FLIP_DEADZONE,
    FLIP_DIRECTION_SPEED,
    FLIP_FALL_BEGINS,
    FLIP_FALL_ENDS,
    FLIP_FALL_KEPT,
    FLIP_SIDE_GAIN,
    FLIP_SPEED,
    JUMP_HOLD,
    JUMP_HOLD_EARLY,
    JUMP_LONGEST,
    JUMP_RESET,
    JUMP_SHORTEST,
    JUMP_SPEED,
)
from wavedash.rocket.sim.kernels.records import Car, Controls

wp.set_module_options({"enable_backward": False})


@wp.func
def jump(car: Car, controls: Controls, pressed: bool, body: Body):
    """The jump off the ground: an impulse, and a force for as long as the button is held, up to 0.2 s."""
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    if car.on_ground and not car.is_jumping:
        if not (car.has_jumped and car.jump_time < JUMP_RESET):
            car.has_jumped = False
            car.jump_time = 0.0
    if car.is_jumping:
        car.is_jumping = car.jump_time < JUMP_SHORTEST or (controls.jump > 0.5 and car.jump_time < JUMP_LONGEST)
    elif car.on_ground and pressed:
        car.is_jumping = True
        car.jump_time = 0.0
        body.velocity = body.velocity + up * JUMP_SPEED
    if car.is_jumping:
        car.has_jumped = True
        strength = JUMP_HOLD
        if car.jump_time < JUMP_SHORTEST:
            strength = JUMP_HOLD * JUMP_HOLD_EARLY
        body.forced_velocity = body.forced_velocity + up * (strength * DT)
    if car.is_jumping or car.has_jumped:
        car.jump_time += DT
    return car, body


@wp.func
def auto_flip(car: Car, pressed: bool, body: Body):
    """Turns a car over that lies on its roof and jumps."""
    if pressed and car.has_contact and car.contact_normal[2] > AUTO_FLIP_GROUND:
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
def double_jump_or_flip(car: Car, controls: Controls, pressed: bool, speed: float, body: Body):
    """The second jump, once in the air, up to 1.25 s after the first one: straight up, or a flip where the stick points."""
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
        if pressed and left and car.air_time_since_jump < FLIP_WINDOW:
            if wp.abs(controls.pitch) + wp.abs(controls.yaw) + wp.abs(controls.roll) >= FLIP_DEADZONE:
                car.flip_time = 0.0
                car.has_flipped = True
                car.is_flipping = True
                torque, velocity = flip_impulse(controls, speed, body)
                car.flip_torque = torque
                body.velocity = velocity
            else:
                up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
                body.velocity = body.velocity + up * JUMP_SPEED
                car.has_double_jumped = True
    if car.is_flipping:
        car.flip_time += DT
        falling = body.velocity[2] < 0.0 or car.flip_time < FLIP_FALL_ENDS
        if car.flip_time <= FLIP_SECONDS and car.flip_time >= FLIP_FALL_BEGINS and falling:
            body.velocity = wp.vec3(body.velocity[0], body.velocity[1], body.velocity[2] * FLIP_FALL_KEPT)
    elif car.has_flipped:
        car.flip_time += DT
    return car, body


@wp.func
def flip_impulse(controls: Controls, speed: float, body: Body):
    """(The axis about which the car flips, its velocity after a horizontal impulse in the direction of the stick). A flip
    without an axis is a stall."""
    forward = -controls.pitch
    side = controls.yaw + controls.roll
    if wp.abs(side) < FLIP_AXIS_DEADZONE and wp.abs(forward) < FLIP_AXIS_DEADZONE:
        forward = 0.0
        side = 0.0
    else:
        size = wp.sqrt(forward * forward + side * side)
        forward /= size
        side /= size
    torque = wp.vec3(-side, forward, 0.0)
    if wp.abs(forward) < FLIP_AXIS_DEADZONE:
        forward = 0.0
    if wp.abs(side) < FLIP_AXIS_DEADZONE:
        side = 0.0
    backward = forward < 0.0
    if wp.abs(speed) >= FLIP_DIRECTION_SPEED:
        backward = (forward >= 0.0) != (speed >= 0.0)
    speed_ratio = wp.abs(speed) / CAR_MAX_SPEED
    forward_speed = forward * FLIP_SPEED
    if backward:
        forward_speed *= (1.0 + FLIP_BACKWARD_GAIN * speed_ratio) * FLIP_BACKWARD_SCALE
    side_speed = side * FLIP_SPEED * (1.0 + FLIP_SIDE_GAIN * speed_ratio)
    heading = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], 0.0)
    heading = wp.normalize(heading)
    return torque, body.velocity + heading * forward_speed + wp.vec3(-heading[1], heading[0], 0.0) * side_speed
