"""LocalVecEnv: environments stepped in the learner's own process, which is fastest when a step takes microseconds."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavedash.envs.adapters import as_host_env
from wavedash.envs.arrays import Arrays
from wavedash.envs.batch import HostBatch
from wavedash.envs.host import Array
from wavedash.envs.host_vec_env import HostVecEnv
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.vec_env import Step


class LocalVecEnv(HostVecEnv):
    """`count` environments, each made by one call of `make`, which returns a `gymnasium.Env` (or any `HostEnv`)."""

    def __init__(self, make: Callable[[], Any], count: int, device: torch.device | str = "cpu") -> None:
        envs = [as_host_env(make()) for _ in range(count)]
        spec = RowSpec.of(envs[0])
        super().__init__(spec, Arrays.allocate(spec, count), device, [slice(0, count)])
        self._batch = HostBatch(envs, spec, self._arrays)

    def step(self, action: Tensor) -> Step:
        self._rows.write_action(action)
        self._logs[0].record()
        return self._rows.step(self._batch.step())

    def notes(self) -> list[Any]:
        return self._batch.notes()

    def close(self) -> None:
        self._batch.close()

    def _begin(self) -> None:
        self._batch.reset()

    def _replay(self, actions: list[Array]) -> None:
        self._batch.replay(actions)
