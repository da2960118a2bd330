"""Tiles as kernels see them: the height of the ground at a point, and where a ray meets the ground.

The surface is MuJoCo's: each cell of the grid is two triangles, split from its corner (row, col) to (row + 1, col + 1). Points
and directions are in the frame of the tile, its center in the origin, in metres; inside, x and y are in cells.

A tile is a block of ground with vertical walls at its border, which reach down without end, as a height field of MuJoCo with a
thick base. A ray that begins inside of the ground meets it at once.
"""
from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

BLOCK = wp.constant(8)
"""Cells of a block in each direction. A ray above the highest point of a block passes the whole of it in one step"""
NEVER = wp.constant(1.0e30)
PARALLEL = wp.constant(1.0e-9)
"""Below this many cells per unit of a ray it does not move along an axis"""


@wp.struct
class Tiles:
    """K tiles of X times Y corners."""

    heights: wp.array3d(dtype=wp.float32)
    """[K, Y, X] m"""
    cell_highest: wp.array3d(dtype=wp.float32)
    """[K, Y - 1, X - 1] the highest corner of each cell"""
    block_highest: wp.array3d(dtype=wp.float32)
    """[K, ceil((Y - 1) / BLOCK), ceil((X - 1) / BLOCK)] the highest corner of each block of cells"""
    highest: wp.array(dtype=wp.float32)
    """[K]"""
    resolution: float
    """Size of a cell, m"""


@wp.func
def to_cells(tiles: Tiles, point: wp.vec3) -> wp.vec2:
    """A point's x and y in cells from the first corner."""
    return wp.vec2(point[0] / tiles.resolution + 0.5 * float(tiles.heights.shape[2] - 1),
                   point[1] / tiles.resolution + 0.5 * float(tiles.heights.shape[1] - 1))


@wp.func
def height_in_cell(tiles: Tiles, k: int, r: int, c: int, x: float, y: float) -> float:
    """The height at (x, y), each 0 to 1, of a cell."""
    first, last = tiles.heights[k, r, c], tiles.heights[k, r + 1, c + 1]
    if x > y:
        corner = tiles.heights[k, r, c + 1]
        return first + x * (corner - first) + y * (last - corner)
    corner = tiles.heights[k, r + 1, c]
    return first + y * (corner - first) + x * (last - corner)


@wp.func
def cell_of(at: float, corners: int) -> int:
    return wp.clamp(int(wp.floor(at)), 0, corners - 2)


@wp.func
def height_at(tiles: Tiles, k: int, at: wp.vec2) -> float:
    """The height at a point in cells; outside of the tile that of the nearest point of its border."""
    x = wp.clamp(at[0], 0.0, float(tiles.heights.shape[2] - 1))
    y = wp.clamp(at[1], 0.0, float(tiles.heights.shape[1] - 1))
    c, r = cell_of(x, tiles.heights.shape[2]), cell_of(y, tiles.heights.shape[1])
    return height_in_cell(tiles, k, r, c, x - float(c), y - float(r))


@wp.struct
class Ray:
    """A ray over the grid: at `t` it is at origin + t direction."""

    x: float
    y: float
    z: float
    dx: float
    dy: float
    dz: float
    per_x: float
    """1 / dx; NEVER if the ray does not move along x"""
    per_y: float


@wp.func
def inverse(rate: float) -> float:
    return wp.where(wp.abs(rate) > PARALLEL, 1.0 / rate, NEVER)


@wp.func
def gap_in_cell(tiles: Tiles, ray: Ray, k: int, r: int, c: int, t: float) -> float:
    """How far the ray is above the ground at t, where it is in this cell."""
    x = wp.clamp(ray.x + t * ray.dx - float(c), 0.0, 1.0)
    y = wp.clamp(ray.y + t * ray.dy - float(r), 0.0, 1.0)
    return ray.z + t * ray.dz - height_in_cell(tiles, k, r, c, x, y)


@wp.func
def cast_in_cell(tiles: Tiles, ray: Ray, k: int, r: int, c: int, enter: float, leave: float) -> float:
    """Where the ray meets the ground of a cell, NEVER if it does not. Between the borders of triangles its gap to the ground is
    linear: a change of sign between two of them is a hit, and there are no cracks between triangles."""
    before = gap_in_cell(tiles, ray, k, r, c, enter)
    if before <= 0.0:
        return enter
    start = float(enter)
    across = ray.dx - ray.dy
    if wp.abs(across) > PARALLEL:
        diagonal = (float(c - r) - ray.x + ray.y) / across
        if diagonal > enter and diagonal < leave:
            middle = gap_in_cell(tiles, ray, k, r, c, diagonal)
            if middle <= 0.0:
                return enter + (diagonal - enter) * before / (before - middle)
            start = diagonal
            before = middle
    after = gap_in_cell(tiles, ray, k, r, c, leave)
    if after <= 0.0:
        return start + (leave - start) * before / (before - after)
    return NEVER


