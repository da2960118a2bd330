"""MultiDiscreteFF draws several choices at once; by default those of a controller: five among three, three among two."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wavedash.compat.rlgym_ppo.ppo.network import Network

CONTROLLER = (3, 3, 3, 3, 3, 2, 2, 2)


class MultiDiscreteFF(Network):
    """Its output is the concatenated logits of all choices."""

    splits: Sequence[int] = CONTROLLER

    def __init__(self, input_shape: int, layer_sizes: Sequence[int], device: torch.device | str) -> None:
        super().__init__(input_shape, sum(CONTROLLER), layer_sizes, device)

    @torch.no_grad()
    def get_action(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor]:
        """Returns the choices of every row [rows, K], and the log-probability of all together [rows]."""
        each = self._choices(obs)
        actions = [one.probs.argmax(-1) if deterministic else one.sample() for one in each]
        log_prob = torch.stack([one.log_prob(action) for one, action in zip(each, actions, strict=True)])
        return torch.stack(actions, -1).cpu(), log_prob.sum(0).cpu()

    def get_backprop_data(self, obs: Any, acts: Tensor) -> tuple[Tensor, Tensor]:
        """Returns log-probabilities of actions [rows, K], and the mean entropy."""
        each, columns = self._choices(obs), acts.to(self.device).unbind(-1)
        log_prob = torch.stack([one.log_prob(action) for one, action in zip(each, columns, strict=True)])
        return log_prob.sum(0), torch.stack([one.entropy() for one in each]).sum(0).mean()

    def _choices(self, obs: Any) -> list[Any]:
        logits = self(obs).reshape(-1, sum(self.splits))
        parts = torch.split(logits, list(self.splits), -1)
        return [torch.distributions.Categorical(logits=part) for part in parts]
