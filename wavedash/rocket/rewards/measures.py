"""Quantities that many rewards use, as plain functions of the game state."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_NET_Y, FLIP_WINDOW, GOAL_HEIGHT
from wavedash.rocket.state import Cars, Events, GameState


def dot(a: Tensor, b: Tensor) -> Tensor:
    """[...]: dot product of vectors [..., 3]."""
    return torch.linalg.vecdot(a, b)


def length(vector: Tensor) -> Tensor:
    """[...]: length of vectors [..., 3]."""
    return torch.linalg.vector_norm(vector, dim=-1)


def along(vector: Tensor, way: Tensor) -> Tensor:
    """[...]: component of `vector` along the direction of `way`; a `way` shorter than 1 uu counts as 1 uu long."""
    return dot(vector, way) / length(way).clamp(min=1.0)


def to_ball(state: GameState) -> Tensor:
    """[E, C, 3]: vector from each car to the ball."""
    return state.cars.once("to_ball", lambda: state.ball.position.unsqueeze(1) - state.cars.position)


def distance_to_ball(state: GameState) -> Tensor:
    """[E, C]: length of `to_ball`."""
    return state.cars.once("distance_to_ball", lambda: length(to_ball(state)))


def toward_ball(state: GameState, vector: Tensor) -> Tensor:
    """[E, C]: component of `vector` along the direction from the car to the ball."""
    divisor = state.cars.once("to_ball_divisor", lambda: distance_to_ball(state).clamp(min=1.0))
    return dot(vector, to_ball(state)) / divisor


def goal_backs(state: GameState) -> Tensor:
    """[2, 3]: centers of the nets that blue and orange attack, made once, in `bind`. It is the back of the net, not the goal
    line, so that a ball in the goal still moves toward it."""
    return torch.tensor([[0.0, BACK_NET_Y, GOAL_HEIGHT / 2], [0.0, -BACK_NET_Y, GOAL_HEIGHT / 2]], device=state.memory.device)


def attacked(goals: Tensor, cars: Cars) -> Tensor:
    """[E, C, 3]: the one of `goal_backs` that each car attacks."""
    return torch.where(cars.team.unsqueeze(-1) == 0, goals[0], goals[1])


def ball_to_goal(goals: Tensor, state: GameState) -> Tensor:
    """[E, C, 3]: vector from the ball to the one of `goal_backs` that each car attacks."""
    return state.cars.once("ball_to_goal", lambda: attacked(goals, state.cars) - state.ball.position.unsqueeze(1))


def ball_to_goal_divisor(goals: Tensor, state: GameState) -> Tensor:
    """[E, C]: length of `ball_to_goal`, at least 1."""
    return state.cars.once("ball_to_goal_divisor", lambda: length(ball_to_goal(goals, state)).clamp(min=1.0))


def toward_goal(goals: Tensor, state: GameState, vector: Tensor) -> Tensor:
    """[E, C]: component of `vector` [E, 3] along `ball_to_goal`."""
    return dot(vector.unsqueeze(1), ball_to_goal(goals, state)) / ball_to_goal_divisor(goals, state)


def ball_speed_to_goal(goals: Tensor, state: GameState) -> Tensor:
    """[E, C]: speed of the ball toward the goal that each car attacks."""
    return state.cars.once("ball_speed_to_goal", lambda: toward_goal(goals, state, state.ball.velocity))


def ball_change(state: GameState, previous: GameState) -> Tensor:
    """[E, 3]: how much the velocity of the ball has changed in the step."""
    return state.cars.once("ball_change", lambda: state.ball.velocity - previous.ball.velocity)


def defended(goals: Tensor, cars: Cars) -> Tensor:
    """[E, C, 3]: the one of `goal_backs` that each car defends."""
    return torch.where(cars.team.unsqueeze(-1) == 0, goals[1], goals[0])


def touched(events: Events) -> Tensor:
    """[E, C] bool: the car hit the ball during the step."""
    return events.touches > 0


def but_not(a: Tensor, b: Tensor) -> Tensor:
    """[...] bool: `a` and not `b`, in one operation: small ones are what a step of few arenas costs on a CPU."""
    return a > b


def flip_left(cars: Cars) -> Tensor:
    """[E, C] bool: the flip is unused and can still be used, on the ground as well (after a jump)."""
    return but_not(cars.air_time_since_jump < FLIP_WINDOW, cars.has_flipped | cars.has_double_jumped)


def landed(cars: Cars, before: Cars) -> Tensor:
    """[E, C] bool: the car got its wheels onto a surface during the step."""
    return cars.on_ground & ~before.on_ground


def on_roof(cars: Cars) -> Tensor:
    """[E, C] bool: the car lies on its roof: its body touches the arena, fewer than three wheels do, and its up axis is more
    than 120 degrees from the normal there."""
    return cars.once("on_roof", lambda: but_not(cars.has_contact, cars.on_ground) & (dot(cars.up, cars.contact_normal) < -0.5))


def surface_speed(velocity: Tensor, up: Tensor) -> Tensor:
    """[E, C]: speed along the surface that a car with this `up` stands on."""
    return length(velocity - dot(velocity, up).unsqueeze(-1) * up)
