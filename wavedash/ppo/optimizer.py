"""AdamW works on one flat buffer here.

All parameters become views of one tensor, and so do their gradients. A gradient norm, a clip, an optimiser step and a
finiteness check are then one operation each instead of one per layer, which is where small networks spend their time, and
the all-reduce of gradients between processes is one call.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ALIGNMENT = 64
"""Parameters begin at multiples of so many numbers, because compiled kernels use aligned reads. The padding stays zero."""

REGROUPED = ({"step.policy"}, {"step.actor", "step.critic"})
"""Parameter groups, by their step counters, that hold the same parameters in the same order"""


def _padded_size(p: nn.Parameter) -> int:
    return -(-p.numel() // ALIGNMENT) * ALIGNMENT


class FlatAdamW:
    """AdamW (Loshchilov & Hutter 2019) with gradient clipping. Gradients that are not finite are never applied."""

    def __init__(
        self,
        groups: Mapping[str, tuple[Iterable[nn.Parameter], float]],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-5,
        weight_decay: float = 0.0,
        max_grad_norm: float | None = None,
        extra: int = 0,
    ):
        """`groups` maps names to (parameters, learning rate). Frozen parameters are left out. `extra` is how many numbers are
        stored behind the gradient, so that one all-reduce takes both."""
        self.betas, self.eps, self.weight_decay, self.max_grad_norm = betas, eps, weight_decay, max_grad_norm
        self.scale: Tensor | None = None
        """The factor by which gradients are too large (fp16 loss scaling)"""
        self.frozen: frozenset[str] = frozenset()
        """Groups that a step leaves as they are: weights, moments and step counters"""
        members = {name: [p for p in parameters if p.requires_grad] for name, (parameters, _) in groups.items()}
        every = [p for group in members.values() for p in group]
        padded = [F.pad(p.detach().reshape(-1), (0, _padded_size(p) - p.numel())) for p in every]
        self.parameters = torch.cat(padded)
        self.reduce_buffer = F.pad(torch.zeros_like(self.parameters), (0, extra))
        self.gradient, self.extra = self.reduce_buffer.tensor_split([len(self.parameters)])
        self.exp_avg = torch.zeros_like(self.parameters)
        self.exp_avg_sq = torch.zeros_like(self.parameters)
        offset = 0
        for p in every:
            place = slice(offset, offset + p.numel())
            p.data, p.grad = self.parameters[place].view_as(p), self.gradient[place].view_as(p)
            offset += _padded_size(p)

        self.base_rates = {name: rate for name, (_, rate) in groups.items()}
        self.rates: dict[str, Tensor] = {}
        self.steps: dict[str, Tensor] = {}
        self.parts: dict[str, Any] = {}
        sizes = [sum(map(_padded_size, group)) for group in members.values()]
        flat = (self.parameters, self.gradient, self.exp_avg, self.exp_avg_sq)
        for name, *part in zip(members, *(buffer.split(sizes) for buffer in flat), strict=True):  # type: ignore[no-untyped-call]
            self.rates[name] = torch.tensor(self.base_rates[name], device=self.parameters.device)
            self.steps[name] = torch.zeros((), device=self.parameters.device)
            self.parts[name] = [[tensor] for tensor in part]

    def set_rate_multiplier(self, multiplier: float) -> None:
        for name, rate in self.rates.items():
            rate.fill_(self.base_rates[name] * multiplier)

    def zero_grad(self) -> None:
        self.reduce_buffer.zero_()

    @torch.no_grad()
    def step(self, skip: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Applies the accumulated gradient, unless it is not finite, or zero (no sample was valid), or `skip` is true: then
        nothing changes, moments included.

        Returns the norm of the gradient before clipping and whether it was applied, both scalars on the device.
        """
        for name in self.frozen:
            self._gradient_of(name).zero_()  # it counts neither for the norm nor as not finite
        norm = torch.linalg.vector_norm(self.gradient)
        if self.scale is not None:
            norm = norm / self.scale
        applied = (norm > 0) & (norm < torch.inf)  # false for NaN too
        if skip is not None:
            applied &= ~skip
        go = applied.float()
        blocked = 1.0 - go
        # The fused kernel divides gradients by `grad_scale`, so clipping costs no pass of its own.
        shrink = None if self.max_grad_norm is None else (norm / self.max_grad_norm).clamp_(min=1.0)
        if self.scale is not None:
            shrink = self.scale if shrink is None else shrink * self.scale
        for name, part in self.parts.items():
            if name in self.frozen:
                continue
            torch._fused_adamw_(  # type: ignore[call-overload]
                *part, [], [self.steps[name].add_(go)], lr=self.rates[name], beta1=self.betas[0], beta2=self.betas[1],
                weight_decay=self.weight_decay, eps=self.eps, amsgrad=False, maximize=False,
                grad_scale=shrink, found_inf=blocked,
            )
        return norm, applied

    def _gradient_of(self, name: str) -> Tensor:
        gradient: Tensor = self.parts[name][1][0]
        return gradient

    def state_dict(self) -> dict[str, Tensor]:
        steps = {f"step.{name}": step for name, step in self.steps.items()}
        return {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq, **steps}

    def regrouped(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Converts the state of the same parameters in other groups to these groups: on resume the critic may get a rate of its
        own, or lose it. Moments lie in the same order. All groups have made the same number of steps, unless one was frozen for
        a while: then the smaller number counts, with which the next steps are too small rather than too large."""
        saved = {name: x for name, x in state.items() if name.startswith("step.")}
        own = [f"step.{name}" for name in self.steps]
        if set(saved) == set(own) or set(saved) not in REGROUPED:
            return state
        moments = {name: x for name, x in state.items() if name not in saved}
        return {**moments, **dict.fromkeys(own, torch.stack([*saved.values()]).amin(0))}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.exp_avg.copy_(state["exp_avg"])
        self.exp_avg_sq.copy_(state["exp_avg_sq"])
        for name, step in self.steps.items():
            step.copy_(state[f"step.{name}"])
