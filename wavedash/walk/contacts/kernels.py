"""The kernels that find contacts of geoms with prisms, and choose which of them a geom keeps."""
from __future__ import annotations

import warp as wp
from mujoco_warp._src import collision_gjk as gjk
from mujoco_warp._src.collision_core import contact_params, write_contact
from mujoco_warp._src.math import make_frame
from mujoco_warp._src.types import MJ_MAXCONPAIR, OverflowType

from wavedash.walk.contacts.arrays import Contacts, Fields, Found, Pairs, Search, Surfaces
from wavedash.walk.contacts.prism_contacts import touch
from wavedash.walk.contacts.prisms import corners, next_for_box, next_for_rod, prism_of, under_geom

IS_FIELD, IS_SPHERE, IS_CAPSULE, IS_BOX = (
    wp.constant(int(kind)) for kind in (gjk.GeomType.HFIELD, gjk.GeomType.SPHERE, gjk.GeomType.CAPSULE, gjk.GeomType.BOX))
TOO_MANY = wp.constant(int(OverflowType.HFIELD))
MOST = wp.constant(int(MJ_MAXCONPAIR))
"""Contacts of a pair among which four are chosen: the first ones"""
KEPT = wp.constant(4)
APART = wp.constant(1e-3)
"""m between a contact and one that is kept besides"""
FAR = wp.constant(1e10)


@wp.func
def _spread(order: int, gap: wp.vec3, place: wp.vec3, normal: wp.vec3, second: wp.vec3, third: wp.vec3):
    """How far a contact is from those chosen before: from the first (by a gap), the line of two, the sides of three."""
    if order == 1:
        return wp.length(gap)
    first = place - gap
    if order == 2:
        return wp.abs(wp.dot(gap, wp.cross(normal, first - second)))
    return (wp.abs(wp.dot(gap, wp.cross(normal, first - third)))
            + wp.abs(wp.dot(second - place, wp.cross(normal, second - third))))


@wp.func
def _add(found: Found, pair: int, distance: float, on_prism: wp.vec3, on_geom: wp.vec3, rotation: wp.mat33, origin: wp.vec3):
    number = wp.atomic_add(found.count, pair, 1)
    if number < MOST:
        found.distance[number, pair] = distance
        found.position[number, pair] = rotation @ (0.5 * (on_prism + on_geom)) + origin
        found.normal[number, pair] = wp.normalize(rotation @ (on_prism - on_geom))


@wp.kernel(enable_backward=False, module="unique", grid_stride=False)
def find_contacts_of_rods(pairs: Pairs, fields: Fields, shares: int, found: Found):
    pair, number = wp.tid()
    if pair >= pairs.count[0]:
        return
    geoms, world = pairs.geoms[pair], pairs.world[pair]
    kind = pairs.kind[geoms[1]]
    if pairs.kind[geoms[0]] != IS_FIELD or (kind != IS_SPHERE and kind != IS_CAPSULE):
        return
    origin, rotation = pairs.position[world, geoms[0]], pairs.rotation[world, geoms[0]]
    to_field = wp.transpose(rotation)
    size = pairs.size[world % pairs.size.shape[0], geoms[1]]
    middle = to_field @ (pairs.position[world, geoms[1]] - origin)
    half = wp.vec3()
    if kind == IS_CAPSULE:
        half = size[1] * (to_field @ (pairs.rotation[world, geoms[1]] @ wp.vec3(0.0, 0.0, 1.0)))
    radius = size[0]
    reach = wp.abs(half) + wp.vec3(radius, radius, radius)
    under = under_geom(fields, fields.of_geom[world % fields.of_geom.shape[0], geoms[0]], middle - reach, middle + reach)
    start, rod = middle - half, 2.0 * half
    while number < under.prisms:
        number = next_for_rod(fields.heights, under, number, shares, start, rod, radius)
        if number < under.prisms:
            prism = prism_of(fields.heights, under, number)
            distance, on_prism, on_rod = touch(prism.a, prism.b, prism.c, under.bottom, start, rod, radius)
            if distance < 0.0:
                _add(found, pair, distance, on_prism, on_rod, rotation, origin)
            number += shares


