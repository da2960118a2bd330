"""One arena of RocketSim itself, which plays on from a state that our code wrote."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import rlgym.rocket_league.sim
import RocketSim
import torch

from wavedash.rocket.state import GameState

RocketSim.init(str(Path(rlgym.rocket_league.sim.__file__).parent / "collision_meshes"))
CAR_FLAGS = ("has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping")
CAR_TIMES = ("boost", "air_time", "air_time_since_jump", "jump_time", "flip_time")


class RocketSimArena:
    """An arena with the same cars as one of ours; only the fields that starts write are copied into it."""

    def __init__(self, state: GameState) -> None:
        self.arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR)
        self.cars = [self.arena.add_car(int(team), RocketSim.CarConfig(int(hitbox)))
                     for team, hitbox in zip(state.cars.team[0], state.cars.hitbox[0], strict=True)]

    def set(self, state: GameState, e: int) -> RocketSimArena:
        ball = RocketSim.BallState()
        _set_body(ball, state.ball.position[e], state.ball.rotation[e], state.ball.velocity[e], state.ball.angular_velocity[e])
        self.arena.ball.set_state(ball)
        for i, car in enumerate(self.cars):
            cars, body = state.cars, RocketSim.CarState()
            _set_body(body, cars.position[e, i], cars.rotation[e, i], cars.velocity[e, i], cars.angular_velocity[e, i])
            for name in CAR_TIMES:
                setattr(body, name, float(getattr(cars, name)[e, i]))
            for name in CAR_FLAGS:
                setattr(body, name, bool(getattr(cars, name)[e, i]))
            body.is_on_ground = bool(cars.on_ground[e, i])
            car.set_state(body)
            car.set_controls(RocketSim.CarControls())
        return self

    def control(self, **controls: float) -> RocketSimArena:
        """Sets the same controls for all cars."""
        for car in self.cars:
            car.set_controls(RocketSim.CarControls(**controls))
        return self

    def without_cars(self) -> RocketSimArena:
        """Moves the cars away, so that none touches the ball."""
        self.arena.set_car_ball_collision(False)
        self.arena.set_car_car_collision(False)
        return self

    def step(self, ticks: int = 1) -> RocketSimArena:
        self.arena.step(ticks)
        return self

    @property
    def ball(self) -> RocketSim.BallState:
        return self.arena.ball.get_state()

    def car(self, i: int) -> RocketSim.CarState:
        return self.cars[i].get_state()

    def bodies(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities [1 + C, 3] of ball and cars."""
        states = [self.ball, *(self.car(i) for i in range(len(self.cars)))]
        return np.array([s.pos.as_tuple() for s in states]), np.array([s.vel.as_tuple() for s in states])


def _set_body(body, position, rotation, velocity, spin) -> None:
    body.pos, body.vel, body.ang_vel = (RocketSim.Vec(*v.tolist()) for v in (position, velocity, spin))
    body.rot_mat = RocketSim.RotMat(*(RocketSim.Vec(*axis.tolist()) for axis in torch.unbind(rotation, -1)))
