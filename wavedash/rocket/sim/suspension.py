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
NOBODY = wp.constant(-2)


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


mat43 = wp.types.matrix(shape=(4, 3), dtype=wp.float32)


@wp.struct
class Wheels:
    """The four wheels during one tick, a row or number for each: front right, front left, back right, back left."""

    ground: wp.vec4i
    """NOTHING, ARENA_GROUND, or BODY_GROUND: the ball or a car"""
    seat: wp.int32
    """Of the car that wheels stand on; -1: the ball, NOBODY: none. (Of two bodies the later one: both are moving ground.)"""
    mount: mat43
    """Where the suspension begins, from the car's origin"""
    fraction: wp.vec4
    """Of the ray down from the mount, where it meets the ground"""
    normal: mat43
    """Of the ground"""
    arm: mat43
    """Where it touches, from the car's origin"""
    front_axle: wp.vec3
    """To the right of a front wheel, which steers"""
    back_axle: wp.vec3
    spring: wp.vec4
    """Impulse along the normal"""
    grip: mat43
    """Impulse of the tyre"""


@wp.func
def radius_of(shape: CarShape, i: int) -> float:
    """Of a wheel."""
    if i < 2:
        return shape.front_radius
    return shape.back_radius


@wp.func
def length_of(shape: CarShape, i: int) -> float:
    """Of a wheel's suspension at rest."""
    if i < 2:
        return shape.front_length
    return shape.back_length


@wp.func
def reach_of(shape: CarShape, i: int) -> float:
    """Length of the ray down from a wheel's mount."""
    return length_of(shape, i) + TRAVEL + radius_of(shape, i) - RAY_SHORTENED


@wp.func
def axle_of(wheels: Wheels, i: int) -> wp.vec3:
    """To the right of a wheel."""
    if i < 2:
        return wheels.front_axle
    return wheels.back_axle


@wp.struct
class Others:
    """Where a car finds the ball and the other cars of its arena."""

    words: wp.array2d(dtype=wp.int32)
    numbers: wp.array2d(dtype=wp.float32)
    shapes: wp.array(dtype=CarShape)
    e: wp.int32
    seats: wp.int32


@wp.func
def cast_wheels(seat: int, body: Body, shape: CarShape, axles: Axles, arena: Arena, others: Others):
    """Rays down from all four mounts, and what the ground does to each wheel: (wheels, axles). Other bodies are as the tick
    began."""
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    wheels = mounted(shape, body, axles.steer)
    for i in range(4):
        source = body.position + wheels.mount[i]
        found, fraction, normal = ray_hits_planes(source, source - up * reach_of(shape, i))
        if found == 1:
            wheels.ground[i] = ARENA_GROUND
            wheels.fraction[i] = fraction
            wheels.normal[i] = normal
    wheels = find_triangles(wheels, shape, arena, body.position, up)
    if wp.length_sq(place_of(others.numbers, others.e, BALL_AT) - body.position) < NEAR * NEAR:
        wheels = find_ball(wheels, shape, others, body.position, up)
    for k in range(others.seats):
        if k != seat and wp.length_sq(place_of(others.numbers, others.e, car_at(k)) - body.position) < NEAR * NEAR:
            wheels = find_car(wheels, shape, k, others, body.position, up)
    under = Body()
    if wheels.seat >= -1:
        under = body_under(others, wheels.seat)
    for i in range(4):
        if wheels.ground[i] == NOTHING:
            axles.rebound[i] = 0.0
        else:
            depth = reach_of(shape, i) * wheels.fraction[i]
            arm = wheels.mount[i] - up * depth
            normal = wheels.normal[i]
            motion = velocity_at(body, arm)
            speed = wp.dot(normal, motion)
            wheels.arm[i] = arm
            sunk = depth - (length_of(shape, i) + radius_of(shape, i) - RAY_SHORTENED)
            if wheels.ground[i] == ARENA_GROUND and sunk < 0.0:
                axles.rebound[i] = rebound(body, arm, normal, speed, sunk)
            force = FRONT_FORCE
            if i >= 2:
                force = BACK_FORCE
            pressed = spring(wp.dot(normal, up), speed, length_of(shape, i), depth - radius_of(shape, i)) * force
            if pressed > 0.0:
                wheels.spring[i] = pressed * DT + axles.rebound[i]
            on_body = wheels.ground[i] == BODY_GROUND
            wheels.grip[i] = tyre(body, under, on_body, axle_of(wheels, i), arm, motion, normal, axles, i)
    return wheels, axles


@wp.func
def mounted(shape: CarShape, body: Body, steer: float) -> Wheels:
    """Where the four rays begin."""
    wheels = Wheels()
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    wheels.back_axle = right
    wheels.front_axle = right * wp.cos(steer) - forward * wp.sin(steer)
    wheels.fraction = wp.vec4(1.0, 1.0, 1.0, 1.0)
    wheels.seat = NOBODY
    front = shape.front_wheel
    back = shape.back_wheel
    wheels.mount[0] = body.rotation * front
    wheels.mount[1] = body.rotation * wp.vec3(front[0], -front[1], front[2])
    wheels.mount[2] = body.rotation * back
    wheels.mount[3] = body.rotation * wp.vec3(back[0], -back[1], back[2])
    return wheels


