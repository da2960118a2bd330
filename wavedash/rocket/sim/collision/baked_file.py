"""The baked arena on disk. Kernels index memory by its numbers, so nothing of a file is used before all of it is checked."""
from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavedash.errors import UserError
from wavedash.rocket.sim.collision.bake import BOUNDARY, CELL, GRID_LOW, GRID_SHAPE, REACH, Baked, face, unit

BAKED_FILE = "WAVEDASH_ARENA"
"""Environment variable that names a baked file, for machines without the meshes"""
MAX_BYTES = 64 * 2**20
"""Greatest size of a file when unpacked; the standard field has 7 MiB"""
MAX_MESHES = 16
SHAPES = {"corners": (3, 3), "normals": (3,), "angles": (3,), "mesh": ()}
"""Shapes of the arrays with one entry per triangle, without the axis of triangles"""


def read_baked(file: Path) -> Baked:
    """The arena of a file. Raises UserError if it is not a baked arena, or one that the kernels could not use."""
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_BYTES:
            raise ValueError(f"it unpacks to {size:,} bytes")
        with np.load(file, allow_pickle=False) as arrays:
            missing = [name for name in Baked._fields if name not in arrays]
            if missing:
                raise ValueError(f"it holds no {', '.join(missing)}")
            baked = Baked(*(arrays[name] for name in Baked._fields))
        check_baked(baked)
    except Exception as error:  # zip files and arrays can be wrong in many ways, each with an exception of its own
        raise UserError(f"{file} is not a baked arena ({error}). Remove it, or if {BAKED_FILE} names it, unset that variable "
                        "or set it to another file") from error
    return baked


def write_baked(baked: Baked, file: Path) -> None:
    """Writes the file whole or not at all. A cache that cannot be written only costs time, so that is no error."""
    unfinished = file.with_name(f"{file.stem}-{os.getpid()}.part.npz")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(unfinished, **baked._asdict())
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)


def check_baked(baked: Baked) -> None:
    """Raises ValueError with what is wrong, if anything is."""
    triangles = len(baked.corners) if isinstance(baked.corners, np.ndarray) and baked.corners.ndim else 0
    for name, array in baked._asdict().items():
        wanted = np.int32 if name in ("mesh", "first", "items") else np.float32
        if not isinstance(array, np.ndarray) or array.dtype != wanted:
            raise ValueError(f"{name} has the type {getattr(array, 'dtype', type(array))}, not {np.dtype(wanted)}")
        shape: tuple[int, ...] = (triangles, *SHAPES[name]) if name in SHAPES else array.shape[:1]
        if array.shape != shape or not array.size:
            raise ValueError(f"{name} has the shape {list(array.shape)}, not {[*shape]}")
    _check_triangles(baked)
    _check_grid(baked, triangles)


def _check_triangles(baked: Baked) -> None:
    corners, low = baked.corners, np.array(GRID_LOW)
    high = low + np.array(GRID_SHAPE) * CELL
    _refuse("corners", ~np.isfinite(corners), "is not finite")
    _refuse("corners", (corners < low - REACH) | (corners > high + REACH), "is outside of the field")
    faces = face(corners)
    _refuse("corners", np.linalg.norm(faces, axis=1) < 1e-3, "make a triangle without an area")
    _refuse("normals", ~(np.abs(baked.normals - unit(faces)) < 1e-3), "is not that of the triangle")
    _refuse("angles", ~((np.abs(baked.angles) <= np.float32(np.pi)) | (baked.angles == BOUNDARY)), "is no angle")
    _refuse("mesh", (baked.mesh < 0) | (baked.mesh >= MAX_MESHES), f"is not 0 to {MAX_MESHES - 1}")
    _refuse("mesh", np.diff(baked.mesh) < 0, "is followed by a smaller one")


def _check_grid(baked: Baked, triangles: int) -> None:
    """Checks that a cell's list lies within `items`, in ascending order, and that the cell of a triangle's center lists it."""
    first, items = baked.first, baked.items
    cells = int(np.prod(GRID_SHAPE))
    if len(first) != cells + 1:
        raise ValueError(f"first has {len(first):,} entries, not {cells + 1:,}")
    if first[0] != 0 or first[-1] != len(items):
        raise ValueError(f"first runs from {first[0]} to {first[-1]}, not from 0 to the {len(items):,} items")
    _refuse("first", np.diff(first) < 0, "is followed by a smaller one")
    _refuse("items", (items < 0) | (items >= triangles), f"is not one of the {triangles:,} triangles")
    cell = np.repeat(np.arange(cells), np.diff(first))  # [items]: the cell that lists each item
    _refuse("items", (np.diff(items) <= 0) & (np.diff(cell) == 0), "is not followed by a larger one in the list of its cell")
    center = np.floor((baked.corners.mean(axis=1, dtype=np.float64) - GRID_LOW) / CELL).astype(np.int64)
    home = np.ravel_multi_index(tuple(np.clip(center, 0, np.array(GRID_SHAPE) - 1).T), GRID_SHAPE)
    listed = np.isin(home * triangles + np.arange(triangles), cell * triangles + items)
    _refuse("items", ~listed, "as the number of a triangle is missing from the list of the cell that the triangle is in")


def _refuse(name: str, wrong: NDArray[Any], why: str) -> None:
    if wrong.any():
        raise ValueError(f"{name}[{int(np.argwhere(wrong)[0][0])}] {why}")
