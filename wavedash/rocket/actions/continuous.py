"""Continuous: each control is a number that the policy chooses."""
from __future__ import annotations

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.rocket.actions.parser import Parser
from wavedash.rocket.state import CONTROLS, STICKS, GameState


class Continuous(Parser):
    """Eight numbers from -1 to 1 in the order throttle, steer, pitch, yaw, roll, jump, boost, handbrake; values beyond are
    clipped. A button is pressed above 0. It allows fine steering, and is harder to learn than the lookup table."""

    def __init__(self, ticks: int = 8, delay: int = 1, sticky: int = 0):
        super().__init__(ticks, delay, sticky)
        self.space = gymnasium.spaces.Box(-1.0, 1.0, (len(CONTROLS),), np.float32)

    def controls(self, action: Tensor) -> Tensor:
        controls = action.clamp(-1.0, 1.0)
        buttons = controls[..., STICKS:]
        torch.gt(buttons, 0, out=buttons)
        return controls

    def nearest(self, controls: Tensor, state: GameState) -> Tensor:
        """A button is the middle of the half that presses or releases it: at the bound a policy would learn to be certain."""
        return torch.cat([controls[..., :STICKS], controls[..., STICKS:] - 0.5], -1)
