"""GymnasiumVectorEnv: an existing `gymnasium.vector.VectorEnv` as a VecEnv, with each autoreset mode mapped to the contract."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from wavedash.envs.arrays import Arrays
from wavedash.envs.encoding import encoded, encoded_space, encoders_of
from wavedash.envs.errors import EnvError
from wavedash.envs.finite import all_finite, first_not_finite
from wavedash.envs.host import Array
from wavedash.envs.row_spec import RowSpec, checked_action_space, stored_observation_space
from wavedash.envs.staging import Staging
from wavedash.envs.vec_env import Obs, Step, VecEnv

Parts = dict[str, Array]


class GymnasiumVectorEnv(VecEnv):
    """Wraps a `VectorEnv`. It cannot save its state: after a resume its episodes start afresh."""

    def __init__(self, env: VectorEnv[Any, Any, Any], device: torch.device | str = "cpu") -> None:
        try:
            self._mode = AutoresetMode(env.metadata["autoreset_mode"])
        except (KeyError, ValueError):
            raise EnvError(f"{env} does not say when it resets an ended episode: set env.metadata['autoreset_mode'] to a "
                           "gymnasium.vector.AutoresetMode") from None
        self._encoders = encoders_of(env.single_observation_space)
        self._spec = RowSpec(stored_observation_space(encoded_space(env.single_observation_space)),
                             checked_action_space(env.single_action_space))
        self.source_space = env.single_observation_space if self._encoders else None
        self._env = env
        self.num_rows = env.num_envs
        self.observation_space = self._spec.observation_space
        self.action_space = self._spec.action_space
        self.device = torch.device(device)
        self._staging = None if self.device.type == "cpu" else self._make_staging()
        self._to_reset = np.zeros(env.num_envs, np.bool_)  # next-step mode: rows whose next step is a reset

    def reset(self, seed: int | None = None) -> Obs:
        self._to_reset[:] = False
        obs, _ = self._env.reset(seed=seed)
        return self._as_obs([torch.as_tensor(part, device=self.device) for part in self._parts(obs).values()])

    def step(self, action: Tensor) -> Step:
        host_action = action.numpy() if self._staging is None else self._staging.receive(action)
        env_action = host_action.astype(self.action_space.dtype, copy=False) + self._spec.action_start
        raw_obs, raw_reward, terminated, truncated, info = self._env.step(env_action)
        obs, reward = self._parts(raw_obs), np.asarray(raw_reward, np.float32)
        if not all_finite(reward):
            row = first_not_finite(reward)[0]
            done = host_action[row].tolist()
            raise EnvError(f"the reward of environment {row} is {reward[row]} after action {done}: it must be finite. Look "
                           "for a division by zero or a simulation that blew up")
        ended = np.logical_or(terminated, truncated)
        active = ~self._to_reset
        final_obs = obs
        if ended.any():
            if self._mode is AutoresetMode.SAME_STEP:
                final_obs = self._with_final_rows(obs, info["final_obs"], ended)
            elif self._mode is AutoresetMode.DISABLED:
                # The reset writes into the arrays of an environment that does not copy its observations.
                final_obs = {key: array.copy() for key, array in obs.items()}
                obs = self._parts(self._env.reset(options={"reset_mask": ended})[0])
        if self._mode is AutoresetMode.NEXT_STEP:
            self._to_reset = ended
        fields = [*obs.values(), reward, terminated, truncated, active, *(final_obs.values() if ended.any() else ())]
        tensors = [torch.as_tensor(field) for field in fields] if self._staging is None else self._staging.send(fields)
        return self._as_step(tensors)

    def close(self) -> None:
        self._env.close()

    def _make_staging(self) -> Staging:
        like = Arrays.allocate(self._spec, self.num_rows)
        fields = [*like.obs.values(), like.reward, like.terminated, like.truncated, like.active, *like.final_obs.values()]
        return Staging(self.device, like.action, fields)

    def _parts(self, obs: Any) -> Parts:
        """The batched observation by key, in the stored types, checked."""
        obs = encoded(self._encoders, obs) if self._encoders else obs
        raw = {"": obs} if self._spec.is_plain else obs
        parts = {key: np.asarray(raw[key], box.dtype) for key, box in self._spec.observations.items()}
        for key, array in parts.items():
            if np.issubdtype(array.dtype, np.floating) and not all_finite(array):
                row, *index = first_not_finite(array)
                raise EnvError(f"observation {key!r}{index} of environment {row} is {array[(row, *index)]}: it must be finite")
        return parts

    def _with_final_rows(self, obs: Parts, final: Any, ended: Array) -> Parts:
        """`obs` with the last observation of each ended episode, which same-step mode puts into the infos, row by row."""
        result = {key: array.copy() for key, array in obs.items()}
        for row in np.flatnonzero(ended):
            for key, array in result.items():
                last = encoded(self._encoders, final[row]) if self._encoders else final[row]
                array[row] = last if self._spec.is_plain else last[key]
        return result

    def _as_step(self, tensors: list[Tensor]) -> Step:
        """The Step from all fields, which include the last observation only if an episode ended."""
        count = len(self._spec.observations)
        obs = self._as_obs(tensors[:count])
        reward, terminated, truncated, active, *final_obs = tensors[count:]
        return Step(obs, reward, terminated, truncated, self._as_obs(final_obs) if final_obs else obs, active, {})

    def _as_obs(self, tensors: list[Tensor]) -> Obs:
        return tensors[0] if self._spec.is_plain else dict(zip(self._spec.observations, tensors, strict=True))
