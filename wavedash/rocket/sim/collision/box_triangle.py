"""The closest points of a box and a triangle, or the direction of least penetration when they overlap.

Bullet iterates towards the answer (GJK, then EPA when they overlap). A box and a triangle have so few corners, edges and faces
that all of them can be tested. Everything is in the frame of the box, whose center is the origin.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import Triangle
from wavedash.rocket.sim.collision.ball_arena import nearest_on_triangle

wp.set_module_options({"enable_backward": False})

MIN_GAP = wp.constant(1.0e-3)
"""uu: the least gap at which the direction between two closest points is precise"""
PREFERENCE = wp.constant(1.0e-4)
"""uu by which two edges must beat a face, which determines the contact more clearly"""
PARALLEL = wp.constant(1.0e-6)
"""Squared sine of the angle below which edges count as parallel"""


@wp.struct
class ClosestPoints:
    """The closest points of a box and a triangle."""

    point: wp.vec3
    """The point on the box"""
    normal: wp.vec3
    """Unit vector from the triangle to the box"""
    distance: wp.float32
    """Negative where they overlap: how far the box must move along the normal to be clear of the triangle"""


@wp.struct
class Axis:
    """A direction along which box and triangle may be apart."""

    normal: wp.vec3
    """Towards the box"""
    gap: wp.float32
    """The distance between their projections; negative where these overlap"""
    kind: wp.int32
    """0: normal of the triangle, 1: normal of a face of the box, 2: cross product of an edge of each"""
    edge: wp.int32
    """Edge of the triangle: 0 is ab, 1 is bc, 2 is ca"""
    side: wp.int32
    """Axis of the box, 0 to 2: of its edge, or of the normal of its face"""


@wp.func
def nearest_in_box(half: wp.vec3, p: wp.vec3) -> wp.vec3:
    """The point of the box nearest to p."""
    return wp.vec3(wp.clamp(p[0], -half[0], half[0]), wp.clamp(p[1], -half[1], half[1]), wp.clamp(p[2], -half[2], half[2]))


@wp.func
def support_corner(half: wp.vec3, direction: wp.vec3) -> wp.vec3:
    """The corner of the box that is farthest along a direction."""
    return wp.vec3(
        wp.where(direction[0] >= 0.0, half[0], -half[0]),
        wp.where(direction[1] >= 0.0, half[1], -half[1]),
        wp.where(direction[2] >= 0.0, half[2], -half[2]),
    )


@wp.func
def projected_half_size(half: wp.vec3, direction: wp.vec3) -> float:
    """Half of the box's length along a direction."""
    return half[0] * wp.abs(direction[0]) + half[1] * wp.abs(direction[1]) + half[2] * wp.abs(direction[2])


@wp.func
def distance_gradient(half: wp.vec3, start: wp.vec3, along: wp.vec3, share: float) -> float:
    """Derivative of half the squared distance from the box, along a line. It grows, and is linear between the box's planes."""
    point = start + along * share
    return wp.dot(along, point - nearest_in_box(half, point))


@wp.func
def nearest_on_edge(half: wp.vec3, start: wp.vec3, along: wp.vec3) -> wp.vec3:
    """The point of the segment from `start` to `start + along` that is nearest to the box: where the gradient is zero."""
    low = float(0.0)
    high = float(1.0)
    falling = distance_gradient(half, start, along, 0.0)
    rising = distance_gradient(half, start, along, 1.0)
    if falling >= 0.0:
        return start
    if rising <= 0.0:
        return start + along
    for k in range(6):
        axis = k // 2
        plane = wp.where(k % 2 == 0, half[axis], -half[axis])
        if along[axis] != 0.0:
            share = (plane - start[axis]) / along[axis]
            if share > low and share < high:
                here = distance_gradient(half, start, along, share)
                if here <= 0.0:
                    low = share
                    falling = here
                else:
                    high = share
                    rising = here
    return start + along * (low + (high - low) * falling / (falling - rising))


@wp.func
def better_axis(best: Axis, normal: wp.vec3, low: float, high: float, radius: float, kind: int, edge: int, side: int) -> Axis:
    """The axis with the larger gap: the best so far, or a direction along which the triangle lies at low ... high, the box at
    -radius ... radius."""
    above = low - radius
    below = -radius - high
    gap = wp.max(above, below)
    to_beat = best.gap
    if kind == 2:
        to_beat += PREFERENCE
    if gap > to_beat:
        best.gap = gap
        best.normal = wp.where(above > below, -normal, normal)
        best.kind = kind
        best.edge = edge
        best.side = side
    return best


