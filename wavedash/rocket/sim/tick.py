"""One tick of an arena from top to bottom, and what comes before and after the ticks of a step.

The order of events is RocketSim's: cars feel their wheels and obey their controls, contacts are found where bodies are,
impulses are solved, bodies move, speeds are capped, hits and bumps are added, pads are taken, goals are counted.

The parts of a tick: `ways.py` tells who is near whom, and what a car is about to do. `ready_car` is the whole tick of a car by
itself. For the others it is followed by `touch_arena` and `settle_car` at walls, and by `collide_bodies` where bodies of an
arena meet. `bounce_ball` and `settle_ball` are for a ball by itself at a wall. `watch_arena` sees to the ball, pads and goals.
`launches.py` runs them: on a CPU one loop runs all ticks of an arena while it is in the cache; on a GPU each part is a launch,
over all cars or arenas, or over a list of those that it concerns.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import (
    BALL_MAX_SPEED,
    BALL_MAX_SPIN,
    BIG_BOOST,
    BIG_PAD_SECONDS,
    BOOST_START,
    CAR_MAX_SPEED,
    CAR_MAX_SPIN,
    RESPAWN_SPOTS,
    SMALL_BOOST,
    SMALL_PAD_SECONDS,
)
from wavedash.rocket.sim.collision.arena import Arena
from wavedash.rocket.sim.collision.ball_arena import RADIUS, ball_touches_arena, planes_at_ball
from wavedash.rocket.sim.collision.bodies import (
    BODY_WORDS,
    DT,
    GRAVITY,
    Body,
    ball_body,
    capped,
    car_body,
    hit,
    load_body,
    moved,
    store_body,
)
from wavedash.rocket.sim.collision.broad_phase import is_among
from wavedash.rocket.sim.collision.car_arena import car_touches_arena, is_near_plane, touch_floor
from wavedash.rocket.sim.collision.car_ball import hit_ball, touch_ball
from wavedash.rocket.sim.collision.car_car import touch_cars
from wavedash.rocket.sim.collision.contacts import ARENA, BALL, Contact
from wavedash.rocket.sim.collision.mesh_reach import BODY_NEAR, REACH_WORDS, load_reach
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.solver import (
    WALL_ROW_WORDS,
    against_wall,
    bounce_off,
    prepared,
    pushed_apart,
    solve,
    solved_alone,
    solved_once,
    store_wall_row,
)
from wavedash.rocket.sim.collision.wheel_rays import Others, Wheels, find_floor, find_ground
from wavedash.rocket.sim.kernels.lanes import Team, single
from wavedash.rocket.sim.kernels.memory import BALL_ON_PLANE, BUSY, DRIVES, FLIES, PER_CAR, Arenas, World
from wavedash.rocket.sim.kernels.records import (
    BALL_AT,
    BOOST_WORD,
    CAR_WORDS,
    COMMAND_WORDS,
    GOAL_WORD,
    HITBOX_WORD,
    PAD_COUNT,
    PRESENT_WORD,
    BallRecord,
    Car,
    Command,
    EventRecord,
    car_at,
    event_at,
    game_at,
    is_driven,
    is_present,
    load_ball,
    load_car,
    load_command,
    load_event,
    load_game,
    load_pose,
    note_contact,
    pads_at,
    store_ball,
    store_car,
    store_event,
    store_game,
    vec8,
)
from wavedash.rocket.sim.kernels.struct_io import fetch
from wavedash.rocket.sim.limits import mend, obeyable
from wavedash.rocket.sim.mechanics.boosting import boost, supersonic
from wavedash.rocket.sim.mechanics.driving import drive, pull_handbrake, real_throttle
from wavedash.rocket.sim.mechanics.flying import auto_roll, fly
from wavedash.rocket.sim.mechanics.jumping import auto_flip, jump, second_jump
from wavedash.rocket.sim.mechanics.pads import is_any_pad_held, is_on_pad, let_pads_wait, pad_near
from wavedash.rocket.sim.mechanics.scoring import Match, load_match, store_match, watch_ball
from wavedash.rocket.sim.mechanics.suspension import (
    AXLES_WORDS,
    TYRES_AT,
    Axles,
    Footing,
    forget_wheels,
    ground_normal,
    lift_wheels,
    load_axles,
    stand,
    store_axles,
)

BALL_FRICTION = wp.constant(0.35)
BALL_RESTITUTION = wp.constant(0.6)
FASTEST_BALL, FASTEST_BALL_SPIN = wp.constant(BALL_MAX_SPEED), wp.constant(BALL_MAX_SPIN)
FASTEST_CAR, FASTEST_CAR_SPIN = wp.constant(CAR_MAX_SPEED), wp.constant(CAR_MAX_SPIN)
RESPAWN_X, RESPAWN_Y = wp.constant(wp.vec4(*(spot.x for spot in RESPAWN_SPOTS))), wp.constant(RESPAWN_SPOTS[0].y)
"""Of blue's"""
RESPAWN_Z = wp.constant(36.0)
RESPAWN_BOOST = wp.constant(BOOST_START)
SMALL, BIG = wp.constant(SMALL_BOOST), wp.constant(BIG_BOOST)
SMALL_AGAIN, BIG_AGAIN = wp.constant(SMALL_PAD_SECONDS), wp.constant(BIG_PAD_SECONDS)
"""Seconds until a pad is back"""


