"""DiscreteFF draws one choice among n."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from wavedash.compat.rlgym_ppo.ppo.network import Network

LEAST_PROBABILITY = 1e-11


class DiscreteFF(Network):
    """Its output is the probability of every choice."""

    last = staticmethod(lambda: nn.Softmax(-1))

    def __init__(self, input_shape: int, n_actions: int, layer_sizes: Sequence[int], device: torch.device | str) -> None:
        super().__init__(input_shape, n_actions, layer_sizes, device)

    @property
    def n_actions(self) -> int:
        return self.layers[-1].out_features

    @torch.no_grad()
    def get_action(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor]:
        """Returns a choice for every row [rows], the most likely one if `deterministic`, and its log-probability [rows]."""
        probabilities = self._probabilities(obs)
        action = probabilities.argmax(-1, True) if deterministic else probabilities.multinomial(1)
        return action.flatten().cpu(), probabilities.log().gather(-1, action).flatten().cpu()

    def get_backprop_data(self, obs: Any, acts: Tensor) -> tuple[Tensor, Tensor]:
        """Returns log-probabilities of actions [rows, 1], and the mean entropy."""
        probabilities = self._probabilities(obs)
        logs = probabilities.log()
        chosen = logs.gather(-1, acts.long().reshape(len(logs), 1).to(self.device))
        return chosen, -(logs * probabilities).sum(-1).mean()

    def _probabilities(self, obs: Any) -> Tensor:
        return self(obs).reshape(-1, self.n_actions).clamp(LEAST_PROBABILITY, 1.0)
