"""HostVecEnv: what every VecEnv over numpy worlds has in common: tensors over the arrays, seeds, saved state."""
from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.action_log import ActionLog
from wavedash.envs.arrays import Arrays
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.vec_env import Obs, Step, VecEnv

logger = logging.getLogger(__name__)


class HostVecEnv(VecEnv):
    """Worlds that write into `arrays`, in groups that step together; subclasses say who steps them.

    The state of a world is its seed, the index of its episode and the actions taken in it, all known here. So nothing
    has to be asked of a world or of a worker to save it, and a world need not know how to save itself.
    """

    def __init__(self, spec: RowSpec, arrays: Arrays, device: torch.device | str, groups: Sequence[slice]) -> None:
        self.num_rows = len(arrays.action)
        self.observation_space = spec.observation_space
        self.action_space = spec.action_space
        self.device = torch.device(device)
        self._arrays = arrays
        self._rows = RowTensors(spec, arrays, self.device)
        self._worlds = groups
        self._groups = tuple(slice(g.start * spec.rows_per_world, g.stop * spec.rows_per_world) for g in groups)
        self._group_rows = [RowTensors(spec, arrays.part(worlds), self.device) for worlds in groups]
        self._logs = [ActionLog(arrays.part(worlds)) for worlds in groups]
        self._seeded = False
        self._dropped = 0

    @abstractmethod
    def _begin(self) -> None:
        """Begin episode `arrays.episode` of every world."""

    @abstractmethod
    def _replay(self, actions: list[Array]) -> None:
        """Begin the episodes and take these actions in them."""

    @property
    def groups(self) -> tuple[slice, ...]:
        return self._groups

    @property
    def health(self) -> dict[str, int]:
        return {"dropped_episodes": self._dropped}

    def reset(self, seed: int | None = None) -> Obs:
        if seed is None and self._seeded:
            self._arrays.episode[:] += 1
        else:
            self._arrays.seed[0] = np.random.SeedSequence(seed).entropy % 2**63  # type: ignore[operator]
            self._arrays.episode[:] = 0
            self._seeded = True
        self._begin()
        return self._rows.obs()

    def save_state(self) -> dict[str, Tensor]:
        """Not while a step is under way."""
        return {
            "seed": torch.from_numpy(self._arrays.seed.copy()),
            "episode": torch.from_numpy(self._arrays.episode.copy()),  # [E]
            "length": torch.tensor([length for log in self._logs for length in log.lengths()]),  # [E]; -1: too long to replay
            "action": torch.from_numpy(np.concatenate([taken for log in self._logs for taken in log.read()])),
        }

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        arrays, length = self._arrays, state["length"].numpy()
        if len(length) != len(arrays.episode):
            raise EnvError(f"the saved state has {len(length)} environments, this run has {len(arrays.episode)}: "
                           "set env.count to what it was to resume exactly, or go on without the environments' saved state")
        if state["action"].shape[1:] != self._logs[0].action_shape:
            raise EnvError(f"the saved state has actions of shape {tuple(state['action'].shape[1:])}, this environment takes "
                           f"{self._logs[0].action_shape}: it is the state of another environment")
        episode = state["episode"].numpy() + (length < 0)
        arrays.seed[:], arrays.episode[:] = state["seed"].numpy(), episode
        self._seeded = True
        actions = np.split(state["action"].numpy(), np.cumsum(np.maximum(length, 0))[:-1])
        for worlds, log in zip(self._worlds, self._logs, strict=True):
            log.write(actions[worlds])
        self._replay(actions)
        dropped = int((length < 0).sum() + (arrays.episode != episode).sum())
        if dropped:
            self._dropped += dropped
            logger.warning("%d of %d episodes could not be replayed and were dropped: too long, or the environment is not "
                           "deterministic under its seed", dropped, len(length))
        return self._rows.obs()


class RowTensors:
    """The tensors of a range of rows: on the CPU views of the arrays, made once; elsewhere copies of them."""

    def __init__(self, spec: RowSpec, arrays: Arrays, device: torch.device) -> None:
        self._plain = spec.is_plain
        self._device = device
        self._copied = device.type != "cpu"
        self._reports_success = arrays.reports_success
        self._success_reported = False
        self._ready: dict[bool, Step] = {}  # by whether an episode ended: the views never change
        self.action = torch.from_numpy(arrays.action)
        self._obs = self._view(arrays.obs)
        self._final_obs = self._view(arrays.final_obs)
        self._reward = torch.from_numpy(arrays.reward)
        self._terminated = torch.from_numpy(arrays.terminated)
        self._truncated = torch.from_numpy(arrays.truncated)
        self._active = torch.from_numpy(arrays.active)
        self._success = torch.from_numpy(arrays.success)

    def obs(self) -> Obs:
        return self._on_device(self._obs)

    def step(self, ended: bool) -> Step:
        if self._reports_success[0] and not self._success_reported:
            self._success_reported = True
            self._ready.clear()
        if self._copied or ended not in self._ready:
            self._ready[ended] = self._build(ended)
        return self._ready[ended]

    def _build(self, ended: bool) -> Step:
        obs = self.obs()
        return Step(
            obs=obs,
            reward=self._reward.to(self._device),
            terminated=self._terminated.to(self._device),
            truncated=self._truncated.to(self._device),
            final_obs=self._on_device(self._final_obs) if ended else obs,
            active=self._active.to(self._device),
            metrics={"episode/success": self._success.to(self._device)} if self._success_reported else {},
        )

    def _view(self, arrays: dict[str, Array]) -> Obs:
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        return tensors[""] if self._plain else tensors

    def _on_device(self, obs: Obs) -> Obs:
        return {key: part.to(self._device) for key, part in obs.items()} if isinstance(obs, dict) else obs.to(self._device)
