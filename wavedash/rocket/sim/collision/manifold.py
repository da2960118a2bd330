"""How many contacts count: a body keeps four points of every mesh that it touches.

Bullet keeps such points for as long as they touch; RocketSim's broad phase throws them away after every tick, so that nothing
has to be remembered here. Within a tick Bullet's rule says which point gives way to the fifth: the one without which the others
span most, though never the deepest.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.constants import POINTS_PER_MESH

wp.set_module_options({"enable_backward": False})


@wp.func
def spanned_area(contacts: wp.array2d(dtype=Contact), e: int, new: Contact, i: int, j: int, k: int) -> float:
    """The square of twice the area between two of the lines that join a new point and three old ones."""
    return wp.length_sq(wp.cross(new.arm_a - contacts[e, i].arm_a, contacts[e, k].arm_a - contacts[e, j].arm_a))


@wp.func
def point_to_replace(contacts: wp.array2d(dtype=Contact), e: int, first: int, new: Contact) -> int:
    """Which of the four points from `first` on gives way to a new one."""
    deepest = int(-1)
    depth = new.distance
    for i in range(POINTS_PER_MESH):
        if contacts[e, first + i].distance < depth:
            deepest = i
            depth = contacts[e, first + i].distance
    spans = wp.vec4(
        spanned_area(contacts, e, new, first + 1, first + 2, first + 3),
        spanned_area(contacts, e, new, first, first + 2, first + 3),
        spanned_area(contacts, e, new, first, first + 1, first + 3),
        spanned_area(contacts, e, new, first, first + 1, first + 2),
    )
    best = int(0)
    widest = float(-1.0)
    for i in range(POINTS_PER_MESH):
        width = spans[i]
        if i == deepest:
            width = 0.0
        if width > widest:
            best = i
            widest = width
    return first + best


@wp.func
def add_to_manifold(contacts: wp.array2d(dtype=Contact), e: int, first: int, count: int, room: int, new: Contact) -> int:
    """Adds a point to those of a mesh, the contacts first ... count - 1 of a row. Returns the new count, `room` at most."""
    if count < first + POINTS_PER_MESH:
        if count < room:
            contacts[e, count] = new
            count += 1
    else:
        contacts[e, point_to_replace(contacts, e, first, new)] = new
    return count
