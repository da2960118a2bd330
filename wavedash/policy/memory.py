"""Memory: what a policy carries from step to step. GRU or LSTM, any number of layers.

A row's state is [layers, size] per part (`h`; LSTM also `c`), zero where an episode begins. When the policy acts, one step
is taken (`step`); when it learns, whole sequences are run again from the state stored at their start (`sequence`), with the
state zeroed wherever an episode began inside the sequence.
"""
from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavedash.policy.recurrence import GRURecurrence, LSTMRecurrence, gru_cell, lstm_cell

State = dict[str, Tensor]
"""[N, layers, size] per part; empty for a policy without memory."""
GATES = {"gru": 3, "lstm": 4}


class RecurrentLayer(nn.Module):
    """Weights of one layer, shaped and ordered as torch's own; orthogonal for every gate, biases zero."""

    def __init__(self, gates: int, inputs: int, size: int):
        super().__init__()
        self.weight_in = nn.Parameter(torch.empty(gates * size, inputs))
        self.weight_rec = nn.Parameter(torch.empty(gates * size, size))
        self.bias_in = nn.Parameter(torch.zeros(gates * size))
        self.bias_rec = nn.Parameter(torch.zeros(gates * size))
        for weight in (self.weight_in, self.weight_rec):
            for gate in weight.detach().chunk(gates):
                nn.init.orthogonal_(gate)


class Memory(nn.Module):
    """Recurrent layers over features [N, F] or sequences of them [L, B, F]."""

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

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of every row: features [N, size] and the state after it."""
        after: dict[str, list[Tensor]] = {part: [] for part in self.parts}
        layer: Any
        for index, layer in enumerate(self.layers):
            inputs, h = F.linear(x, layer.weight_in, layer.bias_in), state["h"][:, index]
            if self.kind == "gru":
                x = gru_cell(inputs, h, layer.weight_rec, layer.bias_rec)
            else:
                x, c = lstm_cell(inputs, h, state["c"][:, index], layer.weight_rec, layer.bias_rec)
                after["c"].append(c)
            after["h"].append(x)
        return x, {part: torch.stack(values, 1) for part, values in after.items()}

    def sequence(self, x: Tensor, state: State, fresh: Tensor) -> Tensor:
        """Features [L, B, size] of sequences [L, B, F]. `state` [B, ...] is that before the first step; `fresh` [L, B] is true
        where an episode begins (at the first step it makes no difference: the stored state is zero there already)."""
        keep = (~fresh).to(state["h"].dtype).unsqueeze(-1)
        recurrence = GRURecurrence if self.kind == "gru" else LSTMRecurrence
        layer: Any
        for index, layer in enumerate(self.layers):
            start = torch.cat([state[part][:, index] for part in self.parts], -1)
            inputs = F.linear(x, layer.weight_in, layer.bias_in)
            x = recurrence.apply(inputs, keep, start, layer.weight_rec, layer.bias_rec)  # type: ignore[no-untyped-call]
        return x
