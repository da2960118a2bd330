"""A second implementation of every reward: for one car at a time, in plain Python numbers, written from its documentation."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from wavedash.rocket.state import GameState

EVENTS = {
    "goal", "concede", "assist", "touch", "shot", "save", "demo", "demoed", "boost_pickup", "collect_boost",
    "strong_hit", "basic_shot", "jump_shot", "touch_height", "touch_toward_goal",
    "landing", "recovery", "wavedash", "flip_reset", "aerial_distance",
}
NET_Y, NET_Z = 6000.0, 642.775 / 2


def arenas_of(state: GameState) -> list[SimpleNamespace]:
    """For each arena: `ball`, `game` and a list of `cars`, whose `did` are their events."""
    part = {name: {f.name: getattr(getattr(state, name), f.name).tolist() for f in fields(getattr(state, name))}
            for name in ("ball", "game", "cars", "events")}

    def row(name: str, *index: int) -> dict[str, Any]:
        values = part[name]
        for i in index:
            values = {key: value[i] for key, value in values.items()}
        return values

    def car(e: int, c: int) -> SimpleNamespace:
        return SimpleNamespace(**row("cars", e, c), did=SimpleNamespace(**row("events", e, c)), seat=c)

    return [SimpleNamespace(
        ball=SimpleNamespace(**row("ball", e)), game=SimpleNamespace(**row("game", e)),
        cars=[car(e, c) for c in range(state.seats)],
    ) for e in range(state.arenas)]


class Reference:
    """All rewards of one arena: `begin` starts an episode, `step` follows every step."""

    def begin(self, now: SimpleNamespace) -> None:
        self.memory: dict[int, dict[str, Any]] = defaultdict(dict)
        for car in now.cars:
            self.memory[car.seat] = {"turtled": lies_on_roof(car), "velocity": car.velocity, "carry": None}

    def step(self, now: SimpleNamespace, before: SimpleNamespace) -> list[dict[str, float]]:
        """For each car the rewards by name."""
        paid = []
        for car, old in zip(now.cars, before.cars, strict=True):
            values = {name: float(reward(now, before, car, old)) for name, reward in REWARDS.items()}
            for name, stateful in STATEFUL.items():
                values[name] = float(stateful(now, before, car, old, self.memory[car.seat]))
            for name in values:
                if not car.present or (car.is_demoed and name not in EVENTS):
                    values[name] = 0.0
            paid.append(values)
        return paid


def minus(a: list[float], b: list[float]) -> list[float]:
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def size(a: list[float]) -> float:
    return math.sqrt(dot(a, a))


def unit(a: list[float]) -> list[float]:
    return [x / size(a) for x in a] if size(a) > 0 else a


def axis(car: SimpleNamespace, column: int) -> list[float]:
    return [row[column] for row in car.rotation]


def net(car: SimpleNamespace, own: bool = False) -> list[float]:
    """The middle of the goal that the car attacks, or of its own."""
    toward_plus_y = (car.team == 0) != own
    return [0.0, NET_Y if toward_plus_y else -NET_Y, NET_Z]


def speed_to(ball_position: list[float], ball_velocity: list[float], target: list[float]) -> float:
    return dot(ball_velocity, unit(minus(target, ball_position)))


def goal(now, before, car, old):
    return now.game.goal == car.team


def concede(now, before, car, old):
    return -1 if now.game.goal >= 0 and now.game.goal != car.team else 0


def demoed(now, before, car, old):
    return -1 if car.is_demoed and not old.is_demoed else 0


def boost_pickup(now, before, car, old):
    return 0.3 * car.did.small_pads + 1.0 * car.did.big_pads


def velocity_ball_to_goal(now, before, car, old):
    return speed_to(now.ball.position, now.ball.velocity, net(car)) / 6000


def velocity_ball_to_own_goal(now, before, car, old):
    return -max(0.0, speed_to(now.ball.position, now.ball.velocity, net(car, own=True))) / 6000


def ball_to_goal_distance(now, before, car, old):
    return math.exp(-size(minus(net(car), now.ball.position)) / 5120)


def strong_hit(now, before, car, old):
    return size(minus(now.ball.velocity, before.ball.velocity)) / 6000 if car.did.touches else 0


def basic_shot(now, before, car, old):
    if not car.did.touches:
        return 0
    speed = speed_to(now.ball.position, now.ball.velocity, net(car))
    earlier = speed_to(now.ball.position, before.ball.velocity, net(car))
    return max(0.0, max(0.0, speed) - max(0.0, earlier)) / 6000


def jump_shot(now, before, car, old):
    return 0 if car.on_ground else basic_shot(now, before, car, old)


def touch_toward_goal(now, before, car, old):
    if not car.did.touches:
        return 0
    change = speed_to(now.ball.position, minus(now.ball.velocity, before.ball.velocity), net(car)) / 6000
    return change * abs(change)


def touch_height(now, before, car, old):
    return max(0.0, (now.ball.position[2] - 93.15) / (2044 - 93.15)) if car.did.touches else 0


def velocity_player_to_ball(now, before, car, old):
    return dot(car.velocity, unit(minus(now.ball.position, car.position))) / 2300


def kickoff(now, before, car, old):
    middle = math.hypot(now.ball.position[0], now.ball.position[1]) < 1
    return velocity_player_to_ball(now, before, car, old) if middle else 0


def face_ball(now, before, car, old):
    return dot(axis(car, 0), unit(minus(now.ball.position, car.position)))


def align_ball_goal(now, before, car, old):
    to_ball = unit(minus(now.ball.position, car.position))
    attack = dot(to_ball, unit(minus(net(car), car.position)))
    defend = dot(to_ball, unit(minus(car.position, net(car, own=True))))
    return 0.5 * attack + 0.5 * defend


def closest_to_ball(now, before, car, old):
    others = [other for other in now.cars if other.present and not other.is_demoed]
    return bool(others) and min(others, key=lambda c: size(minus(now.ball.position, c.position))) is car


def speed(now, before, car, old):
    return size(car.velocity) / 2300


def save_boost(now, before, car, old):
    return math.sqrt(car.boost / 100)


def collect_boost(now, before, car, old):
    took = car.did.small_pads or car.did.big_pads
    return max(0.0, car.boost - old.boost) / 100 if took else 0


def on_surface(velocity: list[float], car: SimpleNamespace) -> float:
    up = axis(car, 2)
    return math.sqrt(max(0.0, dot(velocity, velocity) - dot(velocity, up) ** 2))


def landing(now, before, car, old):
    if not car.on_ground or old.on_ground or old.air_time < 0.5 or old.is_demoed:
        return 0
    return min(1.0, max(300.0, on_surface(car.velocity, car)) / max(300.0, on_surface(old.velocity, car)))


def can_flip(car: SimpleNamespace) -> bool:
    return not car.has_flipped and not car.has_double_jumped and car.air_time_since_jump < 1.25


def flip_reset(now, before, car, old):
    to_ball = minus(now.ball.position, car.position)
    under = dot(unit(to_ball), axis(car, 2)) < -0.7
    return can_flip(car) and not can_flip(old) and under and size(to_ball) < 200 and car.position[2] > 250


def lies_on_roof(car: SimpleNamespace) -> bool:
    return car.has_contact and not car.on_ground and dot(axis(car, 2), car.contact_normal) < -0.5


def recovery(now, before, car, old, memory):
    was, lies = memory["turtled"], lies_on_roof(car)
    memory["turtled"] = (was or lies) and not car.on_ground and car.present and not car.is_demoed
    if lies and not was:
        return -1
    return 1 if was and car.on_ground else 0


def wavedash(now, before, car, old, memory):
    start = memory["velocity"]
    if not car.is_flipping:
        memory["velocity"] = car.velocity
    _, _, pitch, yaw, roll, jump, *_ = car.controls
    flip_now = (not old.on_ground and can_flip(old) and jump > 0 and old.controls[5] == 0
                and abs(pitch) + abs(yaw) + abs(roll) >= 0.5)
    fresh = old.is_flipping and old.flip_time < 0.3
    if car.on_ground and not old.on_ground and (fresh or flip_now):
        return min(1.0, max(0.0, on_surface(car.velocity, car) - on_surface(start, car)) / 500)
    return 0


def aerial_distance(now, before, car, old, memory):
    """`memory["carry"]` is None, or how far the ball has flown since this car's last touch in this flight."""
    flies = not car.on_ground and car.position[2] > 256
    mine = car.did.touches > 0 and car.present
    theirs = any(other.did.touches > 0 and other.present for other in now.cars)
    if memory["carry"] is not None:
        memory["carry"] += size(minus(now.ball.position, before.ball.position))
    pay = 0.0
    if mine and flies:
        pay = (car.position[2] - 256 if memory["carry"] is None else memory["carry"]) / 5120
        memory["carry"] = 0.0
    elif theirs or not flies:
        memory["carry"] = None
    return pay


REWARDS: dict[str, Callable[..., float]] = {
    "goal": goal, "concede": concede, "demoed": demoed, "boost_pickup": boost_pickup,
    "assist": lambda now, before, car, old: car.did.assist,
    "touch": lambda now, before, car, old: car.did.touches > 0,
    "shot": lambda now, before, car, old: car.did.shot,
    "save": lambda now, before, car, old: car.did.save,
    "demo": lambda now, before, car, old: car.did.demolished >= 0,
    "in_air": lambda now, before, car, old: not car.on_ground,
    **{f.__name__: f for f in (
        velocity_ball_to_goal, velocity_ball_to_own_goal, ball_to_goal_distance, strong_hit, basic_shot, jump_shot,
        touch_height, touch_toward_goal, velocity_player_to_ball, kickoff, face_ball, align_ball_goal, closest_to_ball,
        speed, save_boost, collect_boost, landing, flip_reset)},
}
STATEFUL: dict[str, Callable[..., float]] = {"recovery": recovery, "wavedash": wavedash, "aerial_distance": aerial_distance}
