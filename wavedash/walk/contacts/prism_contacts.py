"""Where a rod, the axis of a sphere or capsule, is nearest to a prism of a height field, or how deep it is inside: in closed
form.

MuJoCo Warp searches for it step by step (GJK, EPA). The nearest points of a rod outside of a prism lie on one of its edges, or
at an end of the rod and inside a face. A rod inside is pushed out along the shortest way, which is that of a face, or
perpendicular to an edge and to the rod.

A prism is given by the corners of its top, a, b and c, and the height of its bottom, from where nothing comes. Its faces are
the top and three vertical sides; its edges are the sides of the top and, below its corners, three vertical ones. A rod goes
from `start` along `rod`, which is zero for a sphere. Loops over sides and edges are not unrolled, because a GPU waits for
machine code too.
"""
from __future__ import annotations

import warp as wp

SIDES = wp.constant(3)
EDGES = wp.constant(6)
PARALLEL = wp.constant(1e-9)
"""Squared lengths below this share of what they are made of are zero, rounding aside"""
ROUNDING = wp.constant(1e-6)
"""m, of positions on a tile"""
TINY = wp.constant(1e-12)


@wp.struct
class Nearest:
    """The nearest points that were found so far."""

    distance: float
    """The square of it"""
    on_prism: wp.vec3
    on_rod: wp.vec3


@wp.struct
class Way:
    """The shortest way out that was found so far."""

    distance: float
    """Negative: the length of the way"""
    normal: wp.vec3
    on_rod: wp.vec3


@wp.func
def _turned(a: wp.vec3, b: wp.vec3, c: wp.vec3, side: int):
    """The corners, beginning with those of this side."""
    if side == 1:
        return b, c, a
    if side == 2:
        return c, a, b
    return a, b, c


@wp.func
def _edge(a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, number: int):
    """A corner and the edge from there: of the top, or down."""
    corner, end, _other = _turned(a, b, c, number % SIDES)
    edge = end - corner
    if number >= SIDES:
        edge = wp.vec3(0.0, 0.0, bottom - corner[2])
    return corner, edge


@wp.func
def upward(a: wp.vec3, b: wp.vec3, c: wp.vec3):
    """Perpendicular to the top."""
    normal = wp.cross(b - a, c - a)
    if normal[2] < 0.0:
        normal = -normal
    return normal


@wp.func
def outward(a: wp.vec3, b: wp.vec3, other: wp.vec3):
    """Perpendicular to the side through a and b."""
    normal = wp.vec3(b[1] - a[1], a[0] - b[0], 0.0)
    if wp.dot(normal, other - a) > 0.0:
        normal = -normal
    return normal


@wp.func
def _above(corner: wp.vec3, normal: wp.vec3, start: wp.vec3, rod: wp.vec3):
    """How far the lowest end of the rod is above a face, in lengths of the normal."""
    return wp.dot(normal, start - corner) + wp.min(0.0, wp.dot(normal, rod))


@wp.func
def _is_beyond(corner: wp.vec3, normal: wp.vec3, start: wp.vec3, rod: wp.vec3, radius: float):
    """Whether the rod is farther above a face than its radius."""
    height = _above(corner, normal, start, rod)
    return height > 0.0 and height * height > radius * radius * wp.length_sq(normal)


@wp.func
def is_out_of_reach(a: wp.vec3, b: wp.vec3, c: wp.vec3, start: wp.vec3, rod: wp.vec3, radius: float):
    """Whether the rod is farther outside of one of the faces than its radius, so that it does not touch the prism."""
    return (_is_beyond(a, upward(a, b, c), start, rod, radius) or _is_beyond(a, outward(a, b, c), start, rod, radius)
            or _is_beyond(b, outward(b, c, a), start, rod, radius) or _is_beyond(c, outward(c, a, b), start, rod, radius))


