"""What we change in how MuJoCo Warp 4.0.0 finds contacts with height fields: a correction, and a test that makes it fast.

A height field collides as one prism for each of its triangles. `patch` exchanges functions that its kernels are made of.

- **Steep parts.** Where a geom touches a side of a prism, MuJoCo Warp moves the contact to the top of the prism, with a
  vertical normal, so that the inner walls between prisms are not felt. It concludes from the directions of the search whether
  a side is touched, and where the top itself is steep the conclusion is wrong (a TODO in its source says so). Measured with
  robots that fall among stepping stones: 19 % of the feet and about half of the legs and trunks that touched something had a
  contact with a vertical normal, also downward, and a depth that was off by centimetres; legs went into the stones, and robots
  were thrown up at 6 m/s. MuJoCo has no such rule. Without it, both find the same contacts. The rule depends on the type of the
  first geom, which its two functions use for nothing else.
- **Feet and legs.** Each prism under the bounding box of a geom is searched for the nearest points, and a slanting leg has two
  dozen such prisms of which it touches a few. For spheres and capsules they follow in closed form (prism_contacts.py); of a
  box, prisms are left out that have it wholly outside of one of their faces. The contacts are the same. On an H200 the search
  was 95 % of the time of 4,096 robots on rough ground.
"""
from __future__ import annotations

from importlib.metadata import version

import warp as wp
from mujoco_warp._src import collision_convex as convex
from mujoco_warp._src import collision_gjk as gjk

from wavedash.walk.prism_contacts import faces_of, touch

if version("mujoco-warp") != "4.0.0":
    raise ImportError(f"mujoco-warp {version('mujoco-warp')} is")

WITNESS, INFLATE, CCD = gjk._epa_witness, gjk._inflate, gjk.ccd
NO_FIELD = wp.constant(int(gjk.GeomType.BOX))
FIELD, SPHERE, CAPSULE, BOX = (wp.constant(int(x)) for x in (gjk.GeomType.HFIELD, gjk.GeomType.SPHERE, gjk.GeomType.CAPSULE,
                                                             gjk.GeomType.BOX))
FAR = wp.constant(1e10)


@wp.func
def _witness(pt: gjk.Polytope, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, face_idx: int):
    x1, x2, distance = WITNESS(pt, geom1, geom2, NO_FIELD, geomtype2, face_idx)
    return x1, x2, distance


@wp.func
def _inflated(result: gjk.GJKResult, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, margin1: float,
              margin2: float):
    distance, x1, x2 = INFLATE(result, geom1, geom2, NO_FIELD, geomtype2, margin1, margin2)
    return distance, x1, x2


@wp.func
def _outside(normal: wp.vec3, corner: wp.vec3, box: gjk.Geom):
    """Whether all of the box is outside of a face of a prism."""
    reach = wp.dot(wp.abs(wp.transpose(box.rot) @ normal), box.size)
    return wp.dot(normal, box.pos - corner) > reach


@wp.func
def _out_of_reach(prism: gjk.mat63, box: gjk.Geom):
    """Whether all of the box is outside of one of the faces of the prism."""
    a, b, c = prism[3], prism[4], prism[5]
    faces = faces_of(a, b, c)
    return (_outside(faces.top, a, box) or _outside(faces.ab, a, box) or _outside(faces.bc, b, box)
            or _outside(faces.ca, c, box))


@wp.func
def _ccd(tolerance: float, cutoff: float, gjk_iterations: int, epa_iterations: int, geom1: gjk.Geom, geom2: gjk.Geom,
         geomtype1: int, geomtype2: int, x_1: wp.vec3, x_2: wp.vec3, vert: wp.array[wp.vec3], vert_index: wp.array[int],
         face: wp.array[int], face_pr: wp.array[wp.vec3], face_norm2: wp.array[float], horizon: wp.array[int],
         warn_overflow: bool, worldid: int, overflow_out: wp.array[int]):
    """As CCD: the distance, the number of contacts, the points of both, and a number that nobody asks for here."""
    prism = geom1.polyvert
    if geomtype1 == FIELD and (geomtype2 == SPHERE or geomtype2 == CAPSULE):  # noqa: SIM109, Warp has no `in`
        half = wp.vec3(0.0, 0.0, 0.0)
        if geomtype2 == CAPSULE:
            half = geom2.size[1] * wp.vec3(geom2.rot[0, 2], geom2.rot[1, 2], geom2.rot[2, 2])
        distance, x1, x2 = touch(prism[3], prism[4], prism[5], prism[0, 2], geom2.pos - half, 2.0 * half, geom2.size[0])
        return distance, 1, x1, x2, -1
    if geomtype1 == FIELD and geomtype2 == BOX:
        if _out_of_reach(prism, geom2):
            return FAR, 0, x_1, x_2, -1
    distance, count, x1, x2, index = CCD(tolerance, cutoff, gjk_iterations, epa_iterations, geom1, geom2, geomtype1, geomtype2,
                                         x_1, x_2, vert, vert_index, face, face_pr, face_norm2, horizon, warn_overflow, worldid,
                                         overflow_out)
    return distance, count, x1, x2, index


def patch() -> None:
    """Call it before MuJoCo Warp compiles its kernels."""
    gjk._epa_witness, gjk._inflate, convex.ccd = _witness, _inflated, _ccd
