"""The memory of the simulator in bytes, from the layout in kernels/partition.py. A test compares both."""
from __future__ import annotations

import ctypes

from wavedash.rocket.sim.classes import CLASS_COUNT
from wavedash.rocket.sim.collision.arena_solver import ArenaConstraint
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch, max_arena_contacts, max_contacts
from wavedash.rocket.sim.collision.mesh_reach import MAX_CANDIDATES, MeshReach
from wavedash.rocket.sim.collision.solver import Constraint
from wavedash.rocket.sim.kernels.partition import LANES, MAX_THREADS, MAX_TICKS
from wavedash.rocket.sim.kernels.struct_io import stride_of
from wavedash.rocket.sim.mechanics.scoring import ScoringMemory
from wavedash.rocket.sim.mechanics.suspension import DRIVETRAIN_WORDS
from wavedash.rocket.state import CONTROLS, WORD

TOUCH = ctypes.sizeof(TriangleTouch.ctype)


def kept_bytes(seats: int) -> int:
    """Counts what an arena remembers from tick to tick, beside its record: drivetrains, scoring, controls of the step
    before."""
    return WORD * (seats * (DRIVETRAIN_WORDS + len(CONTROLS)) + stride_of(ScoringMemory))


def work_bytes(seats: int) -> int:
    """Counts what an arena needs within a step: controls, contacts, and the constraints that are solved for them."""
    contacts = max_contacts(seats) * (ctypes.sizeof(Contact.ctype) + ctypes.sizeof(Constraint.ctype))
    words = (
        seats * len(CONTROLS)
        + 3 + seats + (1 + seats)  # resets, ticks, who collides; pads; numbers of contacts
        + seats * stride_of(MeshReach)
        + (1 + seats) * stride_of(Body)
        + max_arena_contacts(seats) * stride_of(ArenaConstraint)
        + CLASS_COUNT * seats
    )
    return contacts + WORD * words


def shared_bytes(arenas: int, gpu: bool) -> int:
    """Counts what the threads of a launch need: all of them on a GPU, one for each arena on a CPU."""
    threads, lanes = (MAX_THREADS, LANES) if gpu else (arenas, 1)
    return threads * TOUCH + threads // lanes * MAX_CANDIDATES * WORD + CLASS_COUNT * MAX_TICKS * WORD
