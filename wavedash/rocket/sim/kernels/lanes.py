"""Threads of a GPU that work together: on lists, and on one car or ball with many triangles around.

On a CPU a team is one thread, and all of this comes to nothing.
"""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.struct
class Team:
    """Neighbouring threads that share a piece of work, as one of them sees it."""

    lane: wp.int32
    """Its number among them. Lane 0 does what only one can do."""
    lanes: wp.int32
    """How many they are: 1, 2, 4, 8, 16 or 32"""
    place: wp.int32
    """Of lane 0's in the memory that the lanes share; the others' follow"""


@wp.func
def team_of(thread: int, lanes: int) -> Team:
    """Of a thread of a GPU."""
    team = Team()
    team.lane = thread % lanes
    team.lanes = lanes
    team.place = thread - team.lane
    return team


@wp.func
def single(place: int) -> Team:
    """A thread by itself."""
    team = Team()
    team.lanes = 1
    team.place = place
    return team


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mates = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    return (int)((__ballot_sync(mates, flag) & mates) >> ((threadIdx.x & 31) - lane));
#else
    return flag ? 1 : 0;
#endif
""")
def votes(lane: int, lanes: int, flag: bool) -> int:
    """Who of a team says yes, a bit for each lane. All must ask."""
    return 0


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mates = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    __syncwarp(mates);
#endif
""")
def meet(lane: int, lanes: int):
    """All of a team wait for each other, and see what the others wrote."""


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const unsigned mates = (lanes == 32 ? ~0u : (1u << lanes) - 1) << ((threadIdx.x & 31) - lane);
    for (int far = lanes / 2; far > 0; far /= 2)
        value = min(value, __shfl_xor_sync(mates, value, far));
#endif
    return value;
""")
def least(lane: int, lanes: int, value: int) -> int:
    """Of the values of a team. All must ask, and all know it."""
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
def ones(bits: int) -> int:
    """How many bits are set."""
    return 0


@wp.func_native("""
    int* address = (int*)((char*)many.data + (size_t)list * many.strides[0] + (size_t)tick * many.strides[1]);
#ifdef __CUDA_ARCH__
    const unsigned together = __activemask();
    const int lane = threadIdx.x & 31, first = __ffs(together) - 1;
    int place = 0;
    if (lane == first)
        place = atomicAdd(address, __popc(together));
    return __shfl_sync(together, place, first) + __popc(together & ((1u << lane) - 1));
#else
    return (*address)++;
#endif
""")
def next_place(many: wp.array2d(dtype=wp.int32), list: int, tick: int) -> int:
    """In a list that becomes longer by one. Threads side by side are counted together."""
    return 0
