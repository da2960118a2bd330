"""The measures once more, car by car in plain Python, written from their docstrings with their default options."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from wavedash.rocket.state import GameState


class Car:
    """One car at the end of one step, and the ball, as plain numbers; the field is turned so that the car attacks toward +Y."""

    def __init__(self, state: GameState, arena: int, seat: int) -> None:
        cars, ball = state.cars, state.ball
        self.team = int(cars.team[arena, seat])
        side = 1.0 if self.team == 0 else -1.0

        def turned(vector: Any) -> tuple[float, float, float]:
            x, y, z = vector.tolist()
            return side * x, side * y, z

        self.clock = int(state.game.tick[arena])
        self.position, self.up = turned(cars.position[arena, seat]), turned(cars.rotation[arena, seat, :, 2])
        self.normal = turned(cars.contact_normal[arena, seat])
        self.ball, self.ball_velocity = turned(ball.position[arena]), turned(ball.velocity[arena])
        self.on_ground, self.has_contact, self.has_flipped, self.has_double_jumped = (
            bool(flag[arena, seat]) for flag in (cars.on_ground, cars.has_contact, cars.has_flipped, cars.has_double_jumped))
        self.flip_time, self.air_time_since_jump = (float(x[arena, seat]) for x in (cars.flip_time, cars.air_time_since_jump))
        self.ball_hit_tick = int(cars.ball_hit_tick[arena, seat])
        present = cars.present[arena].tolist()
        hits = [bool(n > 0) and there for n, there in zip(state.events.touches[arena].tolist(), present, strict=True)]
        self.touch = hits[seat]
        self.touched_by_another = any(hit for other, hit in enumerate(hits) if other != seat)
        self.alive = present[seat] and not bool(cars.is_demoed[arena, seat])
        self.goal = int(state.game.goal[arena]) >= 0
        self.way = tuple(b - c for b, c in zip(self.ball, self.position, strict=True))
        distance = math.dist(self.ball, self.position)
        self.wheels_at_ball = distance < 200 and _dot(self.up, self.way) < -0.7 * distance
        self.stands = self.on_ground and not self.wheels_at_ball
        self.on_roof = self.has_contact and not self.on_ground and _dot(self.up, self.normal) < -0.5
        self.has_flip = not self.has_flipped and not self.has_double_jumped and self.air_time_since_jump < 1.25


def _dot(a: Any, b: Any) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@dataclass
class Attempts:
    """What one measure says about one car: `step` returns None, or whether the attempt that it decides succeeded."""

    memory: dict[str, Any] = field(default_factory=dict)

    def begin(self, now: Car) -> None:
        self.memory = {}

    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        raise NotImplementedError


class Turtle(Attempts):
    def begin(self, now: Car) -> None:
        self.memory = {"fell": now.clock} if now.on_roof else {}

    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        if "fell" in m and now.alive and not m.get("late"):
            if now.clock - m["fell"] > 360:
                said, m["late"] = False, True
            elif now.on_ground:
                said = True
        if now.on_roof:
            m.setdefault("fell", now.clock)
        if now.on_ground or not now.alive:
            self.memory = {}
        return said


class Wall(Attempts):
    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        was_open = "last" in m
        if now.touch and (was_open or any(abs(car.ball[0]) >= 4096 - 250 and car.ball[2] >= 300 for car in (now, before))):
            vx, vy, _ = now.ball_velocity
            arrives = vy > 0 and abs(now.ball[0] + vx * (5120 - now.ball[1]) / vy) <= 1800
            if arrives and math.hypot(vx, vy) >= 800:
                said = True
            else:
                m["last"] = now.clock
        if said is None and was_open and (now.touched_by_another or now.clock - m["last"] > 60):
            said = False
        if said is not None:
            self.memory = {}
        return said


class Dribble(Attempts):
    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        x, y, z = now.way
        carries = now.alive and now.on_ground and now.up[2] >= 0.9 and 100 <= z <= 220 and math.hypot(x, y) <= 110
        if m:
            if now.touched_by_another or (not carries and now.clock - m["last"] > 24):
                if not m["done"] and m["last"] - m["since"] >= 36:
                    said = False
                self.memory = m = {}
            elif carries and not m["done"] and now.clock - m["since"] >= 240:
                said = m["done"] = True
        if not m and carries and now.touch and not now.touched_by_another:
            self.memory = m = {"since": now.clock, "done": False}
        if m and carries:
            m["last"] = now.clock
        return said


class AirDribble(Attempts):
    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        flies = now.alive and not now.stands and now.position[2] > 250 and now.ball[2] > 250
        if m and (not flies or now.touched_by_another or now.clock - m["hits"][-1] > 120):
            if len(m["hits"]) == 2:
                said = False
            self.memory = m = {}
        if now.touch and flies:
            hits = m.setdefault("hits", [])
            if not hits or now.clock - hits[-1] >= 24:
                hits.append(now.clock)
                if len(hits) == 3:
                    said = True
        return said


class FlipReset(Attempts):
    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        gained = now.has_flip and not before.has_flip and now.wheels_at_ball and now.position[2] > 250 and now.alive
        if m:
            if now.has_flipped:
                m.setdefault("flip", now.clock - round(now.flip_time * 120))
            flip = m.get("flip")
            if flip is not None and now.touch and 0 <= now.ball_hit_tick - flip <= 78:
                said = True
            elif (gained or now.stands or not now.alive or now.has_double_jumped
                  or (flip is not None and now.clock - flip > 78)):
                said = False
        if said is not None:
            self.memory = {}
        if gained:
            self.memory = {"gained": True}
        return said


class JumpChallenge(Attempts):
    def step(self, now: Car, before: Car, rival: Car) -> bool | None:
        m, said = self.memory, None
        for who, car in (("own", now), ("theirs", rival)):
            if car.touch and not car.stands and car.ball[2] > 150:
                m[who] = now.clock
        if "own" in m and "theirs" in m and max(m["own"], m["theirs"]) == now.clock and abs(m["own"] - m["theirs"]) <= 24:
            m["met"] = now.clock
        if "met" in m and (now.clock - m["met"] >= 36 or now.goal):
            said = now.ball_velocity[1] >= 200
            self.memory = {}
        return said


REFERENCE: dict[str, type[Attempts]] = {
    "turtle": Turtle, "wall": Wall, "dribble": Dribble, "air_dribble": AirDribble, "flip_reset": FlipReset,
    "jump_challenge": JumpChallenge,
}
