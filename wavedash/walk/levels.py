"""Levels: which tile of the terrain a robot walks on. Robots that come far are promoted to a harder one, others are demoted."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.tasks.part import Part
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground

FAR = 0.8
"""The share of the way from the start to the edge of the tile after which a robot is promoted"""
FEEBLE = 0.5
"""The share of what was commanded below which it is demoted"""


class Levels(Part):
    """Every robot stays on its kind of terrain; its level changes where an episode ends: up after it came far, else down if it
    fell or came less than half as far as it was told to walk. Who masters the last level goes to a random one, so that no level
    is forgotten.

    A fall counts by itself, because a robot that falls at the first step has walked as far as it was told until then. In
    legged_gym it is demoted too: there the whole episode's distance is asked of it."""

    level: Tensor
    """[E]"""
    kind: Tensor
    """[E]: the number of its kind among `Ground.kinds`"""

    def __init__(self, ground: Ground, first: int = 0, moves: bool = True) -> None:
        """`first`: robots begin on a random level up to this. `moves`: false leaves every robot on its level."""
        self.ground, self.first, self.moves = ground, min(first, ground.levels - 1), moves

    def bind(self, state: RobotState) -> None:
        robots, ground = state.shape[0], self.ground
        # Robots are dealt out to kinds by weight, evenly, so that any number of them has all kinds in proportion.
        ends = torch.tensor(ground.shares).cumsum(0)
        share = (torch.arange(robots) + 0.5) / robots * ends[-1]
        kind = torch.searchsorted(ends, share, right=True).clamp(max=len(ends) - 1)
        self.register_buffer("kind", kind.to(state.device), persistent=False)
        self.register_buffer("level", torch.zeros(robots, dtype=torch.int64, device=state.device))
        edge = min(ground.length / 2 - abs(ground.start[0]), ground.width / 2 - abs(ground.start[1]))
        self.far = FAR * (edge if ground.start[0] == 0 else ground.length / 2 - ground.start[0])

    @property
    def breadth(self) -> Tensor:
        """[E]: how hard the level is, from 0 to 1. One level alone counts as the hardest."""
        return (self.level / max(1, self.ground.levels - 1)) if self.ground.levels > 1 else torch.ones_like(self.level).float()

    @property
    def tile(self) -> Tensor:
        """[E]"""
        return self.kind * self.ground.levels + self.level

    def scatter(self, generator: torch.Generator) -> None:
        """Gives all robots a level to begin with."""
        shape, device = self.level.shape, self.level.device
        self.level.copy_(torch.randint(0, self.first + 1, shape, generator=generator, device=device))

    def move(self, state: RobotState, ended: Tensor, fell: Tensor, generator: torch.Generator) -> None:
        """Promotes and demotes the robots whose episode ended [E], those of `fell` [E] with a fall."""
        if not self.moves or self.ground.levels == 1:
            return
        walked = state.walked
        up = walked > self.far
        down = ~up & (fell | (walked < FEEBLE * state.demanded))
        level = self.level + up.long() - down.long()
        anywhere = torch.randint(0, self.ground.levels, level.shape, generator=generator, device=level.device)
        level = torch.where(level >= self.ground.levels, anywhere, level.clamp(min=0))
        self.level.copy_(torch.where(ended, level, self.level))
