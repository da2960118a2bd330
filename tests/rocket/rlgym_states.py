"""Conversion of states between RLGym's form and ours."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from rlgym.rocket_league.api import Car, GameConfig, PhysicsObject
from rlgym.rocket_league.api import GameState as RLGymState

from wavedash.rocket.constants import FLIP_SECONDS
from wavedash.rocket.state import JUMP, GameState

SAME_NAME = ("supersonic_time", "handbrake", "is_jumping", "has_jumped", "jump_time", "has_flipped", "has_double_jumped",
             "air_time_since_jump", "flip_time", "flip_torque")
OTHER_NAME = {"demo_respawn_timer": "demo_timer", "boost_amount": "boost", "boost_active_time": "boost_time",
              "is_autoflipping": "is_auto_flipping", "autoflip_timer": "auto_flip_timer",
              "autoflip_direction": "auto_flip_torque", "team_num": "team", "hitbox_type": "hitbox"}
CAR_FIELDS = {**{name: name for name in SAME_NAME}, **OTHER_NAME}
BODY_FIELDS = {"position": "position", "linear_velocity": "velocity", "angular_velocity": "angular_velocity",
               "rotation_mtx": "rotation"}


def to_rlgym(state: GameState, arena: int) -> RLGymState:
    """The state of one arena; its present cars are named by their seats."""
    game = RLGymState()
    game.tick_count, game.goal_scored, game.config = int(state.game.tick[arena]), False, GameConfig()
    game.ball = _body(state.ball, arena)
    game.boost_pad_timers = state.pads.timer[arena].numpy().copy()
    game.cars = {seat: _car(state, arena, seat) for seat in range(state.seats) if state.cars.present[arena, seat]}
    return game


def _car(state: GameState, arena: int, seat: int) -> Car:
    car = Car()
    car.physics = _body(state.cars, (arena, seat))
    for theirs, ours in CAR_FIELDS.items():
        value = getattr(state.cars, ours)[arena, seat].numpy()
        setattr(car, theirs, value.item() if value.ndim == 0 else value.copy())
    car.wheels_with_contact = tuple(state.cars.wheel_contact[arena, seat].tolist())
    car.is_holding_jump = bool(state.cars.controls[arena, seat, JUMP])
    car.ball_touches, car.bump_victim_id = 0, None
    return car


def _body(source, index) -> PhysicsObject:
    body = PhysicsObject()
    for theirs, ours in BODY_FIELDS.items():
        setattr(body, theirs, getattr(source, ours)[index].numpy().copy())
    return body


def from_rlgym(games: Sequence[RLGymState]) -> GameState:
    """One arena per game; seats are in the order of RLGym's agents."""
    state = GameState.empty(len(games), len(games[0].cars))
    state.clear_events()
    for arena, game in enumerate(games):
        _fill(state.ball, arena, game.ball)
        state.pads.timer[arena] = torch.from_numpy(game.boost_pad_timers)
        for seat, car in enumerate(game.cars.values()):
            _fill(state.cars, (arena, seat), car.physics)
            for theirs, ours in CAR_FIELDS.items():
                getattr(state.cars, ours)[arena, seat] = torch.as_tensor(np.asarray(getattr(car, theirs)))
            state.cars.wheel_contact[arena, seat] = torch.tensor(car.wheels_with_contact)
            state.cars.controls[arena, seat, JUMP] = float(car.is_holding_jump)
    cars = state.cars
    cars.present.fill_(True)
    cars.on_ground.copy_(cars.wheel_contact.sum(-1) >= 3)
    cars.is_flipping.copy_(cars.has_flipped & (cars.flip_time < FLIP_SECONDS))
    cars.is_supersonic.copy_(cars.supersonic_time > 0)
    cars.is_demoed.copy_(cars.demo_timer > 0)
    return state


def _fill(target, index, body: PhysicsObject) -> None:
    for theirs, ours in BODY_FIELDS.items():
        getattr(target, ours)[index] = torch.from_numpy(np.ascontiguousarray(getattr(body, theirs)))