@wp.func
def _clipped(corner: wp.vec3, normal: wp.vec3, start: wp.vec3, rod: wp.vec3, part: wp.vec2):
    """Returns what of the part of the rod, from and to shares of its length, is behind a face. If nothing: from is above to."""
    height, rise = wp.dot(normal, start - corner), wp.dot(normal, rod)
    low, high = part[0], part[1]
    if rise > 0.0:
        high = wp.min(high, -height / rise)
    elif rise < 0.0:
        low = wp.max(low, -height / rise)
    elif height > 0.0:
        low = 2.0
    return wp.vec2(low, high)


@wp.func
def is_inside(a: wp.vec3, b: wp.vec3, c: wp.vec3, start: wp.vec3, rod: wp.vec3):
    """Whether some of the rod is inside the prism."""
    part = _clipped(a, upward(a, b, c), start, rod, wp.vec2(0.0, 1.0))
    part = _clipped(a, outward(a, b, c), start, rod, part)
    part = _clipped(b, outward(b, c, a), start, rod, part)
    part = _clipped(c, outward(c, a, b), start, rod, part)
    return part[0] <= part[1]


@wp.func
def _nearer(best: Nearest, on_prism: wp.vec3, on_rod: wp.vec3):
    distance = wp.length_sq(on_rod - on_prism)
    if distance < best.distance:
        best.distance = distance
        best.on_prism = on_prism
        best.on_rod = on_rod
    return best


@wp.func
def _where_nearest(corner: wp.vec3, edge: wp.vec3, start: wp.vec3, rod: wp.vec3):
    """Where the edge from a corner and the rod are nearest to each other, in shares of their lengths: first the edge's."""
    gap = start - corner
    rod_2, edge_2, both = wp.length_sq(rod), wp.length_sq(edge), wp.dot(rod, edge)
    along_rod, along_edge = wp.dot(rod, gap), wp.dot(edge, gap)
    across = rod_2 * edge_2 - both * both
    on_rod = float(0.0)
    if across > PARALLEL * rod_2 * edge_2:
        on_rod = wp.clamp((both * along_edge - along_rod * edge_2) / across, 0.0, 1.0)
    on_edge = wp.clamp((both * on_rod + along_edge) / edge_2, 0.0, 1.0)
    if rod_2 > 0.0:
        on_rod = wp.clamp((both * on_edge - along_rod) / rod_2, 0.0, 1.0)
    return wp.vec2(on_edge, on_rod)


