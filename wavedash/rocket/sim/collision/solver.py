"""Sequential impulses: changes of velocity by which contacts stop, bounce and rub, and pushes that separate overlapping bodies.

The order is that of RocketSim's Bullet: ten iterations of pushes, then ten iterations over all normals and then all frictions.
Each contact has one direction of friction, along which it slides. Nothing is remembered from tick to tick, since RocketSim's
broad phase discards all contacts.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body, apply_inverse_inertia, inverse_effective_mass, point_velocity
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.constants import (
    CONVERGED,
    DT,
    MIN_SLIDING_SPEED,
    PENETRATION_RATE,
    RESTITUTION_THRESHOLD,
    SOLVER_ITERATIONS,
)

wp.set_module_options({"enable_backward": False})


@wp.struct
class Constraint:
    """A contact as the solver needs it: along its normal (n) and along the direction in which it slides (s). Names in
    parentheses are those of Bullet's btSolverConstraint."""

    a: wp.int32
    b: wp.int32
    n: wp.vec3
    n_turn_a: wp.vec3
    """Torque of a unit impulse on A (m_relpos1CrossNormal)"""
    n_turn_b: wp.vec3
    n_spin_a: wp.vec3
    """Change of A's spin by a unit impulse (m_angularComponentA)"""
    n_spin_b: wp.vec3
    n_mass: wp.float32
    """Effective mass (m_jacDiagABInv)"""
    n_target: wp.float32
    """Impulse that gives the wanted velocity if nothing else acts (m_rhs)"""
    n_impulse: wp.float32
    """Impulse so far (m_appliedImpulse)"""
    push_target: wp.float32
    """The same for the velocity that removes an overlap (m_rhsPenetration)"""
    push_impulse: wp.float32
    """(m_appliedPushImpulse)"""
    s: wp.vec3
    s_turn_a: wp.vec3
    s_turn_b: wp.vec3
    s_spin_a: wp.vec3
    s_spin_b: wp.vec3
    s_mass: wp.float32
    s_target: wp.float32
    s_impulse: wp.float32
    friction: wp.float32
    push_only: wp.bool


@wp.func
def any_tangent(n: wp.vec3) -> wp.vec3:
    """Some direction at right angles to `n`, for a contact that does not slide."""
    if wp.abs(n[2]) > 0.70710678:
        return wp.vec3(0.0, -n[2], n[1]) / wp.sqrt(n[1] * n[1] + n[2] * n[2])
    return wp.vec3(-n[1], n[0], 0.0) / wp.sqrt(n[0] * n[0] + n[1] * n[1])


@wp.func
def make_constraint(contact: Contact, a: Body, b: Body) -> Constraint:
    """The constraint of a contact. For a contact with the arena, `b` is ignored."""
    constraint = Constraint()
    constraint.a = contact.a
    constraint.b = contact.b
    constraint.n = contact.normal
    constraint.friction = contact.friction
    constraint.push_only = contact.push_only
    constraint.n_turn_a = wp.cross(contact.arm_a, contact.normal)
    constraint.n_spin_a = apply_inverse_inertia(a, constraint.n_turn_a)
    inverse = inverse_effective_mass(a, contact.arm_a, contact.normal)
    before = point_velocity(a, contact.arm_a)
    forced = a.forced_velocity + wp.cross(a.forced_spin, contact.arm_a)
    if contact.b >= 0:
        constraint.n_turn_b = -wp.cross(contact.arm_b, contact.normal)
        constraint.n_spin_b = apply_inverse_inertia(b, constraint.n_turn_b)
        inverse += inverse_effective_mass(b, contact.arm_b, contact.normal)
        before = before - point_velocity(b, contact.arm_b)
        forced = forced - b.forced_velocity - wp.cross(b.forced_spin, contact.arm_b)
    constraint.n_mass = 1.0 / inverse
    approach = wp.dot(contact.normal, before)
    bounce = float(0.0)
    if wp.abs(approach) >= RESTITUTION_THRESHOLD:
        bounce = wp.max(0.0, -contact.restitution * approach)
    after = before + forced
    approach = wp.dot(contact.normal, after)
    constraint.n_target = (bounce - approach) * constraint.n_mass
    constraint.n_impulse = 0.0
    constraint.push_impulse = 0.0
    constraint.push_target = wp.max(0.0, -contact.distance) * PENETRATION_RATE / DT * constraint.n_mass
    if not contact.push_only:
        constraint = add_friction(constraint, contact, a, b, after - contact.normal * approach)
    return constraint


