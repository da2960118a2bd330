"""The two arguments of every kernel: the model of the game, which all arenas share, and the memory of the arenas."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import ArenaGeometry
from wavedash.rocket.sim.collision.car_arena import MAX_CAR_CONTACTS
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.solver import Constraint
from wavedash.rocket.sim.limits import StateLimits
from wavedash.rocket.sim.mechanics.pads import PadTable

BALL_ON_MESH, BALL_ON_PLANE = wp.constant(1 << 16), wp.constant(1 << 17)
"""Values of `Arenas.collision_mask` where no car is near the ball or another car"""
CONTACTS_PER_CAR = wp.constant(MAX_CAR_CONTACTS)
"""Entries of `Arenas.contacts` that each car has for contacts with the arena; all other contacts come after these"""


@wp.struct
class Model:
    """Geometry and rules that all arenas share."""

    arena: ArenaGeometry
    shapes: wp.array(dtype=CarShape)
    pads: PadTable
    limits: StateLimits


@wp.struct
class Arenas:
    """The memory of E arenas with C seats. `words` and `floats` are the same memory, as integers and as floats."""

    words: wp.array2d(dtype=wp.int32)
    """[E, W]: the records of the game state"""
    floats: wp.array2d(dtype=wp.float32)
    drivetrain: wp.array2d(dtype=wp.int32)
    """[E, C * words]: what cars remember from tick to tick (`mechanics/suspension.py`)"""
    scoring: wp.array2d(dtype=wp.int32)
    """[E, words]: what arenas remember from tick to tick (`mechanics/scoring.py`)"""
    controls: wp.array2d(dtype=wp.int32)
    """[E, C * words]: controls of the step"""
    previous_controls: wp.array2d(dtype=wp.int32)
    """[E, C * words]: controls of the previous step, in force until the delay is over"""
    ticks_done: wp.array(dtype=wp.int32)
    """[E]: ticks of the step so far"""
    held_pad: wp.array2d(dtype=wp.int32)
    """[E, C]: the pad on which a car stands, -1: none"""
    bodies: wp.array2d(dtype=wp.int32)
    """[E, (1 + C) * words], within a tick: the ball, then the cars"""
    arena_contact_count: wp.array2d(dtype=wp.int32)
    """[E, 1 + C], within a tick: how many contacts the ball and the cars have with the arena"""
    mesh_reach: wp.array2d(dtype=wp.int32)
    """[E, C * words], within a tick: triangles that cars in contact can reach"""
    collision_mask: wp.array(dtype=wp.int32)
    """[E], within a tick: which cars may touch each other or the ball, a bit for each seat. BALL_ON_MESH: no car does, but the
    ball touches more of the arena than one plane. BALL_ON_PLANE: no car does, and the ball touches one plane. 0: nothing
    collides."""
    contacts: wp.array2d(dtype=Contact)
    """[E, contacts], within a tick"""
    constraints: wp.array2d(dtype=Constraint)
    """[E, contacts], within a tick: where bodies touch each other"""
    arena_constraints: wp.array2d(dtype=wp.int32)
    """[E, contacts * words], within a tick: constraints of bodies that touch nothing but the arena"""
    lists: wp.array2d(dtype=wp.int32)
    """[classes, E * C]: cars or arenas of each class, in any order; used where each stage is a launch"""
    list_lengths: wp.array2d(dtype=wp.int32)
    """[classes, ticks]: lengths of the lists, by tick of the step"""
    lane_touches: wp.array(dtype=TriangleTouch)
    """[threads]: work memory in which lanes exchange what they found (`lanes.py`)"""
    candidates: wp.array2d(dtype=wp.int32)
    """[threads / lanes, MAX_CANDIDATES]: work memory for the triangles that lanes share"""
    reset_count: wp.array(dtype=wp.int32)
    """[E]: how often an arena was invalid and had to begin again"""
    seats: wp.int32
