"""What a Rocket League task is made of, and who else plays in it: small batched classes. Copy one, change it, name it by its
import path.

What every part can rely on is in `wavedash/tasks/part.py`. Environments are arenas here, and agents cars: tensors are [E, ...]
of E arenas, [E, C, ...] where each of C cars has its own.
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import gymnasium
from torch import Tensor

from wavedash.rocket.state import GameState
from wavedash.tasks.endings import Ending
from wavedash.tasks.part import Part
from wavedash.tasks.rewards import Reward
from wavedash.tasks.starts import Start

__all__ = ["Action", "Ending", "Observation", "Part", "Reward", "ScriptedPlayer", "Start"]


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


class ScriptedPlayer(Part):
    """Plays by rules of its own, without a policy: somebody to play against."""

    @abstractmethod
    def controls(self, state: GameState) -> Tensor:
        """[E, C, 8], in the order of CONTROLS: what to do until asked again. It answers for every car, as if it played all of
        them; those it does play are picked out. The two teams look at the same field from its two ends: where a direction
        matters, ask `state.cars.team`."""
