"""Contacts with height fields on MuJoCo Warp 4.0.0: kernels of ours that find the same ones sooner, and a correction.

A height field collides as one prism for each of its triangles. MuJoCo Warp lets a thread search for the nearest points of a
geom and every prism under its bounding box, one after another, with room for 50 contacts in each thread: on an H200 that was
95 % of the time of 4,096 robots on rough ground. `patch` puts `find_contacts` in its place:

- Prisms out of reach of a geom, which are most, are left out by a few comparisons with their faces.
- Of feet and legs, spheres and capsules, contacts with the others follow in closed form (prism_contacts.py). Of trunks, which
  are boxes, MuJoCo Warp's search finds them.
- On a GPU several threads share the prisms under a geom. Each looks for the next one within reach before any of them goes on,
  because a group of threads waits for the slowest.

As before, a geom keeps four of its contacts: the deepest one and those that span the widest area with it.

The correction is of steep parts. Where a geom touches a side of a prism, MuJoCo Warp moves the contact to the top of the prism,
with a vertical normal, so that the inner walls between prisms are not felt. It concludes from the directions of the search
whether a side is touched, and where the top itself is steep the conclusion is wrong (a TODO in its source says so). Measured
with robots that fall among stepping stones: 19 % of the feet and about half of the legs and trunks that touched something had a
contact with a vertical normal, also downward, and a depth that was off by centimetres; legs went into the stones, and robots
were thrown up at 6 m/s. MuJoCo has no such rule. Without it, both find the same contacts. The rule depends on the type of the
first geom, which its two functions use for nothing else.

Margins and gaps, which our geoms do not have, are taken to be 0.
"""
from __future__ import annotations

from importlib.metadata import version

import warp as wp
from mujoco_warp._src import collision_driver as driver
from mujoco_warp._src import collision_gjk as gjk
from mujoco_warp._src.collision_core import contact_params, write_contact
from mujoco_warp._src.math import make_frame, upper_trid_index
from mujoco_warp._src.types import MJ_MAX_EPAFACES, MJ_MAX_EPAHORIZON, MJ_MAXCONPAIR, OverflowType, vec5

from wavedash.walk.prism_contacts import is_out_of_reach, outward, touch, upward

if version("mujoco-warp") != "4.0.0":
    raise ImportError(f"mujoco-warp {version('mujoco-warp')} is")

WITNESS, INFLATE, NARROWPHASE = gjk._epa_witness, gjk._inflate, driver.convex_narrowphase
FIELD, SPHERE, CAPSULE, BOX = (gjk.GeomType.HFIELD, gjk.GeomType.SPHERE, gjk.GeomType.CAPSULE, gjk.GeomType.BOX)
OURS = ((FIELD, SPHERE), (FIELD, CAPSULE), (FIELD, BOX))
"""Pairs of types whose contacts are found here"""
NO_FIELD = wp.constant(int(BOX))
IS_FIELD, IS_SPHERE, IS_CAPSULE, IS_BOX = (wp.constant(int(kind)) for kind in (FIELD, SPHERE, CAPSULE, BOX))
TOO_MANY = wp.constant(int(OverflowType.HFIELD))
MOST = wp.constant(int(MJ_MAXCONPAIR))
"""Contacts of a pair among which four are chosen: the first ones"""
KEPT = wp.constant(4)
APART = wp.constant(1e-3)
"""m between a contact and one that is kept besides"""
FAR = wp.constant(1e10)
SHARES = 8
"""Threads for a geom on a GPU"""
BLOCK = 64
"""Threads that are scheduled together on a GPU. Few, because the time that they take differs"""


def patch() -> None:
    """Call it before MuJoCo Warp compiles its kernels."""
    gjk._epa_witness, gjk._inflate = _witness, _inflated
    driver.convex_narrowphase = find_contacts


@wp.func
def _witness(pt: gjk.Polytope, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, face_idx: int):
    x1, x2, distance = WITNESS(pt, geom1, geom2, NO_FIELD, geomtype2, face_idx)
    return x1, x2, distance


@wp.func
def _inflated(result: gjk.GJKResult, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, margin1: float,
              margin2: float):
    distance, x1, x2 = INFLATE(result, geom1, geom2, NO_FIELD, geomtype2, margin1, margin2)
    return distance, x1, x2


