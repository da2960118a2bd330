"""Stage: helpers with which starts place the ball and cars. Scene: a start that is about one car, the leading car.

A `Scene` is written as if the team of its leading car attacked toward +Y. The leading car is drawn for each arena; where it is
orange, everything is rotated by half a turn in the end. So blue and orange learn alike.
"""
from __future__ import annotations

from abc import abstractmethod
from math import pi

import torch
from torch import Tensor

from wavedash.rocket.constants import BALL_MAX_SPIN, BALL_RADIUS, BOOST_MAX, CAR_REST_Z, HITBOXES
from wavedash.rocket.geometry import rotation, vector
from wavedash.rocket.parts import Start
from wavedash.rocket.state import GameState

FLOOR_X, FLOOR_Y, FLOOR_CORNER = 3600.0, 4700.0, 7500.0
"""Up to these |x|, |y| and |x| + |y| the floor is flat for a whole car; beyond, it bends up into the walls"""
APART = 260.0
"""uu between the origins of bodies that cannot touch: a car reaches 95 uu from its origin, the ball 91"""


class Stage:
    """Random numbers [E] and methods that place bodies, in the perspective of the leading car's team."""

    def __init__(self, state: GameState, generator: torch.Generator) -> None:
        self.state, self.generator = state, generator
        self.arenas, self.device = state.arenas, state.memory.device
        cars = state.cars
        blue = (cars.present & (cars.team == 0)).any(-1)
        orange = (cars.present & (cars.team == 1)).any(-1)
        self.leading_team = torch.where(blue & orange, self.chance(0.5), orange).int()
        """[E]: 0 or 1; where an arena has one team only, that one"""
        ours = cars.team == self.leading_team.unsqueeze(-1)
        self.ours = ours
        """[E, C]: cars of the leading team"""
        self.lead = self._one_of(cars.present & ours)
        """[E, C]: the car that the start is about"""
        self.rival = self._one_of(cars.present & ~ours)
        """[E, C]: one of its opponents; none where there are no opponents"""

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """[E, *shape]: numbers between low and high."""
        random = torch.rand(self.arenas, *shape, generator=self.generator, device=self.device)
        return low + (high - low) * random

    def chance(self, probability: float, *shape: int) -> Tensor:
        """[E, *shape] bool: true with this probability."""
        return self.uniform(0.0, 1.0, *shape) < probability

    def angle(self, *shape: int) -> Tensor:
        """[E, *shape]: angles from -pi to pi."""
        return self.uniform(-pi, pi, *shape)

    def either_side(self) -> Tensor:
        """[E]: -1 or 1."""
        return torch.where(self.chance(0.5), 1.0, -1.0)

    def ball(self, position: Tensor, velocity: Tensor, rolling: Tensor | None = None) -> None:
        """Puts the ball at `position` [E, 3]. Where `rolling` [E], it spins as a ball that rolls on the floor."""
        ball = self.state.ball
        ball.position.copy_(position)
        ball.velocity.copy_(velocity)
        if rolling is not None:
            spin = vector(-velocity[:, 1], velocity[:, 0], 0.0) / BALL_RADIUS
            allowed = BALL_MAX_SPIN / spin.norm(dim=-1).clamp(min=BALL_MAX_SPIN)
            ball.angular_velocity.copy_(spin * (allowed * rolling).unsqueeze(-1))

    def drive(self, who: Tensor, place: Tensor, yaw: Tensor, speed: Tensor) -> None:
        """Puts the cars `who` [E, C] on the floor at `place` [E, 2] or [E, C, 2], driving straight ahead."""
        turned = rotation(yaw)
        position = vector(place[..., 0], place[..., 1], CAR_REST_Z)
        self.put(who, position=position, rotation=turned, velocity=turned[..., 0] * speed.unsqueeze(-1))

    def fly(
        self, who: Tensor, position: Tensor, turned: Tensor, velocity: Tensor, since_jump: Tensor, flip_used: Tensor | bool,
    ) -> None:
        """Puts the cars `who` [E, C] in the air, `since_jump` [E] or [E, C] seconds after their jump ended (from 1.25 on they
        cannot flip)."""
        self.put(
            who, position=position, rotation=turned, velocity=velocity, on_ground=False, wheel_contact=False, has_jumped=True,
            has_double_jumped=flip_used, air_time_since_jump=since_jump, air_time=since_jump + 0.2, jump_time=since_jump + 0.2,
        )

    def put(self, who: Tensor, **values: Tensor | float | bool) -> None:
        """Writes fields of the cars `who` [E, C]: tensors [E, C, ...], or [E, ...] for all cars of an arena, or plain
        numbers."""
        for name, value in values.items():
            field: Tensor = getattr(self.state.cars, name)
            chosen = who.reshape(who.shape + (1,) * (field.dim() - 2))
            if isinstance(value, Tensor) and value.dim() < field.dim():
                value = value.unsqueeze(1)
            field.copy_(torch.where(chosen, value, field))

    def roof(self) -> Tensor:
        """[E, C]: height of the roof above the car's origin."""
        hitbox = self.state.cars.hitbox
        heights = (box.offset[2] + box.size[2] / 2 for box in HITBOXES)
        return torch.stack([(hitbox == i) * height for i, height in enumerate(heights)]).sum(0)

    def of(self, who: Tensor, value: Tensor) -> Tensor:
        """[E]: the value [E, C] of the only car of each arena that is true in `who` [E, C]."""
        return (value * who).sum(-1)

    def spots(self, count: int, low_y: float, high_y: float, keep_off: Tensor | None = None) -> Tensor:
        """[E, count, 2]: places on the floor that are so far from each other, and from `keep_off` [E, K, 2], that no bodies
        touch.

        Each place has a cell of a grid. The grid is shifted at random over its edges, and each place is moved at random inside
        its cell: so every place is equally likely, and none has to be drawn twice."""
        columns, rows = 6, round((high_y - low_y) / 1000)
        width, height = 2 * FLOOR_X / columns, (high_y - low_y) / rows
        cell = torch.arange(columns * rows, device=self.device)
        column, row = cell % columns, cell // columns
        moved = self.uniform(-0.5, 0.5, len(cell), 2)
        shift = self.uniform(0.0, 1.0, 1, 2)
        x = width * (column + shift[..., 0]) + (width - APART) * moved[..., 0]
        y = height * (row + shift[..., 1]) + (height - APART) * moved[..., 1]
        places = torch.stack([x.remainder(width * columns) - FLOOR_X, y.remainder(height * rows) + low_y], -1)
        taken = places.abs().sum(-1) > FLOOR_CORNER
        if keep_off is not None:
            between = places.unsqueeze(2) - keep_off.unsqueeze(1)  # torch.cdist is ten times slower on a GPU
            taken |= (between.square().sum(-1) < (APART + 100) ** 2).any(-1)
        order = (self.uniform(0.0, 1.0, len(cell)) + taken).topk(count, largest=False).indices
        return places.gather(1, order.unsqueeze(-1).expand(-1, -1, 2))

    def fill(self, others: Tensor) -> None:
        """Puts cars [E, C] somewhere on the floor of their own half, clear of everything else, facing roughly the ball."""
        cars, ball = self.state.cars, self.state.ball.position[:, :2]
        far = torch.full_like(cars.position[..., :2], 1e5)
        placed = torch.where((others | ~cars.present).unsqueeze(-1), far, cars.position[..., :2])
        keep_off = torch.cat([placed, ball.unsqueeze(1)], 1)
        own_half = self.spots(self.state.seats, -FLOOR_Y, -300.0, keep_off)
        other_half = self.spots(self.state.seats, 300.0, FLOOR_Y, keep_off)
        place = torch.where(self.ours.unsqueeze(-1), own_half, other_half)
        to_ball = ball.unsqueeze(1) - place
        yaw = torch.atan2(to_ball[..., 1], to_ball[..., 0]) + self.uniform(-0.7, 0.7, self.state.seats)
        self.drive(others, place, yaw, self.uniform(0.0, 1000.0, self.state.seats))

    def turn(self) -> None:
        """Rotates the arenas that orange leads by half a turn."""
        side = 1.0 - 2.0 * self.leading_team
        factor = vector(side, side, 1.0)
        for body, wide in ((self.state.ball, factor), (self.state.cars, factor.unsqueeze(1))):
            for field in (body.position, body.velocity, body.angular_velocity):
                field.mul_(wide)
            body.rotation.mul_(wide.unsqueeze(-1))

    def _one_of(self, candidates: Tensor) -> Tensor:
        """[E, C]: one of the cars that are true, drawn at random; none where none is true."""
        seats = torch.arange(candidates.shape[1], device=self.device)
        drawn = (self.uniform(0.1, 1.0, candidates.shape[1]) * candidates).argmax(-1, keepdim=True)
        return (seats == drawn) & candidates


class Scene(Start):
    """A start that is about one car. To make one, copy a scene and write `stage` as if that car's team attacked toward +Y."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        stage = Stage(state, generator)
        state.cars.boost.copy_(stage.uniform(0.0, BOOST_MAX, state.seats))
        placed = self.stage(stage)
        stage.fill(~placed)
        stage.turn()

    @abstractmethod
    def stage(self, stage: Stage) -> Tensor:
        """Places the ball and some cars, and returns these cars [E, C]. The others get places in their own halves."""