# A car by itself --------------------------------------------------------------------------------------------------------------


@wp.func
def ready_car(world: World, arenas: Arenas, e: int, c: int, late: bool, way: int) -> bool:
    """What a car's wheels and driver do. One that touches nothing but the floor goes on to the end of the tick. `late`: the
    driver's commands are still those of the step before. Returns whether the body of a car may touch more of the arena."""
    meets = way == BUSY and is_among(arenas.meeting[e], c)
    car = load_car(arenas.words, e, car_at(c))  # all loads come first: a GPU waits for them together
    command = command_of(arenas, e, c, late)
    first = c * AXLES_WORDS
    axles = load_axles(arenas.axles, e, first)
    if way != FLIES:
        fetch(arenas.axles, e, first + TYRES_AT)
        fetch(arenas.axles, e, first + AXLES_WORDS - 1)
    if way == BUSY:
        fetch(arenas.reach, e, c * REACH_WORDS)
    shape = world.shapes[car.hitbox]
    body = car_body(car, shape)
    if way == BUSY:
        arenas.touching[e, 1 + c] = 0
        if body.inverse_mass == 0.0:
            store_body(arenas.bodies, e, (1 + c) * BODY_WORDS, body)
            return False
    controls = obeyable(command.controls)
    others = Others()
    others.words = arenas.words
    others.shapes = world.shapes
    others.e = e
    others.seats = arenas.seats
    car.handbrake = pull_handbrake(car.handbrake, controls)
    throttle = real_throttle(car, controls)
    footing = Footing()
    if way == FLIES:
        lift_wheels(axles, arenas.axles, e, first + TYRES_AT)
    else:
        wheels = wheels_of(world, arenas, c, body, shape, others, way, meets)
        footing = stand(wheels, body, shape, axles, others, arenas.axles, first + TYRES_AT, car.handbrake, throttle)
    axles.rebounds = footing.rebounds
    car, axles, body = obey(car, controls, throttle, footing, axles, body)
    store_axles(arenas.axles, e, first, axles)
    if way == BUSY:
        near = arenas.reach[e, c * REACH_WORDS] == BODY_NEAR or is_near_plane(shape, body.position, body.rotation)
        if meets or near:
            store_car(arenas.words, e, car_at(c), car)
            store_body(arenas.bodies, e, (1 + c) * BODY_WORDS, body)
            return near
    if way == DRIVES:
        touches, contact = touch_floor(shape, body.position, body.rotation)
        if touches == 1:
            car.has_contact = True
            car.contact_normal = contact.normal
            solved = solved_once(contact, body)
            body.change = solved.change  # not all of it: what an if gives a value is copied whole
            body.spin_change = solved.spin_change
            body.push = solved.push
            body.turn = solved.turn
    store_car(arenas.words, e, car_at(c), move_car(car, body))
    return False


@wp.func
def command_of(arenas: Arenas, e: int, c: int, late: bool) -> Command:
    """A driver's."""
    if late:
        return load_command(arenas.before, e, c * COMMAND_WORDS)
    return load_command(arenas.controls, e, c * COMMAND_WORDS)


