"""Wheels: a ray finds the ground under each, a spring holds the car above it, tyres roll and grip.

Engine, brake, steering and grip act one tick late: the tyres use what `driving` decided in the tick before.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.arena import Arena, cell_of, is_inside, ray_hits_planes
from wavedash.rocket.sim.bodies import CAR_MASS, DT, Body, ball_body, car_body, hit, impulse_mass, velocity_at
from wavedash.rocket.sim.rays import ray_hits_box, ray_hits_sphere
from wavedash.rocket.sim.records import BALL_AT, car_at, load_ball, load_car, loader, place_of, storer
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
NEAR = wp.constant(200.0)
"""From car to car or ball, beyond which no wheel stands on the other"""
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


load_axles, store_axles = loader(Axles), storer(Axles)


@wp.struct
class Wheel:
    """A wheel during one tick."""

    ground: wp.int32
    """NOTHING, ARENA_GROUND, or BODY_GROUND: the ball or a car"""
    mount: wp.vec3
    """Where the suspension begins, from the car's origin"""
    radius: wp.float32
    length: wp.float32
    """Of the suspension at rest"""
    force: wp.float32
    """Of the suspension"""
    reach: wp.float32
    """Length of the ray down from the mount"""
    fraction: wp.float32
    """Of the ray, where it meets the ground"""
    other: wp.int32
    """Seat of the car that it stands on, -1: the ball"""
    arm: wp.vec3
    """Where it touches, from the car's origin"""
    normal: wp.vec3
    axle: wp.vec3
    """To the right of the wheel"""
    spring: wp.float32
    """Impulse along the normal"""
    grip: wp.vec3
    """Impulse of the tyre"""


@wp.struct
class Others:
    """Where a car finds the ball and the other cars of its arena."""

    words: wp.array2d(dtype=wp.int32)
    numbers: wp.array2d(dtype=wp.float32)
    shapes: wp.array(dtype=CarShape)
    e: wp.int32
    seats: wp.int32


@wp.func
def cast_wheels(
    wheels: wp.array(dtype=Wheel), seat: int, body: Body, shape: CarShape, axles: Axles, arena: Arena, others: Others,
) -> Axles:
    """Rays down from all four mounts, and what the ground does to each wheel. Other bodies are as the tick began."""
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    mount_wheels(wheels, shape, body, axles.steer)
    for i in range(4):
        find_plane(wheels, i, body.position, up)
    find_triangles(wheels, arena, body.position, up)
    if wp.length_sq(place_of(others.numbers, others.e, BALL_AT) - body.position) < NEAR * NEAR:
        find_ball(wheels, others, body.position, up)
    for k in range(others.seats):
        if k != seat and wp.length_sq(place_of(others.numbers, others.e, car_at(k)) - body.position) < NEAR * NEAR:
            find_car(wheels, k, others, body.position, up)
    for i in range(4):
        if wheels[i].ground == NOTHING:
            axles.rebound[i] = 0.0
        else:
            wheel = wheels[i]
            wheel.arm = wheel.mount - up * (wheel.reach * wheel.fraction)
            axles.rebound[i] = rebound(wheel, body, axles.rebound[i])
            wheel.spring = spring(wheel, body, up, axles.rebound[i])
            other = Body()
            if wheel.ground == BODY_GROUND:
                if wheel.other < 0:
                    other = ball_body(load_ball(others.words, others.e, BALL_AT))
                else:
                    car = load_car(others.words, others.e, car_at(wheel.other))
                    other = car_body(car, others.shapes[car.hitbox])
            wheel.grip = tyre(wheel, body, other, axles, i)
            wheels[i] = wheel
    return axles


@wp.func
def mount_wheels(wheels: wp.array(dtype=Wheel), shape: CarShape, body: Body, steer: float):
    """Where the four rays begin and how long they are."""
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    for i in range(4):
        wheel = Wheel()
        side = 1.0 - 2.0 * float(i % 2)
        if i < 2:
            wheel.mount = body.rotation * wp.vec3(shape.front_wheel[0], side * shape.front_wheel[1], shape.front_wheel[2])
            wheel.axle = right * wp.cos(steer) - forward * wp.sin(steer)
            wheel.radius = shape.front_radius
            wheel.length = shape.front_length
            wheel.force = FRONT_FORCE
        else:
            wheel.mount = body.rotation * wp.vec3(shape.back_wheel[0], side * shape.back_wheel[1], shape.back_wheel[2])
            wheel.axle = right
            wheel.radius = shape.back_radius
            wheel.length = shape.back_length
            wheel.force = BACK_FORCE
        wheel.reach = wheel.length + TRAVEL + wheel.radius - RAY_SHORTENED
        wheel.fraction = 1.0
        wheels[i] = wheel


