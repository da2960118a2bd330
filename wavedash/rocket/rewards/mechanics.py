"""Rewards for mechanics: landing, getting off the roof, wavedash, flip reset, aerials.

Those that remember something keep it in buffers, which they make in `bind`, clear in `begin` and change in place.
Typical weights are those of a step of 8 ticks (15 steps a second), beside `goal: 10`.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y
from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards.measures import (
    but_not,
    distance_to_ball,
    dot,
    flip_left,
    landed,
    length,
    on_roof,
    surface_speed,
    to_ball,
    touched,
)
from wavedash.rocket.state import JUMP, PITCH, ROLL, Cars, Events, GameState

FLIP_DEADZONE = 0.5
"""Sum of |pitch|, |yaw| and |roll| from which a jump in the air is a flip"""
FLIP_SPEED = 500.0
"""uu/s that a forward flip adds"""


class Landing(Reward):
    """Landing on the wheels, weighted by the share of the speed along the surface that the car keeps (below 300 uu/s counts
    as 300): 1 for a smooth landing, 0.2 for one that stops the car. Teaches to turn the car to the ground in the air.
    Typical weight: 0.2. Farmed by hopping, hence `min_air_time` in seconds."""

    sparse = True
    SLOW = 300.0

    def __init__(self, min_air_time: float = 0.5):
        self.min_air_time = min_air_time

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        cars, before = state.cars, previous.cars
        flew = (before.air_time >= self.min_air_time) & ~before.is_demoed
        speed = surface_speed(cars.velocity, cars.up).clamp(min=self.SLOW)
        speed_before = surface_speed(before.velocity, cars.up).clamp(min=self.SLOW)
        return (landed(cars, before) & flew) * (speed / speed_before).clamp(max=1.0)


class Recovery(Reward):
    """1 for getting back on the wheels from the roof, -1 for falling on it. The two cancel out, so nothing is earned by
    turning over on purpose; a car that begins an episode on its roof earns 1. Use it with the start `turtle`. Typical weight:
    0.5."""

    sparse = True
    turtled: Tensor

    def bind(self, state: GameState) -> None:
        self.register_buffer("turtled", torch.zeros_like(state.cars.present))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        torch.where(arenas.unsqueeze(-1), on_roof(state.cars), self.turtled, out=self.turtled)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        cars, roof = state.cars, on_roof(state.cars)
        fell, recovered = but_not(roof, self.turtled), cars.on_ground & self.turtled
        self.turtled.logical_or_(roof).logical_and_(but_not(cars.alive, cars.on_ground))
        return torch.add(recovered.float(), fell, alpha=-1)


class Wavedash(Reward):
    """Landing on the wheels right after a flip (`within` seconds), weighted by the speed along the surface that was gained
    since before the flip: 1 for 500 uu/s or more. Teaches to gain speed without boost. Typical weight: 0.5. Farmed by
    wavedashing up and down far from the ball."""

    sparse = True
    velocity: Tensor
    """[E, C, 3]: velocity before the flip"""

    def __init__(self, within: float = 0.3):
        self.within = within

    def bind(self, state: GameState) -> None:
        self.register_buffer("velocity", torch.zeros_like(state.cars.velocity))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.velocity.copy_(torch.where(arenas.view(-1, 1, 1), state.cars.velocity, self.velocity))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        cars, before = state.cars, previous.cars
        flipping = before.is_flipping & (before.flip_time < self.within)
        dash = landed(cars, before) & (flipping | self._flips_within_step(cars, before))
        gain = surface_speed(cars.velocity, cars.up) - surface_speed(self.velocity, cars.up)
        self.velocity.copy_(torch.where(cars.is_flipping.unsqueeze(-1), self.velocity, cars.velocity))
        return dash * (gain / FLIP_SPEED).clamp(0.0, 1.0)

    @staticmethod
    def _flips_within_step(cars: Cars, before: Cars) -> Tensor:
        """Whether the car flipped and landed within one step, as in a good wavedash: then only the controls show the flip."""
        pressed = (cars.controls[..., JUMP] > 0) & (before.controls[..., JUMP] <= 0)
        aimed = cars.controls[..., PITCH : ROLL + 1].abs().sum(-1) >= FLIP_DEADZONE
        return before.has_flip & pressed & aimed


class FlipReset(Reward):
    """1 for getting a used flip back by touching the ball with the wheels in the air. Use it with the start `flip_reset`.
    Typical weight: 5. Hard to farm: the flip must be used before.

    `reach`: greatest distance of the ball (uu, center to center); `min_height`: least height of the car, so that a ball on the
    ground does not count.
    """

    sparse = True

    def __init__(self, reach: float = 200.0, min_height: float = 250.0):
        self.reach, self.min_height = reach, min_height

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        cars, way, distance = state.cars, to_ball(state), distance_to_ball(state)
        below_wheels = (dot(cars.up, way) < -0.7 * distance) & (distance < self.reach)
        got_flip = but_not(flip_left(cars), flip_left(previous.cars))
        return got_flip & below_wheels & (cars.position[..., 2] > self.min_height)


class AerialDistance(Reward):
    """A touch in the air, above `min_height`. The first one of a flight pays by the height of the car, each further one by
    how far the ball has flown since the one before (5120 uu are 1), until the car lands or another car touches the ball.
    Leads from jump touches to air dribbles. Typical weight: 5. Farmed by carrying the ball to and fro."""

    sparse = True
    carries: Tensor
    """[E, C] bool: the car has touched the ball in this flight"""
    carried: Tensor
    """[E, C]: uu that the ball has moved since the car's last touch"""

    def __init__(self, min_height: float = 256.0):
        self.min_height = min_height

    def bind(self, state: GameState) -> None:
        self.register_buffer("carries", torch.zeros_like(state.cars.present))
        self.register_buffer("carried", torch.zeros_like(state.cars.boost))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.carries.masked_fill_(arenas.unsqueeze(-1), False)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        cars, touch = state.cars, touched(events) & state.cars.present
        height = cars.position[..., 2] - self.min_height
        flies = but_not(height > 0, cars.on_ground)
        self.carried += length(state.ball.position - previous.ball.position).unsqueeze(-1)
        pays = torch.where(self.carries, self.carried, height)
        self.carries.logical_or_(touch).logical_and_(but_not(flies, but_not(touch.any(-1, keepdim=True), touch)))
        self.carried.masked_fill_(touch, 0.0)
        return (touch & flies) * pays / BACK_WALL_Y
