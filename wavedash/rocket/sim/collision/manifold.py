"""Manifolds: a body keeps at most four contact points with every mesh that it touches.

Bullet keeps such points for as long as they touch; RocketSim's broad phase discards them after every tick, so that nothing is
remembered here. Within a tick Bullet's rule decides which point a fifth one replaces: the one without which the others span the
largest area, though never the deepest.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch
from wavedash.rocket.sim.constants import POINTS_PER_MESH

wp.set_module_options({"enable_backward": False})


@wp.func
def spanned_area(contacts: wp.array2d(dtype=Contact), e: int, new: Contact, i: int, j: int, k: int) -> float:
    """The square of twice the area of the quadrilateral whose diagonals run from the new point to point i and from j to k."""
    return wp.length_sq(wp.cross(new.arm_a - contacts[e, i].arm_a, contacts[e, k].arm_a - contacts[e, j].arm_a))


@wp.func
def point_to_replace(contacts: wp.array2d(dtype=Contact), e: int, first: int, new: Contact) -> int:
    """Index of that of the four points from `first` on which a new one replaces."""
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
def add_to_manifold(contacts: wp.array2d(dtype=Contact), e: int, first: int, count: int, limit: int, new: Contact) -> int:
    """Adds a point to those of a mesh, the contacts first ... count - 1 of row e. Returns the new count, `limit` at most."""
    if count < first + POINTS_PER_MESH:
        if count < limit:
            contacts[e, count] = new
            count += 1
    else:
        contacts[e, point_to_replace(contacts, e, first, new)] = new
    return count


@wp.func
def add_touch(
    contacts: wp.array2d(dtype=Contact), e: int, mesh: int, first: int, count: int, limit: int, touch: TriangleTouch
):
    """Adds the contact with a triangle to the manifold of its mesh: (mesh, first, new count). The contacts of `mesh`, the last
    one so far, begin at `first`; another mesh begins a new manifold."""
    if touch.mesh != mesh:
        mesh = touch.mesh
        first = count
    return mesh, first, add_to_manifold(contacts, e, first, count, limit, touch.contact)
