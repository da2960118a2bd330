"""Kick-offs: as in the game, and with random changes."""
from __future__ import annotations

import torch

from wavedash.rocket.constants import BALL_REST_Z, BOOST_MAX, BOOST_START, CAR_REST_Z, KICKOFF_SPAWNS
from wavedash.rocket.geometry import rotation, vector
from wavedash.rocket.parts import Start
from wavedash.rocket.starts.stage import Stage
from wavedash.rocket.state import GameState


class Kickoff(Start):
    """The game's kick-off: both teams on the same spots, drawn from the five. A team has up to five cars.

    It writes the whole state but team, hitbox and presence of the cars. Every other start begins from a kick-off."""

    def bind(self, state: GameState) -> None:
        self.spots = torch.tensor(KICKOFF_SPAWNS, device=state.memory.device)
        self.up_to = torch.ones(state.seats, state.seats, dtype=torch.bool, device=state.memory.device).tril()

    def write(self, state: GameState, generator: torch.Generator) -> None:
        cars, ball = state.cars, state.ball
        team, hitbox, present = cars.team.clone(), cars.hitbox.clone(), cars.present.clone()
        state.memory.zero_()
        cars.team.copy_(team)
        cars.hitbox.copy_(hitbox)
        cars.present.copy_(present)

        order = torch.rand(state.arenas, len(self.spots), generator=generator, device=team.device).argsort(-1)
        mates = (team.unsqueeze(-1) == team.unsqueeze(-2)) & present.unsqueeze(-2) & self.up_to
        number = mates.sum(-1) - 1  # index of a car in its team; both teams use the same order
        x, y, yaw = self.spots[order.gather(1, number.clamp(0, len(self.spots) - 1))].unbind(-1)
        side = 1.0 - 2.0 * team
        cars.position.copy_(vector(side * x, side * y, CAR_REST_Z))
        cars.rotation.copy_(rotation(yaw) * vector(side, side, 1.0).unsqueeze(-1))
        cars.boost.fill_(BOOST_START)
        cars.on_ground.fill_(True)
        cars.wheel_contact.fill_(True)
        for none in (cars.contact_car, cars.ball_hit_tick, cars.ball_hit_impulse_tick, ball.last_touch, state.pads.locked_car):
            none.fill_(-1)
        ball.position[:, 2].fill_(BALL_REST_Z)
        ball.rotation.diagonal(dim1=-2, dim2=-1).fill_(1.0)
        state.clear_events()


class FuzzedKickoff(Start):
    """A kick-off where cars and ball are a little off their spots, cars already roll and have any boost. Stops a bot from
    learning one fixed opening by heart; both teams are off by different amounts, so that mirrored openings do not end in
    pinches for ever. `distance` in uu (up to 150: spots are 512 apart), `ball`: the same for the ball, `distance` if not set;
    `angle` in radians, `speed` in uu/s; `boost`: its range. The game's kick-off with a little jitter is
    `{distance: 150, ball: 10, angle: 0.175, speed: 0, boost: [33.3, 33.3]}`."""

    def __init__(self, distance: float = 100.0, angle: float = 0.2, speed: float = 300.0,
                 boost: tuple[float, float] = (0.0, BOOST_MAX), ball: float | None = None) -> None:
        self.distance, self.angle, self.speed, self.boost = distance, angle, speed, boost
        self.ball = distance if ball is None else ball

    def write(self, state: GameState, generator: torch.Generator) -> None:
        stage, seats, cars = Stage(state, generator), state.seats, state.cars
        place = cars.position[..., :2] + stage.uniform(-self.distance, self.distance, seats, 2)
        yaw = torch.atan2(cars.forward[..., 1], cars.forward[..., 0]) + stage.uniform(-self.angle, self.angle, seats)
        stage.drive(cars.present, place, yaw, stage.uniform(0.0, self.speed, seats))
        cars.boost.copy_(stage.uniform(*self.boost, seats))
        state.ball.position[:, :2].add_(stage.uniform(-self.ball, self.ball, 2))
