"""Arrays: what a batch of environments reads (actions) and writes (everything else), in this process or in shared memory."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wavedash.envs.host import Array
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.workers.signs_of_life import SignsOfLife

ALIGNMENT = 64  # bytes, a cache line: fields written by different processes do not share one

Allocate = Callable[[tuple[int, ...], DTypeLike], Array]


@dataclass(frozen=True)
class Arrays:
    """One array per field over E environments or N = E * rows_per_env rows."""

    seed: Array  # [1] int64: of the run
    reports_success: Array  # [1] bool: some environment has said at the end of an episode whether it was a success
    episode: Array  # [E] int64: index of the current episode
    length: Array  # [E] int64: steps taken in it
    heartbeat: Array  # [E] int64: grows with every sign of life, before each call of an environment
    doing: Array  # [E] int64: of the first environment of a process: what the process is doing, see `moment`
    action: Array  # [N, ...]
    obs: dict[str, Array]  # [N, ...] each; a plain Box has the single key ""
    final_obs: dict[str, Array]  # like obs; filled only in a step in which an episode ended
    reward: Array  # [N] float32
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool
    active: Array  # [N] bool
    success: Array  # [N] float32, where an episode ended

    @property
    def signs(self) -> SignsOfLife:
        """The signs of life of the process that steps these environments."""
        return SignsOfLife(self.heartbeat, self.doing)

    @classmethod
    def allocate(cls, spec: RowSpec, envs: int, new: Allocate = np.zeros) -> Arrays:
        rows = envs * spec.rows_per_env
        action_shape, action_dtype = spec.action_space.shape, spec.action_space.dtype
        assert action_shape is not None and action_dtype is not None
        return cls(
            seed=new((1,), np.int64),
            reports_success=new((1,), np.bool_),
            episode=new((envs,), np.int64),
            length=new((envs,), np.int64),
            heartbeat=new((envs,), np.int64),
            doing=new((envs,), np.int64),
            action=new((rows, *action_shape), action_dtype),
            obs={key: new((rows, *box.shape), box.dtype) for key, box in spec.observations.items()},
            final_obs={key: new((rows, *box.shape), box.dtype) for key, box in spec.observations.items()},
            reward=new((rows,), np.float32),
            terminated=new((rows,), np.bool_),
            truncated=new((rows,), np.bool_),
            active=new((rows,), np.bool_),
            success=new((rows,), np.float32),
        )

    @classmethod
    def over(cls, buffer: Any, spec: RowSpec, envs: int) -> Arrays:
        """The same arrays over a buffer of `nbytes(spec, envs)` bytes; every process that maps it sees the same."""
        offset = 0

        def new(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
            nonlocal offset
            array: Array = np.ndarray(shape, dtype, buffer, offset)
            offset += _aligned(array.nbytes)
            return array

        return cls.allocate(spec, envs, new)

    @staticmethod
    def nbytes(spec: RowSpec, envs: int) -> int:
        total = 0

        def measure(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
            nonlocal total
            total += _aligned(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            return np.empty(0)

        Arrays.allocate(spec, envs, measure)
        return total

    def part(self, envs: slice) -> Arrays:
        """Views of some of the environments."""
        per_env = len(self.action) // len(self.episode)
        rows = slice(envs.start * per_env, envs.stop * per_env)
        return Arrays(
            seed=self.seed,
            reports_success=self.reports_success,
            episode=self.episode[envs],
            length=self.length[envs],
            heartbeat=self.heartbeat[envs],
            doing=self.doing[envs],
            action=self.action[rows],
            obs={key: array[rows] for key, array in self.obs.items()},
            final_obs={key: array[rows] for key, array in self.final_obs.items()},
            reward=self.reward[rows],
            terminated=self.terminated[rows],
            truncated=self.truncated[rows],
            active=self.active[rows],
            success=self.success[rows],
        )


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
