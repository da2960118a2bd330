"""Players that follow simple rules: opponents to play against and to measure a bot with, and examples to copy.

`wavedash eval RUN --against chaser` plays against one of these, or against one of your own by import path
(`--against my_players:MyPlayer`): a class with one method, from the state of all arenas to the controls of all cars.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.actions import LookupTable
from wavedash.rocket.constants import BACK_WALL_Y
from wavedash.rocket.geometry import vector
from wavedash.rocket.parts import ScriptedPlayer
from wavedash.rocket.state import BOOST, CONTROLS, HANDBRAKE, JUMP, PITCH, ROLL, STEER, THROTTLE, YAW, Cars, GameState


class Idle(ScriptedPlayer):
    """Uses no control. A bot that does not score against it cannot score yet."""

    def controls(self, state: GameState) -> Tensor:
        return torch.zeros(state.arenas, state.seats, len(CONTROLS), device=state.memory.device)


class Random(ScriptedPlayer):
    """Draws a row of the lookup table every time, from those that have an effect now, as an untrained bot does."""

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.table = seed, LookupTable()

    def bind(self, state: GameState) -> None:
        self.table.bind(state)
        self.generator = torch.Generator(state.memory.device).manual_seed(self.seed)

    def generators(self) -> list[torch.Generator]:
        return [self.generator]

    def controls(self, state: GameState) -> Tensor:
        offered = self.table.mask(state)
        assert offered is not None
        # The least of exponential numbers is any of those offered, as in torch.multinomial but without its host sync.
        drawn = offered / torch.empty(offered.shape, device=offered.device).exponential_(generator=self.generator)
        return self.table.controls(drawn.argmax(-1))


class Chaser(ScriptedPlayer):
    """Always drives at the ball, boosts when it is far and straight ahead, flips into it when it is near. It does not know
    where the goals are, and scores against itself as well. A bot that beats it clearly plays with purpose."""

    def controls(self, state: GameState) -> Tensor:
        return attack(state.cars, state.ball.position.unsqueeze(1))


class Defender(ScriptedPlayer):
    """A chaser that knows where its own goal is: it hits the ball only away from it, and otherwise drives past the ball
    first."""

    def controls(self, state: GameState) -> Tensor:
        cars, ball = state.cars, state.ball.position.unsqueeze(1)
        home = 2.0 * cars.team - 1.0  # [E, C]: the own goal is toward -Y for blue, toward +Y for orange
        aside, behind, _ = (cars.position - ball).unbind(-1)
        past = ball + vector(600.0 * aside.sign(), 1500.0 * home, 0.0)
        past = past.clamp(-BACK_WALL_Y + 100.0, BACK_WALL_Y - 100.0)
        safe = home * behind > 0.5 * aside.abs()
        return torch.where(safe.unsqueeze(-1), attack(cars, ball), drive_to(cars, past))


def attack(cars: Cars, ball: Tensor) -> Tensor:
    """Controls [E, C, 8] to get to the ball [E, C, 3] and to flip into it."""
    controls = drive_to(cars, ball)
    turn, distance = bearing(cars, ball)
    height = ball[..., 2] - cars.position[..., 2]
    flips = (distance < 400.0) & (turn.abs() < 0.3) & (height < 300.0) & (cars.on_ground | cars.has_flip)
    released = cars.controls[..., JUMP] == 0  # a button that is held does not jump again
    controls[..., JUMP] = (flips & released).float()
    controls[..., PITCH] = torch.where(flips | cars.is_flipping, -1.0, controls[..., PITCH])  # nose down: forward
    return controls


def bearing(cars: Cars, target: Tensor) -> tuple[Tensor, Tensor]:
    """[E, C] each: the angle by which a car would have to turn to face `target` [E, C, 3], positive to the right, and the
    distance. The angle is in the frame of the car, so it holds on walls too."""
    way = target - cars.position
    return torch.atan2((way * cars.right).sum(-1), (way * cars.forward).sum(-1)), way.norm(dim=-1)


def drive_to(cars: Cars, target: Tensor) -> Tensor:
    """Controls [E, C, 8] that bring cars to `target` [E, C, 3] at full speed: they turn the nose to it, on the ground and in
    the air, and keep the roof up."""
    turn, distance = bearing(cars, target)
    way = target - cars.position
    controls = torch.zeros(*turn.shape, len(CONTROLS), device=turn.device)
    controls[..., THROTTLE].fill_(1.0)
    controls[..., STEER] = controls[..., YAW] = (2.0 * turn).clamp(-1.0, 1.0)
    controls[..., PITCH] = torch.atan2((way * cars.up).sum(-1), (way * cars.forward).sum(-1)).clamp(-1.0, 1.0)
    controls[..., ROLL] = torch.asin(cars.right[..., 2].clamp(-1.0, 1.0)).clamp(-1.0, 1.0)
    controls[..., BOOST] = ((distance > 500.0) & (turn.abs() < 0.2)).float()
    controls[..., HANDBRAKE] = (cars.on_ground & (turn.abs() > 1.8)).float()
    return controls
