"""The prisms of a height field that are under a geom, one for each triangle, and which of them are within its reach."""
from __future__ import annotations

import warp as wp
from mujoco_warp._src import collision_gjk as gjk

from wavedash.walk.contacts.arrays import Fields
from wavedash.walk.contacts.prism_contacts import is_out_of_reach, outward, upward


@wp.struct
class Under:
    """The part of a height field that is under a geom's bounding box, in the frame of the field. Prisms are numbered by rows;
    each cell has two."""

    prisms: int
    width: int
    """Cells in a row of it"""
    row: int
    column: int
    first: int
    columns: int
    cell: wp.vec2
    corner: wp.vec2
    height: float
    bottom: float
    lowest: float
    """Of the geom"""


@wp.struct
class Prism:
    """The corners of its top."""

    a: wp.vec3
    b: wp.vec3
    c: wp.vec3


@wp.func
def under_geom(fields: Fields, field: int, low: wp.vec3, high: wp.vec3):
    size = fields.size[field]
    rows, columns = fields.rows[field], fields.columns[field]
    x_scale, y_scale = 0.5 * float(columns - 1) / size[0], 0.5 * float(rows - 1) / size[1]
    under = Under()
    under.column = wp.max(0, int(wp.floor((low[0] + size[0]) * x_scale)))
    under.row = wp.max(0, int(wp.floor((low[1] + size[1]) * y_scale)))
    under.width = wp.max(0, wp.min(columns - 1, int(wp.ceil((high[0] + size[0]) * x_scale))) - under.column)
    height = wp.max(0, wp.min(rows - 1, int(wp.ceil((high[1] + size[1]) * y_scale))) - under.row)
    under.prisms = 2 * under.width * height
    if low[2] > size[2] or high[2] < -size[3]:
        under.prisms = 0
    under.first = fields.first[field]
    under.columns = columns
    under.cell = wp.vec2(2.0 * size[0] / float(columns - 1), 2.0 * size[1] / float(rows - 1))
    under.corner = wp.vec2(size[0], size[1])
    under.height = size[2]
    under.bottom = -size[3]
    under.lowest = low[2]
    return under


@wp.func
def _corner(heights: wp.array[float], under: Under, row: int, column: int):
    return wp.vec3(under.cell[0] * float(column) - under.corner[0], under.cell[1] * float(row) - under.corner[1],
                   heights[under.first + row * under.columns + column] * under.height)


@wp.func
def prism_of(heights: wp.array[float], under: Under, number: int):
    cell = number // 2
    row, column = under.row + cell // under.width, under.column + cell % under.width
    prism = Prism()
    if number % 2 == 0:
        prism.a = _corner(heights, under, row + 1, column)
        prism.b = _corner(heights, under, row, column)
        prism.c = _corner(heights, under, row + 1, column + 1)
    else:
        prism.a = _corner(heights, under, row, column)
        prism.b = _corner(heights, under, row + 1, column + 1)
        prism.c = _corner(heights, under, row, column + 1)
    return prism


@wp.func
def corners(prism: Prism, bottom: float):
    """All six, the lower three first."""
    a, b, c = prism.a, prism.b, prism.c
    return gjk.mat63(a[0], a[1], bottom, b[0], b[1], bottom, c[0], c[1], bottom,
                     a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


@wp.func
def _is_below(prism: Prism, height: float):
    return wp.max(prism.a[2], wp.max(prism.b[2], prism.c[2])) < height


@wp.func
def _is_outside(corner: wp.vec3, normal: wp.vec3, box: gjk.Geom):
    """Whether all of the box is outside of a face of a prism. The normal may have any length."""
    reach = wp.dot(wp.abs(wp.transpose(box.rot) @ normal), box.size)
    return wp.dot(normal, box.pos - corner) > reach


@wp.func
def is_box_out_of_reach(prism: Prism, box: gjk.Geom):
    return (_is_outside(prism.a, upward(prism.a, prism.b, prism.c), box)
            or _is_outside(prism.a, outward(prism.a, prism.b, prism.c), box)
            or _is_outside(prism.b, outward(prism.b, prism.c, prism.a), box)
            or _is_outside(prism.c, outward(prism.c, prism.a, prism.b), box))


@wp.func
def next_for_rod(heights: wp.array[float], under: Under, number: int, shares: int, start: wp.vec3, rod: wp.vec3,
                  radius: float):
    """The number of the next prism within reach, of this one and those that follow it by so many."""
    searching = bool(True)
    while searching and number < under.prisms:
        prism = prism_of(heights, under, number)
        searching = _is_below(prism, under.lowest)
        if not searching:
            searching = is_out_of_reach(prism.a, prism.b, prism.c, start, rod, radius)
        if searching:
            number += shares
    return number


@wp.func
def next_for_box(heights: wp.array[float], under: Under, number: int, shares: int, box: gjk.Geom):
    """The number of the next prism within reach, of this one and those that follow it by so many."""
    searching = bool(True)
    while searching and number < under.prisms:
        prism = prism_of(heights, under, number)
        searching = _is_below(prism, under.lowest)
        if not searching:
            searching = is_box_out_of_reach(prism, box)
        if searching:
            number += shares
    return number
