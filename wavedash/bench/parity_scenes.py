"""The scenes of `wavedash bench parity`: one per mechanic, each a batch of random starts and the keys that are pressed then.

All are one against one, so that one pair of simulators plays all of them. Who has no part in a scene is parked in a corner of
the field. What a scene is about happens within its first 8 ticks wherever that is possible: there it is judged, before small
differences grow.
"""
from __future__ import annotations

from collections.abc import Callable
from math import pi

import torch
from torch import Tensor
from torch.nn.functional import normalize

from wavedash.bench.parity_stage import TICKS, Scene, Take, Target, line_up
from wavedash.rocket.constants import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BALL_REST_Z,
    BOOST_MAX,
    CAR_MAX_SPEED,
    CAR_REST_Z,
    CORNER_LENGTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GRAVITY,
    PADS,
    SIDE_WALL_X,
)
from wavedash.rocket.geometry import look, rotation, vector
from wavedash.rocket.starts import Dribble, FlipReset
from wavedash.rocket.state import GameState

CEILING = 2048.0
"""The plane of the ceiling"""
RAMP_RADIUS = 350.0
"""About that of the bend from the floor into a side wall"""
NOSE, TAIL, SIDE = 74.2, 46.4, 43.4
"""From an Octane's origin to its front, back and sides"""

SCENES: dict[str, Scene] = {}


def _scene(name: str, target: Target, *of: str, seats: tuple[int, ...] = (0,), ticks: int = TICKS, warm: int = 0,
           keep: Callable[[GameState], Tensor] | None = None, events_at: int = 8,
           ) -> Callable[[Callable[[Take], None]], Callable[[Take], None]]:
    def register(set_up: Callable[[Take], None]) -> Callable[[Take], None]:
        SCENES[name] = Scene(name, set_up, target, of, seats, ticks, warm, keep, events_at)
        return set_up
    return register


# --- on the floor ----------------------------------------------------------------------------------------------------


def _on_floor(take: Take, slowest: float, fastest: float) -> None:
    take.drive(take.seat(0), take.middle(), take.angle(), take.uniform(slowest, fastest))
    take.put(take.seat(0), boost=take.uniform(0.0, BOOST_MAX))


@_scene("drive", Target.MOTION, "car", warm=20)
def _drive(take: Take) -> None:
    """Forward, backward, braking, and rolling out."""
    _on_floor(take, -1000.0, 2000.0)
    take.press(throttle=take.uniform(-1.0, 1.0) * take.chance(0.8))


@_scene("turn", Target.MOTION, "car", warm=20)
def _turn(take: Take) -> None:
    _on_floor(take, 200.0, 2000.0)
    take.press(throttle=take.uniform(0.0, 1.0), steer=take.uniform(-1.0, 1.0))


@_scene("powerslide", Target.MOTION, "car", warm=20)
def _powerslide(take: Take) -> None:
    """It begins in the first ticks, and ends while some cars are still sliding."""
    _on_floor(take, 500.0, 2000.0)
    take.press(throttle=take.uniform(0.0, 1.0), steer=take.uniform(0.4, 1.0) * take.either_side())
    take.press(start=take.number(1, 3), ticks=take.number(20, 120), handbrake=1.0)


@_scene("boost", Target.MOTION, "car", warm=5)
def _boost(take: Take) -> None:
    """Taps and long pushes, until nothing is left."""
    _on_floor(take, 0.0, 2250.0)
    take.press(throttle=1.0, steer=take.uniform(-0.3, 0.3))
    take.press(boost=1.0, ticks=take.number(1, 120))


@_scene("landing", Target.MOTION, "car")
def _landing(take: Take) -> None:
    """On the wheels, from a jump or a fall."""
    fall, height = take.uniform(50.0, 900.0), take.uniform(2.0, 20.0)
    turned = rotation(take.angle(), take.uniform(-0.12, 0.12), take.uniform(-0.12, 0.12))
    forward, speed = turned[..., 0], take.uniform(-500.0, 1800.0).unsqueeze(-1)
    place = take.middle() + vector(take.zero, 0.0, CAR_REST_Z + height + fall * take.soon())
    take.fly(take.seat(0), place, turned, forward * speed + vector(take.zero, 0.0, -fall), take.uniform(0.1, 1.5), False)
    take.press(throttle=take.uniform(0.0, 1.0) * take.chance(0.7), steer=take.uniform(-1.0, 1.0) * take.chance(0.5))


