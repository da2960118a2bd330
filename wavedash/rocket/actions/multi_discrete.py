"""MultiDiscrete: the policy chooses every control by itself."""
from __future__ import annotations

import gymnasium
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.actions import effects
from wavedash.rocket.actions.parser import Parser
from wavedash.rocket.state import BOOST, CONTROLS, JUMP, STEER, STICKS, YAW, GameState


class MultiDiscrete(Parser):
    """Every control by itself: the sticks have `bins` positions from -1 to 1 (3: left, middle, right), the buttons are pressed
    or not. It gives more freedom than the lookup table, and is slower to learn.

    shared_yaw: steer moves yaw too, as for players with a gamepad; False: yaw is chosen by itself (RLGym's eight dimensions).
    masked: boost is not offered with an empty tank, jump not without a jump or flip left, and nothing to a demolished car.
    """

    def __init__(self, ticks: int = 8, delay: int = 1, masked: bool = True, sticky: int = 0, bins: int = 3,
                 shared_yaw: bool = True):
        super().__init__(ticks, delay, sticky)
        if bins < 3 or bins % 2 == 0:
            raise UserError(f"MultiDiscrete needs bins of 3, 5, 7, ... so that one of them is the middle, got {bins}")
        self.masked, self.bins = masked, bins
        self.chosen = [i for i in range(len(CONTROLS)) if not (shared_yaw and i == YAW)]
        self.sizes = [bins if i < STICKS else 2 for i in self.chosen]
        self.space = gymnasium.spaces.MultiDiscrete(self.sizes)

    def bind(self, state: GameState) -> None:
        super().bind(state)
        device = state.memory.device
        source = [self.chosen.index(i if i in self.chosen else STEER) for i in range(len(CONTROLS))]
        self.source = torch.tensor(source, device=device)
        sticks = torch.arange(len(CONTROLS), device=device) < STICKS
        self.scale = torch.where(sticks, 2 / (self.bins - 1), 1.0)
        self.offset = torch.where(sticks, -1.0, 0.0)
        choices = [(i, choice - (self.bins // 2 if i < STICKS else 0)) for i, n in zip(self.chosen, self.sizes, strict=True)
                   for choice in range(n)]
        self.active = torch.tensor([choice != 0 for _, choice in choices], device=device)
        self.jumps, self.boosts = (torch.tensor([c == (i, 1) for c in choices], device=device) for i in (JUMP, BOOST))

    def controls(self, action: Tensor) -> Tensor:
        return torch.addcmul(self.offset, action.index_select(-1, self.source), self.scale)

    def nearest(self, controls: Tensor, state: GameState) -> Tensor:
        """A choice that is not offered becomes that of no control, which always is."""
        choice = ((controls - self.offset) / self.scale).round().long()[..., self.chosen]
        offered = self.mask(state)
        if offered is None:
            return choice
        first = choice.new_tensor([sum(self.sizes[:k]) for k in range(len(self.sizes))])
        nothing = choice.new_tensor([self.bins // 2 if i < STICKS else 0 for i in self.chosen])
        return torch.where(offered.gather(-1, choice + first), choice, nothing)

    def mask(self, state: GameState) -> Tensor | None:
        """[E, C, n]: the choices of all controls, one after the other."""
        if not self.masked:
            return None
        cars = state.cars
        gone = effects.gone(cars, self.seconds).unsqueeze(-1) & self.active
        no_jump = effects.no_jump(cars, held=self.delay < self.ticks).unsqueeze(-1) & self.jumps
        no_boost = effects.no_boost(cars).unsqueeze(-1) & self.boosts
        return ~(gone | no_jump | no_boost)
