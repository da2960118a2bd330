"""The colour of each pixel: the nearest of ground and shapes, lit by the sun and the sky, with shadows."""
from __future__ import annotations

import warp as wp

from wavedash.walk.render.kernels.shapes import Shapes, cast_at_shape, meets_ball, normal_of_shape
from wavedash.walk.sensors.kernels.tiles import NEVER, Tiles, cast_ray, cell_of, height_at, to_cells

wp.set_module_options({"enable_backward": False})

SKY, GROUND = wp.constant(-2), wp.constant(-1)
"""What a ray meets; 0 and above are shapes"""
LIFT = wp.constant(1.0e-3)
"""A shadow ray begins so far above its surface, m, or the surface would shade itself"""


@wp.struct
class View:
    """A pinhole camera and its picture."""

    eye: wp.vec3
    forward: wp.vec3
    right: wp.vec3
    down: wp.vec3
    rows: int
    columns: int
    pixel: float
    """Width of a pixel at depth 1"""
    samples: int
    """Rays of a pixel along each side"""
    far: float
    tile: int


@wp.struct
class Look:
    """Light and colours, each red, green, blue from 0 to 1."""

    light: wp.vec3
    """Direction towards the sun, of length 1"""
    sun: float
    ambient: float
    low: wp.vec3
    """Ground at and below `bottom`"""
    middle: wp.vec3
    high: wp.vec3
    """Ground at and above `top`"""
    bottom: float
    top: float
    wall: wp.vec3
    line: float
    """Distance of the lines of the grid, m; 0: there are none"""
    horizon: wp.vec3
    zenith: wp.vec3
    below: wp.vec3


@wp.struct
class Hit:
    """What a ray meets, and where."""

    what: int
    t: float


@wp.func
def mix(a: wp.vec3, b: wp.vec3, share: float) -> wp.vec3:
    return a + wp.clamp(share, 0.0, 1.0) * (b - a)


@wp.func
def nearest(tiles: Tiles, shapes: Shapes, tile: int, origin: wp.vec3, direction: wp.vec3, far: float) -> Hit:
    hit = Hit()
    hit.what = SKY
    hit.t = far
    t = cast_ray(tiles, tile, origin, direction, far)
    if t < far:
        hit.what = GROUND
        hit.t = t
    if meets_ball(shapes, origin, direction):
        for g in range(shapes.kind.shape[0]):
            t = cast_at_shape(shapes, g, origin, direction)
            if t < hit.t:
                hit.what = g
                hit.t = t
    return hit


@wp.func
def is_lit(tiles: Tiles, shapes: Shapes, tile: int, point: wp.vec3, light: wp.vec3, far: float) -> bool:
    if meets_ball(shapes, point, light):
        for g in range(shapes.kind.shape[0]):
            if cast_at_shape(shapes, g, point, light) < NEVER:
                return False
    return cast_ray(tiles, tile, point, light, far) >= far


@wp.func
def border_normal(tiles: Tiles, point: wp.vec3) -> wp.vec3:
    """The normal of the wall of a tile that is next to a point."""
    at = to_cells(tiles, point)
    x, y = at[0] / float(tiles.heights.shape[2] - 1) - 0.5, at[1] / float(tiles.heights.shape[1] - 1) - 0.5
    if wp.abs(x) > wp.abs(y):
        return wp.vec3(wp.sign(x), 0.0, 0.0)
    return wp.vec3(0.0, wp.sign(y), 0.0)


@wp.func
def ground_normal(tiles: Tiles, k: int, point: wp.vec3) -> wp.vec3:
    """The normal of the triangle at a point."""
    at = to_cells(tiles, point)
    c, r = cell_of(at[0], tiles.heights.shape[2]), cell_of(at[1], tiles.heights.shape[1])
    first, last = tiles.heights[k, r, c], tiles.heights[k, r + 1, c + 1]
    if at[0] - float(c) > at[1] - float(r):
        corner = tiles.heights[k, r, c + 1]
        return wp.normalize(wp.vec3(first - corner, corner - last, tiles.resolution))
    corner = tiles.heights[k, r + 1, c]
    return wp.normalize(wp.vec3(corner - last, first - corner, tiles.resolution))


