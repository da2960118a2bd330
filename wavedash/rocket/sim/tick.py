"""One tick of an arena from top to bottom, and the kernel that runs all ticks of an action in every arena.

The order of events is RocketSim's: cars feel their wheels and obey their controls, contacts are found where bodies are, impulses are
solved, bodies move, speeds are capped, hits and bumps are added, pads are taken, goals are counted.
"""
from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from wavedash.rocket.sim.arena import Arena, cell_of
from wavedash.rocket.sim.ball_arena import ball_touches_arena
from wavedash.rocket.sim.bodies import (
    BALL_INVERSE_INERTIA,
    BALL_MASS,
    CAR_MASS,
    DT,
    Body,
    capped,
    moved,
)
from wavedash.rocket.sim.boosting import boost, supersonic
from wavedash.rocket.sim.car_arena import car_touches_arena
from wavedash.rocket.sim.car_ball import hit_ball, touch_ball
from wavedash.rocket.sim.car_car import touch_cars
from wavedash.rocket.sim.contacts import ARENA, BALL, Contact
from wavedash.rocket.sim.driving import drive
from wavedash.rocket.sim.flying import auto_roll, fly
from wavedash.rocket.sim.jumping import auto_flip, jump, second_jump
from wavedash.rocket.sim.pads import PadTable, pad_under
from wavedash.rocket.sim.records import BallRecord, Car, EventRecord, GameRecord, PadRecord, vec8
from wavedash.rocket.sim.scoring import Match, watch_ball
from wavedash.rocket.sim.shapes import CarShape
from wavedash.rocket.sim.solver import Row, solve
from wavedash.rocket.sim.suspension import Axles, Wheel, cast_wheels, ground_normal, press_wheels

wp.set_module_options({"enable_backward": False})

GRAVITY = wp.constant(650.0)
BALL_KEPT = wp.constant(0.97 ** (1.0 / 120.0))
"""Of the ball's velocity after a tick of drag"""
BALL_FRICTION = wp.constant(0.35)
BALL_RESTITUTION = wp.constant(0.6)
BALL_MAX_SPEED = wp.constant(6000.0)
BALL_MAX_SPIN = wp.constant(6.0)
CAR_MAX_SPEED = wp.constant(2300.0)
CAR_MAX_SPIN = wp.constant(5.5)
RESPAWN_Z = wp.constant(36.0)
BOOST_START = wp.constant(100.0 / 3.0)
PAD_COUNT = wp.constant(34)


@wp.struct
class World:
    """What all arenas share."""

    arena: Arena
    shapes: wp.array(dtype=CarShape)
    pads: PadTable


@wp.func
def car_body(car: Car, shape: CarShape) -> Body:
    """As the tick begins."""
    body = Body()
    body.position = car.position
    body.rotation = car.rotation
    body.velocity = car.velocity
    body.spin = car.angular_velocity
    body.inverse_inertia = shape.inverse_inertia
    if car.present and not car.is_demoed:
        body.inverse_mass = 1.0 / CAR_MASS
    return body


@wp.func
def ball_body(ball: BallRecord) -> Body:
    """As the tick begins. A ball at rest, as at a kick-off, floats until something moves it."""
    body = Body()
    body.position = ball.position
    body.rotation = ball.rotation
    body.velocity = ball.velocity * BALL_KEPT
    body.spin = ball.angular_velocity
    body.inverse_mass = 1.0 / BALL_MASS
    body.inverse_inertia = wp.vec3(BALL_INVERSE_INERTIA)
    if wp.length_sq(ball.velocity) + wp.length_sq(ball.angular_velocity) > 0.0:
        body.kick = wp.vec3(0.0, 0.0, -GRAVITY * DT)
    return body


@wp.func
def wait_for_respawn(car: Car, seat: int, now: int) -> Car:
    """A demolished car comes back after three seconds, at one of four places that the clock chooses."""
    car.demo_timer = wp.max(car.demo_timer - DT, 0.0)
    if car.demo_timer == 0.0:
        team = car.team
        hitbox = car.hitbox
        side = wp.where(team == 0, 1.0, -1.0)
        spot = (now + 1 + seat) % 4
        x = wp.where(spot % 2 == 0, 2304.0, 2688.0)
        car = Car()
        car.team = team
        car.hitbox = hitbox
        car.present = True
        car.on_ground = True
        car.contact_car = -1
        car.ball_hit_tick = -1
        car.ball_hit_impulse_tick = -1
        car.boost = BOOST_START
        car.position = wp.vec3(wp.where(spot < 2, -x, x), -4608.0 * side, RESPAWN_Z)
        car.rotation = wp.mat33(0.0, -side, 0.0, side, 0.0, 0.0, 0.0, 0.0, 1.0)
    return car


