"""DefaultObs: the observation of RLGym 2, number for number."""
from __future__ import annotations

from math import pi

import torch
from torch import Tensor

from wavedash.rocket.constants import FLIP_SECONDS, PADS
from wavedash.rocket.observations.seating import Seating, check_team_size
from wavedash.rocket.parts import Observation
from wavedash.rocket.state import JUMP, Cars, GameState

PER_CAR = 20
GLOBAL = 9 + len(PADS) + 9
HALF_TURN = (-1.0, -1.0, 1.0)


class DefaultObs(Observation):
    """RLGym's `DefaultObs`: ball, pad timers, own jump and flip state, then all cars. Use it to run or continue policies that
    were trained with RLGym; `AdvancedObsPlus` sees more and learns faster.

    zero_padding: places per team, so that one policy plays 1v1 up to this size. None: as many places as there are seats.
    The coefficients are RLGym's.
    """

    def __init__(
        self, zero_padding: int | None = 3, pos_coef: float = 1 / 2300, ang_coef: float = 1 / pi,
        lin_vel_coef: float = 1 / 2300, ang_vel_coef: float = 1 / pi, pad_timer_coef: float = 1 / 10,
        boost_coef: float = 1 / 100,
    ):
        self.zero_padding = zero_padding
        self.ang_coef = ang_coef  # accepted and never used, as in RLGym
        self.body_coefs = (pos_coef, lin_vel_coef, ang_vel_coef)
        self.pad_timer_coef = pad_timer_coef
        self.boost_coef = boost_coef

    def size(self, seats: int) -> int:
        if self.zero_padding is None:
            return GLOBAL + PER_CAR * seats
        check_team_size(seats, self.zero_padding, "zero_padding")
        return GLOBAL + PER_CAR * 2 * self.zero_padding

    def names(self, seats: int) -> list[str]:
        """A name for every number."""
        def xyz(*vectors: str) -> list[str]:
            return [f"{vector}.{axis}" for vector in vectors for axis in "xyz"]

        others = (self.size(seats) - GLOBAL) // PER_CAR - 1
        mates = others if self.zero_padding is None else self.zero_padding - 1
        cars = ["own", *(f"other{i}" for i in range(1, others + 1))] if self.zero_padding is None else [
            "own", *(f"ally{i}" for i in range(1, mates + 1)), *(f"opponent{i}" for i in range(1, others - mates + 1))]
        return [
            *xyz("ball.position", "ball.velocity", "ball.angular_velocity"), *(f"pad{i}.timer" for i in range(len(PADS))),
            *(f"own.{name}" for name in ("holds_jump", "handbrake", "has_jumped", "is_jumping", "has_flipped", "is_flipping",
                                         "has_double_jumped", "can_flip", "air_time_since_jump")),
            *(name for car in cars for name in (
                *xyz(*(f"{car}.{vector}" for vector in ("position", "forward", "up", "velocity", "angular_velocity"))),
                *(f"{car}.{name}" for name in ("boost", "demo_timer", "on_ground", "is_boosting", "is_supersonic")))),
        ]

    def bind(self, state: GameState) -> None:
        device = state.memory.device
        self.seating = Seating(state.seats, self.zero_padding, device)
        self.arena_rows = torch.arange(state.arenas, device=device).unsqueeze(-1) * (state.seats + 1)
        self.half_turn = torch.tensor(HALF_TURN, device=device)
        turned = [*HALF_TURN * 5, 1.0, 1.0, 1.0, 1.0, 1.0]
        self.turn = torch.tensor([[1.0] * PER_CAR, turned], device=device)  # by team

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        cars, ball = state.cars, state.ball
        E, C = cars.team.shape
        orange = (cars.team == 1).unsqueeze(-1)

        places = self.seating(cars) + self.arena_rows  # [P, E, C]
        rows = torch.cat([self._cars(cars), self.turn.new_zeros(E, 1, PER_CAR)], 1).flatten(0, 1)
        seen = rows.index_select(0, places.flatten()).view(-1, E, C, PER_CAR)
        seen = seen * self.turn[cars.team.long()]

        bodies = (ball.position, ball.velocity, ball.angular_velocity)
        moves = torch.stack([vector * coef for vector, coef in zip(bodies, self.body_coefs, strict=True)], 1).unsqueeze(1)
        moves = torch.where(orange.unsqueeze(-1), moves * self.half_turn, moves).flatten(2)
        timers = (state.pads.timer * self.pad_timer_coef).unsqueeze(1)
        timers = torch.where(orange, timers.flip(-1), timers)
        obs = torch.cat([moves, timers, self._jumps(cars), *seen.unbind(0)], -1)
        return torch.where(cars.present.unsqueeze(-1), obs, 0.0)

    def _cars(self, cars: Cars) -> Tensor:
        """[E, C, 20]: what is seen of each car, as blue sees it."""
        position, velocity, spin = self.body_coefs
        flags = (cars.on_ground, cars.boost_time > 0, cars.supersonic_time > 0)
        return torch.cat([
            cars.position * position, cars.forward, cars.up, cars.velocity * velocity, cars.angular_velocity * spin,
            torch.stack([cars.boost * self.boost_coef, cars.demo_timer, *flags], -1),
        ], -1)

    @staticmethod
    def _jumps(cars: Cars) -> Tensor:
        """[E, C, 9]: what a car knows of itself alone, with RLGym's definitions of flipping and being able to."""
        holding = cars.controls[..., JUMP]
        flipping = cars.has_flipped & (cars.flip_time < FLIP_SECONDS)
        can_flip = cars.has_flip & (holding == 0)
        return torch.stack([
            holding, cars.handbrake, cars.has_jumped, cars.is_jumping, cars.has_flipped, flipping, cars.has_double_jumped,
            can_flip, cars.air_time_since_jump,
        ], -1)