@_scene("jump", Target.MOTION, "car", warm=5)
def _jump(take: Take) -> None:
    """Short and long, from standing and from driving; half of the cars land again."""
    _on_floor(take, 0.0, 1800.0)
    take.press(start=1, jump=1.0, ticks=take.number(1, 40))
    take.press(start=1, throttle=1.0)


# --- on walls --------------------------------------------------------------------------------------------------------


def _wheels(state: GameState) -> Tensor:
    return state.cars.wheel_contact[:, 0].sum(-1)


def _climbs(state: GameState) -> Tensor:
    return (_wheels(state) >= 3) & (state.cars.up[:, 0, 2] < 0.97)


@_scene("wall drive", Target.MOTION, "car")
def _wall_drive(take: Take) -> None:
    """Flat on a side wall."""
    side, steepness = take.either_side(), take.angle()
    forward = vector(0.0, steepness.cos(), steepness.sin())
    take.put(
        take.seat(0),
        position=vector(side * (SIDE_WALL_X - CAR_REST_Z), take.uniform(-2500.0, 2500.0), take.uniform(600.0, 1300.0)),
        rotation=look(forward, vector(-side, 0.0, 0.0)), velocity=forward * take.uniform(200.0, 2000.0).unsqueeze(-1),
    )
    take.press(throttle=take.uniform(0.0, 1.0), steer=take.uniform(-1.0, 1.0))


@_scene("ramp drive", Target.MOTION, "car", warm=40, keep=_climbs)
def _ramp_drive(take: Take) -> None:
    """On the bend from the floor into a side wall."""
    side = take.either_side()
    yaw = torch.where(side > 0, 0.0, pi) + take.uniform(-0.8, 0.8)
    place = vector(side * take.uniform(3050.0, 3600.0), take.uniform(-2500.0, 2500.0), 0.0)
    take.drive(take.seat(0), place, yaw, take.uniform(700.0, 1700.0))
    take.press(throttle=1.0, steer=take.uniform(-0.4, 0.4))


@_scene("corner drive", Target.MOTION, "car", warm=90, keep=_climbs)
def _corner_drive(take: Take) -> None:
    """On the bends and the slanted wall of a corner of the field."""
    side, end = take.either_side(), take.either_side()
    yaw = torch.atan2(end, side) + take.uniform(-0.5, 0.5)
    place = vector(side * take.uniform(2000.0, 2600.0), end * take.uniform(3200.0, 3900.0), 0.0)
    take.drive(take.seat(0), place, yaw, take.uniform(900.0, 1900.0))
    take.press(throttle=1.0, steer=take.uniform(-0.3, 0.3))


@_scene("ceiling", Target.MOTION, "car")
def _ceiling(take: Take) -> None:
    """Along the ceiling, from which a car falls sooner or later."""
    yaw = take.angle()
    forward = vector(yaw.cos(), yaw.sin(), 0.0)
    position = take.middle() + vector(take.zero, 0.0, CEILING - CAR_REST_Z)
    take.put(take.seat(0), position=position, rotation=look(forward, vector(take.zero, 0.0, -1.0)),
             velocity=forward * take.uniform(0.0, 2000.0).unsqueeze(-1) + vector(take.zero, 0.0, 50.0))
    take.press(throttle=take.uniform(0.0, 1.0), steer=take.uniform(-1.0, 1.0))


# --- in the air ------------------------------------------------------------------------------------------------------


def _in_air(take: Take, tilt: float = 0.5, late: float = 1.1) -> None:
    """So high that a second passes without a touch, with a flip left for most (up to `late` seconds after the jump)."""
    turned = rotation(take.angle(), take.uniform(-tilt, tilt), take.uniform(-tilt, tilt))
    velocity = turned[..., 0] * take.uniform(-800.0, 1800.0).unsqueeze(-1) + take.direction() * 200.0
    place = take.middle() + vector(take.zero, 0.0, take.uniform(900.0, 1300.0))
    take.fly(take.seat(0), place, turned, velocity, take.uniform(0.0, late), False)
    take.put(take.seat(0), has_jumped=take.chance(0.8), boost=take.uniform(0.0, BOOST_MAX),
             angular_velocity=take.direction() * take.uniform(0.0, 1.0).unsqueeze(-1))