@wp.func
def wheels_of(
    world: World, arenas: Arenas, c: int, body: Body, shape: CarShape, others: Others, way: int, meets: bool
) -> Wheels:
    """What a car's wheels stand on."""
    if way == DRIVES:
        return find_floor(shape, body)
    reach = load_reach(arenas.reach, others.e, c * REACH_WORDS)
    return find_ground(c, body, shape, world.arena, reach, others, meets)


@wp.func
def touch_arena(world: World, arenas: Arenas, e: int, c: int, team: Team):
    """Where a car's body touches the arena."""
    shape = world.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
    body = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
    start = c * PER_CAR
    end, touch = car_touches_arena(world.arena, shape, body.position, body.rotation, arenas.contacts, e, start, team,
                                   arenas.listed, arenas.touches)
    if team.lane == 0 and touch.touches:
        arenas.touching[e, 1 + c] = end - start
        note_contact(arenas.words, arenas.numbers, e, c, touch.normal)


@wp.func
def settle_car(arenas: Arenas, e: int, c: int):
    """A car that may touch the arena goes on to the end of the tick. One that meets others is left to `collide_bodies`."""
    if not is_among(arenas.meeting[e], c):
        fetch(arenas.words, e, car_at(c))
        fetch(arenas.words, e, car_at(c) + CAR_WORDS / 2)
        body = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
        start = c * PER_CAR
        many = arenas.touching[e, 1 + c]
        for i in range(start, start + many):
            store_wall_row(arenas.wall_rows, e, i * WALL_ROW_WORDS, against_wall(arenas.contacts[e, i], body))
        body = solved_alone(arenas.wall_rows, e, start, many, body)
        store_car(arenas.words, e, car_at(c), move_car(load_car(arenas.words, e, car_at(c)), body))


@wp.func
def settle_ball(arenas: Arenas, e: int):
    """A ball at a wall, near no car: all contacts but the last only push it out, and it bounces off the last. `watch_arena`
    moves it."""
    body = load_body(arenas.bodies, e, 0)
    start = arenas.seats * PER_CAR
    many = arenas.touching[e, 0]
    if many > 0:
        for i in range(start, start + many - 1):
            store_wall_row(arenas.wall_rows, e, i * WALL_ROW_WORDS, against_wall(arenas.contacts[e, i], body))
        body = pushed_apart(arenas.wall_rows, e, start, many - 1, body)
        body = solved_once(arenas.contacts[e, start + many - 1], body)
        store_body(arenas.bodies, e, 0, body)


@wp.func
def obey(car: Car, controls: vec8, throttle: float, footing: Footing, axles: Axles, body: Body):
    """What the driver wants, and what the wheels do."""
    body.kick = wp.vec3(0.0, 0.0, -GRAVITY * DT)
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    speed = wp.dot(body.velocity, forward)
    pressed = controls[5] > 0.5 and car.controls[5] <= 0.5
    touching = footing.touching
    car.wheel_contact = footing.contact
    car.on_ground = touching >= 3
    axles, body = drive(car.handbrake, throttle, controls, axles, footing, speed, body)
    if touching < 3:
        flipping, twist, kick = fly(car, controls, touching == 0, body)
        car.is_flipping = flipping
        body.twist = body.twist + twist
        body.kick = body.kick + kick
    else:
        car.is_flipping = False
    car, body = jump(car, controls, pressed, body)
    car, body = auto_flip(car, pressed, body)
    car, body = second_jump(car, controls, pressed, speed, body)
    if controls[0] != 0.0 and ((touching > 0 and touching < 4) or car.has_contact):
        ground = car.contact_normal
        if touching > 0:
            ground = ground_normal(footing, ground)
        twist, kick = auto_roll(ground, body)
        body.twist = body.twist + twist
        body.kick = body.kick + kick
    car.has_contact = False
    body = hit(body, footing.push, footing.turn)
    car, body = boost(car, controls, body)
    car.controls = controls
    return car, axles, body


