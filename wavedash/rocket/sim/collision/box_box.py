"""Contacts between two boxes: a separating axis test, then one face is clipped by the other (Bullet's dBoxBox2)."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.constants import BOX_EDGE_FACTOR

wp.set_module_options({"enable_backward": False})

APART = wp.constant(-1)
"""The boxes do not overlap"""
FIRST_FACE_OF_B, FIRST_EDGE = wp.constant(3), wp.constant(6)
"""Numbers of the axes: faces of A, then faces of B, then pairs of edges"""
MAX_CORNERS = 8
"""A face that is clipped by another one has at most this many corners"""
MAX_POINTS = wp.constant(4)
"""Two boxes have at most this many contacts"""


@wp.struct
class Box:
    """A car's body, in world coordinates."""

    center: wp.vec3
    axes: wp.mat33
    """Axes of the box, as columns"""
    half: wp.vec3


@wp.func
def axis(box: Box, i: int) -> wp.vec3:
    """One of a box's three axes."""
    return wp.vec3(box.axes[0, i], box.axes[1, i], box.axes[2, i])


@wp.func
def add_box_contacts(contacts: wp.array2d(dtype=Contact), e: int, count: int, a: Box, b: Box) -> int:
    """Appends contacts whose arms are points in world coordinates, and returns the new count."""
    kind, normal, overlap = separating_axis(a, b)
    if kind == APART:
        return count
    if kind >= FIRST_EDGE:
        return add_edge_contact(contacts, e, count, a, b, (kind - FIRST_EDGE) / 3, (kind - FIRST_EDGE) % 3, normal, overlap)
    if kind >= FIRST_FACE_OF_B:
        return add_face_contacts(contacts, e, count, b, a, kind - FIRST_FACE_OF_B, -normal, True)
    return add_face_contacts(contacts, e, count, a, b, kind, normal, False)


@wp.func
def separating_axis(a: Box, b: Box):
    """The one of 15 axes (faces of A, faces of B, pairs of edges) along which the boxes overlap least: (number of the axis, its
    direction from A to B, the overlap). The number is APART if they do not overlap along some axis."""
    between = b.center - a.center
    turn = wp.transpose(a.axes) * b.axes
    in_a = wp.transpose(a.axes) * between
    in_b = wp.transpose(b.axes) * between
    kind = int(APART)
    least = float(1.0e30)
    normal = wp.vec3()
    for i in range(3):
        width = a.half[i] + wp.abs(turn[i, 0]) * b.half[0] + wp.abs(turn[i, 1]) * b.half[1] + wp.abs(turn[i, 2]) * b.half[2]
        overlap = width - wp.abs(in_a[i])
        if overlap < 0.0:
            return int(APART), normal, 0.0
        if overlap < least:
            least = overlap
            kind = i
            normal = axis(a, i) * wp.where(in_a[i] < 0.0, -1.0, 1.0)
    for j in range(3):
        width = b.half[j] + wp.abs(turn[0, j]) * a.half[0] + wp.abs(turn[1, j]) * a.half[1] + wp.abs(turn[2, j]) * a.half[2]
        overlap = width - wp.abs(in_b[j])
        if overlap < 0.0:
            return int(APART), normal, 0.0
        if overlap < least:
            least = overlap
            kind = FIRST_FACE_OF_B + j
            normal = axis(b, j) * wp.where(in_b[j] < 0.0, -1.0, 1.0)
    for i in range(3):
        for j in range(3):
            across = wp.cross(axis(a, i), axis(b, j))
            length = wp.length(across)
            if length > 1.0e-6:
                across = across / length
                distance = wp.dot(between, across)
                overlap = half_size_along(a, across) + half_size_along(b, across) - wp.abs(distance)
                if overlap < 0.0:
                    return int(APART), normal, 0.0
                if overlap * BOX_EDGE_FACTOR < least:
                    least = overlap
                    kind = FIRST_EDGE + 3 * i + j
                    normal = across * wp.where(distance < 0.0, -1.0, 1.0)
    return kind, normal, least


