"""Bumps and demolitions."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import RESPAWN_SECONDS
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import FIRST_CAR
from wavedash.rocket.sim.constants import BUMP_COOLDOWN, BUMPER_X
from wavedash.rocket.sim.kernels.records import Car, EventRecord
from wavedash.rocket.sim.mechanics.curves import bump_air, bump_ground, bump_up

wp.set_module_options({"enable_backward": False})

NO_BUMP, BUMP, DEMOLITION = wp.constant(0), wp.constant(1), wp.constant(2)


@wp.func
def decide_bump(
    bumper: int, victim: int, arm: wp.vec3, bodies: wp.array(dtype=Body), cars: wp.array(dtype=Car),
    events: wp.array(dtype=EventRecord),
):
    """One car touches another with the point of its surface at `arm`: writes the bump or demolition, if it is one."""
    if cars[bumper].is_demoed or cars[victim].is_demoed:
        return
    if cars[bumper].contact_car == victim and cars[bumper].contact_cooldown > 0.0:
        return
    kind, push = bump_kind(cars[bumper], cars[victim], bodies[FIRST_CAR + bumper], bodies[FIRST_CAR + victim], arm)
    if kind == NO_BUMP:
        return
    cars[bumper].contact_car = victim
    cars[bumper].contact_cooldown = BUMP_COOLDOWN
    if kind == DEMOLITION:
        cars[victim].is_demoed = True
        cars[victim].demo_timer = RESPAWN_SECONDS
        events[bumper].demolished = victim
    else:
        bodies[FIRST_CAR + victim].late_velocity = bodies[FIRST_CAR + victim].late_velocity + push
        events[bumper].bumped = victim


@wp.func
def bump_kind(bumper: Car, victim: Car, body: Body, other: Body, arm: wp.vec3):
    """BUMP, DEMOLITION or NO_BUMP, and the velocity that a bump adds to the victim.

    A car bumps with its front, if it is faster towards the victim than the victim is away from it. Velocities are those before
    the collision.
    """
    to_other = other.position - body.position
    towards = wp.dot(body.velocity, wp.normalize(to_other))
    direction = wp.normalize(body.velocity)
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    if towards <= 0.0 or towards <= wp.dot(other.velocity, direction) or wp.dot(arm, forward) <= BUMPER_X:
        return NO_BUMP, wp.vec3()
    if bumper.is_supersonic and bumper.team != victim.team:
        return DEMOLITION, wp.vec3()
    if victim.on_ground:
        up = wp.vec3(other.rotation[0, 2], other.rotation[1, 2], other.rotation[2, 2])
        return BUMP, direction * bump_ground(towards) + up * bump_up(towards)
    return BUMP, direction * bump_air(towards) + wp.vec3(0.0, 0.0, bump_up(towards))
