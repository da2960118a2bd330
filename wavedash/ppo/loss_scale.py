"""Dynamic loss scaling for fp16: small slopes would vanish, so they are raised, and the gradient is lowered again."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.policy.evaluation import Slopes

GROWTH, BACKOFF, PATIENCE = 2.0, 0.5, 500
"""Doubled after so many finite gradients in a row, halved (and that step skipped) after one that overflowed."""


class LossScale:
    """Lives on the device: nothing waits to know it."""

    def __init__(self, device: torch.device):
        self.value = torch.full((), 2.0**13, device=device)
        self.finite_steps = torch.zeros((), dtype=torch.int32, device=device)

    def raise_(self, slopes: Slopes) -> Slopes:
        return Slopes(*(slope * self.value for slope in slopes))

    def adapt(self, norm: Tensor) -> None:
        overflow = (~norm.isfinite()).float().view(1)
        torch._amp_update_scale_(self.value, self.finite_steps, overflow, GROWTH, BACKOFF, PATIENCE)

    def state_dict(self) -> dict[str, Tensor]:
        return {"loss_scale": self.value, "loss_scale_steps": self.finite_steps}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        if "loss_scale" in state:
            self.value.copy_(state["loss_scale"])
            self.finite_steps.copy_(state["loss_scale_steps"])
