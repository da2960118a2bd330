"""Generalised advantage estimation (Schulman et al. 2016) is written here for every kind of boundary.

    terminated       the future is worth nothing
    truncated        the future is worth V(final observation); the next row belongs to another episode
    rollout edge     the future is worth V(next observation)
    inactive row     not a transition: it gets no advantage and passes none on
"""
from __future__ import annotations

import torch
from torch import Tensor


def next_values(value: Tensor, last_value: Tensor, final_value: Tensor, terminated: Tensor, truncated: Tensor) -> Tensor:
    """Returns the value of what follows each step, [T, N].

    `value` [T, N] is that of the observations acted on, `last_value` [N] that of the observation after the rollout,
    `final_value` [T, N] that of the last observation of an episode; it is read only where truncated.
    """
    following = torch.cat([value[1:], last_value.unsqueeze(0)])
    following = torch.where(truncated, final_value, following)
    return following.masked_fill(terminated, 0.0)


def gae(
    reward: Tensor, value: Tensor, next_value: Tensor, done: Tensor, active: Tensor, gamma: float | Tensor, gae_lambda: float,
    chain: Tensor | None = None,
) -> Tensor:
    """Returns advantages [T, N]; all tensors are [T, N]. `done`: the step ended its episode (terminated or truncated).
    `gamma` is a number, or a scalar on the device; `chain` is gamma * lambda as such a scalar, where there is one."""
    advantage = torch.empty_like(reward)
    # TD error: r_t + gamma * V(s_{t+1}) - V(s_t). Inactive steps are filled with 0, not multiplied by 0: V may be NaN there.
    delta = (reward + gamma * next_value - value).masked_fill_(~active, 0.0)
    # The chain A_t = delta_t + gamma * lambda * A_{t+1} holds within an episode and between transitions only.
    linked = torch.zeros_like(reward)
    linked[:-1] = (gamma * gae_lambda if chain is None else chain) * (~done[:-1] & active[:-1] & active[1:])
    following = torch.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        following = torch.addcmul(delta[t], linked[t], following, out=advantage[t])
    return advantage
