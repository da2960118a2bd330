"""What kernels are handed: the field that all arenas share, and the memory of all arenas."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import Arena
from wavedash.rocket.sim.collision.car_arena import MOST_CAR_CONTACTS
from wavedash.rocket.sim.collision.contacts import Contact, Touch
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.solver import Row
from wavedash.rocket.sim.limits import Safety
from wavedash.rocket.sim.mechanics.pads import PadTable

BALL_ALONE, BALL_ON_PLANE = wp.constant(1 << 16), wp.constant(1 << 17)
"""In `Arenas.meeting`"""
PER_CAR = wp.constant(MOST_CAR_CONTACTS)
"""Places in the list of contacts that each car has for those with the arena; behind them come all others"""
FLIES, DRIVES, BUSY, AT_WALLS = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
"""What a car does in a tick. It flies: out of reach of everything. It drives: it can reach the floor, and nothing else. In both
cases it concerns nobody. All others are busy: near walls, the ball or another car, or demolished. At walls: there are triangles
around, and which of the three it is depends on what of them is within reach."""
FEELING, TOUCHING, MEETING, BOUNCING = wp.constant(4), wp.constant(5), wp.constant(6), wp.constant(7)
"""Lists of a tick, behind those of cars by what they do: cars that may feel walls, cars that may touch the arena, arenas
where bodies meet, and arenas where the ball is at a wall"""
LISTS = 8


@wp.struct
class World:
    """What all arenas share."""

    arena: Arena
    shapes: wp.array(dtype=CarShape)
    pads: PadTable
    safety: Safety


@wp.struct
class Arenas:
    """What E arenas with C seats are made of. Words and numbers are the same memory, as integers and as floats."""

    words: wp.array2d(dtype=wp.int32)
    """[E, W]: the records of the game state"""
    numbers: wp.array2d(dtype=wp.float32)
    axles: wp.array2d(dtype=wp.int32)
    """[E, C * words]: remembered from tick to tick, as is"""
    matches: wp.array2d(dtype=wp.int32)
    """[E, words]"""
    controls: wp.array2d(dtype=wp.int32)
    """[E, C * words]: commands of the step"""
    before: wp.array2d(dtype=wp.int32)
    """[E, C * words]: those of the step before, in force until the delay is over"""
    done: wp.array(dtype=wp.int32)
    """[E] ticks of the step so far"""
    held: wp.array2d(dtype=wp.int32)
    """[E, C] pad on which a car stands, -1: none"""
    bodies: wp.array2d(dtype=wp.int32)
    """[E, (1 + C) * words] of the tick: the ball, then the cars"""
    touching: wp.array2d(dtype=wp.int32)
    """[E, 1 + C] how many contacts the ball and the cars have with the arena"""
    reach: wp.array2d(dtype=wp.int32)
    """[E, C * words] of the tick: what of the walls busy cars can reach"""
    meeting: wp.array(dtype=wp.int32)
    """[E] which cars may touch each other or the ball in this tick, a bit for each seat; BALL_ALONE: none, but the ball
    touches more than a plane; BALL_ON_PLANE: none, and it touches just one; 0: a tick without collisions"""
    contacts: wp.array2d(dtype=Contact)
    rows: wp.array2d(dtype=Row)
    wall_rows: wp.array2d(dtype=wp.int32)
    """[E, contacts * words]: of bodies that touch nothing but the arena"""
    lists: wp.array2d(dtype=wp.int32)
    """[LISTS, E * C]: on a GPU, who does what in the tick, in any order, so that neighbouring threads have the same to do"""
    many: wp.array2d(dtype=wp.int32)
    """[LISTS, ticks]: how many there are, by tick of the step"""
    touches: wp.array(dtype=Touch)
    """[threads], and [teams, ...] below: room for what they find in a team (`lanes.py`). On a CPU a team works on an arena."""
    listed: wp.array2d(dtype=wp.int32)
    bad: wp.array(dtype=wp.int32)
    """[E]: how often an arena had to begin again"""
    seats: wp.int32