def _flip(take: Take, forward: Tensor | float, right: Tensor | float) -> Tensor:
    """A press of the jump key with the stick held. Returns the tick [E] of the press."""
    start, force = take.number(0, 3), take.uniform(0.6, 1.0)
    take.press(start=start, ticks=take.number(1, 60), pitch=-forward * force, yaw=right * force)
    take.press(start=start, ticks=take.number(1, 12), jump=1.0)
    return start


@_scene("double jump", Target.MOTION, "car")
def _double_jump(take: Take) -> None:
    _in_air(take, late=1.3)
    take.press(start=take.number(0, 3), ticks=take.number(1, 12), jump=1.0)


@_scene("flip front", Target.MOTION, "car")
def _flip_front(take: Take) -> None:
    _in_air(take)
    _flip(take, 1.0, 0.0)


@_scene("flip back", Target.MOTION, "car")
def _flip_back(take: Take) -> None:
    _in_air(take)
    _flip(take, -1.0, 0.0)


@_scene("flip left", Target.MOTION, "car")
def _flip_left(take: Take) -> None:
    _in_air(take)
    _flip(take, 0.0, -1.0)


@_scene("flip right", Target.MOTION, "car")
def _flip_right(take: Take) -> None:
    _in_air(take)
    _flip(take, 0.0, 1.0)


@_scene("flip diagonal", Target.MOTION, "car")
def _flip_diagonal(take: Take) -> None:
    _in_air(take)
    angle = take.angle()
    _flip(take, angle.cos(), angle.sin())


@_scene("flip cancel", Target.MOTION, "car")
def _flip_cancel(take: Take) -> None:
    """The stick is pulled against a flip as soon as it has begun."""
    _in_air(take)
    forward = take.either_side()
    start = _flip(take, forward, take.uniform(-0.5, 0.5))
    take.press(start=start + take.number(1, 4), pitch=forward * take.uniform(0.5, 1.0), yaw=0.0)


@_scene("stall", Target.MOTION, "car")
def _stall(take: Take) -> None:
    """Yaw against roll: a flip that goes nowhere."""
    _in_air(take)
    side, start = take.either_side(), take.number(0, 3)
    take.press(start=start, ticks=20, yaw=side, roll=-side)
    take.press(start=start, ticks=take.number(1, 12), jump=1.0)


@_scene("air control", Target.MOTION, "car")
def _air_control(take: Take) -> None:
    """Any stick, changing every tenth of a second, with boost and throttle now and then."""
    _in_air(take, tilt=pi / 2)
    take.put(take.seat(0), has_flipped=take.chance(0.3))
    for start in range(0, TICKS, 12):
        pitch, yaw, roll, throttle = (take.uniform(-1.0, 1.0, 4) * take.chance(0.7, 4)).unbind(-1)
        take.press(start=start, ticks=12, pitch=pitch, yaw=yaw, roll=roll, throttle=throttle, boost=take.chance(0.4).float())


@_scene("wavedash", Target.MOTION, "car")
def _wavedash(take: Take) -> None:
    """Nose up and close to the floor, a flip just before the back wheels touch."""
    yaw, fall = take.angle(), take.uniform(50.0, 300.0)
    turned = rotation(yaw, take.uniform(0.15, 0.4))
    velocity = vector(yaw.cos(), yaw.sin(), 0.0) * take.uniform(0.0, 1400.0).unsqueeze(-1) + vector(take.zero, 0.0, -fall)
    take.fly(take.seat(0), take.middle() + vector(take.zero, 0.0, take.uniform(35.0, 50.0)), turned, velocity,
             take.uniform(0.1, 0.5), False)
    _flip(take, 1.0, take.uniform(-0.5, 0.5))
    take.press(throttle=1.0)


# --- on the roof -----------------------------------------------------------------------------------------------------


def _on_roof(take: Take, fastest: float, height: float = 0.5, tilt: float = 0.0) -> None:
    yaw, direction = take.angle(), take.angle()
    speed = take.uniform(0.0, fastest)
    take.put(
        take.seat(0),
        position=take.middle() + vector(take.zero, 0.0, take.roof()[:, 0] + height),
        rotation=rotation(yaw, take.uniform(-tilt, tilt), pi + take.uniform(-tilt, tilt)),
        velocity=vector(speed * direction.cos(), speed * direction.sin(), 0.0),
        angular_velocity=vector(take.zero, 0.0, take.uniform(-2.0, 2.0)), on_ground=False, wheel_contact=False,
        has_contact=True, contact_normal=vector(take.zero, 0.0, 1.0), air_time=take.uniform(0.2, 2.0),
    )