@wp.func
def wait_for_respawn(arenas: Arenas, e: int, seat: int, now: int):
    """A demolished car comes back after three seconds, at one of four places that the clock chooses. Time begins to run in the
    tick after."""
    if load_body(arenas.bodies, e, (1 + seat) * BODY_WORDS).inverse_mass > 0.0:
        return
    forget_wheels(arenas.axles, e, seat * AXLES_WORDS)
    car = load_car(arenas.words, e, car_at(seat))
    car.demo_timer = wp.max(car.demo_timer - DT, 0.0)
    if car.demo_timer == 0.0:
        team = car.team
        hitbox = car.hitbox
        side = wp.where(team == 0, 1.0, -1.0)
        x = RESPAWN_X[(now + 1 + seat) % 4]
        car = Car()
        car.team = team
        car.hitbox = hitbox
        car.present = True
        car.on_ground = True
        car.contact_car = -1
        car.ball_hit_tick = -1
        car.ball_hit_impulse_tick = -1
        car.boost = RESPAWN_BOOST
        car.position = wp.vec3(x, RESPAWN_Y * side, RESPAWN_Z)
        car.rotation = wp.mat33(0.0, -side, 0.0, side, 0.0, 0.0, 0.0, 0.0, 1.0)
    store_car(arenas.words, e, car_at(seat), car)


# All bodies of an arena -------------------------------------------------------------------------------------------------------


@wp.func
def collide_bodies(
    world: World, arenas: Arenas, e: int, cars: wp.array(dtype=Car), bodies: wp.array(dtype=Body),
    events: wp.array(dtype=EventRecord), place: int,
):
    """Contacts between the bodies of an arena that meet, and the impulses that follow; cars go on to the end of the tick. The
    arrays are room for an arena's, `place` is that of this thread in `arenas.touches`."""
    seats = arenas.seats
    ball = load_ball(arenas.words, e, BALL_AT)
    bodies[0] = ball_body(ball)
    for c in range(seats):
        if is_among(arenas.meeting[e], c):
            cars[c] = load_car(arenas.words, e, car_at(c))
            bodies[1 + c] = load_body(arenas.bodies, e, (1 + c) * BODY_WORDS)
            events[c] = load_event(arenas.words, e, event_at(seats, c))
    count, ball = find_contacts(world, arenas, e, arenas.words[e, game_at(seats)], ball, cars, bodies, events, place)
    rows = int(0)
    for c in range(seats):
        if is_among(arenas.meeting[e], c):
            for i in range(arenas.touching[e, 1 + c]):
                contact = arenas.contacts[e, c * PER_CAR + i]
                contact.a = 1 + c
                arenas.rows[e, rows] = prepared(contact, bodies[1 + c], bodies[1 + c])
                rows += 1
    for i in range(seats * PER_CAR, count):
        contact = arenas.contacts[e, i]
        arenas.rows[e, rows] = prepared(contact, bodies[contact.a], bodies[wp.max(contact.b, 0)])
        rows += 1
    solve(arenas.rows, e, 0, rows, bodies)
    store_ball(arenas.words, e, BALL_AT, ball)
    store_body(arenas.bodies, e, 0, bodies[0])
    for c in range(seats):
        if is_among(arenas.meeting[e], c) and bodies[1 + c].inverse_mass > 0.0:
            store_car(arenas.words, e, car_at(c), move_car(cars[c], bodies[1 + c]))
            store_event(arenas.words, e, event_at(seats, c), events[c])


@wp.func
def find_contacts(
    world: World, arenas: Arenas, e: int, tick: int, ball: BallRecord, cars: wp.array(dtype=Car),
    bodies: wp.array(dtype=Body), events: wp.array(dtype=EventRecord), place: int,
):
    """Of cars with the ball and each other, and of the ball with the arena, where the bodies are now. Hits, bumps and
    demolitions are decided here. Returns the end of the list, and the ball."""
    count = arenas.seats * PER_CAR
    for c in range(arenas.seats):
        if is_among(arenas.meeting[e], c) and bodies[1 + c].inverse_mass > 0.0:
            touched, contact = touch_ball(c, bodies[1 + c], world.shapes[cars[c].hitbox], bodies[0])
            if touched == 1:
                arenas.contacts[e, count] = contact
                count += 1
                car, extra = hit_ball(cars[c], bodies[1 + c], bodies[0], contact, tick)
                cars[c] = car
                bodies[0].late = bodies[0].late + extra
                events[c].touches = events[c].touches + 1  # not +=, which would be atomic
                ball.last_touch = c
    for b in range(arenas.seats):
        for a in range(b + 1, arenas.seats):
            both = is_among(arenas.meeting[e], a) and is_among(arenas.meeting[e], b)
            if both and bodies[1 + a].inverse_mass * bodies[1 + b].inverse_mass > 0.0:
                count = touch_cars(arenas.contacts, e, count, a, b, bodies, cars, world.shapes, events)
    if wp.length_sq(bodies[0].kick) > 0.0:
        count = bounce(arenas, e, count, world.arena, bodies[0].position, single(place))
    return count, ball


