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
from mujoco_warp._src.math import upper_trid_index
from mujoco_warp._src.types import MJ_MAX_EPAFACES, MJ_MAX_EPAHORIZON

from wavedash.walk.contacts.arrays import Contacts, Fields, Found, Pairs, Search, Surfaces, filled
from wavedash.walk.contacts.kernels import MOST, find_contacts_of_boxes, find_contacts_of_rods, keep_widest

if version("mujoco-warp") != "4.0.0":
    raise ImportError(f"mujoco-warp {version('mujoco-warp')} is")

WITNESS, INFLATE, NARROWPHASE = gjk._epa_witness, gjk._inflate, driver.convex_narrowphase
FIELD, SPHERE, CAPSULE, BOX = (gjk.GeomType.HFIELD, gjk.GeomType.SPHERE, gjk.GeomType.CAPSULE, gjk.GeomType.BOX)
OURS = ((FIELD, SPHERE), (FIELD, CAPSULE), (FIELD, BOX))
"""Pairs of types whose contacts are found here"""
NO_FIELD = wp.constant(int(BOX))
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


def find_contacts(m, d, context, types) -> None:
    """Adds the contacts of pairs of these types of geoms to `d`, in place of MuJoCo Warp's `convex_narrowphase`."""
    NARROWPHASE(m, d, context, [pair for pair in types if pair not in OURS])
    if not any(_count(m, *pair) for pair in OURS if pair in types):
        return
    near = int(min(d.naconmax, d.nworld * sum(m.geom_pair_type_count)))
    pairs = filled(
        Pairs(), count=d.ncollision, geoms=context.collision_pair, world=context.collision_worldid,
        number=context.collision_pairid, kind=m.geom_type, size=m.geom_size, position=d.geom_xpos, rotation=d.geom_xmat)
    fields = filled(
        Fields(), of_geom=m.geom_dataid, size=m.hfield_size, rows=m.hfield_nrow, columns=m.hfield_ncol, first=m.hfield_adr,
        heights=m.hfield_data)
    surfaces = filled(
        Surfaces(), dimension=m.geom_condim, priority=m.geom_priority, mix=m.geom_solmix, reference=m.geom_solref,
        impedance=m.geom_solimp, friction=m.geom_friction, margin=m.geom_margin, gap=m.geom_gap, adhesion=m.geom_adhesion,
        pair_dimension=m.pair_dim, pair_reference=m.pair_solref, pair_friction_reference=m.pair_solreffriction,
        pair_impedance=m.pair_solimp, pair_margin=m.pair_margin, pair_gap=m.pair_gap, pair_adhesion=m.pair_adhesion,
        pair_friction=m.pair_friction)
    found = filled(
        Found(), count=wp.zeros(near, dtype=int), distance=wp.empty((MOST, near), dtype=float),
        position=wp.empty((MOST, near), dtype=wp.vec3), normal=wp.empty((MOST, near), dtype=wp.vec3))
    x = d.contact
    contacts = filled(
        Contacts(), count=d.nacon, distance=x.dist, position=x.pos, frame=x.frame, margin=x.includemargin, friction=x.friction,
        reference=x.solref, friction_reference=x.solreffriction, impedance=x.solimp, dimension=x.dim, geoms=x.geom,
        rows=x.efc_address, world=x.worldid, kind=x.type, number=x.geomcollisionid, adhesion=x.adhesion, overflow=d.overflow)
    shares = threads_per_geom(d.nacon.device)
    if _count(m, FIELD, SPHERE) or _count(m, FIELD, CAPSULE):
        wp.launch(find_contacts_of_rods, (near, shares), [pairs, fields, shares, found], block_dim=BLOCK)
    if boxes := d.nworld * _count(m, FIELD, BOX):
        rows, corners, faces = boxes * shares, 10 + 2 * m.opt.ccd_iterations, 6 + MJ_MAX_EPAFACES * m.opt.ccd_iterations
        search = filled(
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