@_scene("roof", Target.SPREAD, "car", ticks=240)
def _roof(take: Take) -> None:
    """Rocks, slides and turns on its roof."""
    _on_roof(take, 500.0, height=15.0, tilt=0.2)


@_scene("tumble", Target.SPREAD, "car", ticks=240)
def _tumble(take: Take) -> None:
    """Falls on any corner, turning."""
    take.fly(take.seat(0), take.middle() + vector(take.zero, 0.0, take.uniform(120.0, 250.0)), take.anyhow(),
             take.direction() * take.uniform(0.0, 900.0).unsqueeze(-1), take.uniform(1.3, 2.0), True)
    take.put(take.seat(0), angular_velocity=take.direction() * take.uniform(0.0, 5.0).unsqueeze(-1))


@_scene("auto-flip", Target.MOTION, "car")
def _auto_flip(take: Take) -> None:
    """The jump key turns a car over that lies on its roof."""
    _on_roof(take, 300.0)
    take.press(start=take.number(2, 5), ticks=take.number(2, 12), jump=1.0)


# --- the ball alone --------------------------------------------------------------------------------------------------


def _throw(take: Take, at: Tensor, along: Tensor, fastest: float = 4000.0) -> None:
    """The ball's middle is at `at` [E, 3] in a moment, moving along [E, 3], if nothing is in the way."""
    velocity = normalize(along, dim=-1) * take.uniform(300.0, fastest).unsqueeze(-1)
    take.ball(at - velocity * take.soon().unsqueeze(-1), velocity)
    take.spin_ball()


def _toward(take: Take, wall: Tensor) -> Tensor:
    """[E, 3]: roughly in a direction"""
    return normalize(wall, dim=-1) + take.direction() * take.uniform(0.0, 0.9).unsqueeze(-1)


@_scene("ball in air", Target.MOTION, "ball")
def _ball_in_air(take: Take) -> None:
    speed, direction = take.uniform(0.0, 2800.0), take.angle()
    take.ball(take.middle() + vector(take.zero, 0.0, take.uniform(800.0, 1200.0)),
              vector(speed * direction.cos(), speed * direction.sin(), take.uniform(-300.0, 600.0)))
    take.spin_ball()


@_scene("ball rolling", Target.MOTION, "ball")
def _ball_rolling(take: Take) -> None:
    speed, direction = take.uniform(20.0, 2000.0), take.angle()
    velocity = vector(speed * direction.cos(), speed * direction.sin(), 0.0)
    take.ball(take.middle() + vector(take.zero, 0.0, BALL_REST_Z), velocity, rolling=take.chance(0.7))


@_scene("ball, floor", Target.BOUNCE, "ball")
def _ball_floor(take: Take) -> None:
    _throw(take, take.middle() + vector(take.zero, 0.0, BALL_RADIUS), _toward(take, vector(take.zero, 0.0, -1.0)))


@_scene("ball, side wall", Target.BOUNCE, "ball")
def _ball_side_wall(take: Take) -> None:
    side = take.either_side()
    at = vector(side * (SIDE_WALL_X - BALL_RADIUS), take.uniform(-2500.0, 2500.0), take.uniform(700.0, 1300.0))
    _throw(take, at, _toward(take, vector(side, 0.0, 0.0)))


@_scene("ball, back wall", Target.BOUNCE, "ball")
def _ball_back_wall(take: Take) -> None:
    end, side = take.either_side(), take.either_side()
    at = vector(side * take.uniform(1300.0, 2300.0), end * (BACK_WALL_Y - BALL_RADIUS), take.uniform(700.0, 1300.0))
    _throw(take, at, _toward(take, vector(0.0, end, 0.0)))


@_scene("ball, ceiling", Target.BOUNCE, "ball")
def _ball_ceiling(take: Take) -> None:
    _throw(take, take.middle() + vector(take.zero, 0.0, CEILING - BALL_RADIUS), _toward(take, vector(take.zero, 0.0, 1.0)))


