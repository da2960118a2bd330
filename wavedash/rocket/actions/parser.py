"""The base of our action parsers: how long an action lasts, when it takes effect, and buttons that stay pressed."""
from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Action
from wavedash.rocket.state import STICKS, GameState


class Parser(Action):
    """ticks: how long an action lasts, in 1/120 s. 8 is usual; fewer react faster but make learning slower.
    delay: ticks before an action takes effect; 1 in the real game.
    sticky: a button stays pressed for so many actions after it was released. 0: it does not.
    """

    left: Tensor
    """[E, C, buttons]: actions for which each button still stays pressed"""

    def __init__(self, ticks: int = 8, delay: int = 1, sticky: int = 0):
        if ticks < 1 or not 0 <= delay <= ticks or sticky < 0:
            raise UserError(f"{type(self).__name__} needs ticks of at least 1, delay of 0 to ticks and sticky of at least 0, "
                            f"got ticks={ticks}, delay={delay}, sticky={sticky}")
        self.ticks, self.delay, self.sticky = ticks, delay, sticky

    @property
    def seconds(self) -> float:
        """Seconds from the choice of an action to the end of its effect."""
        return (self.ticks + self.delay) / TICK_RATE

    def bind(self, state: GameState) -> None:
        self.register_buffer("left", torch.zeros(*state.shape, 3, dtype=torch.int32, device=state.device))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.left.masked_fill_(arenas.view(-1, 1, 1), 0)

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        controls = self.controls(action)
        if self.sticky:
            buttons = controls[..., STICKS:]
            self.left.copy_(torch.where(buttons > 0, self.sticky + 1, (self.left - 1).clamp_(min=0)))
            buttons.copy_(self.left > 0)
        return controls

    @abstractmethod
    def controls(self, action: Tensor) -> Tensor:
        """Controls [E, C, 8] of actions [E, C, ...], as a new tensor."""
