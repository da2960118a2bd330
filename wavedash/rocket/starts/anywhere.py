"""Starts anywhere on the field, so that a bot meets all situations."""
from __future__ import annotations

from math import pi

import torch

from wavedash.rocket.constants import BALL_REST_Z, BOOST_MAX
from wavedash.rocket.geometry import rotation, vector
from wavedash.rocket.parts import Start
from wavedash.rocket.starts.stage import FLOOR_Y, Stage
from wavedash.rocket.state import GameState


class Random(Start):
    """Ball and cars at random places with random velocities and boost. `ball_in_air` and `cars_in_air` are shares from 0 (all
    on the floor) to 1 (all in the air): 0 and 0 to learn to touch the ball, 0.5 and 0.5 for all-round training."""

    def __init__(self, ball_in_air: float = 0.5, cars_in_air: float = 0.5) -> None:
        self.ball_in_air, self.cars_in_air = ball_in_air, cars_in_air

    def write(self, state: GameState, generator: torch.Generator) -> None:
        stage, seats = Stage(state, generator), state.seats
        spots = stage.spots(seats + 1, -FLOOR_Y, FLOOR_Y)
        place, (x, y) = spots[:, 1:], spots[:, 0].unbind(-1)

        flying = stage.chance(self.ball_in_air)
        z = torch.where(flying, stage.uniform(200.0, 1800.0), BALL_REST_Z)
        climb = torch.where(flying, stage.uniform(-800.0, 800.0), 0.0)
        speed, direction = stage.uniform(0.0, 2000.0), stage.angle()
        stage.ball(vector(x, y, z), vector(speed * direction.cos(), speed * direction.sin(), climb), rolling=~flying)

        flying = stage.chance(self.cars_in_air, seats)
        stage.drive(~flying, place, stage.angle(seats), stage.uniform(-500.0, 2000.0, seats))
        height = stage.uniform(200.0, 1600.0, seats)
        stage.fly(
            flying,
            position=vector(place[..., 0], place[..., 1], height),
            turned=rotation(stage.angle(seats), stage.uniform(-pi / 2, pi / 2, seats), stage.angle(seats)),
            velocity=stage.uniform(-1200.0, 1200.0, seats, 3),
            since_jump=stage.uniform(0.0, 2.0, seats),
            flip_used=stage.chance(0.3, seats),
        )
        stage.put(flying, angular_velocity=stage.uniform(-3.0, 3.0, seats, 3))
        state.cars.boost.copy_(stage.uniform(0.0, BOOST_MAX, seats))


class Turtle(Start):
    """Cars on their roofs, sliding and turning a little, the ball anywhere on the floor. Teaches to get back on the wheels.
    `share`: the share of cars that lie on their roof (0.5: a bot also learns to play against one); the others drive."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share

    def write(self, state: GameState, generator: torch.Generator) -> None:
        stage, seats = Stage(state, generator), state.seats
        spots = stage.spots(seats + 1, -FLOOR_Y, FLOOR_Y)
        place, (x, y) = spots[:, 1:], spots[:, 0].unbind(-1)
        stage.ball(vector(x, y, BALL_REST_Z), torch.zeros_like(state.ball.velocity))

        turtled = stage.chance(self.share, seats)
        stage.drive(~turtled, place, stage.angle(seats), stage.uniform(0.0, 1000.0, seats))
        speed, direction, yaw = stage.uniform(0.0, 500.0, seats), stage.angle(seats), stage.angle(seats)
        turning = stage.uniform(-2.0, 2.0, seats)
        stage.put(
            turtled,
            position=vector(place[..., 0], place[..., 1], stage.roof() + 1.0),
            rotation=rotation(yaw, 0.0, pi),
            velocity=vector(speed * direction.cos(), speed * direction.sin(), 0.0),
            angular_velocity=vector(0.0, 0.0, turning),
            on_ground=False, wheel_contact=False, has_contact=True, contact_normal=vector(0.0 * yaw, 0.0, 1.0),
            air_time=stage.uniform(0.2, 2.0, seats),
        )
        state.cars.boost.copy_(stage.uniform(0.0, BOOST_MAX, seats))
