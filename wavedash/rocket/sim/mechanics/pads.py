"""Boost pads: who stands on which, who gets its boost, and when it is back."""
from __future__ import annotations

import numpy as np
import warp as wp

from wavedash.rocket.constants import PADS
from wavedash.rocket.sim.collision.mesh_reach import extent_of
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import Pose

wp.set_module_options({"enable_backward": False})

COUNT = len(PADS)
REACH_Z = wp.constant(95.0)
TALLEST = wp.constant(95.0 + 250.0)
BOX_HEIGHT = wp.constant(64.0)
CELL = wp.constant(256.0)
CELLS_X = wp.constant(32)
CELLS_Y = wp.constant(40)


@wp.struct
class PadTable:
    """Where the pads are."""

    place: wp.array(dtype=wp.vec3)
    big: wp.array(dtype=wp.int32)
    near: wp.array(dtype=wp.int32)
    """By cell of the field: the one pad that a car there can reach, -1: none"""


def pad_table(device: str | wp.Device) -> PadTable:
    """For kernels. No cell is near two pads, which lie far apart."""
    near = np.full((int(CELLS_X), int(CELLS_Y)), -1, dtype=np.int32)
    reach = 160.0 + 100.0  # a big pad's box and a car's
    low = np.stack(np.meshgrid(np.arange(32) * 256.0 - 4096.0, np.arange(40) * 256.0 - 5120.0, indexing="ij"), -1)
    for index, pad in enumerate(PADS):
        middle = np.array([pad.x, pad.y])
        gap = np.maximum(0.0, np.maximum(low - middle, middle - low - 256.0))
        reached = (gap < reach).all(-1)
        near[reached] = index
    table = PadTable()
    table.place = wp.array([wp.vec3(pad.x, pad.y, pad.z) for pad in PADS], dtype=wp.vec3, device=device)
    table.big = wp.array([int(pad.big) for pad in PADS], dtype=wp.int32, device=device)
    table.near = wp.array(near.ravel(), dtype=wp.int32, device=device)
    return table


@wp.func
def pad_near(table: PadTable, place: wp.vec3) -> int:
    """The one pad that a car there may stand on, -1: none."""
    if place[2] > TALLEST:
        return -1
    x = int(wp.floor((place[0] + 4096.0) / CELL))
    y = int(wp.floor((place[1] + 5120.0) / CELL))
    if x < 0 or x >= CELLS_X or y < 0 or y >= CELLS_Y:
        return -1
    return table.near[x * CELLS_Y + y]


@wp.func
def is_on_pad(table: PadTable, pad: int, pose: Pose, shape: CarShape, held: int) -> bool:
    """Who holds a pad holds it while its box is over the pad's; others must come near its middle."""
    away = pose.position - table.place[pad]
    if held == pad:
        side = float(120.0)
        if table.big[pad] == 1:
            side = 160.0
        middle = away + pose.rotation * shape.middle
        extent = extent_of(shape.half, pose.rotation)
        over = wp.abs(middle[0]) < side + extent[0] and wp.abs(middle[1]) < side + extent[1]
        return over and middle[2] - extent[2] < BOX_HEIGHT and middle[2] + extent[2] > 0.0
    radius = float(144.0)
    if table.big[pad] == 1:
        radius = 208.0
    return away[0] * away[0] + away[1] * away[1] < radius * radius and wp.abs(away[2]) < REACH_Z


@wp.func_native(f"""
    const char* place = (const char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
    int most = -1;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = {COUNT} / 4 * 4; at < {2 * COUNT}; at += 4) {{
        const int4 holders = *(const int4*)(place + 4 * at);
        if (at >= {COUNT})  // half of the piece before are timers
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
    """By a car. The record of the pads begins at word `first`: timers, then who holds them."""
    return False


@wp.func_native(f"""
    char* place = (char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {2 * COUNT}; at += 4) {{  // most of them are ready and free: nothing is written
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
def let_pads_wait(words: wp.array2d(dtype=wp.int32), e: int, first: int, seconds: float):
    """Time passes, and nobody holds a pad."""
