"""Game states of replays: what a replay does not say about cars is reconstructed from what it says."""
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from wavedash.replays.filters import bodies_of
from wavedash.replays.replay import UNKNOWN, Array, Replay
from wavedash.rocket.constants import BACK_WALL_Y, CEILING_Z, FLIP_SECONDS, SIDE_WALL_X, SUPERSONIC_SPEED
from wavedash.rocket.state import BOOST, HANDBRAKE, JUMP, STEER, THROTTLE, YAW, GameState

WHEELS = 30.0
"""Greatest distance of a car's origin from a surface that its wheels touch, uu. At rest it is 17"""
CORNER_X_PLUS_Y = 8064.0
FIELDS = (
    "ball.position", "ball.rotation", "ball.velocity", "ball.angular_velocity", "cars.team", "cars.hitbox", "cars.present",
    "cars.position", "cars.rotation", "cars.velocity", "cars.angular_velocity", "cars.boost", "cars.on_ground",
    "cars.wheel_contact", "cars.air_time", "cars.air_time_since_jump", "cars.has_jumped", "cars.has_double_jumped",
    "cars.has_flipped", "cars.is_jumping", "cars.is_flipping", "cars.flip_time", "cars.jump_time", "cars.is_supersonic",
    "cars.is_demoed", "cars.controls", "pads.timer",
)
"""What files of states hold: the rest of a state is not known of a replay"""


def states_of(moments: Replay) -> GameState:
    """The states of a resampled segment, in the order of time: bodies, then what follows from the past of the segment."""
    state = bodies_of(moments, np.arange(moments.frames))
    cars, flags = state.cars, {name: torch.from_numpy(values) for name, values in moments.flags.items()}
    cars.on_ground.copy_(touches_ground(cars.position, cars.up))
    cars.wheel_contact.copy_(cars.on_ground.unsqueeze(-1).expand_as(cars.wheel_contact))
    cars.is_supersonic.copy_(cars.velocity.norm(dim=-1) >= SUPERSONIC_SPEED)
    cars.is_jumping.copy_(flags["jump_active"])
    seconds = float(moments.time[1] - moments.time[0]) if moments.frames > 1 else 0.0
    in_air = ~cars.on_ground
    cars.has_jumped.copy_(_since_landing(flags["jump_active"], in_air))
    cars.has_double_jumped.copy_(_since_landing(flags["double_jump_active"], in_air))
    cars.has_flipped.copy_(_since_landing(flags["dodge_active"], in_air))
    cars.air_time.copy_(_seconds_of(in_air, seconds))
    cars.jump_time.copy_(_seconds_of(flags["jump_active"], seconds))
    cars.flip_time.copy_(_seconds_of(flags["dodge_active"] & in_air, seconds))
    cars.is_flipping.copy_(flags["dodge_active"] & in_air & (cars.flip_time < FLIP_SECONDS))
    cars.air_time_since_jump.copy_(_seconds_of(in_air & cars.has_jumped & ~flags["jump_active"], seconds))
    cars.controls[1:].copy_(torch.from_numpy(carried_controls(moments)[0][:-1]))
    return state


def touches_ground(position: Tensor, up: Tensor) -> Tensor:
    """[...]: cars whose wheels are on the floor, a wall, a corner or the ceiling. Curved edges are guessed."""
    x, y, z = position.unbind(-1)
    diagonal = 0.5**0.5
    planes = [
        (z, up[..., 2]), (CEILING_Z - z, -up[..., 2]), (SIDE_WALL_X - x.abs(), -up[..., 0] * x.sign()),
        (BACK_WALL_Y - y.abs(), -up[..., 1] * y.sign()),
        ((CORNER_X_PLUS_Y - x.abs() - y.abs()) * diagonal, -(up[..., 0] * x.sign() + up[..., 1] * y.sign()) * diagonal),
    ]
    on_plane = torch.stack([(distance < WHEELS) & (along > 0.9) for distance, along in planes]).any(0)
    edge = (z < 256) & (up[..., 2] > 0.3) & (up[..., 2] < 0.95) & (torch.stack([planes[i][0] for i in (2, 3, 4)]).amin(0) < 256)
    return on_plane | edge


def carried_controls(moments: Replay) -> tuple[Array, Array]:
    """[K, C, 8] float32: controls as far as the replay carries them, 0 where it does not; and [K, C, 8] bool: it does."""
    controls = np.zeros((*moments.throttle.shape, 8), np.float32)
    carried = np.zeros(controls.shape, bool)
    for index, values in ((THROTTLE, moments.throttle), (STEER, moments.steer)):
        carried[..., index] = values != UNKNOWN
        controls[..., index] = np.where(values == UNKNOWN, 0.0, np.clip((values - 128.0) / 127.0, -1.0, 1.0))
    flags = moments.chosen_flags
    controls[..., YAW] = controls[..., STEER]  # one stick of the controller is both
    controls[..., JUMP] = flags["jump_active"] | _begins(flags["dodge_active"]) | _begins(flags["double_jump_active"])
    controls[..., BOOST], controls[..., HANDBRAKE] = flags["boost_active"], flags["handbrake"]
    carried[..., BOOST] = carried[..., HANDBRAKE] = True
    return controls, carried


def _begins(flag: Array) -> Array:
    before = np.zeros_like(flag)
    before[1:] = flag[:-1]
    return flag & ~before


def _since_landing(flag: Tensor, in_air: Tensor) -> Tensor:
    """[K, C]: whether the flag was set since the wheels left the ground."""
    result, seen = torch.zeros_like(flag), torch.zeros_like(flag[0])
    for k in range(len(flag)):
        seen = (seen | flag[k]) & (in_air[k] | flag[k])
        result[k] = seen
    return result


def _seconds_of(flag: Tensor, seconds: float) -> Tensor:
    """[K, C]: for how long the flag has been set."""
    result, since = torch.zeros(flag.shape), torch.zeros(flag.shape[1:])
    for k in range(len(flag)):
        since = torch.where(flag[k], since + seconds, 0.0)
        result[k] = since
    return result
