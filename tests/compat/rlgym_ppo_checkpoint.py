"""A checkpoint as rlgym-ppo saves it, made without rlgym-ppo: its networks are a Sequential of Linear and ReLU."""
from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, sizes: list[int], last: list[nn.Module]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.model = nn.Sequential(*layers[:-1], *last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)


class RLGymPPOCheckpoint:
    """A policy and a critic after a few steps of Adam."""

    def __init__(self, outputs: int, last: nn.Module | None, inputs: int = 3, hidden: tuple[int, ...] = (16, 8),
                 critic: tuple[int, ...] = (12,)) -> None:
        torch.manual_seed(0)
        self.policy = Network([inputs, *hidden, outputs], [] if last is None else [last])
        self.value = Network([inputs, *critic, 1], [])
        self.optimizers = {name: torch.optim.Adam(net.parameters(), lr=3e-4)
                           for name, net in (("POLICY", self.policy), ("VALUE_NET", self.value))}
        for _ in range(3):
            self.adam_step(torch.randn(7, inputs))
        self.book: dict[str, Any] = {
            "cumulative_timesteps": 123_456, "cumulative_model_updates": 3, "policy_average_reward": 1.5, "epoch": 9,
            "ts_since_last_save": 0, "reward_running_stats": {"mean": [2.0], "var": [400.0], "shape": [1], "count": 101},
            "obs_running_stats": {"mean": [0.5, 9.0, -9.0], "var": [36.0, 1.0, 1.0], "shape": [3], "count": 10},
        }

    def adam_step(self, obs: torch.Tensor) -> None:
        """The gradient is one that both libraries can compute."""
        for net, optimizer in zip((self.policy, self.value), self.optimizers.values(), strict=True):
            optimizer.zero_grad()
            for p in net.parameters():
                p.grad = torch.sin(p.detach() * 10 + obs.mean())
            optimizer.step()

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.policy.state_dict(), folder / "PPO_POLICY.pt")
        torch.save(self.value.state_dict(), folder / "PPO_VALUE_NET.pt")
        for name, optimizer in self.optimizers.items():
            torch.save(optimizer.state_dict(), folder / f"PPO_{name}_OPTIMIZER.pt")
        (folder / "BOOK_KEEPING_VARS.json").write_text(json.dumps(self.book))
        return folder
