"""Sequential impulses: velocities that make contacts stop, bounce and rub, and pushes that take overlapping bodies apart.

As RocketSim's Bullet does it: ten rounds of pushes, then ten rounds over all normals and then all frictions, each contact with
one direction of friction, along which it slides. Nothing is remembered from tick to tick: RocketSim's broad phase forgets all
contacts.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import DT, Body, impulse_mass, velocity_at, world_inverse_inertia
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.kernels.struct_io import loader, room_of, storer

wp.set_module_options({"enable_backward": False})

ROUNDS = wp.constant(10)
OVERLAP_SHARE = wp.constant(0.8)
"""Of an overlap that is removed in a tick"""
BOUNCE_SPEED = wp.constant(10.0)
"""uu/s below which nothing bounces"""
STANDS_STILL = wp.constant(0.0173)
"""uu/s below which a contact does not slide in any direction"""
SETTLED = wp.constant(1.0e-4)
"""Change of an impulse below which another round changes nothing that matters"""

impulses = wp.types.vector(length=13, dtype=wp.float32)
"""Of all contacts that a ball or car can have with the arena"""


@wp.struct
class Row:
    """A contact, ready to be solved: along its normal (n) and along the direction it slides (s)."""

    a: wp.int32
    b: wp.int32
    n: wp.vec3
    n_turn_a: wp.vec3
    n_turn_b: wp.vec3
    n_spin_a: wp.vec3
    n_spin_b: wp.vec3
    n_mass: wp.float32
    n_target: wp.float32
    n_impulse: wp.float32
    push_target: wp.float32
    push_impulse: wp.float32
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
    """A direction across `n`, for a contact that does not slide."""
    if wp.abs(n[2]) > 0.70710678:
        return wp.vec3(0.0, -n[2], n[1]) / wp.sqrt(n[1] * n[1] + n[2] * n[2])
    return wp.vec3(-n[1], n[0], 0.0) / wp.sqrt(n[0] * n[0] + n[1] * n[1])


@wp.func
def prepared(contact: Contact, a: Body, b: Body) -> Row:
    """Masses, targets and directions of a contact. With the arena, `b` does not matter."""
    row = Row()
    row.a = contact.a
    row.b = contact.b
    row.n = contact.normal
    row.friction = contact.friction
    row.push_only = contact.push_only
    row.n_turn_a = wp.cross(contact.arm_a, contact.normal)
    row.n_spin_a = world_inverse_inertia(a, row.n_turn_a)
    inverse = impulse_mass(a, contact.arm_a, contact.normal)
    before = velocity_at(a, contact.arm_a)
    forced = a.kick + wp.cross(a.twist, contact.arm_a)
    if contact.b >= 0:
        row.n_turn_b = -wp.cross(contact.arm_b, contact.normal)
        row.n_spin_b = world_inverse_inertia(b, row.n_turn_b)
        inverse += impulse_mass(b, contact.arm_b, contact.normal)
        before = before - velocity_at(b, contact.arm_b)
        forced = forced - b.kick - wp.cross(b.twist, contact.arm_b)
    row.n_mass = 1.0 / inverse
    approach = wp.dot(contact.normal, before)
    bounce = float(0.0)
    if wp.abs(approach) >= BOUNCE_SPEED:
        bounce = wp.max(0.0, -contact.restitution * approach)
    after = before + forced
    approach = wp.dot(contact.normal, after)
    row.n_target = (bounce - approach) * row.n_mass
    row.n_impulse = 0.0
    row.push_impulse = 0.0
    row.push_target = wp.max(0.0, -contact.distance) * OVERLAP_SHARE / DT * row.n_mass
    if not contact.push_only:
        row = with_friction(row, contact, a, b, after - contact.normal * approach)
    return row


@wp.func
def with_friction(row: Row, contact: Contact, a: Body, b: Body, sliding: wp.vec3) -> Row:
    """Friction acts along the velocity with which the surfaces would slide."""
    speed = wp.length(sliding)
    if speed > STANDS_STILL:
        row.s = sliding / speed
    else:
        row.s = any_tangent(contact.normal)
    row.s_turn_a = wp.cross(contact.arm_a, row.s)
    row.s_spin_a = world_inverse_inertia(a, row.s_turn_a)
    inverse = impulse_mass(a, contact.arm_a, row.s)
    slip = wp.dot(row.s, a.velocity + a.kick) + wp.dot(row.s_turn_a, a.spin)
    if contact.b >= 0:
        row.s_turn_b = -wp.cross(contact.arm_b, row.s)
        row.s_spin_b = world_inverse_inertia(b, row.s_turn_b)
        inverse += impulse_mass(b, contact.arm_b, row.s)
        slip += -wp.dot(row.s, b.velocity + b.kick) + wp.dot(row.s_turn_b, b.spin)
    row.s_mass = 1.0 / inverse
    row.s_target = -slip * row.s_mass
    row.s_impulse = 0.0
    return row


@wp.func
def push_apart(rows: wp.array2d(dtype=Row), arena: int, start: int, count: int, bodies: wp.array(dtype=Body)):
    """Rounds over all overlaps: velocities that act on positions alone."""
    for _ in range(ROUNDS):
        change = float(0.0)
        for i in range(start, start + count):
            target = rows[arena, i].push_target
            if target > 0.0:
                a = rows[arena, i].a
                b = rows[arena, i].b
                n = rows[arena, i].n
                now = wp.dot(n, bodies[a].push) + wp.dot(rows[arena, i].n_turn_a, bodies[a].turn)
                if b >= 0:
                    now += -wp.dot(n, bodies[b].push) + wp.dot(rows[arena, i].n_turn_b, bodies[b].turn)
                had = rows[arena, i].push_impulse
                has = wp.max(0.0, had + target - now * rows[arena, i].n_mass)
                rows[arena, i].push_impulse = has
                bodies[a].push = bodies[a].push + n * (bodies[a].inverse_mass * (has - had))
                bodies[a].turn = bodies[a].turn + rows[arena, i].n_spin_a * (has - had)
                if b >= 0:
                    bodies[b].push = bodies[b].push - n * (bodies[b].inverse_mass * (has - had))
                    bodies[b].turn = bodies[b].turn + rows[arena, i].n_spin_b * (has - had)
                change = wp.max(change, wp.abs(has - had))
        if change < SETTLED:
            break


@wp.func
def add_impulse(rows: wp.array2d(dtype=Row), arena: int, i: int, along: int, impulse: float, bodies: wp.array(dtype=Body)):
    """To both bodies of a row: along its normal (0) or where it slides (1)."""
    a = rows[arena, i].a
    b = rows[arena, i].b
    if along == 0:
        n = rows[arena, i].n
        bodies[a].change = bodies[a].change + n * (bodies[a].inverse_mass * impulse)
        bodies[a].spin_change = bodies[a].spin_change + rows[arena, i].n_spin_a * impulse
        if b >= 0:
            bodies[b].change = bodies[b].change - n * (bodies[b].inverse_mass * impulse)
            bodies[b].spin_change = bodies[b].spin_change + rows[arena, i].n_spin_b * impulse
    else:
        s = rows[arena, i].s
        bodies[a].change = bodies[a].change + s * (bodies[a].inverse_mass * impulse)
        bodies[a].spin_change = bodies[a].spin_change + rows[arena, i].s_spin_a * impulse
        if b >= 0:
            bodies[b].change = bodies[b].change - s * (bodies[b].inverse_mass * impulse)
            bodies[b].spin_change = bodies[b].spin_change + rows[arena, i].s_spin_b * impulse


@wp.func
def stop_approach(rows: wp.array2d(dtype=Row), arena: int, i: int, bodies: wp.array(dtype=Body)) -> float:
    """One normal: the impulse only pushes. Returns its change."""
    a = rows[arena, i].a
    b = rows[arena, i].b
    n = rows[arena, i].n
    now = wp.dot(n, bodies[a].change) + wp.dot(rows[arena, i].n_turn_a, bodies[a].spin_change)
    if b >= 0:
        now += -wp.dot(n, bodies[b].change) + wp.dot(rows[arena, i].n_turn_b, bodies[b].spin_change)
    had = rows[arena, i].n_impulse
    has = wp.max(0.0, had + rows[arena, i].n_target - now * rows[arena, i].n_mass)
    rows[arena, i].n_impulse = has
    add_impulse(rows, arena, i, 0, has - had, bodies)
    return wp.abs(has - had)


@wp.func
def stop_sliding(rows: wp.array2d(dtype=Row), arena: int, i: int, bodies: wp.array(dtype=Body)) -> float:
    """One friction: bounded by the normal's impulse. Returns its change."""
    normal = rows[arena, i].n_impulse
    if normal <= 0.0:
        return 0.0
    a = rows[arena, i].a
    b = rows[arena, i].b
    s = rows[arena, i].s
    now = wp.dot(s, bodies[a].change) + wp.dot(rows[arena, i].s_turn_a, bodies[a].spin_change)
    if b >= 0:
        now += -wp.dot(s, bodies[b].change) + wp.dot(rows[arena, i].s_turn_b, bodies[b].spin_change)
    most = rows[arena, i].friction * normal
    had = rows[arena, i].s_impulse
    has = wp.clamp(had + rows[arena, i].s_target - now * rows[arena, i].s_mass, -most, most)
    rows[arena, i].s_impulse = has
    add_impulse(rows, arena, i, 1, has - had, bodies)
    return wp.abs(has - had)