@wp.func
def half_size_along(box: Box, direction: wp.vec3) -> float:
    """Half of the length of a box along a direction."""
    return wp.dot(box.half, wp.abs(wp.transpose(box.axes) * direction))


@wp.func
def add_edge_contact(
    contacts: wp.array2d(dtype=Contact), e: int, count: int, a: Box, b: Box, i: int, j: int, normal: wp.vec3, overlap: float
) -> int:
    """Adds the contact of two edges that cross, along axis i of A and axis j of B, where they are closest."""
    line_a = axis(a, i)
    line_b = axis(b, j)
    on_a = a.center + a.axes * wp.cw_mul(a.half, signs(wp.transpose(a.axes) * normal))
    on_b = b.center - b.axes * wp.cw_mul(b.half, signs(wp.transpose(b.axes) * normal))
    cosine = wp.dot(line_a, line_b)
    between = on_b - on_a
    sine_sq = 1.0 - cosine * cosine
    if sine_sq > 1.0e-4:
        on_b = on_b + line_b * ((cosine * wp.dot(line_a, between) - wp.dot(line_b, between)) / sine_sq)
    return add_point(contacts, e, count, on_b, normal, overlap)


@wp.func
def signs(v: wp.vec3) -> wp.vec3:
    """The signs of the coordinates of a vector: they choose the corner of a box that is farthest along it."""
    return wp.vec3(wp.where(v[0] > 0.0, 1.0, -1.0), wp.where(v[1] > 0.0, 1.0, -1.0), wp.where(v[2] > 0.0, 1.0, -1.0))


@wp.func
def add_face_contacts(
    contacts: wp.array2d(dtype=Contact), e: int, count: int, box: Box, other: Box, i: int, outwards: wp.vec3, swapped: bool
) -> int:
    """Adds contacts at the corners of the polygon in which two faces overlap: the face of `box` across its axis i, whose normal
    is `outwards`, and the face of `other` that is most opposed to it. `swapped`: `box` is B."""
    u = int(0)
    if i == 0:
        u = 1
    v = 3 - i - u
    corners = wp.zeros(shape=(MAX_CORNERS,), dtype=wp.vec3)
    cut = wp.zeros(shape=(MAX_CORNERS,), dtype=wp.vec3)
    side_u = axis(box, u)
    side_v = axis(box, v)
    place_incident_face(corners, other, box.center + outwards * box.half[i], side_u, side_v, outwards)
    n = clip_polygon(corners, 4, cut, 0, -1.0, box.half[u])
    n = clip_polygon(cut, n, corners, 0, 1.0, box.half[u])
    n = clip_polygon(corners, n, cut, 1, -1.0, box.half[v])
    n = clip_polygon(cut, n, corners, 1, 1.0, box.half[v])
    n = keep_overlapping(corners, n)
    chosen = reduce_corners(corners, n)
    for k in range(wp.min(n, MAX_POINTS)):
        corner = corners[chosen[k]]
        point = box.center + side_u * corner[0] + side_v * corner[1] + outwards * box.half[i]
        if swapped:
            count = add_point(contacts, e, count, point, -outwards, corner[2])
        else:
            count = add_point(contacts, e, count, point - outwards * corner[2], outwards, corner[2])
    return count


@wp.func
def place_incident_face(
    corners: wp.array(dtype=wp.vec3), box: Box, origin: wp.vec3, side_u: wp.vec3, side_v: wp.vec3, outwards: wp.vec3
):
    """Writes the four corners of the face of `box` that is most opposed to `outwards`, as (u, v, depth) relative to
    `origin`."""
    facing = wp.transpose(box.axes) * outwards
    size = wp.abs(facing)
    i = int(0)
    if size[1] > size[0]:
        i = 1
    if size[2] >= size[i]:
        i = 2
    p = int(0)
    if i == 0:
        p = 1
    q = 3 - i - p
    center = box.center - axis(box, i) * (box.half[i] * wp.where(facing[i] < 0.0, -1.0, 1.0)) - origin
    along_p = axis(box, p) * box.half[p]
    along_q = axis(box, q) * box.half[q]
    for k in range(4):
        at = center + along_p * wp.where(k >= 2, 1.0, -1.0) + along_q * wp.where(k == 1 or k == 2, 1.0, -1.0)
        corners[k] = wp.vec3(wp.dot(at, side_u), wp.dot(at, side_v), -wp.dot(at, outwards))


