"""Rays down from a car's four wheels, which find what they stand on."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import ArenaGeometry, plane_of, ray_hits_planes
from wavedash.rocket.sim.collision.bodies import Body, ball_body, car_body
from wavedash.rocket.sim.collision.mesh_reach import MeshReach
from wavedash.rocket.sim.collision.rays import ray_hits_box, ray_hits_sphere
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import BALL_AT, car_at, load_ball, load_car, load_position
from wavedash.rocket.sim.mechanics.wheels import ray_length, wheel_mount

wp.set_module_options({"enable_backward": False})

NEAR = wp.constant(200.0)
"""uu from car to car or ball beyond which no wheel stands on the other"""
NO_GROUND = wp.constant(0)
ARENA_GROUND = wp.constant(1)
BODY_GROUND = wp.constant(2)
NO_BODY = wp.constant(-2)

mat43 = wp.types.matrix(shape=(4, 3), dtype=wp.float32)


@wp.struct
class WheelHits:
    """What the four wheels stand on, in the order front right, front left, back right, back left."""

    ground: wp.vec4i
    """NO_GROUND, ARENA_GROUND, or BODY_GROUND: the ball or a car"""
    seat: wp.int32
    """Seat of the car that wheels stand on; -1: the ball, NO_BODY: none. Where wheels stand on two bodies, the later counts."""
    fraction: wp.vec4
    """Fraction of the ray down from the mount at which it hits the ground"""
    normal: mat43
    """Normals of the ground"""


@wp.struct
class OtherBodies:
    """Access to the ball and the cars of an arena."""

    words: wp.array2d(dtype=wp.int32)
    shapes: wp.array(dtype=CarShape)
    e: wp.int32
    seats: wp.int32


@wp.func
def mount_arm(shape: CarShape, rotation: wp.mat33, i: int) -> wp.vec3:
    """Vector from the car's origin to where a wheel's suspension begins, in world axes."""
    return rotation * wheel_mount(shape, i)


@wp.func
def cast_wheel_rays(
    seat: int, body: Body, shape: CarShape, arena: ArenaGeometry, reach: MeshReach, others: OtherBodies, may_collide: bool
) -> WheelHits:
    """Finds what is under all four wheels. Other bodies are where they were as the tick began; they are skipped where the car
    cannot collide."""
    hits = no_hits()
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    mounts = mat43()
    for i in range(4):
        mounts[i] = mount_arm(shape, body.rotation, i)
    hits = add_plane_hits(hits, shape, mounts, body.position, up)
    hits = add_mesh_hits(hits, reach, shape, mounts, arena, body.position)
    if may_collide:
        hits = add_body_hits(hits, shape, mounts, seat, others, body.position, up)
    return hits


@wp.func
def no_hits() -> WheelHits:
    """The result with no ground under any wheel."""
    hits = WheelHits()
    hits.seat = NO_BODY
    hits.fraction = wp.vec4(1.0, 1.0, 1.0, 1.0)
    return hits


@wp.func
def cast_rays_at_floor(shape: CarShape, body: Body) -> WheelHits:
    """Finds the floor under all four wheels of a car that only the floor is near."""
    hits = no_hits()
    for i in range(4):
        before = body.position[2] + mount_arm(shape, body.rotation, i)[2]
        after = before - body.rotation[2, 2] * ray_length(shape, i)
        if before * after < 0.0:
            hits.ground[i] = ARENA_GROUND
            hits.fraction[i] = before / (before - after)
            hits.normal[i] = wp.vec3(0.0, 0.0, wp.sign(before))
    return hits


@wp.func
def add_plane_hits(hits: WheelHits, shape: CarShape, mounts: mat43, position: wp.vec3, up: wp.vec3) -> WheelHits:
    """Adds floor, ceiling and side walls under all four wheels."""
    for i in range(4):
        source = position + mounts[i]
        found, fraction, normal = ray_hits_planes(source, source - up * ray_length(shape, i))
        if found == 1:
            hits.ground[i] = ARENA_GROUND
            hits.fraction[i] = fraction
            hits.normal[i] = normal
    return hits


@wp.func
def add_mesh_hits(
    hits: WheelHits, reach: MeshReach, shape: CarShape, mounts: mat43, arena: ArenaGeometry, position: wp.vec3
) -> WheelHits:
    """Adds curves, corners, back walls and goals under all four wheels."""
    for i in range(4):
        if reach.fraction[i] < hits.fraction[i]:
            plane = plane_of(arena.planes, reach.item[i])
            normal = wp.vec3(plane[0], plane[1], plane[2])
            hits.ground[i] = ARENA_GROUND
            hits.fraction[i] = reach.fraction[i]
            hits.normal[i] = normal * wp.sign(wp.dot(normal, position + mounts[i]) - plane[3])
    return hits


@wp.func
def add_body_hits(
    hits: WheelHits, shape: CarShape, mounts: mat43, seat: int, others: OtherBodies, position: wp.vec3, up: wp.vec3
) -> WheelHits:
    """Adds the ball and the other cars under all four wheels."""
    if wp.length_sq(load_position(others.words, others.e, BALL_AT) - position) < NEAR * NEAR:
        hits = add_ball_hits(hits, shape, mounts, others, position, up)
    for k in range(others.seats):
        if k != seat and wp.length_sq(load_position(others.words, others.e, car_at(k)) - position) < NEAR * NEAR:
            hits = add_car_hits(hits, shape, mounts, k, others, position, up)
    return hits


@wp.func
def add_ball_hits(
    hits: WheelHits, shape: CarShape, mounts: mat43, others: OtherBodies, position: wp.vec3, up: wp.vec3
) -> WheelHits:
    """Adds the ball under the wheels."""
    center = load_position(others.words, others.e, BALL_AT)
    for i in range(4):
        source = position + mounts[i]
        found, fraction, normal = ray_hits_sphere(source, source - up * ray_length(shape, i), center)
        if found == 1 and fraction < hits.fraction[i]:
            hits.ground[i] = BODY_GROUND
            hits.fraction[i] = fraction
            hits.normal[i] = normal
            hits.seat = -1
    return hits


@wp.func
def add_car_hits(
    hits: WheelHits, shape: CarShape, mounts: mat43, k: int, others: OtherBodies, position: wp.vec3, up: wp.vec3
) -> WheelHits:
    """Adds the car in seat k under the wheels."""
    car = load_car(others.words, others.e, car_at(k))
    if car.present and not car.is_demoed:
        for i in range(4):
            source = position + mounts[i]
            found, fraction, normal = ray_hits_box(source, source - up * ray_length(shape, i), car.position, car.rotation,
                                                   others.shapes[car.hitbox])
            if found == 1 and fraction < hits.fraction[i]:
                hits.ground[i] = BODY_GROUND
                hits.fraction[i] = fraction
                hits.normal[i] = normal
                hits.seat = k
    return hits


@wp.func
def body_below(others: OtherBodies, seat: int) -> Body:
    """The body of the car in a seat, or of the ball (-1)."""
    if seat < 0:
        return ball_body(load_ball(others.words, others.e, BALL_AT))
    car = load_car(others.words, others.e, car_at(seat))
    return car_body(car, others.shapes[car.hitbox])