@wp.func
def next_line(at: float, rate: float, per: float, index: int, cells: int) -> float:
    """When the ray leaves the interval of `cells` cells that begins with cell `index * cells`, along one axis."""
    if wp.abs(rate) <= PARALLEL:
        return NEVER
    line = wp.where(rate > 0.0, (index + 1) * cells, index * cells)
    return (float(line) - at) * per


@wp.func
def cast_in_block(tiles: Tiles, ray: Ray, k: int, block_r: int, block_c: int, enter: float, leave: float) -> float:
    """Where the ray meets the ground of a block, NEVER if it does not: cell by cell."""
    first_r, first_c = block_r * BLOCK, block_c * BLOCK
    last_r = wp.min(first_r + BLOCK, tiles.heights.shape[1] - 1) - 1
    last_c = wp.min(first_c + BLOCK, tiles.heights.shape[2] - 1) - 1
    r = wp.clamp(int(wp.floor(ray.y + enter * ray.dy)), first_r, last_r)
    c = wp.clamp(int(wp.floor(ray.x + enter * ray.dx)), first_c, last_c)
    t = float(enter)
    while r >= first_r and r <= last_r and c >= first_c and c <= last_c:
        next_x, next_y = next_line(ray.x, ray.dx, ray.per_x, c, 1), next_line(ray.y, ray.dy, ray.per_y, r, 1)
        end = wp.max(wp.min(wp.min(next_x, next_y), leave), t)
        if ray.z + wp.min(t * ray.dz, end * ray.dz) <= tiles.cell_highest[k, r, c]:
            hit = cast_in_cell(tiles, ray, k, r, c, t, end)
            if hit < NEVER:
                return hit
        if not end < leave:
            return NEVER
        t = end
        if next_x <= next_y:
            c += wp.where(ray.dx > 0.0, 1, -1)
        else:
            r += wp.where(ray.dy > 0.0, 1, -1)
    return NEVER


@wp.func
def cast_ray(tiles: Tiles, k: int, origin: wp.vec3, direction: wp.vec3, far: float) -> float:
    """The smallest t in [0, far) at which origin + t direction is on or under the ground, or `far`; `far` for a ray of NaN."""
    at = to_cells(tiles, origin)
    ray = Ray()
    ray.x = at[0]
    ray.y = at[1]
    ray.z = origin[2]
    ray.dx = direction[0] / tiles.resolution
    ray.dy = direction[1] / tiles.resolution
    ray.dz = direction[2]
    ray.per_x = inverse(ray.dx)
    ray.per_y = inverse(ray.dy)
    right, top = float(tiles.heights.shape[2] - 1), float(tiles.heights.shape[1] - 1)
    t, stop = float(0.0), float(far)
    if wp.abs(ray.dx) > PARALLEL:
        one, other = -ray.x * ray.per_x, (right - ray.x) * ray.per_x
        t, stop = wp.max(t, wp.min(one, other)), wp.min(stop, wp.max(one, other))
    elif ray.x < 0.0 or ray.x > right:
        return far
    if wp.abs(ray.dy) > PARALLEL:
        one, other = -ray.y * ray.per_y, (top - ray.y) * ray.per_y
        t, stop = wp.max(t, wp.min(one, other)), wp.min(stop, wp.max(one, other))
    elif ray.y < 0.0 or ray.y > top:
        return far
    above = tiles.highest[k] - ray.z
    if ray.dz < 0.0:
        t = wp.max(t, above / ray.dz)
    elif ray.dz > 0.0:
        stop = wp.min(stop, above / ray.dz)
    elif above < 0.0:
        return far
    if not t < stop:
        return far
    rows, columns = tiles.block_highest.shape[1], tiles.block_highest.shape[2]
    r = wp.clamp(int(wp.floor(ray.y + t * ray.dy)) // BLOCK, 0, rows - 1)
    c = wp.clamp(int(wp.floor(ray.x + t * ray.dx)) // BLOCK, 0, columns - 1)
    while r >= 0 and r < rows and c >= 0 and c < columns:
        next_x, next_y = next_line(ray.x, ray.dx, ray.per_x, c, BLOCK), next_line(ray.y, ray.dy, ray.per_y, r, BLOCK)
        end = wp.max(wp.min(wp.min(next_x, next_y), stop), t)
        if ray.z + wp.min(t * ray.dz, end * ray.dz) <= tiles.block_highest[k, r, c]:
            hit = cast_in_block(tiles, ray, k, r, c, t, end)
            if hit < NEVER:
                return wp.min(hit, far)
        if not end < stop:
            return far
        t = end
        if next_x <= next_y:
            c += wp.where(ray.dx > 0.0, 1, -1)
        else:
            r += wp.where(ray.dy > 0.0, 1, -1)
    return far