@wp.func
def clip_polygon(
    corners: wp.array(dtype=wp.vec3), n: int, cut: wp.array(dtype=wp.vec3), i: int, side: float, limit: float
) -> int:
    """Cuts off the part of a polygon beyond side * x[i] = limit; writes the rest to `cut`, returns its number of corners."""
    left = int(0)
    for k in range(n):
        here = corners[k]
        there = corners[(k + 1) % n]
        here_in = side * here[i] < limit
        if here_in and left < MAX_CORNERS:
            cut[left] = here
            left += 1
        if here_in != (side * there[i] < limit) and left < MAX_CORNERS:
            cut[left] = here + (there - here) * ((side * limit - here[i]) / (there[i] - here[i]))
            left += 1
    return left


@wp.func
def keep_overlapping(corners: wp.array(dtype=wp.vec3), n: int) -> int:
    """Drops the corners that are outside the other box, and returns how many are left."""
    left = int(0)
    for k in range(n):
        if corners[k][2] >= 0.0:
            corners[left] = corners[k]
            left += 1
    return left


@wp.func
def reduce_corners(corners: wp.array(dtype=wp.vec3), n: int) -> wp.vec4i:
    """Indices of up to four of n corners: if there are more, the deepest one and those nearest to quarter turns from it, around
    the polygon's centroid."""
    if n <= MAX_POINTS:
        return wp.vec4i(0, 1, 2, 3)
    angles = wp.zeros(shape=(MAX_CORNERS,), dtype=wp.float32)
    center = centroid(corners, n)
    deepest = int(0)
    for k in range(n):
        angles[k] = wp.atan2(corners[k][1] - center[1], corners[k][0] - center[0])
        if corners[k][2] > corners[deepest][2]:
            deepest = k
    start = angles[deepest]
    angles[deepest] = 1.0e9
    chosen = wp.vec4i(deepest, deepest, deepest, deepest)
    for quarter in range(1, 4):
        wanted = start + 0.5 * wp.pi * float(quarter)
        if wanted > wp.pi:
            wanted -= 2.0 * wp.pi
        best = float(1.0e8)
        for k in range(n):
            miss = wp.abs(angles[k] - wanted)
            if miss > wp.pi and miss < 10.0:
                miss = 2.0 * wp.pi - miss
            if miss < best:
                best = miss
                chosen[quarter] = k
        angles[chosen[quarter]] = 1.0e9
    return chosen


@wp.func
def centroid(corners: wp.array(dtype=wp.vec3), n: int) -> wp.vec3:
    """Centroid of a polygon's area."""
    total = wp.vec3()
    area = float(0.0)
    for k in range(n):
        here = corners[k]
        there = corners[(k + 1) % n]
        part = here[0] * there[1] - there[0] * here[1]
        area += part
        total = total + (here + there) * part
    if wp.abs(area) < 1.0e-3:
        return corners[0]
    return total / (3.0 * area)


@wp.func
def add_point(
    contacts: wp.array2d(dtype=Contact), e: int, count: int, on_b: wp.vec3, from_a_to_b: wp.vec3, overlap: float
) -> int:
    """Appends a contact if the list is not full, and returns the new count."""
    if count >= contacts.shape[1]:
        return count
    contact = Contact()
    contact.normal = -from_a_to_b
    contact.distance = -overlap
    contact.arm_b = on_b
    contact.arm_a = on_b + from_a_to_b * overlap
    contacts[e, count] = contact
    return count + 1
