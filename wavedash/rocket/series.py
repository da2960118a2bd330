"""Series: several games in a row against the same opponent are one episode, so that a policy with memory can learn to adapt to
whom it plays against.

Between two games of a series the arena begins the next game like any other: a start has written it, and the parts of the task
begin anew. The episode goes on: the step is neither terminated nor truncated, so the value of what follows counts, and memory
stays.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.parts import Part
from wavedash.rocket.state import GameState


class Series(Part):
    """Counts the games of each arena's episode, which ends with the last of `games`."""

    played: Tensor
    """[E]: games of the current episode that are over"""
    over: Tensor
    """[E] bool: a game ended with the last step"""

    def __init__(self, games: int) -> None:
        self.games = games

    def bind(self, state: GameState) -> None:
        self.register_buffer("played", torch.zeros(state.arenas, dtype=torch.int64, device=state.device))
        self.register_buffer("over", torch.zeros(state.arenas, dtype=torch.bool, device=state.device), persistent=False)

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.played.masked_fill_(mask, 0)

    def ended(self, over: Tensor) -> Tensor:
        """[E] bool: where the episode ends. `over` [E]: where a game ends. It is called once for each step."""
        self.over.copy_(over)
        self.played += over
        return over & (self.played >= self.games)