@_scene("ball, ramp", Target.BOUNCE, "ball")
def _ball_ramp(take: Take) -> None:
    """Into the bend between the floor and a side wall."""
    side, angle, depth = take.either_side(), take.uniform(0.3, 1.27), RAMP_RADIUS - BALL_RADIUS
    out = vector(side * angle.cos(), 0.0, -angle.sin())
    axis = vector(side * (SIDE_WALL_X - RAMP_RADIUS), take.uniform(-2500.0, 2500.0), RAMP_RADIUS)
    _throw(take, axis + out * depth, out + vector(0.0, take.uniform(-0.5, 0.5), 0.0))


@_scene("ball, corner", Target.BOUNCE, "ball")
def _ball_corner(take: Take) -> None:
    """The slanted walls and the round edges where they meet the others."""
    side, end, along = take.either_side(), take.either_side(), take.uniform(0.0, CORNER_LENGTH)
    out = normalize(vector(side, end, 0.0), dim=-1)
    wall = vector(side * (SIDE_WALL_X - along), end * (BACK_WALL_Y - CORNER_LENGTH + along), take.uniform(500.0, 1500.0))
    _throw(take, wall - out * BALL_RADIUS, _toward(take, out))


@_scene("ball, post", Target.BOUNCE, "ball")
def _ball_post(take: Take) -> None:
    side, end = take.either_side(), take.either_side()
    angle, beside = take.uniform(-0.6, 0.6), take.uniform(-60.0, 60.0)
    along, across = vector(angle.sin(), end * angle.cos(), 0.0), vector(angle.cos(), -end * angle.sin(), 0.0)
    post = vector(side * GOAL_HALF_WIDTH, end * BACK_WALL_Y, take.uniform(200.0, 450.0))
    _throw(take, post + across * beside.unsqueeze(-1) - along * BALL_RADIUS, along)


@_scene("ball, crossbar", Target.BOUNCE, "ball")
def _ball_crossbar(take: Take) -> None:
    end, angle, beside = take.either_side(), take.uniform(-0.5, 0.5), take.uniform(-60.0, 60.0)
    along, across = vector(0.0, end * angle.cos(), angle.sin()), vector(0.0, -end * angle.sin(), angle.cos())
    bar = vector(take.uniform(-700.0, 700.0), end * BACK_WALL_Y, GOAL_HEIGHT)
    _throw(take, bar + across * beside.unsqueeze(-1) - along * BALL_RADIUS, along + vector(take.uniform(-0.3, 0.3), 0.0, 0.0))


@_scene("goal", Target.EVENTS, "ball", seats=(0, 1), events_at=TICKS)
def _goal(take: Take) -> None:
    """On course for a goal, after a touch of the one or the other."""
    end, seconds = take.either_side(), take.uniform(0.4, 0.9)
    into = vector(take.uniform(-700.0, 700.0), end * (BACK_WALL_Y + 200.0), take.uniform(120.0, 450.0))
    start = vector(take.uniform(-1500.0, 1500.0), end * take.uniform(3500.0, 4400.0), take.uniform(150.0, 600.0))
    climb = vector(take.zero, 0.0, GRAVITY * seconds / 2)
    take.ball(start, (into - start) / seconds.unsqueeze(-1) + climb)
    state, touched = take.state, take.number(0, 1)
    state.game.tick.fill_(500)
    state.ball.last_touch.copy_(touched)
    for seat in (0, 1):
        when = torch.where(touched == seat, take.number(300, 499), -1)
        take.put(take.seat(seat), ball_hit_tick=when, ball_hit_impulse_tick=when)


# --- cars and ball ---------------------------------------------------------------------------------------------------


def _approach(take: Take, seat: int, ball: Tensor, yaw: Tensor, beside: float, slowest: float = 300.0) -> None:
    """A car drives at a resting ball and meets it soon."""
    speed = take.uniform(slowest, 2250.0)
    ahead, right = vector(yaw.cos(), yaw.sin(), 0.0), vector(-yaw.sin(), yaw.cos(), 0.0)
    distance = NOSE + BALL_RADIUS + speed * take.soon()
    place = ball - ahead * distance.unsqueeze(-1) + right * take.uniform(-beside, beside).unsqueeze(-1)
    take.drive(take.seat(seat), place, yaw, speed)
    take.put(take.seat(seat), is_supersonic=speed > 2200.0)
    take.press(seat, throttle=1.0, boost=take.chance(0.5).float())