@wp.func
def obey(
    cars: wp.array(dtype=Car), bodies: wp.array(dtype=Body), wheels: wp.array(dtype=Wheel), seat: int, seats: int,
    controls: vec8, axles: Axles, world: World,
) -> Axles:
    """A car before the physics of a tick: its wheels, then what its driver wants."""
    car = cars[seat]
    shape = world.shapes[car.hitbox]
    axles = cast_wheels(wheels, seat, seats, bodies, cars, shape, world.shapes, axles, world.arena,
                        cell_of(car.position))
    body = bodies[1 + seat]
    body.kick = wp.vec3(0.0, 0.0, -GRAVITY * DT)
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    speed = wp.dot(body.velocity, forward)
    pressed = controls[5] > 0.5 and car.controls[5] <= 0.5
    touching = int(0)
    for i in range(4):
        car.wheel_contact[i] = wp.uint8(wp.where(wheels[i].ground > 0, 1, 0))
        touching += wp.where(wheels[i].ground > 0, 1, 0)
    car.on_ground = touching >= 3
    car, axles, body = drive(car, controls, axles, wheels, touching, speed, body)
    if touching < 3:
        car, body = fly(car, controls, touching == 0, body)
    else:
        car.is_flipping = False
    car, body = jump(car, controls, pressed, body)
    car, body = auto_flip(car, pressed, body)
    car, body = second_jump(car, controls, pressed, speed, body)
    if controls[0] != 0.0 and ((touching > 0 and touching < 4) or car.has_contact):
        ground = car.contact_normal
        if touching > 0:
            ground = ground_normal(wheels, ground)
        body = auto_roll(ground, body)
    car.has_contact = False
    body = press_wheels(wheels, body)
    car, body = boost(car, controls, body)
    car.controls = controls
    cars[seat] = car
    bodies[1 + seat] = body
    return axles


@wp.func
def bounce(contacts: wp.array2d(dtype=Contact), row: int, count: int, arena: Arena, position: wp.vec3) -> int:
    """The ball against the arena. It bounces off one contact that is the mean of all; each of them pushes it out."""
    count, touch = ball_touches_arena(arena, position, contacts, row, count)
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
        contacts[row, count] = mean
        count += 1
    return count


@wp.func
def find_contacts(
    contacts: wp.array2d(dtype=Contact), arena: int, seats: int, world: World, bodies: wp.array(dtype=Body),
    cars: wp.array(dtype=Car), events: wp.array(dtype=EventRecord), ball: BallRecord, tick: int,
):
    """Who touches what, where the bodies are now: (how many contacts, the ball). Hits, bumps and demolitions are decided here."""
    count = int(0)
    for c in range(seats):
        if bodies[1 + c].inverse_mass > 0.0:
            count, touch = car_touches_arena(world.arena, world.shapes[cars[c].hitbox], 1 + c, bodies[1 + c].position,
                                             bodies[1 + c].rotation, contacts, arena, count)
            if touch.touches:
                cars[c].has_contact = True
                cars[c].contact_normal = touch.normal
    for c in range(seats):
        if bodies[1 + c].inverse_mass > 0.0:
            touched, contact = touch_ball(c, bodies[1 + c], world.shapes[cars[c].hitbox], bodies[0])
            if touched == 1:
                contacts[arena, count] = contact
                count += 1
                car, extra = hit_ball(cars[c], bodies[1 + c], bodies[0], contact, tick)
                cars[c] = car
                bodies[0].late = bodies[0].late + extra
                events[c].touches += 1
                ball.last_touch = c
    for b in range(seats):
        for a in range(b + 1, seats):
            if bodies[1 + a].inverse_mass > 0.0 and bodies[1 + b].inverse_mass > 0.0:
                count = touch_cars(contacts, arena, count, a, b, bodies, cars, world.shapes, events)
    if wp.length_sq(bodies[0].kick) > 0.0:
        count = bounce(contacts, arena, count, world.arena, bodies[0].position)
    return count, ball


@wp.func
def move_ball(ball: BallRecord, body: Body) -> BallRecord:
    """To the end of the tick."""
    body = moved(body)
    ball.position = body.position
    ball.rotation = body.rotation
    ball.velocity = capped(body.velocity + body.late, BALL_MAX_SPEED)
    ball.angular_velocity = capped(body.spin, BALL_MAX_SPIN)
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
    car.velocity = capped(body.velocity + body.late, CAR_MAX_SPEED)
    car.angular_velocity = capped(body.spin, CAR_MAX_SPIN)
    return car


