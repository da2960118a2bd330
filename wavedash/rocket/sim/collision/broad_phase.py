"""The broad phase: it finds the bodies that are close to each other as a tick begins, and sorts cars into classes."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.classes import (
    BALL_BOUNCING,
    COLLIDING,
    DRIVING,
    FLYING,
    IN_CONTACT,
    MESH_IN_REACH,
    NEAR_MESH,
    NO_CLASS,
)
from wavedash.rocket.sim.collision.arena import cell_of, is_over_open_floor
from wavedash.rocket.sim.collision.ball_arena import ON_MESH, ON_PLANE, classify_ball
from wavedash.rocket.sim.collision.mesh_reach import (
    CAR_REACH,
    MESH_REACH_WORDS,
    aabb_half_size,
    is_mesh_near,
    mesh_in_reach,
    no_mesh_in_reach,
    store_mesh_reach,
)
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X
from wavedash.rocket.sim.kernels.lanes import Lanes
from wavedash.rocket.sim.kernels.memory import BALL_ON_MESH, BALL_ON_PLANE, Arenas, Model
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    HITBOX_WORD,
    MOTION_WORD,
    car_at,
    is_active,
    load_motion,
    load_pose,
    load_position,
)

wp.set_module_options({"enable_backward": False})

BALL_RANGE = wp.constant(200.0)
"""uu from a car's origin to the ball's center beyond which they cannot touch"""
CAR_RANGE = wp.constant(230.0)
"""uu from car to car beyond which they cannot touch, and no wheel can stand on the other car even after it has moved to the end
of the tick"""


# Stages -----------------------------------------------------------------------------------------------------------------------


@wp.func
def find_close_bodies(model: Model, arenas: Arenas, e: int, lanes: Lanes) -> int:
    """Writes `Arenas.collision_mask`. Returns the class of the arena: COLLIDING, BALL_BOUNCING or NO_CLASS."""
    mask = int(0)
    for c in range(arenas.seats):
        if not is_far_from_others(arenas, e, c, load_position(arenas.words, e, car_at(c))):
            mask |= 1 << c
    arena_class = int(NO_CLASS)
    if mask != 0:
        arena_class = COLLIDING
    elif is_ball_awake(arenas.words, e):
        touched = classify_ball(model.arena, load_position(arenas.words, e, BALL_AT))
        if touched == ON_MESH:
            mask = BALL_ON_MESH
            arena_class = BALL_BOUNCING
        elif touched == ON_PLANE:
            mask = BALL_ON_PLANE
    arenas.collision_mask[e] = mask
    return arena_class


@wp.func
def classify_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes) -> int:
    """The class of a car: FLYING, DRIVING, IN_CONTACT, or NEAR_MESH, which a later stage decides."""
    here = load_position(arenas.words, e, car_at(c))
    if not is_over_open_floor(here):
        cell = cell_of(here)
        if model.arena.first[cell] < model.arena.first[cell + 1]:
            return NEAR_MESH
    return classify_off_mesh(model, arenas, e, c)


@wp.func
def rule_out_mesh(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes) -> int:
    """One thread tests the triangles around a car: if none can be within reach, the car is classified as if there were none."""
    pose = load_pose(arenas.words, e, car_at(c))
    shape = model.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    if is_mesh_near(model.arena, shape, pose.position, pose.rotation):
        return MESH_IN_REACH
    return classify_off_mesh(model, arenas, e, c)


@wp.func
def find_mesh_in_reach(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes) -> int:
    """Writes which triangles a car's body may touch and which its wheels stand on. Returns the class of the car, on lane 0."""
    pose = load_pose(arenas.words, e, car_at(c))
    shape = model.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    reach = mesh_in_reach(model.arena, shape, pose.position, pose.rotation, lanes, arenas.candidates)
    car_class = int(IN_CONTACT)
    if lanes.lane == 0:
        store_mesh_reach(arenas.mesh_reach, e, c * MESH_REACH_WORDS, reach)
        if reach.near == 0:
            car_class = classify_off_mesh(model, arenas, e, c)
    return car_class


# Helpers of the stages --------------------------------------------------------------------------------------------------------


@wp.func
def classify_off_mesh(model: Model, arenas: Arenas, e: int, c: int) -> int:
    """The class of a car that can reach no triangle: FLYING, DRIVING or IN_CONTACT."""
    car_class = classify_by_planes(model, arenas, e, c)
    if car_class == IN_CONTACT:
        store_mesh_reach(arenas.mesh_reach, e, c * MESH_REACH_WORDS, no_mesh_in_reach())
    return car_class


@wp.func
def classify_by_planes(model: Model, arenas: Arenas, e: int, c: int) -> int:
    """The same class, decided by other bodies, floor, ceiling and side walls."""
    if is_in_mask(arenas.collision_mask[e], c) or not is_active(arenas.words, e, c):
        return IN_CONTACT
    pose = load_pose(arenas.words, e, car_at(c))
    here = pose.position
    wall = ARENA_WALL_X - wp.abs(here[0])
    ceiling = ARENA_CEILING_Z - here[2]
    if here[2] > CAR_REACH and ceiling > CAR_REACH and wall > CAR_REACH:
        return FLYING
    shape = model.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    center = pose.rotation * shape.bounds_center
    extent = aabb_half_size(shape.bounds_half, pose.rotation)
    if wp.abs(center[0]) + extent[0] > wall or center[2] + extent[2] > ceiling:
        return IN_CONTACT
    return wp.where(here[2] + center[2] > extent[2], FLYING, DRIVING)


@wp.func
def is_in_mask(mask: int, seat: int) -> bool:
    """Whether the bit of a seat is set."""
    return (mask >> seat) & 1 == 1


@wp.func
def is_far_from_others(arenas: Arenas, e: int, c: int, here: wp.vec3) -> bool:
    """Whether a car is too far from the ball and all other cars to touch them."""
    if wp.length_sq(here - load_position(arenas.words, e, BALL_AT)) < BALL_RANGE * BALL_RANGE:
        return False
    for other in range(arenas.seats):
        if other != c and wp.length_sq(here - load_position(arenas.words, e, car_at(other))) < CAR_RANGE * CAR_RANGE:
            return False
    return True


@wp.func
def is_ball_awake(words: wp.array2d(dtype=wp.int32), e: int) -> bool:
    """Whether the ball moves or spins. A ball at rest, as at a kick-off, floats until something moves it."""
    motion = load_motion(words, e, BALL_AT + MOTION_WORD)
    return wp.length_sq(motion.velocity) + wp.length_sq(motion.angular_velocity) > 0.0
