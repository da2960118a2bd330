"""A correction of MuJoCo Warp 4.0.0: contacts with the steep parts of height fields.

A height field collides as one prism for each of its triangles. Where a geom touches a side of a prism, MuJoCo Warp moves
the contact to the top of the prism, with a vertical normal, so that the inner walls between prisms are not felt. It
concludes from the directions of the search whether a side is touched, and where the top itself is steep the conclusion is
wrong (a TODO in its source says so). Measured with robots that fall among stepping stones: 19 % of the feet and about half
of the legs and trunks that touched something had a contact with a vertical normal, also downward, and a depth that was off
by centimetres; legs went into the stones, and robots were thrown up at 6 m/s. MuJoCo has no such rule. Without it, both
find the same contacts.

`correct_contacts` turns the rule off: it depends on the type of the first geom, which its two functions use for nothing
else.
"""
from __future__ import annotations

from importlib.metadata import version

import warp as wp
from mujoco_warp._src import collision_gjk as gjk

if version("mujoco-warp") != "4.0.0":
    raise ImportError(f"mujoco-warp {version('mujoco-warp')} is")

WITNESS, INFLATE = gjk._epa_witness, gjk._inflate
NO_FIELD = wp.constant(int(gjk.GeomType.BOX))


@wp.func
def _witness(pt: gjk.Polytope, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, face_idx: int):
    x1, x2, distance = WITNESS(pt, geom1, geom2, NO_FIELD, geomtype2, face_idx)
    return x1, x2, distance


@wp.func
def _inflated(result: gjk.GJKResult, geom1: gjk.Geom, geom2: gjk.Geom, geomtype1: int, geomtype2: int, margin1: float,
              margin2: float):
    distance, x1, x2 = INFLATE(result, geom1, geom2, NO_FIELD, geomtype2, margin1, margin2)
    return distance, x1, x2


def correct_contacts() -> None:
    """Call it before MuJoCo Warp compiles its kernels."""
    gjk._epa_witness, gjk._inflate = _witness, _inflated