@wp.func
def take_pads(
    pads: wp.array(dtype=PadRecord), arena: int, done: int, held: wp.array(dtype=wp.int32), seats: int, world: World,
    cars: wp.array(dtype=Car), events: wp.array(dtype=EventRecord),
):
    """Cars on pads hold them, of two cars the earlier seat, and take their boost if it is there. Timers of pads are those of the
    step's first tick until its end; `done` ticks have passed."""
    for c in range(seats):
        pad = int(-1)
        if cars[c].present and not cars[c].is_demoed:
            pad = pad_under(world.pads, cars[c], world.shapes[cars[c].hitbox], held[c])
        for other in range(c):
            if held[other] == pad:
                pad = -1
        held[c] = pad
    for c in range(seats):
        pad = held[c]
        if pad >= 0:
            if pads[arena].timer[pad] - float(done) * DT <= 0.0:
                big = world.pads.big[pad] == 1
                cars[c].boost = wp.min(cars[c].boost + wp.where(big, 100.0, 12.0), 100.0)
                pads[arena].timer[pad] = wp.where(big, 10.0, 4.0) + float(done) * DT
                if big:
                    events[c].big_pads += 1
                else:
                    events[c].small_pads += 1


@cache
def step_kernel(seats: int) -> Any:
    """For arenas with so many seats."""
    SEATS = seats
    BODIES = seats + 1

    @wp.kernel(enable_backward=False, module="unique")
    def step(
        first: int,
        world: World,
        balls: wp.array(dtype=BallRecord),
        all_cars: wp.array2d(dtype=Car),
        pads: wp.array(dtype=PadRecord),
        games: wp.array(dtype=GameRecord),
        all_events: wp.array2d(dtype=EventRecord),
        axles: wp.array2d(dtype=Axles),
        matches: wp.array(dtype=Match),
        contacts: wp.array2d(dtype=Contact),
        rows: wp.array2d(dtype=Row),
        controls: wp.array3d(dtype=wp.float32),
        ticks: int,
        delay: int,
    ):
        """Arena first + thread through `ticks` ticks. A goal ends the step."""
        e = first + wp.tid()
        cars = wp.zeros(shape=(SEATS,), dtype=Car)
        events = wp.zeros(shape=(SEATS,), dtype=EventRecord)
        bodies = wp.zeros(shape=(BODIES,), dtype=Body)
        wheels = wp.zeros(shape=(4,), dtype=Wheel)
        held = wp.zeros(shape=(SEATS,), dtype=wp.int32)
        ball = balls[e]
        game = games[e]
        match = matches[e]
        game.goal = -1
        for c in range(SEATS):
            cars[c] = all_cars[e, c]
            events[c].bumped = -1
            events[c].demolished = -1
            held[c] = -1
        for i in range(PAD_COUNT):
            if pads[e].locked_car[i] >= 0:
                held[pads[e].locked_car[i]] = i
                pads[e].locked_car[i] = -1

        done = int(0)
        while done < ticks and game.goal < 0:
            for c in range(SEATS):
                if cars[c].present and cars[c].is_demoed:
                    cars[c] = wait_for_respawn(cars[c], c, game.tick)
                    axles[e, c] = Axles()
            bodies[0] = ball_body(ball)
            for c in range(SEATS):
                bodies[1 + c] = car_body(cars[c], world.shapes[cars[c].hitbox])
            for later in range(SEATS):
                c = SEATS - 1 - later  # RocketSim's order
                if bodies[1 + c].inverse_mass > 0.0:
                    wanted = cars[c].controls
                    if done >= delay:
                        for k in range(8):
                            wanted[k] = wp.clamp(controls[e, c, k], -1.0, 1.0)
                    axles[e, c] = obey(cars, bodies, wheels, c, SEATS, wanted, axles[e, c], world)

            count, ball = find_contacts(contacts, e, SEATS, world, bodies, cars, events, ball, game.tick)
            if count > 0:
                solve(contacts, rows, e, count, bodies)
            ball = move_ball(ball, bodies[0])
            for c in range(SEATS):
                if bodies[1 + c].inverse_mass > 0.0:
                    cars[c] = move_car(cars[c], bodies[1 + c])
            done += 1
            take_pads(pads, e, done, held, SEATS, world, cars, events)
            match, game = watch_ball(match, game, cars, events, SEATS, ball)
            game.tick += 1

        for i in range(PAD_COUNT):
            pads[e].timer[i] = wp.max(pads[e].timer[i] - float(done) * DT, 0.0)
        for c in range(SEATS):
            if held[c] >= 0:
                pads[e].locked_car[held[c]] = c
            all_cars[e, c] = cars[c]
            all_events[e, c] = events[c]
        balls[e] = ball
        games[e] = game
        matches[e] = match

    return step
