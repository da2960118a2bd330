"""Sequential impulses for one body that touches nothing but the arena: the same result as `solver.py`, with less memory.

Impulses are kept apart from the constraints: nothing writes to a constraint while it is being solved, so that a GPU keeps it
in its L1 cache.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body, point_velocity
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.collision.solver import make_constraint
from wavedash.rocket.sim.constants import (
    CONVERGED,
    DT,
    MIN_SLIDING_SPEED,
    PENETRATION_RATE,
    RESTITUTION_THRESHOLD,
    SOLVER_ITERATIONS,
)
from wavedash.rocket.sim.kernels.struct_io import loader, storer, stride_of

wp.set_module_options({"enable_backward": False})

vec13 = wp.types.vector(length=13, dtype=wp.float32)
"""One impulse for each contact that a ball or car can have with the arena"""


@wp.struct
class ArenaConstraint:
    """The fields of a `Constraint` that one with the arena needs, in the order in which they are read."""

    n: wp.vec3
    n_mass: wp.float32
    n_turn: wp.vec3
    push_target: wp.float32
    n_spin: wp.vec3
    n_target: wp.float32
    s: wp.vec3
    s_mass: wp.float32
    s_turn: wp.vec3
    s_target: wp.float32
    s_spin: wp.vec3
    friction: wp.float32


load_arena_constraint, store_arena_constraint = loader(ArenaConstraint), storer(ArenaConstraint)
ARENA_CONSTRAINT_WORDS = wp.constant(stride_of(ArenaConstraint))


@wp.func
def make_arena_constraint(contact: Contact, body: Body) -> ArenaConstraint:
    """The constraint of a contact between a body and the arena."""
    constraint = make_constraint(contact, body, body)
    reduced = ArenaConstraint()
    reduced.n = constraint.n
    reduced.n_mass = constraint.n_mass
    reduced.n_turn = constraint.n_turn_a
    reduced.push_target = constraint.push_target
    reduced.n_spin = constraint.n_spin_a
    reduced.n_target = constraint.n_target
    reduced.s = constraint.s
    reduced.s_mass = constraint.s_mass
    reduced.s_turn = constraint.s_turn_a
    reduced.s_target = constraint.s_target
    reduced.s_spin = constraint.s_spin_a
    reduced.friction = constraint.friction
    return reduced


@wp.func
def solve_arena_penetration(constraint: ArenaConstraint, old: float, body: Body):
    """Solves the overlap of one contact, whose impulse so far is `old`: (its new impulse, the body)."""
    now = wp.dot(constraint.n, body.push_velocity) + wp.dot(constraint.n_turn, body.turn_velocity)
    new = wp.max(0.0, old + constraint.push_target - now * constraint.n_mass)
    body.push_velocity = body.push_velocity + constraint.n * (body.inverse_mass * (new - old))
    body.turn_velocity = body.turn_velocity + constraint.n_spin * (new - old)
    return new, body


@wp.func
def solve_arena_normal(constraint: ArenaConstraint, old: float, body: Body):
    """Solves one contact along its normal: (its new impulse, the body)."""
    now = wp.dot(constraint.n, body.delta_velocity) + wp.dot(constraint.n_turn, body.delta_spin)
    new = wp.max(0.0, old + constraint.n_target - now * constraint.n_mass)
    body.delta_velocity = body.delta_velocity + constraint.n * (body.inverse_mass * (new - old))
    body.delta_spin = body.delta_spin + constraint.n_spin * (new - old)
    return new, body


@wp.func
def solve_arena_friction(constraint: ArenaConstraint, old: float, pressed: float, body: Body):
    """Solves the friction of one contact: (its new impulse, the body). `pressed` is the impulse along the normal; without one
    nothing changes."""
    if pressed <= 0.0:
        return old, body
    now = wp.dot(constraint.s, body.delta_velocity) + wp.dot(constraint.s_turn, body.delta_spin)
    most = constraint.friction * pressed
    new = wp.clamp(old + constraint.s_target - now * constraint.s_mass, -most, most)
    body.delta_velocity = body.delta_velocity + constraint.s * (body.inverse_mass * (new - old))
    body.delta_spin = body.delta_spin + constraint.s_spin * (new - old)
    return new, body


@wp.func
def solve_arena_penetrations(constraints: wp.array2d(dtype=wp.int32), e: int, start: int, count: int, body: Body) -> Body:
    """`solve_penetrations` for constraints that are all between one body and the arena."""
    push_impulses = vec13()
    for _ in range(SOLVER_ITERATIONS):
        change = float(0.0)
        for i in range(count):
            constraint = load_arena_constraint(constraints, e, (start + i) * ARENA_CONSTRAINT_WORDS)
            if constraint.push_target > 0.0:
                new, body = solve_arena_penetration(constraint, push_impulses[i], body)
                change = wp.max(change, wp.abs(new - push_impulses[i]))
                push_impulses[i] = new
        if change < CONVERGED:
            break
    return body


@wp.func
def solve_arena_contacts(constraints: wp.array2d(dtype=wp.int32), e: int, start: int, count: int, body: Body) -> Body:
    """`solve_contacts` for constraints that are all between one body and the arena, none of them `push_only`."""
    body = solve_arena_penetrations(constraints, e, start, count, body)
    normal_impulses = vec13()
    friction_impulses = vec13()
    for _ in range(SOLVER_ITERATIONS):
        change = float(0.0)
        for i in range(count):
            constraint = load_arena_constraint(constraints, e, (start + i) * ARENA_CONSTRAINT_WORDS)
            new, body = solve_arena_normal(constraint, normal_impulses[i], body)
            change = wp.max(change, wp.abs(new - normal_impulses[i]))
            normal_impulses[i] = new
        for i in range(count):
            constraint = load_arena_constraint(constraints, e, (start + i) * ARENA_CONSTRAINT_WORDS)
            new, body = solve_arena_friction(constraint, friction_impulses[i], normal_impulses[i], body)
            change = wp.max(change, wp.abs(new - friction_impulses[i]))
            friction_impulses[i] = new
        if change < CONVERGED:
            break
    return body


@wp.func
def solve_single_contact(contact: Contact, body: Body) -> Body:
    """`solve_contacts` for a body whose only contact is this one with the arena. Its overlap needs a single iteration."""
    constraint = make_arena_constraint(contact, body)
    _push, body = solve_arena_penetration(constraint, 0.0, body)
    normal_impulse = float(0.0)
    friction_impulse = float(0.0)
    for _ in range(SOLVER_ITERATIONS):
        normal_before = normal_impulse
        friction_before = friction_impulse
        normal_impulse, body = solve_arena_normal(constraint, normal_impulse, body)
        friction_impulse, body = solve_arena_friction(constraint, friction_impulse, normal_impulse, body)
        if wp.max(wp.abs(normal_impulse - normal_before), wp.abs(friction_impulse - friction_before)) < CONVERGED:
            break
    return body


@wp.func
def solve_ball_on_plane(body: Body, normal: wp.vec3, height: float, radius: float, friction: float, restitution: float) -> Body:
    """`solve_contacts` for a ball whose only contact is with a plane, `height` below its center: one iteration is exact."""
    arm = normal * (-radius)
    approach = wp.dot(normal, body.velocity)
    bounce = float(0.0)
    if wp.abs(approach) >= RESTITUTION_THRESHOLD:
        bounce = wp.max(0.0, -restitution * approach)
    after = point_velocity(body, arm) + body.forced_velocity
    approach = wp.dot(normal, after)
    impulse = wp.max(0.0, (bounce - approach) / body.inverse_mass)
    sliding = after - normal * approach
    speed = wp.length(sliding)
    along = wp.vec3()
    if speed > MIN_SLIDING_SPEED:
        along = sliding / speed
        turn = wp.cross(arm, along)
        inverse = body.inverse_mass + wp.dot(turn, wp.cw_mul(body.inverse_inertia, turn))
        friction_impulse = wp.clamp(-wp.dot(along, after) / inverse, -friction * impulse, friction * impulse)
        body.delta_velocity = along * (friction_impulse * body.inverse_mass)
        body.delta_spin = wp.cw_mul(body.inverse_inertia, turn) * friction_impulse
    body.delta_velocity = body.delta_velocity + normal * (impulse * body.inverse_mass)
    body.push_velocity = normal * (wp.max(0.0, radius - height) * PENETRATION_RATE / DT)
    return body
