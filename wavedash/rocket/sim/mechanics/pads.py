"""Boost pads: their positions, the test whether a car is on one, and their timers."""
from __future__ import annotations

import numpy as np
import warp as wp

from wavedash.rocket.constants import BACK_WALL_Y, PADS, SIDE_WALL_X
from wavedash.rocket.sim.collision.mesh_reach import aabb_half_size
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import (
    PAD_BOX_BIG,
    PAD_BOX_HEIGHT,
    PAD_BOX_SMALL,
    PAD_HEIGHT,
    PAD_RADIUS_BIG,
    PAD_RADIUS_SMALL,
)
from wavedash.rocket.sim.kernels.records import Pose

wp.set_module_options({"enable_backward": False})

COUNT = len(PADS)
CAR_SIZE = 100.0
"""uu: no part of a car's body is farther from its origin along x or y"""
MAX_CAR_Z = PAD_HEIGHT + 250.0
"""uu: a car whose origin is higher is on no pad"""
CELL = 256.0
CELLS_X, CELLS_Y = int(2 * SIDE_WALL_X / CELL), int(2 * BACK_WALL_Y / CELL)
"""The field in cells of 256 uu"""


@wp.struct
class PadTable:
    """The pads of the field."""

    position: wp.array(dtype=wp.vec3)
    big: wp.array(dtype=wp.int32)
    near: wp.array(dtype=wp.int32)
    """For each cell of the field, the only pad that a car there can reach, -1: none"""


def pad_table(device: str | wp.Device) -> PadTable:
    """The table for kernels. No cell is near two pads, since they lie far apart."""
    near = np.full((CELLS_X, CELLS_Y), -1, dtype=np.int32)
    reach = PAD_BOX_BIG + CAR_SIZE
    corners = np.arange(CELLS_X) * CELL - SIDE_WALL_X, np.arange(CELLS_Y) * CELL - BACK_WALL_Y
    low = np.stack(np.meshgrid(*corners, indexing="ij"), -1)
    for index, pad in enumerate(PADS):
        center = np.array([pad.x, pad.y])
        gap = np.maximum(0.0, np.maximum(low - center, center - low - CELL))
        reached = (gap < reach).all(-1)
        near[reached] = index
    table = PadTable()
    table.position = wp.array([wp.vec3(pad.x, pad.y, pad.z) for pad in PADS], dtype=wp.vec3, device=device)
    table.big = wp.array([int(pad.big) for pad in PADS], dtype=wp.int32, device=device)
    table.near = wp.array(near.ravel(), dtype=wp.int32, device=device)
    return table


@wp.func
def pad_in_reach(table: PadTable, position: wp.vec3) -> int:
    """The only pad that a car at this position may stand on, -1: none."""
    if position[2] > MAX_CAR_Z:
        return -1
    x = int(wp.floor((position[0] + SIDE_WALL_X) / CELL))
    y = int(wp.floor((position[1] + BACK_WALL_Y) / CELL))
    if x < 0 or x >= CELLS_X or y < 0 or y >= CELLS_Y:
        return -1
    return table.near[x * CELLS_Y + y]


@wp.func
def is_on_pad(table: PadTable, pad: int, pose: Pose, shape: CarShape, held: int) -> bool:
    """Whether a car is on a pad. `held` is the pad that the car holds: it stays on that one while its box overlaps the box of
    the pad. Otherwise its origin must be near the center of the pad."""
    away = pose.position - table.position[pad]
    if held == pad:
        side = float(PAD_BOX_SMALL)
        if table.big[pad] == 1:
            side = PAD_BOX_BIG
        center = away + pose.rotation * shape.center
        extent = aabb_half_size(shape.half, pose.rotation)
        over = wp.abs(center[0]) < side + extent[0] and wp.abs(center[1]) < side + extent[1]
        return over and center[2] - extent[2] < PAD_BOX_HEIGHT and center[2] + extent[2] > 0.0
    radius = float(PAD_RADIUS_SMALL)
    if table.big[pad] == 1:
        radius = PAD_RADIUS_BIG
    return away[0] * away[0] + away[1] * away[1] < radius * radius and wp.abs(away[2]) < PAD_HEIGHT


@wp.func_native(f"""
    const char* place = (const char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
    int most = -1;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = {COUNT} / 4 * 4; at < {2 * COUNT}; at += 4) {{
        const int4 holders = *(const int4*)(place + 4 * at);
        if (at >= {COUNT})  // the first piece begins with two timers
            most = max(most, max(holders.x, holders.y));
        most = max(most, max(holders.z, holders.w));
    }}
#else
    for (int at = {COUNT}; at < {2 * COUNT}; ++at)
        most = ((const int*)place)[at] > most ? ((const int*)place)[at] : most;
#endif
    return most >= 0;
""")
def is_any_pad_held(words: wp.array2d(dtype=wp.int32), e: int, first: int) -> bool:
    """Whether a car holds a pad. The record of the pads begins at word `first`: timers, then the seats that hold them."""
    return False


@wp.func_native(f"""
    char* place = (char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {2 * COUNT}; at += 4) {{  // most pads are ready and free, so that nothing is written
        const int4 is = *(const int4*)(place + 4 * at);
        int4 becomes = make_int4(-1, -1, -1, -1);
        if (at < {COUNT}) {{
            becomes.x = __float_as_int(fmaxf(__int_as_float(is.x) - seconds, 0.0f));
            becomes.y = __float_as_int(fmaxf(__int_as_float(is.y) - seconds, 0.0f));
        }}
        if (at + 2 < {COUNT}) {{
            becomes.z = __float_as_int(fmaxf(__int_as_float(is.z) - seconds, 0.0f));
            becomes.w = __float_as_int(fmaxf(__int_as_float(is.w) - seconds, 0.0f));
        }}
        if (becomes.x != is.x || becomes.y != is.y || becomes.z != is.z || becomes.w != is.w)
            *(int4*)(place + 4 * at) = becomes;
    }}
#else
    float* timers = (float*)place;
    int* holders = (int*)place + {COUNT};
    for (int i = 0; i < {COUNT}; ++i) {{
        timers[i] = timers[i] - seconds > 0.0f ? timers[i] - seconds : 0.0f;
        holders[i] = -1;
    }}
#endif
""")
def advance_pads(words: wp.array2d(dtype=wp.int32), e: int, first: int, seconds: float):
    """Takes `seconds` off the timers, and clears the seats that hold pads."""
