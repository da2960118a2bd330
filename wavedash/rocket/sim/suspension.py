"""Wheels: a ray finds the ground under each, a spring holds the car above it, tyres roll and grip.

Engine, brake, steering and grip act one tick late: the tyres use what `driving` decided in the tick before.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.arena import Arena, ray_hits_arena
from wavedash.rocket.sim.bodies import CAR_MASS, DT, Body, hit, impulse_mass, velocity_at
from wavedash.rocket.sim.rays import ray_hits_box, ray_hits_sphere
from wavedash.rocket.sim.records import Car
from wavedash.rocket.sim.shapes import CarShape

wp.set_module_options({"enable_backward": False})

TRAVEL = wp.constant(12.0)
RAY_SHORTENED = wp.constant(2.5)
STIFFNESS = wp.constant(500.0)
DAMPING_IN = wp.constant(25.0)
DAMPING_OUT = wp.constant(40.0)
FRONT_FORCE = wp.constant(35.75)
BACK_FORCE = wp.constant(54.265)
SIDE_GRIP = wp.constant(0.2)
BRAKE_RATE = wp.constant(113.73963)
NOTHING = wp.constant(0)
ARENA_GROUND = wp.constant(1)
BODY_GROUND = wp.constant(2)


@wp.struct
class Axles:
    """What a car's wheels remember from the tick before."""

    steer: wp.float32
    """Angle of the front wheels, radians"""
    engine: wp.float32
    brake: wp.float32
    side_grip: wp.vec4
    roll_grip: wp.vec4
    rebound: wp.vec4
    """Impulse against a wheel that is deep in the ground; it stays until the wheel leaves the ground"""


@wp.struct
class Wheel:
    """A wheel during one tick."""

    ground: wp.int32
    """NOTHING, ARENA_GROUND, or BODY_GROUND: the ball or a car"""
    mount: wp.vec3
    """Where the suspension begins, from the car's origin"""
    arm: wp.vec3
    """Where it touches, from the car's origin"""
    normal: wp.vec3
    axle: wp.vec3
    """To the right of the wheel"""
    spring: wp.float32
    """Impulse along the normal"""
    grip: wp.vec3
    """Impulse of the tyre"""


@wp.func
def cast_wheels(
    wheels: wp.array(dtype=Wheel), seat: int, seats: int, bodies: wp.array(dtype=Body), cars: wp.array(dtype=Car),
    shape: CarShape, shapes: wp.array(dtype=CarShape), axles: Axles, arena: Arena, cell: int,
) -> Axles:
    """Rays down from all four mounts, and what the ground does to each wheel."""
    body = bodies[1 + seat]
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    steered = right * wp.cos(axles.steer) - forward * wp.sin(axles.steer)
    for i in range(4):
        wheel = Wheel()
        mount = shape.back_wheel
        radius = shape.back_radius
        length = shape.back_length
        force = BACK_FORCE
        wheel.axle = right
        if i < 2:
            mount = shape.front_wheel
            radius = shape.front_radius
            length = shape.front_length
            force = FRONT_FORCE
            wheel.axle = steered
        if i % 2 == 1:
            mount = wp.vec3(mount[0], -mount[1], mount[2])
        wheel.mount = body.rotation * mount
        reach = length + TRAVEL + radius - RAY_SHORTENED
        source = body.position + wheel.mount
        target = source - up * reach
        found, fraction, normal = ray_hits_arena(arena, cell, source, target)
        ground = NOTHING
        if found == 1:
            ground = ARENA_GROUND
        other = int(0)
        for k in range(seats + 1):
            if k != 1 + seat and bodies[k].inverse_mass > 0.0:
                near = wp.length_sq(bodies[k].position - body.position)
                if near < 40000.0:
                    closer = int(0)
                    part = float(1.0)
                    across = up
                    if k == 0:
                        closer, part, across = ray_hits_sphere(source, target, bodies[0].position)
                    else:
                        closer, part, across = ray_hits_box(source, target, bodies[k].position, bodies[k].rotation,
                                                            shapes[cars[k - 1].hitbox])
                    if closer == 1 and (ground == NOTHING or part < fraction):
                        ground = BODY_GROUND
                        fraction = part
                        normal = across
                        other = k
        wheel.ground = ground
        if ground == NOTHING:
            axles.rebound[i] = 0.0
        else:
            wheel.normal = normal
            wheel.arm = wheel.mount - up * (reach * fraction)
            depth = reach * fraction
            squeezed = length - wp.clamp(depth - radius, length - TRAVEL, length + TRAVEL)
            speed = wp.dot(normal, velocity_at(body, wheel.arm))
            tilt = wp.dot(normal, up)
            inverse_tilt = float(10.0)
            closing = float(0.0)
            if tilt > 0.1:
                inverse_tilt = 1.0 / tilt
                closing = speed * inverse_tilt
            damping = DAMPING_OUT
            if closing < 0.0:
                damping = DAMPING_IN
            pressed = (squeezed * STIFFNESS * inverse_tilt - damping * closing) * force
            sunk = depth - (length + radius - RAY_SHORTENED)
            if ground == ARENA_GROUND and sunk < 0.0:
                against = -0.2 * sunk / DT - speed
                axles.rebound[i] = 0.25 * wp.max(0.0, against / impulse_mass(body, wheel.arm, normal))
            if pressed > 0.0:
                wheel.spring = pressed * DT + axles.rebound[i]
            wheel.grip = tyre(wheel, body, bodies[other], axles, i)
        wheels[i] = wheel
    return axles


