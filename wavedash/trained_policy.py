"""A trained policy turns observations into actions; memory and normalisation are handled inside."""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.envs.encoding import encoded, encoders_of
from wavedash.envs.obs import Obs, map_obs
from wavedash.policy.actor_critic import ActorCritic


class TrainedPolicy:
    """Acts for one row or a batch of rows; `reset` clears the memory of all rows or of those of a mask."""

    def __init__(self, policy: ActorCritic, seed: int = 0, source_space: gymnasium.Space[Any] | None = None):
        """`source_space` is the space of the environment's observations, where discrete ones are encoded as one-hot."""
        self.policy = policy.eval()
        self.device = next(policy.parameters()).device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.memory: dict[str, Tensor] | None = None
        self._noise: Tensor | None = None  # the matrices of gSDE, one per row
        self._steps = 0  # since the last reset of all rows
        self._choices = {} if source_space is None else encoders_of(source_space)
        self._source_space = source_space
        self._first_action = getattr(policy.action_space, "start", 0)

    def to(self, device: str | torch.device) -> TrainedPolicy:
        """Returns the same policy on another device, with fresh memory."""
        if torch.device(device) == self.device:
            return self
        return TrainedPolicy(self.policy.to(device), self.generator.initial_seed(), self._source_space)

    @torch.no_grad()
    def act(self, obs: Any, deterministic: bool = True) -> Any:
        """Returns what the environment's `step` takes, as numpy. `obs` is one observation or a batch, numpy or torch."""
        obs = self._as_numbers(obs)
        single = not self._is_batch(obs)
        batch = map_obs(lambda x: torch.as_tensor(np.asarray(x)[None] if single else x, device=self.device), obs)
        action = self.step(map_obs(lambda x: x.float() if x.dtype == torch.float64 else x, batch), deterministic)
        # A discrete action space need not begin at 0. (A VecEnv adds this itself.)
        host = action.cpu().numpy() + self._first_action
        return host[0] if single else host

    @torch.no_grad()
    def step(self, obs: Obs, deterministic: bool | Tensor = True) -> Tensor:
        """Does the same for a batch of tensors on the policy's device; actions count from 0."""
        rows = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        if self.memory is None:
            self.memory = self.policy.initial_memory(rows)
        if deterministic is not True:
            self._noise = self.policy.draw_noise(self._steps, rows, self._noise, self.generator)
            self._steps += 1
        decision = self.policy.act(self.policy.normalize(obs), self.memory, self.generator, deterministic, self._noise)
        self.memory = decision.memory
        return self.policy.head.env_action(decision.action)

    def reset(self, rows: Tensor | None = None) -> None:
        """Clears the memory and the exploration noise of all rows, or of the rows [N] that are true."""
        if rows is None or self.memory is None:
            self.memory, self._noise, self._steps = None, None, 0
        else:
            if self._noise is not None:
                new = self.policy.draw_noise(0, len(rows), None, self.generator)
                assert new is not None
                self._noise = torch.where(rows.view(-1, 1, 1), new, self._noise)
            self.memory = {name: x * ~rows.view(-1, *(1,) * (x.dim() - 1)) for name, x in self.memory.items()}

    def _as_numbers(self, obs: Any) -> Any:
        """Encodes discrete observations, which are integers as the environment gives them; one-hot vectors are floats."""
        parts = {"": obs} if "" in self._choices else obs
        raw = {key: one_hot for key, one_hot in self._choices.items()
               if np.issubdtype(np.asarray(parts[key]).dtype, np.integer)}
        return encoded(raw, obs) if raw else obs

    def _is_batch(self, obs: Any) -> bool:
        space = self.policy.observation_space
        if isinstance(space, gymnasium.spaces.Dict):
            key, part = next(iter(space.spaces.items()))
            return np.ndim(obs[key]) > len(part.shape or ())
        return np.ndim(obs) > len(space.shape or ())
