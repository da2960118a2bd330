"""The actor of a trained policy in numpy: normaliser, encoder, memory, hidden layers, head. It takes the most likely action."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
NORM_EPS = np.float32(1e-5)
FORBIDDEN = np.float32(-1e9)


def _sigmoid(x: Array) -> Array:
    return np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1.0))


def _gelu(x: Array) -> Array:
    return x * np.fromiter((0.5 * (1.0 + erf(v / sqrt(2.0))) for v in x.tolist()), np.float32, len(x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0, out=x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
    "silu": lambda x: x * _sigmoid(x),
    "gelu": _gelu,
}


class Linear:
    """A layer that writes into memory of its own."""

    def __init__(self, weight: Array, bias: Array) -> None:
        self.weight, self.bias = np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32)
        self.out = np.zeros(len(self.bias), np.float32)

    def __call__(self, x: Array) -> Array:
        np.dot(self.weight, x, out=self.out)
        self.out += self.bias
        return self.out


class Layers:
    """Hidden layers: each is followed by LayerNorm, if it has one, and by the activation."""

    def __init__(self, weights: Mapping[str, Array], name: str, activation: str) -> None:
        self.activation = ACTIVATIONS[activation]
        self.layers: list[tuple[Linear, Array | None, Array | None]] = []
        while f"{name}.{len(self.layers)}.weight" in weights:
            at = f"{name}.{len(self.layers)}"
            layer = Linear(weights[f"{at}.weight"], weights[f"{at}.bias"])
            self.layers.append((layer, weights.get(f"{at}.gain"), weights.get(f"{at}.shift")))

    def __call__(self, x: Array) -> Array:
        for layer, gain, shift in self.layers:
            x = layer(x)
            if gain is not None:
                x = x - x.mean(dtype=np.float32)
                x = x / np.sqrt((x * x).mean(dtype=np.float32) + NORM_EPS) * gain + shift
            x = self.activation(x)
        return x


class Memory:
    """GRU or LSTM of several layers. `clear` makes it as at the beginning of an episode."""

    def __init__(self, weights: Mapping[str, Array], kind: str) -> None:
        self.kind = kind
        self.layers: list[tuple[Linear, Linear]] = []
        while f"memory.{len(self.layers)}.weight_in" in weights:
            at = f"memory.{len(self.layers)}"
            self.layers.append((Linear(weights[f"{at}.weight_in"], weights[f"{at}.bias_in"]),
                                Linear(weights[f"{at}.weight_rec"], weights[f"{at}.bias_rec"])))
        self.size = self.layers[0][1].weight.shape[1] if self.layers else 0
        self.clear()

    def clear(self) -> None:
        self.h = [np.zeros(self.size, np.float32) for _ in self.layers]
        self.c = [np.zeros(self.size, np.float32) for _ in self.layers]

    def __call__(self, x: Array) -> Array:
        for index, (inputs, recurrent) in enumerate(self.layers):
            x = self._gru(index, inputs(x), recurrent) if self.kind == "gru" else self._lstm(index, inputs(x), recurrent)
        return x

    def _gru(self, index: int, new: Array, recurrent: Linear) -> Array:
        size, h = self.size, self.h[index]
        old = recurrent(h)
        gates = _sigmoid(new[: 2 * size] + old[: 2 * size])
        r, z = gates[:size], gates[size:]
        n = np.tanh(new[2 * size :] + r * old[2 * size :])
        self.h[index] = n + z * (h - n)
        return self.h[index]

    def _lstm(self, index: int, new: Array, recurrent: Linear) -> Array:
        gates, size = new + recurrent(self.h[index]), self.size
        i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
        self.c[index] = _sigmoid(f) * self.c[index] + _sigmoid(i) * np.tanh(g)
        self.h[index] = _sigmoid(o) * np.tanh(self.c[index])
        return self.h[index]


class Policy:
    """`act(observation, mask)` returns the action as the parser takes it. `scores` are what the last action was chosen by."""

    def __init__(self, settings: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
        self.head: str = settings["head"]
        self.sizes: list[int] = settings.get("sizes", [])
        self.clip: float | None = settings["clip"]
        if self.clip is not None:
            self.shift, self.scale = weights["normalizer.shift"], weights["normalizer.scale"]
        self.encoder = Layers(weights, "encoder", settings["activation"])
        self.memory = Memory(weights, settings["memory"])
        self.body = Layers(weights, "body", settings["activation"])
        self.out = Linear(weights["head.weight"], weights["head.bias"])
        if self.head not in ("discrete", "multi_discrete"):
            self.centre, self.half_range, self.low, self.high = (weights[f"head.{name}"] for name in
                                                                 ("centre", "half_range", "low", "high"))
        self.scores = np.zeros(len(self.out.bias), np.float32)

    def begin(self) -> None:
        """An episode begins: the memory is cleared."""
        self.memory.clear()

    def act(self, observation: Array, mask: Array | None) -> Array:
        x = observation
        if self.clip is not None:
            x = np.clip((x - self.shift) * self.scale, -self.clip, self.clip)
        features = self.body(self.memory(self.encoder(x)))
        outputs = self.out(features)
        if self.head in ("discrete", "multi_discrete"):
            self.scores[:] = outputs if mask is None else np.where(mask, outputs, FORBIDDEN)
            return self._choices()
        self.scores[:] = outputs
        unit = self._unit(outputs)
        return np.clip(self.centre + unit * self.half_range, self.low, self.high)

    def _choices(self) -> Array:
        if self.head == "discrete":
            return np.array([self.scores.argmax()])
        ends = np.cumsum(self.sizes)
        return np.array([self.scores[end - size : end].argmax() for size, end in zip(self.sizes, ends, strict=True)])

    def _unit(self, outputs: Array) -> Array:
        """The mode of the distribution, in units where the range is -1 to 1."""
        if self.head == "gaussian":
            return outputs
        if self.head == "tanh":
            return np.tanh(outputs)
        half = len(outputs) // 2
        if self.head == "confined":
            return np.tanh(outputs[:half])
        extra = np.logaddexp(outputs, np.float32(0.0))  # softplus: alpha - 1 and beta - 1
        return np.float32(2.0) * (extra[:half] / (extra[:half] + extra[half:])) - np.float32(1.0)