@wp.func
def solve(rows: wp.array2d(dtype=Row), arena: int, start: int, count: int, bodies: wp.array(dtype=Body)):
    """Rows start ... start + count - 1 of an arena: writes `change` and `push` of the bodies."""
    push_apart(rows, arena, start, count, bodies)
    for _ in range(ROUNDS):
        change = float(0.0)
        for i in range(start, start + count):
            if not rows[arena, i].push_only:
                change = wp.max(change, stop_approach(rows, arena, i, bodies))
        for i in range(start, start + count):
            if not rows[arena, i].push_only:
                change = wp.max(change, stop_sliding(rows, arena, i, bodies))
        if change < SETTLED:
            break


# A body that touches nothing but the arena ------------------------------------------------------------------------------------


@wp.struct
class WallRow:
    """What counts of a `Row` with the arena, in the order in which it is needed. Impulses are not in it: while it is being
    solved nobody writes to it, so that a GPU keeps it in its nearest cache."""

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


load_wall_row, store_wall_row = loader(WallRow), storer(WallRow)
WALL_ROW_WORDS = wp.constant(room_of(WallRow))


@wp.func
def against_wall(contact: Contact, body: Body) -> WallRow:
    """A contact of a body with the arena, ready to be solved."""
    row = prepared(contact, body, body)
    wall = WallRow()
    wall.n = row.n
    wall.n_mass = row.n_mass
    wall.n_turn = row.n_turn_a
    wall.push_target = row.push_target
    wall.n_spin = row.n_spin_a
    wall.n_target = row.n_target
    wall.s = row.s
    wall.s_mass = row.s_mass
    wall.s_turn = row.s_turn_a
    wall.s_target = row.s_target
    wall.s_spin = row.s_spin_a
    wall.friction = row.friction
    return wall