@wp.struct
class Pairs:
    """Two geoms each, of the same world, which the broad phase has found near each other; and all geoms."""

    count: wp.array[int]
    geoms: wp.array[wp.vec2i]
    world: wp.array[int]
    number: wp.array[wp.vec2i]
    kind: wp.array[int]
    size: wp.array2d[wp.vec3]
    position: wp.array2d[wp.vec3]
    rotation: wp.array2d[wp.mat33]


@wp.struct
class Fields:
    """Height fields, and which of them the geoms are."""

    of_geom: wp.array2d[int]
    size: wp.array[wp.vec4]
    rows: wp.array[int]
    columns: wp.array[int]
    first: wp.array[int]
    heights: wp.array[float]


@wp.struct
class Found:
    """Contacts of pairs, [number, pair], and how many there are. There may be more than are kept here."""

    count: wp.array[int]
    distance: wp.array2d[float]
    position: wp.array2d[wp.vec3]
    normal: wp.array2d[wp.vec3]


@wp.struct
class Surfaces:
    """What of geoms and pairs makes the other numbers of a contact."""

    dimension: wp.array[int]
    priority: wp.array[int]
    mix: wp.array2d[float]
    reference: wp.array2d[wp.vec2]
    impedance: wp.array2d[vec5]
    friction: wp.array2d[wp.vec3]
    margin: wp.array2d[float]
    gap: wp.array2d[float]
    adhesion: wp.array2d[float]
    pair_dimension: wp.array[int]
    pair_reference: wp.array2d[wp.vec2]
    pair_friction_reference: wp.array2d[wp.vec2]
    pair_impedance: wp.array2d[vec5]
    pair_margin: wp.array2d[float]
    pair_gap: wp.array2d[float]
    pair_adhesion: wp.array2d[float]
    pair_friction: wp.array2d[vec5]


@wp.struct
class Contacts:
    """MuJoCo Warp's contacts of all worlds."""

    count: wp.array[int]
    distance: wp.array[float]
    position: wp.array[wp.vec3]
    frame: wp.array[wp.mat33]
    margin: wp.array[float]
    friction: wp.array[vec5]
    reference: wp.array[wp.vec2]
    friction_reference: wp.array[wp.vec2]
    impedance: wp.array[vec5]
    dimension: wp.array[int]
    geoms: wp.array[wp.vec2i]
    rows: wp.array2d[int]
    world: wp.array[int]
    kind: wp.array[int]
    number: wp.array[int]
    adhesion: wp.array[float]
    overflow: wp.array[int]


@wp.struct
class Search:
    """Memory of MuJoCo Warp's search, a row for each thread that searches."""

    used: wp.array[int]
    tolerance: wp.array[float]
    iterations: int
    corners: wp.array2d[wp.vec3]
    numbers: wp.array2d[int]
    faces: wp.array2d[int]
    feet: wp.array2d[wp.vec3]
    squares: wp.array2d[float]
    horizon: wp.array2d[int]


@wp.struct
class Under:
    """The part of a height field that is under a geom's bounding box, in the frame of the field. Prisms are numbered by rows;
    each cell has two."""

    prisms: int
    width: int
    """Cells in a row of it"""
    row: int
    column: int
    first: int
    columns: int
    cell: wp.vec2
    corner: wp.vec2
    height: float
    bottom: float
    lowest: float
    """Of the geom"""


@wp.struct
class Prism:
    """The corners of its top."""

    a: wp.vec3
    b: wp.vec3
    c: wp.vec3


@wp.func
def _under(fields: Fields, field: int, low: wp.vec3, high: wp.vec3):
    size = fields.size[field]
    rows, columns = fields.rows[field], fields.columns[field]
    x_scale, y_scale = 0.5 * float(columns - 1) / size[0], 0.5 * float(rows - 1) / size[1]
    under = Under()
    under.column = wp.max(0, int(wp.floor((low[0] + size[0]) * x_scale)))
    under.row = wp.max(0, int(wp.floor((low[1] + size[1]) * y_scale)))
    under.width = wp.max(0, wp.min(columns - 1, int(wp.ceil((high[0] + size[0]) * x_scale))) - under.column)
    height = wp.max(0, wp.min(rows - 1, int(wp.ceil((high[1] + size[1]) * y_scale))) - under.row)
    under.prisms = 2 * under.width * height
    if low[2] > size[2] or high[2] < -size[3]:
        under.prisms = 0
    under.first = fields.first[field]
    under.columns = columns
    under.cell = wp.vec2(2.0 * size[0] / float(columns - 1), 2.0 * size[1] / float(rows - 1))
    under.corner = wp.vec2(size[0], size[1])
    under.height = size[2]
    under.bottom = -size[3]
    under.lowest = low[2]
    return under


