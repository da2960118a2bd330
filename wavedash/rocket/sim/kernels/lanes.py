"""Cooperative threads: lanes of a GPU's warp share the triangles around one car or ball, and append to lists together.

On a CPU there is one lane, for which these functions do nothing or return what they are given.
"""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.struct
class Lanes:
    """Neighboring threads that share a piece of work, as one of them sees it."""

    lane: wp.int32
    """Number of this thread among them. Lane 0 does what must be done once."""
    count: wp.int32
    """How many lanes there are: 1, 2, 4, 8, 16 or 32"""
    slot: wp.int32
    """Index of lane 0 in the memory that the lanes share; the other lanes follow"""


@wp.func
def lanes_of(thread: int, count: int) -> Lanes:
    """The lanes to which a thread of a GPU belongs, when `count` threads work together."""
    lanes = Lanes()
    lanes.lane = thread % count
    lanes.count = count
    lanes.slot = thread - lanes.lane
    return lanes


@wp.func
def one_lane(slot: int) -> Lanes:
    """A thread that works alone."""
    lanes = Lanes()
    lanes.count = 1
    lanes.slot = slot
    return lanes


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    return (int)((__ballot_sync(mask, flag) & mask) >> ((threadIdx.x & 31) - lane));
#else
    return flag ? 1 : 0;
#endif
""")
def ballot(lane: int, lanes: int, flag: bool) -> int:
    """A bit for each lane whose flag is true. All lanes must call it."""
    return 0


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    __syncwarp(mask);
#endif
""")
def sync_lanes(lane: int, lanes: int):
    """All lanes wait for each other, and see what the others wrote."""


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    for (int offset = lanes / 2; offset > 0; offset /= 2)
        value = min(value, __shfl_xor_sync(mask, value, offset));
#endif
    return value;
""")
def lane_min(lane: int, lanes: int, value: int) -> int:
    """The least of the values of all lanes. All lanes must call it, and all get the result."""
    return 0


@wp.func_native("""
#ifdef __CUDA_ARCH__
    return __popc(bits);
#else
    int count = 0;
    for (unsigned left = (unsigned)bits; left; left &= left - 1)
        ++count;
    return count;
#endif
""")
def popcount(bits: int) -> int:
    """The number of bits that are set."""
    return 0


@wp.func_native("""
    int* address = (int*)((char*)lengths.data + (size_t)list * lengths.strides[0] + (size_t)tick * lengths.strides[1]);
#ifdef __CUDA_ARCH__
    const unsigned active = __activemask();
    const int lane = threadIdx.x & 31, first = __ffs(active) - 1;
    int slot = 0;
    if (lane == first)
        slot = atomicAdd(address, __popc(active));
    return __shfl_sync(active, slot, first) + __popc(active & ((1u << lane) - 1));
#else
    return (*address)++;
#endif
""")
def next_slot(lengths: wp.array2d(dtype=wp.int32), list: int, tick: int) -> int:
    """Makes a list one longer, and returns the index of its new entry. Threads of a warp that call it together share one atomic
    operation."""
    return 0