@wp.func
def tyre(wheel: Wheel, body: Body, other: Body, axles: Axles, i: int) -> wp.vec3:
    """Impulse of a tyre: it rolls along, driven or braked, and grips sideways."""
    axle = wp.normalize(wheel.axle - wheel.normal * wp.dot(wheel.axle, wheel.normal))
    back = wp.normalize(wp.cross(wheel.normal, axle))
    motion = velocity_at(body, wheel.arm)
    sideways = wp.dot(axle, motion)
    backwards = wp.dot(back, motion)
    inverse_mass = impulse_mass(body, wheel.arm, axle)
    if wheel.ground == BODY_GROUND:
        arm = body.position + wheel.arm - other.position
        sideways -= wp.dot(axle, velocity_at(other, arm))
        backwards -= wp.dot(back, velocity_at(other, wheel.arm))  # RocketSim takes the wheel's place on the car for that on the other
        inverse_mass += impulse_mass(other, arm, axle)
    side = -SIDE_GRIP * sideways / inverse_mass
    roll = float(0.0)
    if axles.engine != 0.0:
        roll = -axles.engine / (CAR_MASS / 3.0)
    elif axles.brake > 0.0:
        roll = wp.clamp(-backwards * BRAKE_RATE, -axles.brake, axles.brake)
    return (back * (roll * axles.roll_grip[i]) + axle * (side * axles.side_grip[i])) * (CAR_MASS / 3.0 * DT)


@wp.func
def press_wheels(wheels: wp.array(dtype=Wheel), body: Body) -> Body:
    """Springs, then tyres act on the car."""
    for i in range(4):
        if wheels[i].spring != 0.0:
            body = hit(body, wheels[i].normal * wheels[i].spring, wheels[i].arm)
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    for i in range(4):
        if wheels[i].ground != NOTHING:
            body = hit(body, wheels[i].grip, wheels[i].arm - up * wp.dot(up, wheels[i].arm))
    return body


@wp.func
def ground_normal(wheels: wp.array(dtype=Wheel), up: wp.vec3) -> wp.vec3:
    """Mean over the wheels that touch, `up` where none does."""
    total = wp.vec3()
    for i in range(4):
        if wheels[i].ground != NOTHING:
            total = total + wheels[i].normal
    if wp.length_sq(total) > 0.0:
        return wp.normalize(total)
    return up