@wp.func
def bounce(arenas: Arenas, e: int, count: int, arena: Arena, position: wp.vec3, team: Team) -> int:
    """The ball against the arena. It bounces off one contact that is the mean of all; each of them pushes it out. Lane 0 of the
    team knows the new count."""
    count, touch = ball_touches_arena(arena, position, arenas.contacts, e, count, team, arenas.touches)
    if touch.contacts > 0:
        many = float(touch.contacts)
        mean = Contact()
        mean.a = BALL
        mean.b = ARENA
        mean.normal = touch.normals / many
        mean.arm_a = mean.normal * (-touch.arms / many)
        mean.friction = BALL_FRICTION
        mean.restitution = BALL_RESTITUTION
        mean.distance = 1.0
        arenas.contacts[e, count] = mean
        count += 1
    return count


@wp.func
def bounce_ball(world: World, arenas: Arenas, e: int, team: Team):
    """A ball that is at a wall, and near no car: where it touches. `settle_ball` follows."""
    body = ball_body(load_ball(arenas.words, e, BALL_AT))
    start = arenas.seats * PER_CAR
    end = bounce(arenas, e, start, world.arena, body.position, team)
    if team.lane == 0:
        arenas.touching[e, 0] = end - start
        store_body(arenas.bodies, e, 0, body)


@wp.func
def move_ball(ball: BallRecord, body: Body) -> BallRecord:
    """To the end of the tick."""
    body = moved(body)
    ball.position = body.position
    ball.rotation = body.rotation
    ball.velocity = capped(body.velocity + body.late, FASTEST_BALL)
    ball.angular_velocity = capped(body.spin, FASTEST_BALL_SPIN)
    return ball


@wp.func
def move_car(car: Car, body: Body) -> Car:
    """To the end of the tick. A car that was demolished in it stays where it was hit."""
    if car.is_demoed:
        car.velocity = body.velocity
        car.angular_velocity = body.spin
        return car
    body = moved(body)
    car.position = body.position
    car.rotation = body.rotation
    car.velocity = body.velocity
    car = supersonic(car)
    car.contact_cooldown = wp.max(car.contact_cooldown - DT, 0.0)
    car.velocity = capped(body.velocity + body.late, FASTEST_CAR)
    car.angular_velocity = capped(body.spin, FASTEST_CAR_SPIN)
    return car


@wp.func
def watch_arena(world: World, arenas: Arenas, e: int) -> bool:
    """The ball to the end of the tick, then pads, goals and the clock. Returns whether the step goes on."""
    seats = arenas.seats
    for c in range(seats):
        fetch(arenas.words, e, car_at(c))
        fetch(arenas.words, e, car_at(c) + PRESENT_WORD)
    fetch(arenas.held, e, 0)
    game = load_game(arenas.words, e, game_at(seats))
    ball = load_ball(arenas.words, e, BALL_AT)
    match = load_match(arenas.matches, e, 0)
    meeting = arenas.meeting[e]
    done = arenas.done[e] + 1
    if game.goal >= 0:
        return False
    ball = move_ball(ball, bounced(arenas, e, ball, meeting))
    store_ball(arenas.words, e, BALL_AT, ball)
    arenas.done[e] = done
    for c in range(seats):
        if is_present(arenas.words, e, c) and not is_driven(arenas.words, e, c):
            wait_for_respawn(arenas, e, c, game.tick)
        take_pad(world, arenas, e, c, done)
    match, game = watch_ball(match, game, ball, arenas.words, e, seats)
    game.tick += 1
    store_game(arenas.words, e, game_at(seats), game)
    store_match(arenas.matches, e, 0, match)
    return game.goal < 0