@wp.func
def pushed_out(row: WallRow, had: float, body: Body):
    """One overlap, with the impulse that it had: (the new one, the body)."""
    now = wp.dot(row.n, body.push) + wp.dot(row.n_turn, body.turn)
    has = wp.max(0.0, had + row.push_target - now * row.n_mass)
    body.push = body.push + row.n * (body.inverse_mass * (has - had))
    body.turn = body.turn + row.n_spin * (has - had)
    return has, body


@wp.func
def stopped(row: WallRow, had: float, body: Body):
    """One normal."""
    now = wp.dot(row.n, body.change) + wp.dot(row.n_turn, body.spin_change)
    has = wp.max(0.0, had + row.n_target - now * row.n_mass)
    body.change = body.change + row.n * (body.inverse_mass * (has - had))
    body.spin_change = body.spin_change + row.n_spin * (has - had)
    return has, body


@wp.func
def rubbed(row: WallRow, had: float, pressed: float, body: Body):
    """One friction. It stays as it was while nothing presses."""
    if pressed <= 0.0:
        return had, body
    now = wp.dot(row.s, body.change) + wp.dot(row.s_turn, body.spin_change)
    most = row.friction * pressed
    has = wp.clamp(had + row.s_target - now * row.s_mass, -most, most)
    body.change = body.change + row.s * (body.inverse_mass * (has - had))
    body.spin_change = body.spin_change + row.s_spin * (has - had)
    return has, body