@wp.func
def add_friction(constraint: Constraint, contact: Contact, a: Body, b: Body, sliding: wp.vec3) -> Constraint:
    """Adds friction, along the velocity `sliding` with which the surfaces would slide."""
    speed = wp.length(sliding)
    if speed > MIN_SLIDING_SPEED:
        constraint.s = sliding / speed
    else:
        constraint.s = any_tangent(contact.normal)
    constraint.s_turn_a = wp.cross(contact.arm_a, constraint.s)
    constraint.s_spin_a = apply_inverse_inertia(a, constraint.s_turn_a)
    inverse = inverse_effective_mass(a, contact.arm_a, constraint.s)
    slip = wp.dot(constraint.s, a.velocity + a.forced_velocity) + wp.dot(constraint.s_turn_a, a.spin)
    if contact.b >= 0:
        constraint.s_turn_b = -wp.cross(contact.arm_b, constraint.s)
        constraint.s_spin_b = apply_inverse_inertia(b, constraint.s_turn_b)
        inverse += inverse_effective_mass(b, contact.arm_b, constraint.s)
        slip += -wp.dot(constraint.s, b.velocity + b.forced_velocity) + wp.dot(constraint.s_turn_b, b.spin)
    constraint.s_mass = 1.0 / inverse
    constraint.s_target = -slip * constraint.s_mass
    constraint.s_impulse = 0.0
    return constraint


@wp.func
def solve_penetrations(constraints: wp.array2d(dtype=Constraint), e: int, start: int, count: int, bodies: wp.array(dtype=Body)):
    """Solves all overlaps with velocities that change positions only."""
    for _ in range(SOLVER_ITERATIONS):
        change = float(0.0)
        for i in range(start, start + count):
            target = constraints[e, i].push_target
            if target > 0.0:
                a = constraints[e, i].a
                b = constraints[e, i].b
                n = constraints[e, i].n
                now = wp.dot(n, bodies[a].push_velocity) + wp.dot(constraints[e, i].n_turn_a, bodies[a].turn_velocity)
                if b >= 0:
                    now += -wp.dot(n, bodies[b].push_velocity) + wp.dot(constraints[e, i].n_turn_b, bodies[b].turn_velocity)
                old = constraints[e, i].push_impulse
                new = wp.max(0.0, old + target - now * constraints[e, i].n_mass)
                constraints[e, i].push_impulse = new
                bodies[a].push_velocity = bodies[a].push_velocity + n * (bodies[a].inverse_mass * (new - old))
                bodies[a].turn_velocity = bodies[a].turn_velocity + constraints[e, i].n_spin_a * (new - old)
                if b >= 0:
                    bodies[b].push_velocity = bodies[b].push_velocity - n * (bodies[b].inverse_mass * (new - old))
                    bodies[b].turn_velocity = bodies[b].turn_velocity + constraints[e, i].n_spin_b * (new - old)
                change = wp.max(change, wp.abs(new - old))
        if change < CONVERGED:
            break