@_scene("dribble", Target.HIT, "car", "ball")
def _dribble(take: Take) -> None:
    """The ball lies on the roof."""
    Dribble().stage(take)
    take.put(take.lead, boost=0.0)
    take.press(throttle=take.uniform(0.0, 0.6), steer=take.uniform(-0.1, 0.1))


@_scene("shot", Target.HIT, "car", "ball")
def _shot(take: Take) -> None:
    """From the floor, head on and with the edge of the nose."""
    ball = take.middle() + vector(take.zero, 0.0, BALL_REST_Z + take.uniform(0.0, 25.0) * take.chance(0.5))
    take.ball(ball, take.direction() * take.uniform(0.0, 150.0).unsqueeze(-1) * vector(1.0 + take.zero, 1.0, 0.0))
    _approach(take, 0, ball, take.angle(), 55.0)


@_scene("aerial hit", Target.HIT, "car", "ball")
def _aerial_hit(take: Take) -> None:
    """In the air, with any side, edge or corner of the car."""
    ball = take.middle() + vector(take.zero, 0.0, take.uniform(900.0, 1300.0))
    velocity, along, speed = take.direction() * 500.0, take.direction(), take.uniform(200.0, 2000.0)
    take.ball(ball, velocity)
    take.spin_ball()
    distance = BALL_RADIUS + 55.0 + speed * take.soon()
    closing = velocity + along * speed.unsqueeze(-1)
    take.fly(take.seat(0), ball - along * distance.unsqueeze(-1), take.anyhow(), closing.clamp(-1300.0, 1300.0),
             take.uniform(0.1, 1.5), True)
    take.put(take.seat(0), angular_velocity=take.direction() * take.uniform(0.0, 5.0).unsqueeze(-1))


@_scene("flip reset", Target.MOTION, "car", "ball")
def _flip_reset(take: Take) -> None:
    """The wheels meet the ball in the air. Only their springs push, and only the car."""
    FlipReset().stage(take)
    cars, ball = take.state.cars, take.state.ball
    way = normalize(ball.position.unsqueeze(1) - cars.position, dim=-1)
    take.put(take.lead, position=ball.position.unsqueeze(1) - way * (BALL_RADIUS + 26.0),
             velocity=ball.velocity.unsqueeze(1) + way * take.uniform(300.0, 700.0).view(-1, 1, 1))


@_scene("50-50", Target.HIT, "car", "ball", seats=(0, 1))
def _fifty_fifty(take: Take) -> None:
    """Both drive at the ball from opposite sides."""
    ball, yaw = take.middle() + vector(take.zero, 0.0, BALL_REST_Z), take.angle()
    take.ball(ball, torch.zeros_like(ball))
    _approach(take, 0, ball, yaw, 25.0)
    _approach(take, 1, ball, yaw + pi + take.uniform(-0.3, 0.3), 25.0)


@_scene("pinch", Target.HIT, "car", "ball")
def _pinch(take: Take) -> None:
    """The ball between a car and a side wall, or between a car that falls on it and the floor."""
    side, on_wall, speed = take.either_side(), take.chance(0.5).unsqueeze(-1), take.uniform(600.0, 2200.0)
    out = torch.where(on_wall, vector(side, 0.0, 0.0), vector(take.zero, 0.0, -1.0))
    wall = vector(side * SIDE_WALL_X, take.uniform(-2500.0, 2500.0), take.uniform(700.0, 1300.0))
    ball = torch.where(on_wall, wall, take.middle()) - out * (BALL_REST_Z + take.uniform(0.0, 10.0)).unsqueeze(-1)
    take.ball(ball, torch.zeros_like(ball))
    nose_first = look(vector(side, 0.0, 0.0), vector(take.zero, take.uniform(-0.3, 0.3), 1.0))
    wheels_first = rotation(take.angle(), take.uniform(-0.3, 0.3), take.uniform(-0.3, 0.3))
    reach = torch.where(on_wall.squeeze(-1), NOSE, 25.0) + BALL_RADIUS + speed * take.soon()
    beside = take.direction() * take.uniform(0.0, 25.0).unsqueeze(-1)
    turned = torch.where(on_wall.unsqueeze(-1), nose_first, wheels_first)
    take.fly(take.seat(0), ball - out * reach.unsqueeze(-1) + beside, turned, out * speed.unsqueeze(-1), take.uniform(0.1, 1.5),
             True)


