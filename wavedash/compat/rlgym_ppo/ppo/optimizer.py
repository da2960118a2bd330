"""LiveAdam shows one network's part of our optimiser as a `torch.optim.Adam`.

Its moments are views of ours, so what is loaded into it takes effect. Its learning rate is a plain number in `param_groups`, as
scripts and torch's schedulers set it; the learner reads it before every iteration.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.ppo.optimizer import FlatAdamW


class LiveAdam(torch.optim.Adam):
    """One network's part of our optimiser. `group` is its parameter group there."""

    def __init__(self, network: nn.Module, optimizer: FlatAdamW, group: str) -> None:
        super().__init__(network.parameters(), lr=optimizer.base_rates[group], betas=optimizer.betas, eps=optimizer.eps)
        self._ours, self._group = optimizer, group
        self._link()

    def _link(self) -> None:
        for p in self.param_groups[0]["params"]:
            self.state[p] = {"step": self._ours.steps[self._group], **self._moments(p)}

    def _moments(self, p: Tensor) -> dict[str, Tensor]:
        place = slice(p.storage_offset(), p.storage_offset() + p.numel())
        return {name: getattr(self._ours, name)[place].view_as(p) for name in ("exp_avg", "exp_avg_sq")}

    @property
    def updates(self) -> int:
        return int(self._ours.steps[self._group])

    @property
    def rate(self) -> float:
        return float(self.param_groups[0]["lr"])

    def set_rate(self, rate: float) -> None:
        for group in self.param_groups:
            group["lr"] = rate

    def load_state_dict(self, state_dict: Any) -> None:
        """Takes the state of an Adam for a network of the same layers."""
        super().load_state_dict(state_dict)
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                loaded = self.state.get(p) or {}
                for name, ours in self._moments(p).items():
                    ours.copy_(loaded[name]) if name in loaded else ours.zero_()
            steps = [self.state[p]["step"] for p in self.param_groups[0]["params"] if "step" in (self.state.get(p) or {})]
            self._ours.steps[self._group].fill_(float(steps[0]) if steps else 0.0)
        self._link()

    def step(self, closure: Any = None) -> Any:
        """Raises UserError: the learner steps."""
        raise UserError("the optimiser is stepped by learner.learn(); change its learning rate, not its weights")
