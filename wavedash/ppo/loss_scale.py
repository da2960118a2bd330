"""Dynamic loss scaling for fp16: small gradients would underflow, so the loss is multiplied, and the optimiser divides."""
from __future__ import annotations

import torch
from torch import Tensor

GROWTH, BACKOFF, PATIENCE = 2.0, 0.5, 500
"""The scale is doubled after PATIENCE finite gradients in a row, and halved (and that step skipped) after one that
overflowed."""


class LossScale:
    """A factor that lives on the device, so that adapting it needs no host sync."""

    def __init__(self, device: torch.device):
        self.value = torch.full((), 2.0**13, device=device)
        self.finite_steps = torch.zeros((), dtype=torch.int32, device=device)

    def adapt(self, norm: Tensor) -> None:
        overflow = (~norm.isfinite()).float().view(1)
        torch._amp_update_scale_(self.value, self.finite_steps, overflow, GROWTH, BACKOFF, PATIENCE)

    def state_dict(self) -> dict[str, Tensor]:
        return {"loss_scale": self.value, "loss_scale_steps": self.finite_steps}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        if "loss_scale" in state:
            self.value.copy_(state["loss_scale"])
            self.finite_steps.copy_(state["loss_scale_steps"])