@wp.func
def find_triangles(wheels: Wheels, shape: CarShape, arena: Arena, position: wp.vec3, up: wp.vec3) -> Wheels:
    """Curves, corners, back walls and goals under all four wheels."""
    cell = cell_of(position)
    for k in range(arena.first[cell], arena.first[cell + 1]):
        plane = arena.planes[k]
        normal = wp.vec3(plane[0], plane[1], plane[2])
        height = wp.dot(normal, position) - plane[3]
        slope = wp.dot(normal, up)
        for i in range(4):
            before = height + wp.dot(normal, wheels.mount[i])
            after = before - slope * reach_of(shape, i)
            if before * after < 0.0:
                fraction = before / (before - after)
                if fraction < wheels.fraction[i]:
                    point = position + wheels.mount[i] - up * (reach_of(shape, i) * fraction)
                    if is_inside(arena.triangles[arena.items[k]], point):
                        wheels.ground[i] = ARENA_GROUND
                        wheels.fraction[i] = fraction
                        wheels.normal[i] = normal * wp.sign(before)
    return wheels


@wp.func
def find_ball(wheels: Wheels, shape: CarShape, others: Others, position: wp.vec3, up: wp.vec3) -> Wheels:
    """The ball under the wheels."""
    center = place_of(others.numbers, others.e, BALL_AT)
    for i in range(4):
        source = position + wheels.mount[i]
        found, fraction, normal = ray_hits_sphere(source, source - up * reach_of(shape, i), center)
        if found == 1 and fraction < wheels.fraction[i]:
            wheels.ground[i] = BODY_GROUND
            wheels.fraction[i] = fraction
            wheels.normal[i] = normal
            wheels.seat = -1
    return wheels


@wp.func
def find_car(wheels: Wheels, shape: CarShape, k: int, others: Others, position: wp.vec3, up: wp.vec3) -> Wheels:
    """The car in seat k under the wheels."""
    car = load_car(others.words, others.e, car_at(k))
    if car.present and not car.is_demoed:
        for i in range(4):
            source = position + wheels.mount[i]
            found, fraction, normal = ray_hits_box(source, source - up * reach_of(shape, i), car.position, car.rotation,
                                                   others.shapes[car.hitbox])
            if found == 1 and fraction < wheels.fraction[i]:
                wheels.ground[i] = BODY_GROUND
                wheels.fraction[i] = fraction
                wheels.normal[i] = normal
                wheels.seat = k
    return wheels


@wp.func
def body_under(others: Others, seat: int) -> Body:
    """The car in a seat, or the ball (-1)."""
    if seat < 0:
        return ball_body(load_ball(others.words, others.e, BALL_AT))
    car = load_car(others.words, others.e, car_at(seat))
    return car_body(car, others.shapes[car.hitbox])


@wp.func
def rebound(body: Body, arm: wp.vec3, normal: wp.vec3, speed: float, sunk: float) -> float:
    """Impulse against a wheel that is deep in the arena (`sunk` is negative). It stays as it was until the wheel leaves the
    ground."""
    return 0.25 * wp.max(0.0, (-0.2 * sunk / DT - speed) / impulse_mass(body, arm, normal))


@wp.func
def spring(tilt: float, speed: float, length: float, stretched: float) -> float:
    """Stiffness and damping of a suspension: cosine between the ground's normal and the car's up, speed along the normal, its
    length at rest and now."""
    squeezed = length - wp.clamp(stretched, length - TRAVEL, length + TRAVEL)
    inverse_tilt = float(10.0)
    closing = float(0.0)
    if tilt > 0.1:
        inverse_tilt = 1.0 / tilt
        closing = speed * inverse_tilt
    damping = DAMPING_OUT
    if closing < 0.0:
        damping = DAMPING_IN
    return squeezed * STIFFNESS * inverse_tilt - damping * closing


@wp.func
def tyre(
    body: Body, other: Body, on_other: bool, side_axle: wp.vec3, arm: wp.vec3, motion: wp.vec3, normal: wp.vec3, axles: Axles,
    i: int,
) -> wp.vec3:
    """Impulse of a tyre on the arena or on another body: it rolls along, driven or braked, and grips sideways."""
    axle = wp.normalize(side_axle - normal * wp.dot(side_axle, normal))
    back = wp.cross(normal, axle)
    sideways = wp.dot(axle, motion)
    backwards = wp.dot(back, motion)
    inverse_mass = impulse_mass(body, arm, axle)
    if on_other:
        other_arm = body.position + arm - other.position
        sideways -= wp.dot(axle, velocity_at(other, other_arm))
        backwards -= wp.dot(back, velocity_at(other, arm))  # RocketSim takes the place on the car for that on the other
        inverse_mass += impulse_mass(other, other_arm, axle)
    side = -SIDE_GRIP * sideways / inverse_mass
    roll = float(0.0)
    if axles.engine != 0.0:
        roll = -axles.engine / (CAR_MASS / 3.0)
    elif axles.brake > 0.0:
        roll = wp.clamp(-backwards * BRAKE_RATE, -axles.brake, axles.brake)
    return (back * (roll * axles.roll_grip[i]) + axle * (side * axles.side_grip[i])) * (CAR_MASS / 3.0 * DT)


@wp.func
def press_wheels(wheels: Wheels, body: Body) -> Body:
    """Springs and tyres act on the car; tyres at the height of its origin, so that it does not roll over."""
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    total = wp.vec3()
    turning = wp.vec3()
    for i in range(4):
        if wheels.ground[i] != NOTHING:
            push = wheels.normal[i] * wheels.spring[i]
            level = wheels.arm[i] - up * wp.dot(up, wheels.arm[i])
            total = total + push + wheels.grip[i]
            turning = turning + wp.cross(wheels.arm[i], push) + wp.cross(level, wheels.grip[i])
    return hit(body, total, turning)


@wp.func
def ground_normal(wheels: Wheels, up: wp.vec3) -> wp.vec3:
    """Mean over the wheels that touch, `up` where none does."""
    total = wp.vec3()
    for i in range(4):
        if wheels.ground[i] != NOTHING:
            total = total + wheels.normal[i]
    if wp.length_sq(total) > 0.0:
        return wp.normalize(total)
    return up
