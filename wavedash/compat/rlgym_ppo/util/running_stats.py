"""WelfordRunningStat computes a running mean and variance of vectors by Welford's method."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from wavedash.envs.host import Array

FILE = "RUNNING_STATS.json"


class WelfordRunningStat:
    """Running statistics. `running_variance` is the sum of squared distances from the mean; `std` is the standard deviation."""

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = shape
        self.ones, self.zeros = np.ones(shape, np.float32), np.zeros(shape, np.float32)
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self.running_mean: Array = np.zeros(self.shape, np.float64)
        self.running_variance: Array = np.zeros(self.shape, np.float64)

    def increment(self, samples: Any, num: int) -> None:
        """Adds the first `num` of several samples, or a single one."""
        for sample in samples[:num] if num > 1 else [samples]:
            self.update(sample)

    def update(self, sample: Any) -> None:
        value = np.reshape(sample, np.shape(self.running_mean))
        distance = value - self.running_mean
        self.count += 1
        self.running_mean = self.running_mean + distance / self.count
        self.running_variance = self.running_variance + distance * (value - self.running_mean)

    @property
    def mean(self) -> Array:
        return self.zeros if self.count < 2 else self.running_mean

    @property
    def std(self) -> Array:
        """The standard deviation; 1 where there are too few samples, and where nothing varies."""
        if self.count < 2:
            return self.ones
        variance = self.running_variance / (self.count - 1)
        return np.sqrt(np.where(variance == 0.0, 1.0, variance))

    def serialize(self) -> list[float]:
        return [*self.running_mean.ravel().tolist(), *self.running_variance.ravel().tolist(), self.count]

    def deserialize(self, other: Any) -> None:
        mean, squares, self.count = self._parts(other)
        self.running_mean, self.running_variance = mean, squares

    def increment_from_serialized_other(self, serialized_other: Any) -> None:
        """Adds the samples of another one (Chan et al. 1979)."""
        mean, squares, count = self._parts(serialized_other)
        if count == 0:
            return
        total, distance = self.count + count, mean - self.running_mean
        self.running_variance = self.running_variance + squares + distance**2 * (self.count * count / total)
        self.running_mean = self.running_mean + distance * (count / total)
        self.count = total

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.running_mean.ravel().tolist(), "var": self.running_variance.ravel().tolist(),
                "shape": list(np.shape(self.running_mean)), "count": int(self.count)}

    def from_json(self, other_json: dict[str, Any]) -> None:
        self.count = other_json["count"]
        self.running_mean = np.asarray(other_json["mean"], np.float64).reshape(other_json["shape"])
        self.running_variance = np.asarray(other_json["var"], np.float64).reshape(other_json["shape"])

    def save(self, directory: str) -> None:
        (Path(directory) / FILE).write_text(json.dumps(self.to_json(), indent=4), encoding="utf-8")

    def load(self, directory: str) -> None:
        self.from_json(json.loads((Path(directory) / FILE).read_text(encoding="utf-8")))

    def _parts(self, serialized: Any) -> tuple[Array, Array, int]:
        shape = np.shape(self.running_mean)
        numbers = np.asarray(serialized[:-1], np.float64)
        mean, squares = numbers.reshape(2, *shape)
        return mean, squares, int(serialized[-1])