@wp.func
def bounced(arenas: Arenas, e: int, ball: BallRecord, meeting: int) -> Body:
    """The ball after all contacts of the tick."""
    body = ball_body(ball)
    if meeting == BALL_ON_PLANE:
        _, normal, height = planes_at_ball(body.position)
        return bounce_off(body, normal, height, RADIUS, BALL_FRICTION, BALL_RESTITUTION)
    if meeting != 0:
        return load_body(arenas.bodies, e, 0)
    return body


@wp.func
def take_pad(world: World, arenas: Arenas, e: int, c: int, done: int):
    """A car on a pad holds it, of two cars the earlier seat, and takes its boost if it is there. One with full boost stands on
    none. Timers of pads are those of the step's first tick until its end; `done` ticks have passed."""
    held = arenas.held[e, c]
    pose = load_pose(arenas.words, e, car_at(c))
    pad = pad_near(world.pads, pose.position)
    if held < 0 and pad < 0:
        return
    boost = arenas.numbers[e, car_at(c) + BOOST_WORD]
    if boost >= 100.0 or not is_driven(arenas.words, e, c):
        pad = -1
    if pad >= 0:
        shape = world.shapes[arenas.words[e, car_at(c) + HITBOX_WORD]]
        if not is_on_pad(world.pads, pad, pose, shape, held):
            pad = -1
    for other in range(c):
        if arenas.held[e, other] == pad:
            pad = -1
    arenas.held[e, c] = pad
    if pad >= 0:
        timer = pads_at(arenas.seats) + pad
        if arenas.numbers[e, timer] - float(done) * DT <= 0.0:
            big = world.pads.big[pad] == 1
            arenas.numbers[e, car_at(c) + BOOST_WORD] = wp.min(boost + wp.where(big, BIG, SMALL), 100.0)
            arenas.numbers[e, timer] = wp.where(big, BIG_AGAIN, SMALL_AGAIN) + float(done) * DT
            event = load_event(arenas.words, e, event_at(arenas.seats, c))
            if big:
                event.big_pads += 1
            else:
                event.small_pads += 1
            store_event(arenas.words, e, event_at(arenas.seats, c), event)


# A step -----------------------------------------------------------------------------------------------------------------------


@wp.func
def begin_step(world: World, arenas: Arenas, e: int):
    """Nothing has happened yet."""
    arenas.words[e, game_at(arenas.seats) + GOAL_WORD] = -1
    arenas.done[e] = 0
    keep_in_order(world, arenas, e)
    nothing = EventRecord()
    nothing.bumped = -1
    nothing.demolished = -1
    for c in range(arenas.seats):
        store_event(arenas.words, e, event_at(arenas.seats, c), nothing)
        arenas.held[e, c] = -1
    if is_any_pad_held(arenas.words, e, pads_at(arenas.seats)):
        holders = pads_at(arenas.seats) + PAD_COUNT
        for i in range(PAD_COUNT):
            holder = arenas.words[e, holders + i]
            if holder >= 0:
                arenas.held[e, holder] = i


@wp.func
def end_step(world: World, arenas: Arenas, e: int):
    """Pads as the step left them."""
    timers = pads_at(arenas.seats)
    let_pads_wait(arenas.words, e, timers, float(arenas.done[e]) * DT)
    for c in range(arenas.seats):
        if arenas.held[e, c] >= 0:
            arenas.words[e, timers + PAD_COUNT + arenas.held[e, c]] = c
    keep_in_order(world, arenas, e)


@wp.func
def keep_in_order(world: World, arenas: Arenas, e: int):
    """An arena that cannot be one of the game begins again, and nothing is remembered."""
    if mend(world.safety, arenas.words, arenas.numbers, e, arenas.seats):
        arenas.bad[e] = arenas.bad[e] + 1
        store_match(arenas.matches, e, 0, Match())
        for c in range(arenas.seats):
            forget_wheels(arenas.axles, e, c * AXLES_WORDS)
