"""RLGymRenderer shows an environment of RLGym v2 in any viewer: `RLGym(..., renderer=RLGymRenderer(RocketSimVis()))`."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.rocket.bridges.viewer import Viewer
from wavedash.rocket.state import JUMP, Ball, Cars, GameState

BODY = {"position": "position", "rotation": "rotation_mtx", "velocity": "linear_velocity",
        "angular_velocity": "angular_velocity"}
CAR = {
    "team": "team_num", "hitbox": "hitbox_type", "boost": "boost_amount", "boost_time": "boost_active_time",
    "supersonic_time": "supersonic_time", "handbrake": "handbrake", "jump_time": "jump_time", "flip_time": "flip_time",
    "air_time_since_jump": "air_time_since_jump", "flip_torque": "flip_torque", "auto_flip_timer": "autoflip_timer",
    "auto_flip_torque": "autoflip_direction", "demo_timer": "demo_respawn_timer", "wheel_contact": "wheels_with_contact",
    "on_ground": "on_ground", "has_jumped": "has_jumped", "has_double_jumped": "has_double_jumped",
    "has_flipped": "has_flipped", "is_jumping": "is_jumping", "is_flipping": "is_flipping",
    "is_auto_flipping": "is_autoflipping", "is_supersonic": "is_supersonic", "is_demoed": "is_demoed",
}
"""RLGym's names of fields by ours"""


class RLGymRenderer:
    """Shows the state at every `env.render()`. RLGym's states hold no controls but jump, so only that one is shown."""

    def __init__(self, viewer: Viewer):
        self.viewer = viewer

    def render(self, state: Any, shared_info: dict[str, Any]) -> None:
        self.viewer.show(from_rlgym(state))

    def close(self) -> None:
        self.viewer.close()


def from_rlgym(game: Any) -> GameState:
    """RLGym's state of a game as a state of one arena; its cars take seats in their order."""
    state = GameState.empty(1, len(game.cars))
    state.clear_events()
    state.game.tick[0] = game.tick_count
    state.pads.timer[0] = _tensor(game.boost_pad_timers)
    for ours, theirs in BODY.items():
        getattr(state.ball, ours)[0] = _tensor(getattr(game.ball, theirs))
    for seat, car in enumerate(game.cars.values()):
        for ours, theirs in BODY.items():
            getattr(state.cars, ours)[0, seat] = _tensor(getattr(car.physics, theirs))
        for ours, theirs in CAR.items():
            getattr(state.cars, ours)[0, seat] = _tensor(getattr(car, theirs))
        state.cars.controls[0, seat, JUMP] = float(car.is_holding_jump)
    state.cars.present.fill_(True)
    return state


def from_rlgym_sim(game: Any) -> GameState:
    """The state of a game of rlgym-sim (RLGym 1) as a state of one arena, as far as a viewer shows it."""
    state = GameState.empty(1, len(game.players))
    state.clear_events()
    state.pads.timer[0] = 1.0 - _tensor(game.boost_pads).float()  # it tells no times: 1 s stands for a pad that is taken
    _move(state.ball, (0,), game.ball)
    for seat, player in enumerate(game.players):
        index = (0, seat)
        _move(state.cars, index, player.car_data)
        state.cars.rotation[index] = _tensor(player.car_data.rotation_mtx())
        state.cars.team[index] = int(player.team_num)
        state.cars.boost[index] = 100.0 * float(player.boost_amount)
        state.cars.on_ground[index] = bool(player.on_ground)
        state.cars.is_demoed[index] = bool(player.is_demoed)
        state.cars.has_flipped[index] = not bool(player.has_flip)
    state.cars.present.fill_(True)
    return state


def _move(body: Ball | Cars, index: tuple[int, ...], physics: Any) -> None:
    body.position[index] = _tensor(physics.position)
    body.velocity[index] = _tensor(physics.linear_velocity)
    body.angular_velocity[index] = _tensor(physics.angular_velocity)


def _tensor(value: Any) -> Tensor:
    return torch.from_numpy(np.array(value))
