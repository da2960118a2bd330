"""What a Rocket League task is made of, and who else plays in it: small batched classes. Copy one, change it, name it by its
import path.

What every part can rely on is in `wavedash/tasks/part.py`. Environments are arenas here, and agents cars: tensors are [E, ...]
of E arenas, [E, C, ...] where each of C cars has its own.
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import gymnasium
import torch
from torch import Tensor

from wavedash.rocket.state import GameState
from wavedash.tasks.endings import Ending
from wavedash.tasks.part import Part
from wavedash.tasks.rewards import Reward
from wavedash.tasks.starts import Start

__all__ = ["Action", "Ending", "Observation", "Part", "Player", "Reward", "ScriptedPlayer", "Start"]


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

    def of_policy(self) -> Tensor | None:
        """[E, C] the cars that follow the policy's actions; None: all of them. Others are not learned from."""
        return None

    def generators(self) -> list[torch.Generator]:
        """The random streams that `parse` draws from: they are saved with the arenas, and CUDA graphs must know them."""
        return []

    @abstractmethod
    def parse(self, action: Tensor, state: GameState) -> Tensor:
        """Actions [E, C, ...] of `space` to controls [E, C, 8], in the order of CONTROLS. May remember what was held."""


class Player(Part):
    """Whoever drives cars beside the environment's own policy: a script, a frozen policy, later a human. `begin` clears what it
    remembers of the arenas where an episode begins."""

    ticks: int | None = None
    """Of physics per decision; None: as often as the arenas ask"""
    delay: int | None = None
    """Ticks before a decision takes effect; None: that of the arenas"""

    def generators(self) -> list[torch.Generator]:
        """The random streams that it draws from, once it is bound."""
        return []

    @abstractmethod
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        """[E, C, 8], in the order of CONTROLS: what to do until asked again, which happens once per step. It answers for every
        car, as if it drove all of them; those it does drive are picked out. `chosen` [E, C, 8]: what each car, whoever drives
        it, was last told to do."""


class ScriptedPlayer(Player):
    """Plays by rules of its own, without a policy: somebody to play against."""

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        return self.controls(state)

    @abstractmethod
    def controls(self, state: GameState) -> Tensor:
        """[E, C, 8], in the order of CONTROLS: what to do until asked again. It answers for every car, as if it played all of
        them; those it does play are picked out. The two teams look at the same field from its two ends: where a direction
        matters, ask `state.cars.team`."""
