"""Loads and stores structs in memory: a thread of a GPU moves 16 bytes at once.

Memory is words of four bytes, [N, W] of int32. Structs begin at multiples of 16 bytes. The compiler leaves out those pieces of
a loaded struct that are not read.
"""
from __future__ import annotations

import ctypes
from typing import Any

import warp as wp


def words_of(kind: Any) -> int:
    """Size of a struct in words of four bytes."""
    return ctypes.sizeof(kind.ctype) // 4


def stride_of(kind: Any) -> int:
    """Words from one struct to the next: its size, rounded up to 16 bytes."""
    return -(-words_of(kind) // 4) * 4


def loader(kind: Any) -> Any:
    """A function that loads a struct from the words of an arena."""
    size = 4 * words_of(kind)
    snippet = f"""
    {kind.native_name} out;
    const char* place = (const char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {size}; at += 16) {{
        const int4 piece = *(const int4*)(place + at);
        memcpy((char*)&out + at, &piece, at + 16 <= {size} ? 16 : {size % 16});
    }}
#else
    memcpy(&out, place, {size});
#endif
    return out;
    """

    def load(words: wp.array2d(dtype=wp.int32), e: int, first: int):
        return kind()

    load.__name__ = load.__qualname__ = f"load_{kind.key.lower()}"
    return wp.func_native(snippet)(load)


def storer(kind: Any) -> Any:
    """A function that stores a struct in the words of an arena. Bytes behind its last field are written as zero."""
    size = 4 * words_of(kind)
    used = max(getattr(kind.ctype, name).offset + getattr(kind.ctype, name).size for name, _ in kind.ctype._fields_)
    mask = (1 << 8 * (used - size + 4)) - 1
    snippet = f"""
    char* place = (char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
    int last;
    memcpy(&last, (const char*)&value + {size - 4}, 4);
    last &= (int)0x{mask:x}u;
#ifdef __CUDA_ARCH__
    #pragma unroll
    for (int at = 0; at < {size}; at += 16) {{
        int4 piece = make_int4(0, 0, 0, 0);
        memcpy(&piece, (const char*)&value + at, at + 16 <= {size} ? 16 : {size % 16});
        if (at + 16 >= {size})
            memcpy((char*)&piece + {(size - 4) % 16}, &last, 4);
        *(int4*)(place + at) = piece;
    }}
#else
    memcpy(place, &value, {size});
    memcpy(place + {size - 4}, &last, 4);
#endif
    """

    def store(words: wp.array2d(dtype=wp.int32), e: int, first: int, value: Any): ...

    store.__name__ = store.__qualname__ = f"store_{kind.key.lower()}"
    store.__annotations__["value"] = kind
    return wp.func_native(snippet)(store)


@wp.func_native("""
#ifdef __CUDA_ARCH__
    const char* place = (const char*)words.data + (size_t)e * words.strides[0] + (size_t)first * 4;
    asm volatile("prefetch.global.L1 [%0];" :: "l"(place));
#endif
""")
def prefetch(words: wp.array2d(dtype=wp.int32), e: int, first: int):
    """On a GPU, fetches words into the L1 cache that will be needed soon, and does not wait for them."""