@wp.kernel(enable_backward=False, module="unique", grid_stride=False)
def find_contacts_of_boxes(pairs: Pairs, fields: Fields, shares: int, found: Found, search: Search, overflow: wp.array[int]):
    pair, number = wp.tid()
    if pair >= pairs.count[0]:
        return
    geoms, world = pairs.geoms[pair], pairs.world[pair]
    if pairs.kind[geoms[0]] != IS_FIELD or pairs.kind[geoms[1]] != IS_BOX:
        return
    origin, rotation = pairs.position[world, geoms[0]], pairs.rotation[world, geoms[0]]
    to_field = wp.transpose(rotation)
    box = gjk.Geom()
    box.index = -1
    box.size = pairs.size[world % pairs.size.shape[0], geoms[1]]
    box.pos = to_field @ (pairs.position[world, geoms[1]] - origin)
    box.rot = to_field @ pairs.rotation[world, geoms[1]]
    reach = wp.vec3()
    for axis in range(3):
        reach += wp.abs(box.size[axis] * wp.vec3(box.rot[0, axis], box.rot[1, axis], box.rot[2, axis]))
    under = under_geom(fields, fields.of_geom[world % fields.of_geom.shape[0], geoms[0]], box.pos - reach, box.pos + reach)
    row = int(-1)
    shape = gjk.Geom()
    shape.index = -1
    shape.rot = wp.identity(n=3, dtype=float)
    tolerance = search.tolerance[world % search.tolerance.shape[0]]
    while number < under.prisms:
        number = next_for_box(fields.heights, under, number, shares, box)
        if number < under.prisms:
            if row < 0:
                row = wp.atomic_add(search.used, 0, 1)
            prism = prism_of(fields.heights, under, number)
            shape.polyvert = corners(prism, under.bottom)
            middle = (prism.a + prism.b + prism.c) / 3.0
            middle[2] = 0.5 * (middle[2] + under.bottom)
            distance, touching, on_prism, on_box, _face = gjk.ccd(
                tolerance, 0.0, search.iterations, search.iterations, shape, box, IS_FIELD, IS_BOX, middle, box.pos,
                search.corners[row], search.numbers[row], search.faces[row], search.feet[row], search.squares[row],
                search.horizon[row], False, world, overflow)
            if touching > 0 and distance < 0.0:
                _add(found, pair, distance, on_prism, on_box, rotation, origin)
            number += shares


@wp.kernel(enable_backward=False, module="unique", grid_stride=False)
def keep_widest(pairs: Pairs, found: Found, surfaces: Surfaces, contacts: Contacts, capacity: int):
    """Keeps four contacts of each pair, or fewer: the deepest one, and each time the one that is farthest from those."""
    pair = wp.tid()
    if pair >= pairs.count[0]:
        return
    count, world = wp.min(found.count[pair], MOST), pairs.world[pair]
    if count == 0:
        return
    if found.count[pair] > MOST:
        wp.atomic_or(contacts.overflow, world, TOO_MANY)
    geoms, margin, gap, dimension, friction, reference, friction_reference, impedance, adhesion = contact_params(
        surfaces.dimension, surfaces.priority, surfaces.mix, surfaces.reference, surfaces.impedance, surfaces.friction,
        surfaces.margin, surfaces.gap, surfaces.adhesion, surfaces.pair_dimension, surfaces.pair_reference,
        surfaces.pair_friction_reference, surfaces.pair_impedance, surfaces.pair_margin, surfaces.pair_gap,
        surfaces.pair_adhesion, surfaces.pair_friction, pairs.geoms, pairs.number, pair, world)
    chosen = wp.vec4i(-1, -1, -1, -1)
    first, second, third, normal = wp.vec3(), wp.vec3(), wp.vec3(), wp.vec3()
    order = int(0)
    going_on = bool(True)
    while going_on and order < wp.min(KEPT, count):
        best, farthest = int(-1), float(-FAR)
        for i in range(count):
            if i != chosen[0] and i != chosen[1] and i != chosen[2]:
                place = found.position[i, pair]
                far = -found.distance[i, pair]
                if order > 0:
                    far = _spread(order, place - first, place, normal, second, third)
                if far > farthest:
                    best, farthest = i, far
        going_on = best >= 0 and (order == 0 or farthest >= APART)
        if going_on:
            place = found.position[best, pair]
            write_contact(
                capacity, order, found.distance[best, pair], place, make_frame(found.normal[best, pair]), margin, gap,
                dimension, friction, reference, friction_reference, impedance, adhesion, geoms, pairs.number[pair], world,
                contacts.distance, contacts.position, contacts.frame, contacts.margin, contacts.friction, contacts.reference,
                contacts.friction_reference, contacts.impedance, contacts.dimension, contacts.geoms, contacts.rows,
                contacts.world, contacts.kind, contacts.number, contacts.adhesion, contacts.count)
            chosen[order] = best
            if order == 0:
                first = place
                normal = found.normal[best, pair]
            elif order == 1:
                second = place
            else:
                third = place
            order += 1
