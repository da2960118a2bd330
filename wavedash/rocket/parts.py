"""What a task is made of, and who else plays in it: small batched classes. Copy one, change it, name it by its import path.

A part sees all arenas at once: tensors [E, ...] of E arenas, [E, C, ...] where each of C cars has its own. Arenas begin
episodes at different times; a part that remembers something over an episode forgets it in `begin` for the arenas that are true
there. Nothing may look at the content of a tensor from Python (no `if tensor`, no `.item()`), so that the same task runs on a
GPU without waiting for it.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gymnasium
import torch
from torch import Tensor

from wavedash.rocket.state import Events, GameState


class Part(ABC):  # noqa: B024 (what it must do, its kinds say)
    """Common to all parts."""

    def bind(self, state: GameState) -> None:  # noqa: B027
        """Called once before anything else; sizes and device are known from here on."""

    def begin(self, state: GameState, arenas: Tensor) -> None:  # noqa: B027
        """Episodes begin in these arenas [E]; `state` is that of their first observation."""


class Observation(Part):
    """What a policy sees, in the perspective of its own team: a car of orange sees the field turned by half a turn, so that it
    always attacks toward +Y."""

    @abstractmethod
    def size(self, seats: int) -> int:
        """Numbers per car in an arena of so many seats."""

    @abstractmethod
    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        """[E, C, size]; `controls` [E, C, 8] are those that each car chose last. Called once after a step, and again with
        `stepped` false where episodes began since: one that remembers frames then leaves those of the others as they are."""


class Action(Part):
    """Turns what a policy chooses into controls."""

    space: gymnasium.Space[Any]
    """Of one car"""
    ticks: int
    """Of physics per action"""
    delay: int
    """Ticks before an action takes effect"""

    def mask(self, state: GameState) -> Tensor | None:
        """[E, C, n] which choices make sense now; None where everything always does."""
        return None

    @abstractmethod
    def parse(self, action: Tensor, state: GameState) -> Tensor:
        """Actions [E, C, ...] of `space` to controls [E, C, 8], in the order of CONTROLS. May remember what was held."""


class Reward(Part):
    """What is good. Positive is good for the car itself; team spirit and zero-sum are applied by what contains it. So is this:
    an empty seat gets nothing, and a demolished car only what is sparse."""

    sparse: bool = False
    """True: it pays when something happens (a goal, a touch). False: it pays for how things are, at every step."""

    @abstractmethod
    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        """[E, C]: of the step that led from `previous` to `state`, during which `events` happened. True and false count as 1
        and 0."""


class Start(Part):
    """How an episode begins. It is bound to a store with several beginnings for every arena; its `begin` is not called."""

    @abstractmethod
    def write(self, state: GameState, generator: torch.Generator) -> None:
        """Fill in beginnings for all arenas of `state`, which comes as a kick-off: ball in the middle, cars on their spots with
        33 boost, pads there. Only those of arenas that need one are used."""


class Ending(Part):
    """When an episode ends."""

    truncates: bool = False
    """True: the episode is cut off, and the future has still a value (time ran out). False: it is over (a goal)."""

    @abstractmethod
    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        """[E] bool."""


class ScriptedPlayer(Part):
    """Plays by rules of its own, without a policy: somebody to play against."""

    @abstractmethod
    def controls(self, state: GameState) -> Tensor:
        """[E, C, 8], in the order of CONTROLS: what to do until asked again. It answers for every car, as if it played all of
        them; those it does play are picked out. The two teams look at the same field from its two ends: where a direction
        matters, ask `state.cars.team`."""