@wp.func
def _corner(heights: wp.array[float], under: Under, row: int, column: int):
    return wp.vec3(under.cell[0] * float(column) - under.corner[0], under.cell[1] * float(row) - under.corner[1],
                   heights[under.first + row * under.columns + column] * under.height)


@wp.func
def _prism(heights: wp.array[float], under: Under, number: int):
    cell = number // 2
    row, column = under.row + cell // under.width, under.column + cell % under.width
    prism = Prism()
    if number % 2 == 0:
        prism.a = _corner(heights, under, row + 1, column)
        prism.b = _corner(heights, under, row, column)
        prism.c = _corner(heights, under, row + 1, column + 1)
    else:
        prism.a = _corner(heights, under, row, column)
        prism.b = _corner(heights, under, row + 1, column + 1)
        prism.c = _corner(heights, under, row, column + 1)
    return prism


@wp.func
def _corners(prism: Prism, bottom: float):
    """All six, the lower three first."""
    a, b, c = prism.a, prism.b, prism.c
    return gjk.mat63(a[0], a[1], bottom, b[0], b[1], bottom, c[0], c[1], bottom,
                     a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


@wp.func
def _is_below(prism: Prism, height: float):
    return wp.max(prism.a[2], wp.max(prism.b[2], prism.c[2])) < height


@wp.func
def _is_outside(corner: wp.vec3, normal: wp.vec3, box: gjk.Geom):
    """Whether all of the box is outside of a face of a prism. The normal may have any length."""
    reach = wp.dot(wp.abs(wp.transpose(box.rot) @ normal), box.size)
    return wp.dot(normal, box.pos - corner) > reach


@wp.func
def _is_box_out_of_reach(prism: Prism, box: gjk.Geom):
    return (_is_outside(prism.a, upward(prism.a, prism.b, prism.c), box)
            or _is_outside(prism.a, outward(prism.a, prism.b, prism.c), box)
            or _is_outside(prism.b, outward(prism.b, prism.c, prism.a), box)
            or _is_outside(prism.c, outward(prism.c, prism.a, prism.b), box))


@wp.func
def _next_for_rod(heights: wp.array[float], under: Under, number: int, shares: int, start: wp.vec3, rod: wp.vec3,
                  radius: float):
    """The number of the next prism within reach, of this one and those that follow it by so many."""
    searching = bool(True)
    while searching and number < under.prisms:
        prism = _prism(heights, under, number)
        searching = _is_below(prism, under.lowest)
        if not searching:
            searching = is_out_of_reach(prism.a, prism.b, prism.c, start, rod, radius)
        if searching:
            number += shares
    return number


@wp.func
def _next_for_box(heights: wp.array[float], under: Under, number: int, shares: int, box: gjk.Geom):
    """The number of the next prism within reach, of this one and those that follow it by so many."""
    searching = bool(True)
    while searching and number < under.prisms:
        prism = _prism(heights, under, number)
        searching = _is_below(prism, under.lowest)
        if not searching:
            searching = _is_box_out_of_reach(prism, box)
        if searching:
            number += shares
    return number


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
    under = _under(fields, fields.of_geom[world % fields.of_geom.shape[0], geoms[0]], middle - reach, middle + reach)
    start, rod = middle - half, 2.0 * half
    while number < under.prisms:
        number = _next_for_rod(fields.heights, under, number, shares, start, rod, radius)
        if number < under.prisms:
            prism = _prism(fields.heights, under, number)
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
    under = _under(fields, fields.of_geom[world % fields.of_geom.shape[0], geoms[0]], box.pos - reach, box.pos + reach)
    row = int(-1)
    shape = gjk.Geom()
    shape.index = -1
    shape.rot = wp.identity(n=3, dtype=float)
    tolerance = search.tolerance[world % search.tolerance.shape[0]]
    while number < under.prisms:
        number = _next_for_box(fields.heights, under, number, shares, box)
        if number < under.prisms:
            if row < 0:
                row = wp.atomic_add(search.used, 0, 1)
            prism = _prism(fields.heights, under, number)
            shape.polyvert = _corners(prism, under.bottom)
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
    """Of each pair four contacts, or fewer: the deepest one, and each time the one that is farthest from those."""
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


def find_contacts(m, d, context, types) -> None:
    """In place of MuJoCo Warp's `convex_narrowphase`: of pairs of these types of geoms, adds the contacts to `d`."""
    NARROWPHASE(m, d, context, [pair for pair in types if pair not in OURS])
    if not any(_count(m, *pair) for pair in OURS if pair in types):
        return
    near = int(min(d.naconmax, d.nworld * sum(m.geom_pair_type_count)))
    pairs = _filled(
        Pairs(), count=d.ncollision, geoms=context.collision_pair, world=context.collision_worldid,
        number=context.collision_pairid, kind=m.geom_type, size=m.geom_size, position=d.geom_xpos, rotation=d.geom_xmat)
    fields = _filled(
        Fields(), of_geom=m.geom_dataid, size=m.hfield_size, rows=m.hfield_nrow, columns=m.hfield_ncol, first=m.hfield_adr,
        heights=m.hfield_data)
    surfaces = _filled(
        Surfaces(), dimension=m.geom_condim, priority=m.geom_priority, mix=m.geom_solmix, reference=m.geom_solref,
        impedance=m.geom_solimp, friction=m.geom_friction, margin=m.geom_margin, gap=m.geom_gap, adhesion=m.geom_adhesion,
        pair_dimension=m.pair_dim, pair_reference=m.pair_solref, pair_friction_reference=m.pair_solreffriction,
        pair_impedance=m.pair_solimp, pair_margin=m.pair_margin, pair_gap=m.pair_gap, pair_adhesion=m.pair_adhesion,
        pair_friction=m.pair_friction)
    found = _filled(
        Found(), count=wp.zeros(near, dtype=int), distance=wp.empty((MOST, near), dtype=float),
        position=wp.empty((MOST, near), dtype=wp.vec3), normal=wp.empty((MOST, near), dtype=wp.vec3))
    x = d.contact
    contacts = _filled(
        Contacts(), count=d.nacon, distance=x.dist, position=x.pos, frame=x.frame, margin=x.includemargin, friction=x.friction,
        reference=x.solref, friction_reference=x.solreffriction, impedance=x.solimp, dimension=x.dim, geoms=x.geom,
        rows=x.efc_address, world=x.worldid, kind=x.type, number=x.geomcollisionid, adhesion=x.adhesion, overflow=d.overflow)
    shares = threads_per_geom(d.nacon.device)
    if _count(m, FIELD, SPHERE) or _count(m, FIELD, CAPSULE):
        wp.launch(find_contacts_of_rods, (near, shares), [pairs, fields, shares, found], block_dim=BLOCK)
    if boxes := d.nworld * _count(m, FIELD, BOX):
        rows, corners, faces = boxes * shares, 10 + 2 * m.opt.ccd_iterations, 6 + MJ_MAX_EPAFACES * m.opt.ccd_iterations
        search = _filled(
            Search(), used=wp.zeros(1, dtype=int), tolerance=m.opt.ccd_tolerance, iterations=m.opt.ccd_iterations,
            corners=wp.empty((rows, corners), dtype=wp.vec3), numbers=wp.empty((rows, corners), dtype=int),
            faces=wp.empty((rows, faces), dtype=int), feet=wp.empty((rows, faces), dtype=wp.vec3),
            squares=wp.empty((rows, faces), dtype=float), horizon=wp.empty((rows, MJ_MAX_EPAHORIZON), dtype=int))
        wp.launch(find_contacts_of_boxes, (near, shares), [pairs, fields, shares, found, search, d.overflow], block_dim=BLOCK)
    wp.launch(keep_widest, near, [pairs, found, surfaces, contacts, d.naconmax])


def threads_per_geom(device: wp.Device) -> int:
    """On a CPU, where threads run one after another, contacts are found in the same order in every run."""
    return 1 if device.is_cpu else SHARES


def _count(m, one: gjk.GeomType, other: gjk.GeomType) -> int:
    """How many pairs of geoms of these types a world has."""
    return int(m.geom_pair_type_count[upper_trid_index(len(gjk.GeomType), int(one), int(other))])


def _filled(struct, **arrays):
    for name, x in arrays.items():
        setattr(struct, name, x)
    return struct
