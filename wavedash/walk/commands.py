"""What robots are told to do: a speed forward and a direction to turn to. The rate of turning that leads there is part of the
command that the policy sees, and is computed anew in every step."""
from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.part import Part, Parts
from wavedash.walk.limits import ordered, shaped
from wavedash.walk.parts import Command
from wavedash.walk.robot import STEP
from wavedash.walk.rotation import wrapped
from wavedash.walk.state import RobotState


def uniform(low: float, high: float, state: RobotState, generator: torch.Generator) -> Tensor:
    """[E]: evenly drawn numbers."""
    return low + (high - low) * torch.rand(state.shape, generator=generator, device=state.device)


class Ahead(Command):
    """Walk on in about the direction that the robot faces: `speed` m/s, turned by up to `turn` degrees. Agarwal et al. 2022
    teach 0.35 m/s and 10 degrees."""

    def __init__(self, speed: float = 0.35, turn: float = 10.0) -> None:
        self.speed, self.turn = float(speed), torch.pi / 180 * float(turn)

    def draw(self, state: RobotState, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.full(state.shape, self.speed, device=state.device), uniform(-self.turn, self.turn, state, generator)


class Curve(Command):
    """Walk on a curve: from `slowest` to `fastest` m/s, turned by up to `turn` degrees."""

    def __init__(self, slowest: float = 0.2, fastest: float = 0.75, turn: float = 60.0) -> None:
        self.slowest, self.fastest = ordered(-inf, slowest=slowest, fastest=fastest)
        self.turn = torch.pi / 180 * float(turn)

    def draw(self, state: RobotState, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return (uniform(self.slowest, self.fastest, state, generator), uniform(-self.turn, self.turn, state, generator))


class InPlace(Command):
    """Turn on the spot by up to `turn` degrees; 0: stand still."""

    def __init__(self, turn: float = 180.0) -> None:
        self.turn = torch.pi / 180 * float(turn)

    def draw(self, state: RobotState, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.zeros(state.shape, device=state.device), uniform(-self.turn, self.turn, state, generator)


class Commands(Part):
    """Draws one of several commands, by weight, when an episode begins and every `seconds` after.

    `stiffness`: 1/s, the rate of turning for each rad that the robot is off its direction; at most `fastest` rad/s.
    """

    left: Tensor
    """[E]: steps until the next command is drawn"""

    def __init__(self, commands: Mapping[str, tuple[Command, float]], seconds: float = 10.0, stiffness: float = 0.8,
                 fastest: float = 0.8) -> None:
        self.weights = [weight for _, weight in commands.values()]
        if not sum(self.weights) > 0.0:
            raise UserError("env.walk.commands needs at least one command with a weight above 0, such as {ahead: 1}")
        self.parts = Parts({name: command for name, (command, _) in commands.items()})
        self.steps, self.stiffness, self.fastest = max(1, round(seconds / STEP)), stiffness, fastest

    @classmethod
    def named(cls, commands: Mapping[str, Any], lookup: Lookup, **options: Any) -> Commands:
        """Makes commands as a YAML file has them: `ahead: 1`, `curve: {weight: 1, fastest: 1.0}`."""
        made = {}
        for name, value in commands.items():
            given = dict(value) if isinstance(value, Mapping) else {"weight": value}
            weight = given.pop("weight", 1.0)
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < inf:
                raise UserError(f"command {name!r} needs a weight of 0 or more, not {weight!r}")
            made[name] = lookup.make("command", name, given), float(weight)
        return cls(made, **options)

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        self.register_buffer("left", torch.zeros(state.shape, dtype=torch.int64, device=state.device))
        self.below = torch.tensor(self.weights, device=state.device).cumsum(0)
        for command in self.parts.values():
            command.bind(state)

    def give(self, state: RobotState, mask: Tensor, generator: torch.Generator) -> None:
        """Gives new commands to the robots of `mask` [E]."""
        ticket = torch.rand(state.shape, generator=generator, device=state.device) * self.below[-1]
        drawn = (ticket.unsqueeze(-1) >= self.below[:-1]).sum(-1)
        speed, turn = torch.zeros_like(ticket), torch.zeros_like(ticket)
        for number, (name, command) in enumerate(self.parts.items()):
            own = command.draw(state, generator)
            own_speed, own_turn = (shaped(f"what command {name!r} drew", x, *state.shape) for x in own)
            speed, turn = torch.where(drawn == number, own_speed, speed), torch.where(drawn == number, own_turn, turn)
        state.command[:, 0].copy_(torch.where(mask, speed, state.command[:, 0]))
        state.heading.copy_(torch.where(mask, wrapped(state.yaw + turn), state.heading))
        self.left.copy_(torch.where(mask, self.steps, self.left))

    def follow(self, state: RobotState) -> None:
        """Computes the rate of turning that leads every robot to its direction."""
        rate = self.stiffness * wrapped(state.heading - state.yaw)
        state.command[:, 2].copy_(rate.clamp(-self.fastest, self.fastest))