@wp.func
def add_impulse(
    constraints: wp.array2d(dtype=Constraint), e: int, i: int, along: int, impulse: float, bodies: wp.array(dtype=Body)
):
    """Applies an impulse to both bodies of a constraint: along its normal (0) or its direction of sliding (1)."""
    a = constraints[e, i].a
    b = constraints[e, i].b
    if along == 0:
        n = constraints[e, i].n
        bodies[a].delta_velocity = bodies[a].delta_velocity + n * (bodies[a].inverse_mass * impulse)
        bodies[a].delta_spin = bodies[a].delta_spin + constraints[e, i].n_spin_a * impulse
        if b >= 0:
            bodies[b].delta_velocity = bodies[b].delta_velocity - n * (bodies[b].inverse_mass * impulse)
            bodies[b].delta_spin = bodies[b].delta_spin + constraints[e, i].n_spin_b * impulse
    else:
        s = constraints[e, i].s
        bodies[a].delta_velocity = bodies[a].delta_velocity + s * (bodies[a].inverse_mass * impulse)
        bodies[a].delta_spin = bodies[a].delta_spin + constraints[e, i].s_spin_a * impulse
        if b >= 0:
            bodies[b].delta_velocity = bodies[b].delta_velocity - s * (bodies[b].inverse_mass * impulse)
            bodies[b].delta_spin = bodies[b].delta_spin + constraints[e, i].s_spin_b * impulse


@wp.func
def solve_normal(constraints: wp.array2d(dtype=Constraint), e: int, i: int, bodies: wp.array(dtype=Body)) -> float:
    """Solves one constraint along its normal, where the impulse only pushes. Returns the change of the impulse."""
    a = constraints[e, i].a
    b = constraints[e, i].b
    n = constraints[e, i].n
    now = wp.dot(n, bodies[a].delta_velocity) + wp.dot(constraints[e, i].n_turn_a, bodies[a].delta_spin)
    if b >= 0:
        now += -wp.dot(n, bodies[b].delta_velocity) + wp.dot(constraints[e, i].n_turn_b, bodies[b].delta_spin)
    old = constraints[e, i].n_impulse
    new = wp.max(0.0, old + constraints[e, i].n_target - now * constraints[e, i].n_mass)
    constraints[e, i].n_impulse = new
    add_impulse(constraints, e, i, 0, new - old, bodies)
    return wp.abs(new - old)


@wp.func
def solve_friction(constraints: wp.array2d(dtype=Constraint), e: int, i: int, bodies: wp.array(dtype=Body)) -> float:
    """Solves the friction of one constraint, bounded by the impulse along the normal. Returns the change of the impulse."""
    normal = constraints[e, i].n_impulse
    if normal <= 0.0:
        return 0.0
    a = constraints[e, i].a
    b = constraints[e, i].b
    s = constraints[e, i].s
    now = wp.dot(s, bodies[a].delta_velocity) + wp.dot(constraints[e, i].s_turn_a, bodies[a].delta_spin)
    if b >= 0:
        now += -wp.dot(s, bodies[b].delta_velocity) + wp.dot(constraints[e, i].s_turn_b, bodies[b].delta_spin)
    most = constraints[e, i].friction * normal
    old = constraints[e, i].s_impulse
    new = wp.clamp(old + constraints[e, i].s_target - now * constraints[e, i].s_mass, -most, most)
    constraints[e, i].s_impulse = new
    add_impulse(constraints, e, i, 1, new - old, bodies)
    return wp.abs(new - old)


@wp.func
def solve_contacts(constraints: wp.array2d(dtype=Constraint), e: int, start: int, count: int, bodies: wp.array(dtype=Body)):
    """Solves the constraints start ... start + count - 1 of an arena: writes the velocity changes and pushes of the bodies."""
    solve_penetrations(constraints, e, start, count, bodies)
    for _ in range(SOLVER_ITERATIONS):
        change = float(0.0)
        for i in range(start, start + count):
            if not constraints[e, i].push_only:
                change = wp.max(change, solve_normal(constraints, e, i, bodies))
        for i in range(start, start + count):
            if not constraints[e, i].push_only:
                change = wp.max(change, solve_friction(constraints, e, i, bodies))
        if change < CONVERGED:
            break
