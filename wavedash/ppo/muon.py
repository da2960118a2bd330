"""Muon steps the matrices of hidden layers along the nearest orthogonal matrix to their mean gradient (Jordan et al. 2024).

All directions of a layer then move equally far, while Adam moves most along the few in which gradients are large. Everything
else (biases, heads, convolutions) is stepped by AdamW. Steps are scaled to the size that steps of AdamW have (Liu et al. 2025,
arXiv 2502.16982), so that one learning rate serves both, and both read the same mean of gradients: a run may change from one
optimiser to the other and back.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.optimizer import FlatAdamW

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""x -> a x + b x^3 + c x^5 brings all singular values from above 0.001 to between 0.7 and 1.2 in five rounds."""
ROUNDS = 5
STEP_SIZE = 0.2
"""The root mean square of a step of AdamW at a learning rate of 1, where gradients are mostly noise"""


class Matrices(NamedTuple):
    """Matrices of one shape in one parameter group, which are computed as one batch."""

    group: str
    weights: list[Tensor]
    means: list[Tensor]
    """Adam's running means of their gradients"""


class FlatMuon(FlatAdamW):
    """AdamW in which some parameters are stepped by Muon."""

    def __init__(self, groups: Mapping[str, tuple[Iterable[nn.Parameter], float]], *args: Any,
                 matrices: Iterable[nn.Parameter], **kwargs: Any):
        """`matrices` are those parameters; the other arguments are those of `FlatAdamW`."""
        members = {name: (list(parameters), rate) for name, (parameters, rate) in groups.items()}
        super().__init__(members, *args, **kwargs)
        chosen = {id(p) for p in matrices}
        batches: dict[tuple[str, torch.Size], Matrices] = {}
        for name, (parameters, _) in members.items():
            for p in parameters:
                if id(p) in chosen and p.requires_grad:
                    begin = p.data.storage_offset() - self.parameters.storage_offset()
                    batch = batches.setdefault((name, p.shape), Matrices(name, [], []))
                    batch.weights.append(p.data)
                    batch.means.append(self.exp_avg[begin : begin + p.numel()].view_as(p))
        self.batches = list(batches.values())

    @torch.no_grad()
    def step(self, skip: Tensor | None = None) -> tuple[Tensor, Tensor]:
        batches = [batch for batch in self.batches if batch.group not in self.frozen]
        before = [torch.stack(batch.weights) for batch in batches]
        norm, applied = super().step(skip)
        for batch, weights in zip(batches, before, strict=True):
            # A step that is not applied leaves the means as they were, so that everything here is finite.
            rate = self.rates[batch.group] * applied
            size = STEP_SIZE * max(weights.shape[-2:]) ** 0.5
            weights.mul_(1.0 - rate * self.weight_decay).sub_(orthogonalized(torch.stack(batch.means)) * (rate * size))
            for place, new in zip(batch.weights, weights.unbind(0), strict=True):
                place.copy_(new)  # instead of what AdamW has made of it
        return norm, applied


def orthogonalized(matrices: Tensor) -> Tensor:
    """Returns roughly U V^T of each matrix U S V^T [n, rows, columns], by Newton-Schulz iterations; 0 of a matrix of zeros."""
    a, b, c = COEFFICIENTS
    wide = matrices if matrices.shape[-2] <= matrices.shape[-1] else matrices.mT  # the smaller product of the two
    x = wide / (torch.linalg.matrix_norm(wide, keepdim=True) + 1e-7)
    if x.is_cuda:
        x = x.bfloat16()  # five rounds correct its roundings
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.to(matrices.dtype)
    return x if wide is matrices else x.mT


def hidden_matrices(policy: ActorCritic) -> list[nn.Parameter]:
    """Returns the matrices between the observation and the heads: hidden layers, memory, encoders that are no convolutions."""
    return [p for trunk in policy.trunks.values() for p in trunk.parameters() if p.dim() == 2]
