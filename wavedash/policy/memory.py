"""Memory is what a policy carries from step to step: a GRU or LSTM of any number of layers.

The state of a row is [layers, size] per part (`h`; LSTM also `c`), zero where an episode begins. When the policy acts, it takes
one step (`step`); when it learns, whole sequences are run again from the state stored at their start (`sequence`), with the
state zeroed wherever an episode began inside the sequence. The memories of actor and critic have one size and run as one batch.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavedash.policy.recurrence import RecurrenceFunction, gru, gru_cell, lstm, lstm_cell

State = dict[str, Tensor]
"""[N, layers, size] per part; empty for a policy without memory."""
GATES = {"gru": 3, "lstm": 4}
RECURRENCES = {"gru": gru, "lstm": lstm}


class RecurrentLayer(nn.Module):
    """Weights of one layer, shaped and ordered as torch's own. Weights of every gate begin orthogonal, biases zero."""

    def __init__(self, gates: int, inputs: int, size: int):
        super().__init__()
        self.weight_in = nn.Parameter(torch.empty(gates * size, inputs))
        self.weight_rec = nn.Parameter(torch.empty(gates * size, size))
        self.bias_in = nn.Parameter(torch.zeros(gates * size))
        self.bias_rec = nn.Parameter(torch.zeros(gates * size))
        for weight in (self.weight_in, self.weight_rec):
            for gate in weight.detach().chunk(gates):
                nn.init.orthogonal_(gate)

    def reset_parameters(self) -> None:
        """Initialises weights as torch's own layers do: uniform, within one over the root of the size."""
        bound = self.weight_rec.shape[1] ** -0.5
        for weight in self.parameters():
            nn.init.uniform_(weight, -bound, bound)

    def project(self, x: Tensor) -> Tensor:
        """Returns what x adds to the gates."""
        return F.linear(x, self.weight_in, self.bias_in)


class Memory(nn.Module):
    """The recurrent layers of one network."""

    def __init__(self, kind: Literal["gru", "lstm"], inputs: int, size: int, layers: int):
        super().__init__()
        self.kind, self.size = kind, size
        self.parts = ("h",) if kind == "gru" else ("h", "c")
        widths = [inputs] + [size] * (layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(GATES[kind], width, size) for width in widths)

    def initial(self, rows: int) -> State:
        weight = next(self.parameters())
        shape = rows, len(self.layers), self.size
        return {part: torch.zeros(shape, dtype=weight.dtype, device=weight.device) for part in self.parts}


def recurrent_weights(layers: Sequence[RecurrentLayer]) -> tuple[Tensor, Tensor]:
    """Stacks weights and biases of the same layer of several networks: [K, gates * size, size] and [K, gates * size]."""
    weights: list[Tensor] = [layer.weight_rec for layer in layers]
    biases: list[Tensor] = [layer.bias_rec for layer in layers]
    return torch.stack(weights), torch.stack(biases)


def _by_layer(memories: Sequence[Memory]) -> Iterator[tuple[int, tuple[RecurrentLayer, ...]]]:
    return enumerate(zip(*(memory.layers for memory in memories), strict=True))


def step(memories: Sequence[Memory], features: Sequence[Tensor], states: Sequence[State]) -> tuple[list[Tensor], list[State]]:
    """Takes one step of every row of several networks; returns features [N, size] and the states after it."""
    cell: Any = gru_cell if memories[0].kind == "gru" else lstm_cell
    after: list[tuple[Tensor, ...]] = []  # by layer: the parts of the state, [K, N, size]
    x: Sequence[Tensor] = features
    for index, layers in _by_layer(memories):
        inputs = torch.stack([layer.project(f) for layer, f in zip(layers, x, strict=True)])
        before = [torch.stack([state[part][:, index] for state in states]) for part in memories[0].parts]
        after.append(cell(inputs, *before, *recurrent_weights(layers)))
        x = after[-1][0].unbind(0)
    every = [torch.stack(values, 2).unbind(0) for values in zip(*after, strict=True)]  # by part, by network: [N, layers, size]
    return list(x), [dict(zip(memories[0].parts, values, strict=True)) for values in zip(*every, strict=True)]


def sequence(memories: Sequence[Memory], features: Sequence[Tensor], states: Sequence[State], fresh: Tensor) -> list[Tensor]:
    """Returns features [L, B, size] of sequences [L, B, F], of several networks. `states` [B, ...] are those before the first
    step; `fresh` [L, B] is true where an episode begins (at the first step it makes no difference: the stored state is zero
    there already)."""
    keep = (~fresh).to(states[0]["h"].dtype).unsqueeze(-1)
    x: Sequence[Tensor] = features
    for index, layers in _by_layer(memories):
        inputs = torch.stack([layer.project(f) for layer, f in zip(layers, x, strict=True)])
        start = torch.stack([torch.cat([state[part][:, index] for part in memories[0].parts], -1) for state in states])
        recurrence, weights = RECURRENCES[memories[0].kind], recurrent_weights(layers)
        out = RecurrenceFunction.apply(recurrence, keep, start, inputs, *weights)  # type: ignore[no-untyped-call]
        x = out.unbind(0)
    return list(x)
