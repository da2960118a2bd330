"""ContinuousPolicy draws every number of an action from a normal distribution."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from wavedash.compat.rlgym_ppo.ppo.network import Network
from wavedash.compat.rlgym_ppo.util.torch_functions import MapContinuousToAction


class ContinuousPolicy(Network):
    """Its output is the means followed by the deviations: `output_shape` is twice the size of an action."""

    last = staticmethod(nn.Tanh)

    def __init__(self, input_shape: int, output_shape: int, layer_sizes: Sequence[int], device: torch.device | str,
                 var_min: float = 0.1, var_max: float = 1.0) -> None:
        super().__init__(input_shape, output_shape, layer_sizes, device)
        self.affine_map = MapContinuousToAction(var_min, var_max)

    def get_output(self, obs: Any) -> tuple[Tensor, Tensor]:
        """Returns means and deviations."""
        mean, std = self.affine_map(self(obs))
        return mean, std

    @torch.no_grad()
    def get_action(self, obs: Any, summed_probs: bool = True, deterministic: bool = False) -> tuple[Tensor, Tensor]:
        """Returns actions within -1 and 1, and the log-density of the samples before clipping (in rlgym-ppo, after it)."""
        mean, std = self.get_output(obs)
        normal: Any = Normal(mean, std)
        drawn = mean if deterministic else normal.sample()
        log_prob = normal.log_prob(drawn)
        return drawn.clamp(-1.0, 1.0).cpu(), (log_prob.sum(-1) if summed_probs else log_prob).cpu()

    def get_backprop_data(self, obs: Any, acts: Tensor, summed_probs: bool = True) -> tuple[Tensor, Tensor]:
        """Returns log-densities of actions, and the mean entropy of one number."""
        normal: Any = Normal(*self.get_output(obs))
        log_prob = normal.log_prob(acts.to(self.device))
        return log_prob.sum(-1) if summed_probs else log_prob, normal.entropy().mean()