@wp.func
def find_plane(wheels: wp.array(dtype=Wheel), i: int, position: wp.vec3, up: wp.vec3):
    """Floor, ceiling or side wall under a wheel."""
    source = position + wheels[i].mount
    found, fraction, normal = ray_hits_planes(source, source - up * wheels[i].reach)
    if found == 1:
        wheels[i].ground = ARENA_GROUND
        wheels[i].fraction = fraction
        wheels[i].normal = normal


@wp.func
def find_triangles(wheels: wp.array(dtype=Wheel), arena: Arena, position: wp.vec3, up: wp.vec3):
    """Curves, corners, back walls and goals under all four wheels."""
    cell = cell_of(position)
    for k in range(arena.first[cell], arena.first[cell + 1]):
        plane = arena.planes[k]
        normal = wp.vec3(plane[0], plane[1], plane[2])
        height = wp.dot(normal, position) - plane[3]
        slope = wp.dot(normal, up)
        for i in range(4):
            before = height + wp.dot(normal, wheels[i].mount)
            after = before - slope * wheels[i].reach
            if before * after < 0.0:
                fraction = before / (before - after)
                if fraction < wheels[i].fraction:
                    point = position + wheels[i].mount - up * (wheels[i].reach * fraction)
                    if is_inside(arena.triangles[arena.items[k]], point):
                        wheels[i].ground = ARENA_GROUND
                        wheels[i].fraction = fraction
                        wheels[i].normal = normal * wp.sign(before)


@wp.func
def find_ball(wheels: wp.array(dtype=Wheel), others: Others, position: wp.vec3, up: wp.vec3):
    """The ball under the wheels."""
    center = place_of(others.numbers, others.e, BALL_AT)
    for i in range(4):
        source = position + wheels[i].mount
        found, fraction, normal = ray_hits_sphere(source, source - up * wheels[i].reach, center)
        if found == 1 and fraction < wheels[i].fraction:
            wheels[i].ground = BODY_GROUND
            wheels[i].fraction = fraction
            wheels[i].normal = normal
            wheels[i].other = -1


@wp.func
def find_car(wheels: wp.array(dtype=Wheel), k: int, others: Others, position: wp.vec3, up: wp.vec3):
    """The car in seat k under the wheels."""
    car = load_car(others.words, others.e, car_at(k))
    if car.present and not car.is_demoed:
        shape = others.shapes[car.hitbox]
        for i in range(4):
            source = position + wheels[i].mount
            found, fraction, normal = ray_hits_box(source, source - up * wheels[i].reach, car.position, car.rotation, shape)
            if found == 1 and fraction < wheels[i].fraction:
                wheels[i].ground = BODY_GROUND
                wheels[i].fraction = fraction
                wheels[i].normal = normal
                wheels[i].other = k


@wp.func
def rebound(wheel: Wheel, body: Body, before: float) -> float:
    """Impulse against a wheel that is deep in the arena; it stays as it was until the wheel leaves the ground."""
    sunk = wheel.reach * wheel.fraction - (wheel.length + wheel.radius - RAY_SHORTENED)
    if wheel.ground == ARENA_GROUND and sunk < 0.0:
        speed = wp.dot(wheel.normal, velocity_at(body, wheel.arm))
        return 0.25 * wp.max(0.0, (-0.2 * sunk / DT - speed) / impulse_mass(body, wheel.arm, wheel.normal))
    return before


@wp.func
def spring(wheel: Wheel, body: Body, up: wp.vec3, rebound: float) -> float:
    """Impulse along the ground's normal: stiffness and damping; it only pushes."""
    depth = wheel.reach * wheel.fraction
    squeezed = wheel.length - wp.clamp(depth - wheel.radius, wheel.length - TRAVEL, wheel.length + TRAVEL)
    tilt = wp.dot(wheel.normal, up)
    inverse_tilt = float(10.0)
    closing = float(0.0)
    if tilt > 0.1:
        inverse_tilt = 1.0 / tilt
        closing = wp.dot(wheel.normal, velocity_at(body, wheel.arm)) * inverse_tilt
    damping = DAMPING_OUT
    if closing < 0.0:
        damping = DAMPING_IN
    pressed = (squeezed * STIFFNESS * inverse_tilt - damping * closing) * wheel.force
    if pressed > 0.0:
        return pressed * DT + rebound
    return 0.0


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
        backwards -= wp.dot(back, velocity_at(other, wheel.arm))  # RocketSim takes the place on the car for that on the other
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