@wp.func
def test_edge_axes(best: Axis, half: wp.vec3, start: wp.vec3, along: wp.vec3, opposite: wp.vec3, edge: int) -> Axis:
    """Tests the cross products of an edge of the triangle and the three edges of the box."""
    squared = wp.length_sq(along)
    for side in range(3):
        direction = wp.vec3(0.0, -along[2], along[1])
        if side == 1:
            direction = wp.vec3(along[2], 0.0, -along[0])
        elif side == 2:
            direction = wp.vec3(-along[1], along[0], 0.0)
        length = wp.length_sq(direction)
        if length > PARALLEL * squared:
            direction = direction / wp.sqrt(length)
            p = wp.dot(direction, start)
            q = wp.dot(direction, opposite)
            best = better_axis(best, direction, wp.min(p, q), wp.max(p, q), projected_half_size(half, direction), 2, edge, side)
    return best


@wp.func
def widest_gap_axis(half: wp.vec3, t: Triangle) -> Axis:
    """Separating axis test: the direction with the largest gap, or with the smallest overlap if no direction has a gap."""
    best = Axis()
    best.gap = -1.0e9
    best = better_axis(best, t.normal, t.offset, t.offset, projected_half_size(half, t.normal), 0, 0, 0)
    for side in range(3):
        direction = wp.vec3(0.0, 0.0, 0.0)
        direction[side] = 1.0
        low = wp.min(wp.min(t.a[side], t.b[side]), t.c[side])
        high = wp.max(wp.max(t.a[side], t.b[side]), t.c[side])
        best = better_axis(best, direction, low, high, half[side], 1, 0, side)
    best = test_edge_axes(best, half, t.a, t.b - t.a, t.c, 0)
    best = test_edge_axes(best, half, t.b, t.c - t.b, t.a, 1)
    return test_edge_axes(best, half, t.c, t.a - t.c, t.b, 2)


@wp.func
def edge_edge_point(half: wp.vec3, axis: Axis, start: wp.vec3, along: wp.vec3) -> wp.vec3:
    """The point of the box's edge (the one that faces the triangle) that is closest to an edge of the triangle."""
    point = support_corner(half, -axis.normal)
    point[axis.side] = 0.0
    to_edge = point - start
    squared = wp.length_sq(along)
    across = along[axis.side]
    share = (across * wp.dot(along, to_edge) - squared * to_edge[axis.side]) / (squared - across * across)
    point[axis.side] = wp.clamp(share, -half[axis.side], half[axis.side])
    return point


@wp.func
def penetration(half: wp.vec3, t: Triangle, axis: Axis) -> ClosestPoints:
    """The contact of a box and a triangle that overlap, least along `axis`."""
    points = ClosestPoints()
    points.normal = axis.normal
    points.distance = axis.gap
    if axis.kind == 0:
        deepest = support_corner(half, -axis.normal)
        points.point = deepest
        surface = deepest - axis.normal * axis.gap
        nearest = nearest_on_triangle(t, surface)
        if wp.length_sq(nearest - surface) > 1.0:  # a face or edge of the box lies along the triangle: take a common point
            points.point = nearest_in_box(half, nearest + axis.normal * axis.gap)
    elif axis.kind == 1:
        deepest = t.a
        if wp.dot(axis.normal, t.b) > wp.dot(axis.normal, deepest):
            deepest = t.b
        if wp.dot(axis.normal, t.c) > wp.dot(axis.normal, deepest):
            deepest = t.c
        points.point = nearest_in_box(half, deepest + axis.normal * axis.gap)
    elif axis.edge == 0:
        points.point = edge_edge_point(half, axis, t.a, t.b - t.a)
    elif axis.edge == 1:
        points.point = edge_edge_point(half, axis, t.b, t.c - t.b)
    else:
        points.point = edge_edge_point(half, axis, t.c, t.a - t.c)
    return points


@wp.func
def closest_box_triangle(half: wp.vec3, t: Triangle, limit: float) -> ClosestPoints:
    """The closest points of a triangle and a box with these half sizes. Where they are farther apart than `limit`, only the
    distance is set, to a lower bound."""
    points = ClosestPoints()
    axis = widest_gap_axis(half, t)
    points.distance = axis.gap
    if axis.gap > limit:
        return points
    if axis.gap <= MIN_GAP:
        return penetration(half, t, axis)
    if axis.kind == 0:
        nearest = support_corner(half, -axis.normal)
        surface = nearest - axis.normal * axis.gap
        if wp.length_sq(nearest_on_triangle(t, surface) - surface) < MIN_GAP * MIN_GAP:
            points.point = nearest
            points.normal = axis.normal
            return points
    on_triangle = nearest_on_edge(half, t.a, t.b - t.a)
    away = nearest_in_box(half, on_triangle) - on_triangle
    for edge in range(1, 3):
        start = wp.where(edge == 1, t.b, t.c)
        end = wp.where(edge == 1, t.c, t.a)
        candidate = nearest_on_edge(half, start, end - start)
        apart = nearest_in_box(half, candidate) - candidate
        if wp.length_sq(apart) < wp.length_sq(away):
            on_triangle = candidate
            away = apart
    points.distance = wp.length(away)
    points.normal = away / points.distance
    points.point = on_triangle + away
    return points