@wp.func
def _left_of(a: wp.vec3, b: wp.vec3, point: wp.vec3):
    """From above, twice the area of the triangle of these points: positive if they run counterclockwise."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


@wp.func
def _at_top(best: Nearest, a: wp.vec3, b: wp.vec3, c: wp.vec3, normal: wp.vec3, end: wp.vec3):
    point = end - wp.dot(normal, end - a) * normal
    first, second, third = _left_of(a, b, point), _left_of(b, c, point), _left_of(c, a, point)
    if wp.min(first, wp.min(second, third)) >= 0.0 or wp.max(first, wp.max(second, third)) <= 0.0:
        best = _nearer(best, point, end)
    return best


@wp.func
def _at_side(best: Nearest, a: wp.vec3, b: wp.vec3, bottom: float, normal: wp.vec3, end: wp.vec3):
    point = end - wp.dot(normal, end - a) * normal
    edge = b - a
    share = (edge[0] * (point[0] - a[0]) + edge[1] * (point[1] - a[1])) / (edge[0] * edge[0] + edge[1] * edge[1])
    if share >= 0.0 and share <= 1.0 and point[2] >= bottom and point[2] <= a[2] + share * edge[2]:
        best = _nearer(best, point, end)
    return best


@wp.func
def nearest(a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, start: wp.vec3, rod: wp.vec3):
    """The nearest points of the prism and a rod that is outside of it."""
    best = Nearest()
    best.distance = 1e10
    number = int(0)
    while number < EDGES:
        corner, edge = _edge(a, b, c, bottom, number)
        at = _where_nearest(corner, edge, start, rod)
        best = _nearer(best, corner + at[0] * edge, start + at[1] * rod)
        number += 1
    end = start + rod
    top = wp.normalize(upward(a, b, c))
    best = _at_top(best, a, b, c, top, start)
    best = _at_top(best, a, b, c, top, end)
    side = int(0)
    while side < SIDES:
        one, next, other = _turned(a, b, c, side)
        normal = wp.normalize(outward(one, next, other))
        best = _at_side(best, one, next, bottom, normal, start)
        best = _at_side(best, one, next, bottom, normal, end)
        side += 1
    return best


@wp.func
def _out_of_face(best: Way, corner: wp.vec3, normal: wp.vec3, start: wp.vec3, rod: wp.vec3):
    distance = _above(corner, normal, start, rod)
    if distance > best.distance:
        best.distance = distance
        best.normal = normal
        best.on_rod = start
        if wp.dot(normal, rod) < 0.0:
            best.on_rod = start + rod
    return best


@wp.func
def _reach(a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, direction: wp.vec3):
    """How far the prism reaches in a direction."""
    down = wp.min(direction[2], 0.0)
    highest = wp.dot(direction, a) + down * (bottom - a[2])
    highest = wp.max(highest, wp.dot(direction, b) + down * (bottom - b[2]))
    return wp.max(highest, wp.dot(direction, c) + down * (bottom - c[2]))


@wp.func
def _past_edge(best: Way, a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, corner: wp.vec3, edge: wp.vec3, start: wp.vec3,
               rod: wp.vec3, normal: wp.vec3):
    reach = _reach(a, b, c, bottom, normal)
    distance = wp.dot(normal, start) - reach
    if distance > best.distance and wp.dot(normal, corner) > reach - ROUNDING:  # no other edge reaches farther
        at = _where_nearest(corner, edge, start, rod)
        best.distance = distance
        best.normal = normal
        best.on_rod = start + at[1] * rod
    return best


@wp.func
def way_out(a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, start: wp.vec3, rod: wp.vec3):
    """The shortest way out of the prism for a rod of which some is inside."""
    best = Way()
    best.distance = -1e10
    best = _out_of_face(best, a, wp.normalize(upward(a, b, c)), start, rod)
    side = int(0)
    while side < SIDES:
        one, next, other = _turned(a, b, c, side)
        best = _out_of_face(best, one, wp.normalize(outward(one, next, other)), start, rod)
        side += 1
    number = int(0)
    while number < EDGES:
        corner, edge = _edge(a, b, c, bottom, number)
        normal = wp.cross(edge, rod)
        if wp.length_sq(normal) > PARALLEL * wp.length_sq(edge) * wp.length_sq(rod):
            normal = wp.normalize(normal)
            best = _past_edge(best, a, b, c, bottom, corner, edge, start, rod, normal)
            best = _past_edge(best, a, b, c, bottom, corner, edge, start, rod, -normal)
        number += 1
    return best


@wp.func
def touch(a: wp.vec3, b: wp.vec3, c: wp.vec3, bottom: float, start: wp.vec3, rod: wp.vec3, radius: float):
    """The contact of a prism and a rod with a radius: the distance, which is negative if they touch, and the point of each that
    is nearest to the other, or deepest inside it."""
    if is_inside(a, b, c, start, rod):
        way = way_out(a, b, c, bottom, start, rod)
        deepest = way.on_rod - radius * way.normal
        return way.distance - radius, deepest + (radius - way.distance) * way.normal, deepest
    points = nearest(a, b, c, bottom, start, rod)
    distance = wp.sqrt(points.distance)
    inward = (points.on_prism - points.on_rod) / wp.max(distance, TINY)
    return distance - radius, points.on_prism, points.on_rod + radius * inward
