"""ValueEstimator estimates the value of an observation."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from wavedash.compat.rlgym_ppo.ppo.network import Network


class ValueEstimator(Network):
    """Its output is [rows, 1]."""

    def __init__(self, input_shape: int, layer_sizes: Sequence[int], device: torch.device | str) -> None:
        super().__init__(input_shape, 1, layer_sizes, device)
