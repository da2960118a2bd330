"""Who is near whom as a tick begins, and so what each car does in it: it flies, drives or is busy."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import CEILING, WALL_X, cell_of, is_in_the_middle
from wavedash.rocket.sim.collision.ball_arena import MORE, ONE_PLANE, what_ball_touches
from wavedash.rocket.sim.collision.mesh_reach import (
    FARTHEST,
    REACH_WORDS,
    extent_of,
    is_near_wall,
    out_of_reach,
    store_reach,
    walls_near,
)
from wavedash.rocket.sim.kernels.lanes import Team
from wavedash.rocket.sim.kernels.memory import AT_WALLS, BALL_ALONE, BALL_ON_PLANE, BUSY, DRIVES, FLIES, Arenas, World
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    HITBOX_WORD,
    MOTION_WORD,
    car_at,
    is_driven,
    load_motion,
    load_pose,
    position_at,
)

wp.set_module_options({"enable_backward": False})

MEETS_BALL = wp.constant(200.0)
"""From a car's origin to the ball's middle: farther, they cannot touch"""
MEETS_CAR = wp.constant(230.0)
"""From car to car: farther, they cannot touch, nor can a wheel stand on the other when that has already moved to the end of the
tick"""


@wp.func
def look_around(world: World, arenas: Arenas, e: int) -> int:
    """Who is near whom as the tick begins, see `Arenas.meeting`."""
    meeting = int(0)
    for c in range(arenas.seats):
        if not is_alone(arenas, e, c, position_at(arenas.words, e, car_at(c))):
            meeting |= 1 << c
    if meeting == 0 and is_ball_awake(arenas.words, e):
        touched = what_ball_touches(world.arena, position_at(arenas.words, e, BALL_AT))
        if touched == MORE:
            meeting = BALL_ALONE
        elif touched == ONE_PLANE:
            meeting = BALL_ON_PLANE
    arenas.meeting[e] = meeting
    return meeting


@wp.func
def way_of(world: World, arenas: Arenas, e: int, c: int, meeting: int) -> int:
    """Whether a car FLIES, DRIVES, is BUSY or AT_WALLS in this tick. Those at walls are busy if `feel_walls` finds something,
    and else go the `free_way`."""
    here = position_at(arenas.words, e, car_at(c))
    if not is_in_the_middle(here):
        cell = cell_of(here)
        if world.arena.first[cell] < world.arena.first[cell + 1]:
            return AT_WALLS
    return free_way(world, arenas, e, c, meeting)


@wp.func
def free_way(world: World, arenas: Arenas, e: int, c: int, meeting: int) -> int:
    """What a car does that can reach no triangle: it FLIES, DRIVES or is BUSY."""
    way = way_by_planes(world, arenas, e, c, meeting)
    if way == BUSY:
        store_reach(arenas.reach, e, c * REACH_WORDS, out_of_reach())
    return way


@wp.func
def way_by_planes(world: World, arenas: Arenas, e: int, c: int, meeting: int) -> int:
    """The same, by where it is."""
    if is_among(meeting, c) or not is_driven(arenas.words, e, c):
        return BUSY
    pose = load_pose(arenas.words, e, car_at(c))
    here = pose.position
    wall = WALL_X - wp.abs(here[0])
    ceiling = CEILING - here[2]
    if here[2] > FARTHEST and ceiling > FARTHEST and wall > FARTHEST:
        return FLIES
    shape = world.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    middle = pose.rotation * shape.around_middle
    extent = extent_of(shape.around_half, pose.rotation)
    if wp.abs(middle[0]) + extent[0] > wall or middle[2] + extent[2] > ceiling:
        return BUSY
    return wp.where(here[2] + middle[2] > extent[2], FLIES, DRIVES)


@wp.func
def can_feel_walls(world: World, arenas: Arenas, e: int, c: int) -> bool:
    """Whether `feel_walls` may find something: a GPU asks first, which takes one thread, not a team."""
    pose = load_pose(arenas.words, e, car_at(c))
    shape = world.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    return is_near_wall(world.arena, shape, pose.position, pose.rotation)


@wp.func
def feel_walls(world: World, arenas: Arenas, e: int, c: int, team: Team) -> bool:
    """What of the walls a car touches or stands on, and whether that is anything."""
    pose = load_pose(arenas.words, e, car_at(c))
    shape = world.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    reach = walls_near(world.arena, shape, pose.position, pose.rotation, team, arenas.listed)
    if team.lane == 0:
        store_reach(arenas.reach, e, c * REACH_WORDS, reach)
    return reach.near > 0


@wp.func
def is_anyone_meeting(meeting: int) -> bool:
    """Whether bodies of an arena may touch."""
    return meeting > 0 and meeting < BALL_ALONE


@wp.func
def is_among(seats: int, seat: int) -> bool:
    """Whether a seat is in a set of them, a bit for each."""
    return (seats >> seat) & 1 == 1


@wp.func
def is_alone(arenas: Arenas, e: int, c: int, here: wp.vec3) -> bool:
    """Whether a car is too far from the ball and all other cars to touch them."""
    if wp.length_sq(here - position_at(arenas.words, e, BALL_AT)) < MEETS_BALL * MEETS_BALL:
        return False
    for other in range(arenas.seats):
        if other != c and wp.length_sq(here - position_at(arenas.words, e, car_at(other))) < MEETS_CAR * MEETS_CAR:
            return False
    return True


@wp.func
def is_ball_awake(words: wp.array2d(dtype=wp.int32), e: int) -> bool:
    """A ball without any motion, as at a kick-off, is left alone."""
    motion = load_motion(words, e, BALL_AT + MOTION_WORD)
    return wp.length_sq(motion.velocity) + wp.length_sq(motion.angular_velocity) > 0.0
