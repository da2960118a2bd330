"""ObsWriter: writes what an environment returned into its rows, and refuses what does not fit its space."""
from __future__ import annotations

from typing import Any

import numpy as np

from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array
from wavedash.envs.row_spec import RowSpec


class ObsWriter:
    """Writes observations of environments into arrays [N, ...], one per part of the observation."""

    def __init__(self, spec: RowSpec, arrays: dict[str, Array], envs: int) -> None:
        self._parts = [(key, _PartWriter(key, array, envs)) for key, array in arrays.items()]
        self.write = self._parts[0][1].write if spec.is_plain else self._write_parts

    def _write_parts(self, i: int, obs: Any) -> None:
        for key, part in self._parts:
            try:
                value = obs[key]
            except (KeyError, TypeError, IndexError):
                have = sorted(obs) if isinstance(obs, dict) else type(obs).__name__
                raise EnvError(f"observation has no {key!r}, which its space promises (it has: {have})") from None
            part.write(i, value)


class _PartWriter:
    def __init__(self, key: str, array: Array, envs: int) -> None:
        self._name = f"observation {key!r}" if key else "observation"
        rows = len(array) // envs
        by_env = array if rows == 1 else array.reshape(envs, rows, *array.shape[1:])
        self._targets = [by_env[i, ...] for i in range(envs)]  # views, also where a row is a single number
        self._shape = self._targets[0].shape
        self._dtype = array.dtype
        self._castable = {array.dtype}

    def write(self, i: int, value: Any) -> None:
        if value.__class__ is not np.ndarray:
            value = np.asarray(value)
        if value.shape != self._shape:
            raise EnvError(f"{self._name} has shape {value.shape} but its space says {self._shape}: correct one of them")
        if value.dtype not in self._castable:
            self._check_dtype(value.dtype)
        self._targets[i][...] = value

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        if not np.can_cast(dtype, self._dtype, "same_kind"):
            raise EnvError(f"{self._name} has type {dtype}, which does not fit the {self._dtype} of its space: convert it with "
                           f".astype(np.{self._dtype}) or correct the space")
        self._castable.add(dtype)
