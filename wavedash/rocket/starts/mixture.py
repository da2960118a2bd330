"""Several starts, each with its share."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from wavedash.errors import UserError
from wavedash.rocket.parts import Start
from wavedash.rocket.state import GameState


class Mixture(Start):
    """Draws one of several starts for every arena: `Mixture([(Kickoff(), 0.5), (Shot(), 0.3), (Save(), 0.2)])`. Weights need
    not sum to one. They can be changed later: `mixture.weights` is a tensor, write into it (`mixture.weights.copy_(...)`)."""

    def __init__(self, starts: Sequence[tuple[Start, float]]) -> None:
        self.starts = [start for start, _ in starts]
        self.weights = torch.tensor([weight for _, weight in starts], dtype=torch.float32)
        """[K]"""
        if not bool((self.weights >= 0).all() & self.weights.isfinite().all() & (self.weights.sum() > 0)):
            raise UserError(f"a mixture of starts needs weights of 0 or more, one of them above 0; got {self.weights.tolist()}")

    def bind(self, state: GameState) -> None:
        self.weights = self.weights.to(state.memory.device)
        self.drawn = torch.zeros(state.arenas, dtype=torch.int64, device=state.memory.device)
        """[E]: which start was written last"""
        for start in self.starts:
            start.bind(state)

    def write(self, state: GameState, generator: torch.Generator) -> None:
        below = self.weights.cumsum(0)
        ticket = torch.rand(state.arenas, 1, generator=generator, device=below.device) * below[-1]
        self.drawn.copy_((ticket >= below[:-1]).sum(-1))
        kickoff = state.clone()
        for i, start in enumerate(self.starts):
            written = kickoff.clone()
            start.write(written, generator)
            state.copy_(written, arenas=self.drawn == i)
