"""Bodies that were placed by hand: a state to play on from, or a sentence that says why not."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import (
    BACK_NET_Y,
    BACK_WALL_Y,
    BALL_RADIUS,
    BOOST_MAX,
    CAR_REST_Z,
    CEILING_Z,
    CORNER_LENGTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    SIDE_WALL_X,
)
from wavedash.rocket.geometry import rotation
from wavedash.rocket.possible import rules
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.starts.frames import FORGOTTEN
from wavedash.rocket.state import GameState

APART = 120.0
"""uu between the origins of bodies below which they stand in each other"""
REACH = 60.0
"""uu that cars keep from walls"""


def placed(now: GameState, command: Mapping[str, Any]) -> GameState:
    """The state [1, ...] of a new game in which the bodies of the command are where it says, and others where they are now.
    Positions are clipped into the arena. UserError: such a state cannot be in the game."""
    state, ball = now.clone(), command.get("ball")
    fresh = now.clone()
    kickoff = Kickoff()
    kickoff.bind(fresh)
    kickoff.write(fresh, torch.Generator().manual_seed(0))
    if ball is not None:
        _place_ball(state, fresh, _object(ball, "ball"))
    cars = command.get("cars") or []
    if not isinstance(cars, list) or len(cars) > state.seats:
        raise UserError(f"cars are a list of at most {state.seats}, with null for those that stay where they are")
    for seat, car in enumerate(cars):
        if car is not None:
            _place_car(state, fresh, seat, _object(car, "a car"))
    for name in FORGOTTEN:
        part, field = name.split(".")
        getattr(getattr(state, part), field).fill_(-1)
    state.game.tick.zero_()
    state.game.score.zero_()
    state.clear_events()
    _check(state)
    return state


def _place_ball(state: GameState, fresh: GameState, given: Mapping[str, Any]) -> None:
    for field in fields(state.ball):
        getattr(state.ball, field.name).copy_(getattr(fresh.ball, field.name))
    position = _vector(given, "position", state.ball.position[0].tolist())
    state.ball.position[0] = torch.tensor(_inside(position, BALL_RADIUS, BALL_RADIUS))
    state.ball.velocity[0] = torch.tensor(_vector(given, "velocity", [0.0, 0.0, 0.0]))


def _place_car(state: GameState, fresh: GameState, seat: int, given: Mapping[str, Any]) -> None:
    cars = state.cars
    position = _vector(given, "position", cars.position[0, seat].tolist())
    boost = _number(given.get("boost", float(cars.boost[0, seat])), "boost")
    ahead = math.atan2(float(cars.forward[0, seat, 1]), float(cars.forward[0, seat, 0]))
    yaw = _number(given.get("yaw", ahead), "yaw")
    for field in fields(cars):
        getattr(cars, field.name)[0, seat] = getattr(fresh.cars, field.name)[0, seat]
    position = _inside(position, REACH, CAR_REST_Z)
    cars.position[0, seat] = torch.tensor(position)
    cars.rotation[0, seat] = rotation(torch.tensor(yaw))
    cars.velocity[0, seat] = torch.tensor(_vector(given, "velocity", [0.0, 0.0, 0.0]))
    cars.boost[0, seat] = min(BOOST_MAX, max(0.0, boost))
    on_ground = position[2] < CAR_REST_Z + 5
    cars.on_ground[0, seat] = on_ground
    cars.wheel_contact[0, seat] = on_ground


def _inside(position: list[float], margin: float, floor: float) -> list[float]:
    """The nearest place within walls, corners and goals, roughly: a place in a corner is moved along its diagonal."""
    x, y, z = position
    z = min(CEILING_Z - margin, max(floor, z))
    if abs(y) > BACK_WALL_Y - margin and abs(x) <= GOAL_HALF_WIDTH - margin and z <= GOAL_HEIGHT - margin:
        return [x, math.copysign(min(abs(y), BACK_NET_Y - margin), y), z]
    x, y = (math.copysign(min(abs(v), limit - margin), v) for v, limit in ((x, SIDE_WALL_X), (y, BACK_WALL_Y)))
    over = abs(x) + abs(y) - (SIDE_WALL_X + BACK_WALL_Y - CORNER_LENGTH - math.sqrt(2.0) * margin)
    if over > 0:
        x, y = (math.copysign(abs(v) - over / 2 - 0.01, v) for v in (x, y))
    return [x, y, z]


def _check(state: GameState) -> None:
    for rule in rules(state):
        if bool(rule.broken.any()):
            bounds = f" ({rule.bounds})" if rule.bounds else ""
            raise UserError(f"this cannot be in the game: {rule.field} {rule.says}{bounds}")
    bodies: Tensor = torch.cat([state.ball.position, state.cars.position[0][state.cars.present[0]]])
    between = torch.cdist(bodies, bodies) + torch.eye(len(bodies)) * 1e5
    if float(between.min()) < APART:
        raise UserError("two of the bodies stand in each other: move them further apart")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{what} is placed by an object with position and velocity")
    return value


def _vector(given: Mapping[str, Any], name: str, otherwise: list[float]) -> list[float]:
    value = given.get(name, otherwise)
    if not isinstance(value, list) or len(value) != 3:
        raise UserError(f"{name} is a list of three numbers")
    return [_number(x, name) for x in value]


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e6:
        raise UserError(f"{name} must be made of finite numbers up to a million")
    return float(value)