@wp.func
def pushed_apart(rows: wp.array2d(dtype=wp.int32), arena: int, start: int, count: int, body: Body) -> Body:
    """What `push_apart` comes to for rows that all are of one body and the arena."""
    pushes = impulses()
    for _ in range(ROUNDS):
        change = float(0.0)
        for i in range(count):
            row = load_wall_row(rows, arena, (start + i) * WALL_ROW_WORDS)
            if row.push_target > 0.0:
                has, body = pushed_out(row, pushes[i], body)
                change = wp.max(change, wp.abs(has - pushes[i]))
                pushes[i] = has
        if change < SETTLED:
            break
    return body


@wp.func
def solved_alone(rows: wp.array2d(dtype=wp.int32), arena: int, start: int, count: int, body: Body) -> Body:
    """What `solve` comes to for rows that all are of one body and the arena, none of them only to push."""
    body = pushed_apart(rows, arena, start, count, body)
    stops = impulses()
    rubs = impulses()
    for _ in range(ROUNDS):
        change = float(0.0)
        for i in range(count):
            has, body = stopped(load_wall_row(rows, arena, (start + i) * WALL_ROW_WORDS), stops[i], body)
            change = wp.max(change, wp.abs(has - stops[i]))
            stops[i] = has
        for i in range(count):
            has, body = rubbed(load_wall_row(rows, arena, (start + i) * WALL_ROW_WORDS), rubs[i], stops[i], body)
            change = wp.max(change, wp.abs(has - rubs[i]))
            rubs[i] = has
        if change < SETTLED:
            break
    return body


@wp.func
def solved_once(contact: Contact, body: Body) -> Body:
    """What `solve` comes to for a body that has no contact but this one, with the arena. One push is enough."""
    row = against_wall(contact, body)
    _push, body = pushed_out(row, 0.0, body)
    stop = float(0.0)
    rub = float(0.0)
    for _ in range(ROUNDS):
        stop_before = stop
        rub_before = rub
        stop, body = stopped(row, stop, body)
        rub, body = rubbed(row, rub, stop, body)
        if wp.max(wp.abs(stop - stop_before), wp.abs(rub - rub_before)) < SETTLED:
            break
    return body


@wp.func
def bounce_off(body: Body, normal: wp.vec3, height: float, radius: float, friction: float, restitution: float) -> Body:
    """A ball that touches one plane and nothing else, its middle `height` above: what `solve` comes to in one round."""
    arm = normal * (-radius)
    approach = wp.dot(normal, body.velocity)
    bounce = float(0.0)
    if wp.abs(approach) >= BOUNCE_SPEED:
        bounce = wp.max(0.0, -restitution * approach)
    after = velocity_at(body, arm) + body.kick
    approach = wp.dot(normal, after)
    impulse = wp.max(0.0, (bounce - approach) / body.inverse_mass)
    sliding = after - normal * approach
    speed = wp.length(sliding)
    along = wp.vec3()
    if speed > STANDS_STILL:
        along = sliding / speed
        turn = wp.cross(arm, along)
        inverse = body.inverse_mass + wp.dot(turn, wp.cw_mul(body.inverse_inertia, turn))
        rub = wp.clamp(-wp.dot(along, after) / inverse, -friction * impulse, friction * impulse)
        body.change = along * (rub * body.inverse_mass)
        body.spin_change = wp.cw_mul(body.inverse_inertia, turn) * rub
    body.change = body.change + normal * (impulse * body.inverse_mass)
    body.push = normal * (wp.max(0.0, radius - height) * OVERLAP_SHARE / DT)
    return body
