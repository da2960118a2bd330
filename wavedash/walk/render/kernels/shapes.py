"""Where a ray meets a sphere, capsule, cylinder or box, and the normal there. Kinds and sizes are MuJoCo's."""
from __future__ import annotations

import warp as wp

from wavedash.walk.sensors.kernels.tiles import NEVER

wp.set_module_options({"enable_backward": False})

SPHERE, CAPSULE, CYLINDER, BOX = wp.constant(2), wp.constant(3), wp.constant(5), wp.constant(6)


@wp.struct
class Shapes:
    """G shapes."""

    kind: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    rotation: wp.array(dtype=wp.mat33)
    size: wp.array(dtype=wp.vec3)
    """Sphere: radius. Capsule and cylinder: radius, half of the length along z. Box: half of each side"""
    colour: wp.array(dtype=wp.vec3)
    center: wp.vec3
    """A ball around all shapes: rays that miss it skip them"""
    radius: float


@wp.func
def quadratic(a: float, half_b: float, c: float) -> float:
    """The smaller solution of a t^2 + 2 half_b t + c = 0, where a ray from outside enters; NEVER if that is not ahead."""
    under = half_b * half_b - a * c
    if under < 0.0 or a < 1.0e-12:
        return NEVER
    t = (-half_b - wp.sqrt(under)) / a
    return wp.where(t > 0.0, t, NEVER)


@wp.func
def cast_at_sphere(origin: wp.vec3, direction: wp.vec3, radius: float) -> float:
    return quadratic(wp.dot(direction, direction), wp.dot(origin, direction), wp.dot(origin, origin) - radius * radius)


@wp.func
def cast_at_tube(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    """The round side of a cylinder along z."""
    across, along = wp.vec2(origin[0], origin[1]), wp.vec2(direction[0], direction[1])
    t = quadratic(wp.dot(along, along), wp.dot(across, along), wp.dot(across, across) - radius * radius)
    return wp.where(wp.abs(origin[2] + t * direction[2]) <= half, t, NEVER)


@wp.func
def cast_at_capsule(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    end = wp.vec3(0.0, 0.0, half)
    caps = wp.min(cast_at_sphere(origin - end, direction, radius), cast_at_sphere(origin + end, direction, radius))
    return wp.min(caps, cast_at_tube(origin, direction, radius, half))


@wp.func
def cast_at_disc(origin: wp.vec3, direction: wp.vec3, radius: float, z: float) -> float:
    if wp.abs(direction[2]) < 1.0e-9:
        return NEVER
    t = (z - origin[2]) / direction[2]
    at = wp.vec2(origin[0] + t * direction[0], origin[1] + t * direction[1])
    return wp.where(t > 0.0 and wp.dot(at, at) <= radius * radius, t, NEVER)


@wp.func
def cast_at_cylinder(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    ends = wp.min(cast_at_disc(origin, direction, radius, half), cast_at_disc(origin, direction, radius, -half))
    return wp.min(ends, cast_at_tube(origin, direction, radius, half))


@wp.func
def cast_at_box(origin: wp.vec3, direction: wp.vec3, half: wp.vec3) -> float:
    enter, leave = float(-NEVER), float(NEVER)
    for axis in range(3):
        if wp.abs(direction[axis]) < 1.0e-9:
            if wp.abs(origin[axis]) > half[axis]:
                return NEVER
        else:
            one, other = (-half[axis] - origin[axis]) / direction[axis], (half[axis] - origin[axis]) / direction[axis]
            enter, leave = wp.max(enter, wp.min(one, other)), wp.min(leave, wp.max(one, other))
    return wp.where(enter > 0.0 and enter <= leave, enter, NEVER)


@wp.func
def cast_at_shape(shapes: Shapes, g: int, origin: wp.vec3, direction: wp.vec3) -> float:
    into = wp.transpose(shapes.rotation[g])
    start, way, size = into * (origin - shapes.position[g]), into * direction, shapes.size[g]
    kind = shapes.kind[g]
    if kind == SPHERE:
        return cast_at_sphere(start, way, size[0])
    if kind == CAPSULE:
        return cast_at_capsule(start, way, size[0], size[1])
    if kind == CYLINDER:
        return cast_at_cylinder(start, way, size[0], size[1])
    return cast_at_box(start, way, size)


@wp.func
def normal_of_shape(shapes: Shapes, g: int, point: wp.vec3) -> wp.vec3:
    """At a point of its surface."""
    at, size, kind = wp.transpose(shapes.rotation[g]) * (point - shapes.position[g]), shapes.size[g], shapes.kind[g]
    normal = wp.vec3(at)
    if kind == CAPSULE:
        normal = at - wp.vec3(0.0, 0.0, wp.clamp(at[2], -size[1], size[1]))
    elif kind == CYLINDER:
        if size[1] - wp.abs(at[2]) < size[0] - wp.sqrt(at[0] * at[0] + at[1] * at[1]):
            normal = wp.vec3(0.0, 0.0, wp.sign(at[2]))
        else:
            normal = wp.vec3(at[0], at[1], 0.0)
    elif kind == BOX:
        inside = wp.vec3(size[0] - wp.abs(at[0]), size[1] - wp.abs(at[1]), size[2] - wp.abs(at[2]))
        if inside[0] <= inside[1] and inside[0] <= inside[2]:
            normal = wp.vec3(wp.sign(at[0]), 0.0, 0.0)
        elif inside[1] <= inside[2]:
            normal = wp.vec3(0.0, wp.sign(at[1]), 0.0)
        else:
            normal = wp.vec3(0.0, 0.0, wp.sign(at[2]))
    return wp.normalize(shapes.rotation[g] * normal)


@wp.func
def meets_ball(shapes: Shapes, origin: wp.vec3, direction: wp.vec3) -> bool:
    """Whether a line meets the ball around all shapes."""
    way = shapes.center - origin
    along = wp.dot(way, direction)
    return wp.dot(way, way) - along * along / wp.dot(direction, direction) <= shapes.radius * shapes.radius
