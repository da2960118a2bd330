"""Normals near edges: a ball that rolls from one triangle to the next must not bounce off the seam.

This is Bullet's internal-edge rule, which RocketSim applies to every contact with a triangle: within 5 uu of an edge that two
triangles share, a contact gets the triangle's own normal where the surface is flat or concave, and a normal between those of
both faces where it is convex.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.arena import Triangle
from wavedash.rocket.sim.collision.bake import BOUNDARY
from wavedash.rocket.sim.constants import EDGE_DISTANCE

wp.set_module_options({"enable_backward": False})

NO_NEIGHBOR = wp.constant(BOUNDARY)


@wp.func
def distance_to_edge(point: wp.vec3, start: wp.vec3, end: wp.vec3) -> float:
    """Distance from a point to a line segment."""
    along = end - start
    share = wp.clamp(wp.dot(point - start, along) / wp.dot(along, along), 0.0, 1.0)
    return wp.length(point - (start + along * share))


@wp.func
def normal_near_edges(t: Triangle, point: wp.vec3, normal: wp.vec3) -> wp.vec3:
    """The normal of a contact at a point of a triangle, after the edge rule; `normal` is the geometric one."""
    edge = wp.vec3(0.0, 0.0, 0.0)
    angle = float(NO_NEIGHBOR)
    closest = float(1.0e9)
    if t.angles[0] < NO_NEIGHBOR:
        closest = distance_to_edge(point, t.a, t.b)
        edge = t.a - t.b
        angle = t.angles[0]
    if t.angles[1] < NO_NEIGHBOR:
        distance = distance_to_edge(point, t.b, t.c)
        if distance < closest:
            closest = distance
            edge = t.b - t.c
            angle = t.angles[1]
    if t.angles[2] < NO_NEIGHBOR:
        distance = distance_to_edge(point, t.c, t.a)
        if distance < closest:
            closest = distance
            edge = t.c - t.a
            angle = t.angles[2]
    if closest >= EDGE_DISTANCE:
        return normal
    return normal_at_edge(t.normal, wp.normalize(edge), angle, normal)


@wp.func
def normal_at_edge(face: wp.vec3, edge: wp.vec3, angle: float, normal: wp.vec3) -> wp.vec3:
    """The same near an edge with this direction and angle, of a triangle with normal `face`."""
    side = float(1.0)
    if angle > 0.0:
        side = -1.0
    across = wp.cross(edge, face)
    neighbor = face * wp.cos(angle) + across * wp.sin(angle)
    behind_both = side * wp.dot(normal, face) < 0.0 and side * wp.dot(normal, neighbor) < 0.0
    if angle == 0.0 or behind_both:
        if wp.dot(normal, face) >= 0.0:
            return face
        return normal
    lean = wp.atan2(side * wp.dot(normal, across), side * wp.dot(normal, face))
    if (angle < 0.0 and lean < angle) or (angle > 0.0 and lean > angle):
        turn = angle - lean
        leant = (
            normal * wp.cos(turn) + wp.cross(edge, normal) * wp.sin(turn) + edge * (wp.dot(edge, normal) * (1.0 - wp.cos(turn)))
        )
        if wp.dot(leant, face) > 0.0:
            return leant
    return normal