@wp.func
def on_line(at: float, every: float, width: float, blur: float) -> float:
    """How much of a pixel `blur` metres wide is on one of the lines, each `width` wide."""
    away = wp.abs(at - every * wp.round(at / every))
    return wp.clamp((0.5 * (width + blur) - away) / wp.max(blur, 1.0e-4), 0.0, 1.0) * wp.min(1.0, width / wp.max(blur, 1.0e-4))


@wp.func
def ground_colour(look: Look, point: wp.vec3, steep: float, blur: float) -> wp.vec3:
    """Colours the ground by height, with the lines of a grid; steep ground is darker."""
    share = wp.clamp((point[2] - look.bottom) / (look.top - look.bottom), 0.0, 1.0)
    colour = mix(look.low, look.middle, 2.0 * share)
    if share > 0.5:
        colour = mix(look.middle, look.high, 2.0 * share - 1.0)
    lines = float(0.0)
    if look.line > 0.0:
        lines = wp.max(on_line(point[0], look.line, 0.008, blur), on_line(point[1], look.line, 0.008, blur))
    return colour * (1.0 - 0.22 * lines) * (1.0 - 0.3 * steep)


@wp.func
def sky_colour(look: Look, direction: wp.vec3) -> wp.vec3:
    up = direction[2] / wp.length(direction)
    if up < 0.0:
        return mix(look.horizon, look.below, -3.0 * up)
    return mix(look.horizon, look.zenith, wp.sqrt(up) * 1.2)


@wp.func
def shade(tiles: Tiles, shapes: Shapes, view: View, look: Look, direction: wp.vec3, hit: Hit) -> wp.vec3:
    """The colour of what a ray has met."""
    if hit.what == SKY:
        return sky_colour(look, direction)
    point = view.eye + hit.t * direction
    gloss = float(0.0)
    if hit.what == GROUND:
        normal = ground_normal(tiles, view.tile, point)
        blur = hit.t * view.pixel / wp.max(0.15, -direction[2] / wp.length(direction))
        colour = ground_colour(look, point, 1.0 - normal[2], blur)
        if point[2] < height_at(tiles, view.tile, to_cells(tiles, point)) - 1.0e-3:
            normal = border_normal(tiles, point)
            colour = look.wall
    else:
        normal = normal_of_shape(shapes, hit.what, point)
        colour = shapes.colour[hit.what]
        gloss = 0.25
    facing = wp.dot(normal, look.light)
    light = look.ambient * (0.75 + 0.25 * normal[2])
    shine = float(0.0)
    if facing > 0.0 and is_lit(tiles, shapes, view.tile, point + LIFT * normal, look.light, view.far):
        light += look.sun * facing
        half = wp.normalize(look.light - wp.normalize(direction))
        shine = gloss * wp.pow(wp.max(wp.dot(normal, half), 0.0), 40.0)
    return colour * light + wp.vec3(shine, shine, shine)


@wp.func
def to_byte(share: float) -> wp.uint8:
    return wp.uint8(int(255.0 * wp.clamp(share, 0.0, 1.0) + 0.5))


@wp.kernel
def picture(first: int, tiles: Tiles, shapes: Shapes, view: View, look: Look, colours: wp.array3d(dtype=wp.uint8),
            depths: wp.array2d(dtype=wp.float32), span: int):
    """Each thread does `span` pixels of a row. The depth of a pixel is that of its nearest sample, along the optical axis."""
    i, chunk = wp.tid()
    row = first + i
    for column in range(chunk * span, wp.min((chunk + 1) * span, view.columns)):
        total, depth = wp.vec3(0.0, 0.0, 0.0), float(view.far)
        for sample in range(view.samples * view.samples):
            x = float(column) + (float(sample % view.samples) + 0.5) / float(view.samples) - 0.5 * float(view.columns)
            y = float(row) + (float(sample // view.samples) + 0.5) / float(view.samples) - 0.5 * float(view.rows)
            direction = view.forward + (view.pixel * x) * view.right + (view.pixel * y) * view.down
            hit = nearest(tiles, shapes, view.tile, view.eye, direction, view.far)
            colour = shade(tiles, shapes, view, look, direction, hit)
            total += wp.min(colour, wp.vec3(1.0, 1.0, 1.0))
            depth = wp.min(depth, hit.t)
        total = total / float(view.samples * view.samples)
        for channel in range(3):
            colours[row, column, channel] = to_byte(total[channel])
        depths[row, column] = depth