# --- cars and cars ---------------------------------------------------------------------------------------------------


def _ram(take: Take, slowest: float, fastest: float) -> None:
    """The car in seat 0 drives into the side or the back of the other."""
    yaw, speed, theirs = take.angle(), take.uniform(slowest, fastest), take.uniform(0.0, 300.0)
    from_behind = take.chance(0.5)
    turned = torch.where(from_behind, take.uniform(-0.3, 0.3), take.either_side() * take.uniform(1.2, 1.9))
    reach = NOSE + torch.where(from_behind, TAIL, SIDE + 8.0) + 8.0 + (speed - theirs * from_behind) * take.soon()
    place = take.middle()
    victim = place + vector(yaw.cos(), yaw.sin(), 0.0) * reach.unsqueeze(-1)
    take.drive(take.seat(0), place, yaw, speed)
    take.drive(take.seat(1), victim, yaw + turned, theirs)
    take.put(take.seat(0), boost=BOOST_MAX, is_supersonic=speed >= 2200.0)
    take.press(0, throttle=1.0, boost=(speed > 2200.0).float())


@_scene("bump", Target.BUMP, "car", seats=(0, 1))
def _bump(take: Take) -> None:
    _ram(take, 500.0, 2050.0)


@_scene("demo", Target.EVENTS, "car", seats=(0, 1), events_at=TICKS)
def _demo(take: Take) -> None:
    _ram(take, 2210.0, CAR_MAX_SPEED)


@_scene("respawn", Target.MOTION, "car", seats=(0, 1))
def _respawn(take: Take) -> None:
    """Demolished cars come back within some ticks, and drive off."""
    for seat in (0, 1):
        gone = take.seat(seat) & take.chance(0.7).unsqueeze(-1)
        take.put(gone, is_demoed=True, demo_timer=take.uniform(0.005, 0.05), on_ground=False, wheel_contact=False)
        take.press(seat, throttle=1.0)
    take.state.game.tick.copy_(take.number(0, 1000))


# --- the whole -------------------------------------------------------------------------------------------------------


@_scene("pads", Target.EVENTS, "car", events_at=TICKS)
def _pads(take: Take) -> None:
    """Small and big ones, there or not yet, taken on the wheels and in the air, by cars that are full or not."""
    small, big = (torch.tensor([pad[:2] for pad in PADS if pad.big == size and abs(pad.x) < 3500]) for size in (False, True))
    pad = torch.where(take.chance(0.3).unsqueeze(-1), big[take.number(0, len(big) - 1)], small[take.number(0, len(small) - 1)])
    yaw, speed = take.angle(), take.uniform(0.0, 2000.0)
    ahead = torch.stack([yaw.cos(), yaw.sin()], -1)
    place = pad - ahead * (speed * take.uniform(-0.1, 0.5)).unsqueeze(-1) + take.uniform(-100.0, 100.0, 2)
    place = place.clamp(torch.tensor([-3300.0, -4500.0]), torch.tensor([3300.0, 4500.0]))
    take.drive(take.seat(0), place, yaw, speed)
    take.put(take.seat(0), boost=torch.where(take.chance(0.15), BOOST_MAX, take.uniform(0.0, 99.0)))
    take.ball(vector(take.zero, 0.0, 1500.0), torch.zeros_like(take.state.ball.velocity))  # nobody gets there
    longest = torch.tensor([1.0 if pad.big else 0.8 for pad in PADS])
    take.state.pads.timer.copy_(take.uniform(0.0, 1.0, len(PADS)) * longest * take.chance(0.4, len(PADS)))
    take.press(throttle=1.0)
    take.press(start=take.number(0, 60), ticks=10, jump=take.chance(0.3).float())


@_scene("kick-off", Target.MOTION, "car", seats=(0, 1), events_at=TICKS)
def _kick_off(take: Take) -> None:
    """As in the game: full throttle and boost, a little steering."""
    line_up(take.state, take.generator)
    for seat in (0, 1):
        take.press(seat, throttle=1.0, boost=1.0, steer=take.uniform(-0.2, 0.2))
