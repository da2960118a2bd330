"""The base classes of what a walking task is made of. One's own derive from them, and are named `module:Class` in a YAML file.

All of them see E robots at once: a state with tensors [E, ...] (`RobotState`).
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import gymnasium
import torch
from torch import Tensor

from wavedash.tasks import endings, rewards, starts
from wavedash.tasks.part import Part as Part
from wavedash.walk.physics import Physics
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground


class Events(NamedTuple):
    """What happened in a step."""

    landed: Tensor
    """[E, 4] bool: the foot came down in this step"""
    flight: Tensor
    """[E, 4]: s, how long it had been in the air before"""


class Context(NamedTuple):
    """What a part may know beside the state of the robots, handed to `Part.meet` before it is bound."""

    ground: Ground
    physics: Physics
    generator: torch.Generator
    """The random stream that steps draw from"""


class Observation(Part):
    """One key of what the policy sees."""

    context: Context

    def meet(self, context: Context) -> None:
        """Is called before `bind`."""
        self.context = context

    @abstractmethod
    def space(self) -> gymnasium.spaces.Box:
        """The space of one robot."""

    @abstractmethod
    def build(self, state: RobotState) -> Tensor:
        """[E, ...] float32: what each robot sees, in a tensor of its own, which later steps do not change."""

    def renew(self, state: RobotState) -> None:
        """Is called once after every step, before `build`: the place for what follows a clock of its own, such as a camera.
        When an episode begins, `begin` is called as well, and `build` once more."""

    def describe(self) -> dict[str, Any]:
        """Returns what its numbers mean, as plain values for the file that goes with an exported policy: `parts`, one after
        another, each a `reading` of `size` numbers, of which `subtract` is subtracted, which are then clipped to `clip` and
        multiplied by `scale`. It may be called before `bind`."""
        return {"shape": list(self.space().shape), "parts": []}


class Action(Part):
    """How actions become angles that the motors pull to."""

    space: gymnasium.spaces.Box

    @abstractmethod
    def parse(self, action: Tensor, state: RobotState) -> Tensor:
        """[E, 12]: target angles of the joints, from actions [E, ...]."""

    def describe(self) -> dict[str, Any]:
        """Returns what its numbers mean, as plain values for the file that goes with an exported policy."""
        return {"shape": list(self.space.shape)}


class Reward(rewards.Reward):
    """What a robot is paid for per second; positive if it is good. Penalties are negative, with positive weights."""

    context: Context

    def meet(self, context: Context) -> None:
        """Is called before `bind`."""
        self.context = context

    @abstractmethod
    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        """[E]: the reward of the step from `previous` to `state`."""


class Start(starts.Start):
    """How episodes begin: poses and velocities of robots on the platform of their tile."""

    context: Context

    def meet(self, context: Context) -> None:
        """Is called before `bind`."""
        self.context = context

    @abstractmethod
    def write(self, state: RobotState, generator: torch.Generator) -> None:
        """Writes pose and velocities of all robots of `state`, which stand at the tile's start in the home pose."""


class Ending(endings.Ending):
    """Decides when an episode ends."""

    context: Context

    def meet(self, context: Context) -> None:
        """Is called before `bind`."""
        self.context = context

    @abstractmethod
    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        """[E] bool: the episode ends with this step."""


class Command(Part):
    """What a robot is told to do. One of several is drawn, by weight, for every robot and every few seconds."""

    @abstractmethod
    def draw(self, state: RobotState, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """[E] speed forward in m/s; [E] the angle in rad by which the robot shall turn from the direction it faces."""


class Randomization(Part):
    """A number of physics that differs between robots, or something that befalls them."""

    of_bodies: bool = False
    """True: it is drawn once, when a run begins (MuJoCo derives constants from it). False: with every episode."""

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator) -> None:
        """Writes numbers for all robots into `physics`. `breadth` [E] from 0 to 1: how much of the range each robot gets; it
        grows with the robot's level."""

    def push(self, state: RobotState, breadth: Tensor, generator: torch.Generator) -> Tensor | None:
        """[E, 3]: a change of the trunk's velocity after this step; None: this one never pushes."""
        return None
