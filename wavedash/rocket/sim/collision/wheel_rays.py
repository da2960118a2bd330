"""Rays down from a car's four wheels: what they stand on."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import Arena, plane_of, ray_hits_planes
from wavedash.rocket.sim.collision.bodies import Body, ball_body, car_body
from wavedash.rocket.sim.collision.mesh_reach import Reach
from wavedash.rocket.sim.collision.rays import ray_hits_box, ray_hits_sphere
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import BALL_AT, car_at, load_ball, load_car, position_at
from wavedash.rocket.sim.mechanics.wheels import reach_of, wheel_of

wp.set_module_options({"enable_backward": False})

NEAR = wp.constant(200.0)
"""From car to car or ball, beyond which no wheel stands on the other"""
NOTHING = wp.constant(0)
ARENA_GROUND = wp.constant(1)
BODY_GROUND = wp.constant(2)
NOBODY = wp.constant(-2)

mat43 = wp.types.matrix(shape=(4, 3), dtype=wp.float32)


@wp.struct
class Wheels:
    """What the four wheels stand on, a row or number for each: front right, front left, back right, back left."""

    ground: wp.vec4i
    """NOTHING, ARENA_GROUND, or BODY_GROUND: the ball or a car"""
    seat: wp.int32
    """Of the car that wheels stand on; -1: the ball, NOBODY: none. (Of two bodies the later one: both are moving ground.)"""
    fraction: wp.vec4
    """Of the ray down from the mount, where it meets the ground"""
    normal: mat43
    """Of the ground"""


@wp.struct
class Others:
    """Where a car finds the ball and the other cars of its arena."""

    words: wp.array2d(dtype=wp.int32)
    shapes: wp.array(dtype=CarShape)
    e: wp.int32
    seats: wp.int32


@wp.func
def mount_of(shape: CarShape, rotation: wp.mat33, i: int) -> wp.vec3:
    """Where a wheel's suspension begins, from the car's origin, in the world's axes."""
    return rotation * wheel_of(shape, i)


@wp.func
def find_ground(seat: int, body: Body, shape: CarShape, arena: Arena, reach: Reach, others: Others, meets: bool) -> Wheels:
    """Under all four wheels. Other bodies are as the tick began; where the car `meets` none, they are far away."""
    wheels = no_ground()
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    mounts = mat43()
    for i in range(4):
        mounts[i] = mount_of(shape, body.rotation, i)
    wheels = find_planes(wheels, shape, mounts, body.position, up)
    wheels = find_walls(wheels, reach, shape, mounts, arena, body.position)
    if meets:
        wheels = find_bodies(wheels, shape, mounts, seat, others, body.position, up)
    return wheels


@wp.func
def no_ground() -> Wheels:
    """Under any wheel."""
    wheels = Wheels()
    wheels.seat = NOBODY
    wheels.fraction = wp.vec4(1.0, 1.0, 1.0, 1.0)
    return wheels


@wp.func
def find_floor(shape: CarShape, body: Body) -> Wheels:
    """Under all four wheels, where nothing else is near."""
    wheels = no_ground()
    for i in range(4):
        before = body.position[2] + mount_of(shape, body.rotation, i)[2]
        after = before - body.rotation[2, 2] * reach_of(shape, i)
        if before * after < 0.0:
            wheels.ground[i] = ARENA_GROUND
            wheels.fraction[i] = before / (before - after)
            wheels.normal[i] = wp.vec3(0.0, 0.0, wp.sign(before))
    return wheels


@wp.func
def find_planes(wheels: Wheels, shape: CarShape, mounts: mat43, position: wp.vec3, up: wp.vec3) -> Wheels:
    """Floor, ceiling and side walls under all four wheels."""
    for i in range(4):
        source = position + mounts[i]
        found, fraction, normal = ray_hits_planes(source, source - up * reach_of(shape, i))
        if found == 1:
            wheels.ground[i] = ARENA_GROUND
            wheels.fraction[i] = fraction
            wheels.normal[i] = normal
    return wheels


@wp.func
def find_walls(wheels: Wheels, reach: Reach, shape: CarShape, mounts: mat43, arena: Arena, position: wp.vec3) -> Wheels:
    """Curves, corners, back walls and goals under all four wheels."""
    for i in range(4):
        if reach.fraction[i] < wheels.fraction[i]:
            plane = plane_of(arena.planes, reach.item[i])
            normal = wp.vec3(plane[0], plane[1], plane[2])
            wheels.ground[i] = ARENA_GROUND
            wheels.fraction[i] = reach.fraction[i]
            wheels.normal[i] = normal * wp.sign(wp.dot(normal, position + mounts[i]) - plane[3])
    return wheels


@wp.func
def find_bodies(
    wheels: Wheels, shape: CarShape, mounts: mat43, seat: int, others: Others, position: wp.vec3, up: wp.vec3
) -> Wheels:
    """The ball and the other cars under all four wheels."""
    if wp.length_sq(position_at(others.words, others.e, BALL_AT) - position) < NEAR * NEAR:
        wheels = find_ball(wheels, shape, mounts, others, position, up)
    for k in range(others.seats):
        if k != seat and wp.length_sq(position_at(others.words, others.e, car_at(k)) - position) < NEAR * NEAR:
            wheels = find_car(wheels, shape, mounts, k, others, position, up)
    return wheels


@wp.func
def find_ball(wheels: Wheels, shape: CarShape, mounts: mat43, others: Others, position: wp.vec3, up: wp.vec3) -> Wheels:
    """The ball under the wheels."""
    center = position_at(others.words, others.e, BALL_AT)
    for i in range(4):
        source = position + mounts[i]
        found, fraction, normal = ray_hits_sphere(source, source - up * reach_of(shape, i), center)
        if found == 1 and fraction < wheels.fraction[i]:
            wheels.ground[i] = BODY_GROUND
            wheels.fraction[i] = fraction
            wheels.normal[i] = normal
            wheels.seat = -1
    return wheels


@wp.func
def find_car(wheels: Wheels, shape: CarShape, mounts: mat43, k: int, others: Others, position: wp.vec3, up: wp.vec3) -> Wheels:
    """The car in seat k under the wheels."""
    car = load_car(others.words, others.e, car_at(k))
    if car.present and not car.is_demoed:
        for i in range(4):
            source = position + mounts[i]
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
