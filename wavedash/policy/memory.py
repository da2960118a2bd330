"""Memory: what a policy carries from step to step. GRU or LSTM, any number of layers.

A row's state is [layers, size] per part (`h`; LSTM also `c`). It is zero where an episode begins. When the policy acts, one step is
taken (`step`); when it learns, whole sequences are run again from the state stored at their start (`sequence`), with the
state zeroed wherever an episode began inside the sequence. Two ways of doing that give the same numbers:

    packed     the sequence is cut where episodes begin and the pieces run side by side in one library call. The cuts must be known
               on the host, which on a CPU costs nothing.
    stepwise   a loop over time in which each step masks the state. Only the recurrent half of the arithmetic is inside the
               loop; shapes never change, so on an accelerator the loop is captured in a graph and nothing waits for the host.
"""
from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

State = dict[str, Tensor]
"""[N, layers, size] per part; empty for a policy without memory."""


class Memory(nn.Module):
    """Recurrent layers over features [N, F] or sequences of them [L, B, F]."""

    def __init__(self, kind: Literal["gru", "lstm"], inputs: int, size: int, layers: int):
        super().__init__()
        self.kind, self.size, self.layers = kind, size, layers
        self.parts = ("h",) if kind == "gru" else ("h", "c")
        self.net: Any = (nn.GRU if kind == "gru" else nn.LSTM)(inputs, size, layers)
        for name, parameter in self.net.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def initial(self, rows: int) -> State:
        weight = self.net.weight_ih_l0
        return {part: torch.zeros(rows, self.layers, self.size, dtype=weight.dtype, device=weight.device) for part in self.parts}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of every row: features [N, size] and the state after it."""
        after: dict[str, list[Tensor]] = {part: [] for part in self.parts}
        for layer in range(self.layers):
            weights = self._weights(layer)
            h = state["h"][:, layer]
            if self.kind == "gru":
                x = torch.gru_cell(x, h, *weights)
            else:
                x, c = torch.lstm_cell(x, (h, state["c"][:, layer]), *weights)
                after["c"].append(c)
            after["h"].append(x)
        return x, {part: torch.stack(values, 1) for part, values in after.items()}

    def sequence(self, x: Tensor, state: State, fresh: Tensor) -> Tensor:
        """Features [L, B, size] of sequences [L, B, F]. `state` [B, ...] is that before the first step; `fresh` [L, B] is true
        where an episode begins (at the first step it makes no difference: the stored state is zero there already)."""
        return self.stepwise(x, state, fresh) if x.is_cuda else self.packed(x, state, fresh)

    def packed(self, x: Tensor, state: State, fresh: Tensor) -> Tensor:
        pieces = cut(fresh)
        flat = x.transpose(0, 1).flatten(0, 1)  # [B * L, F], each sequence in one piece
        start = {part: (values[pieces.sequence] * pieces.from_start).transpose(0, 1) for part, values in state.items()}
        hidden = start["h"].contiguous() if self.kind == "gru" else (start["h"].contiguous(), start["c"].contiguous())
        packed, _ = self.net(PackedSequence(flat[pieces.order], pieces.batch_sizes), hidden)
        out = torch.empty(len(flat), self.size, dtype=packed.data.dtype, device=x.device)
        out = out.index_copy(0, pieces.order, packed.data)
        return out.view(*fresh.shape[::-1], self.size).transpose(0, 1)

    def stepwise(self, x: Tensor, state: State, fresh: Tensor) -> Tensor:
        keep = (~fresh).to(x.dtype).unsqueeze(-1)  # [L, B, 1]
        for layer in range(self.layers):
            w_in, w_rec, b_in, b_rec = self._weights(layer)
            inputs = nn.functional.linear(x, w_in, b_in)
            carried = tuple(state[part][:, layer] for part in self.parts)
            outputs = []
            for t in range(len(x)):
                # The stored state is zero already where an episode begins with the sequence.
                carried = carried if t == 0 else tuple(value * keep[t] for value in carried)
                recurrent = nn.functional.linear(carried[0], w_rec, b_rec)
                carried = _gru(inputs[t], recurrent, *carried) if self.kind == "gru" else _lstm(inputs[t], recurrent, *carried)
                outputs.append(carried[0])
            x = torch.stack(outputs)
        return x

    def _weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        net = self.net
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return tuple(getattr(net, f"{name}_l{layer}") for name in names)  # type: ignore[return-value]


def _gru(inputs: Tensor, recurrent: Tensor, h: Tensor) -> tuple[Tensor, ...]:
    reset_in, update_in, new_in = inputs.chunk(3, -1)
    reset_rec, update_rec, new_rec = recurrent.chunk(3, -1)
    update = torch.sigmoid(update_in + update_rec)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_rec) * new_rec)
    return (torch.lerp(new, h, update),)


def _lstm(inputs: Tensor, recurrent: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    enter, forget, new, leave = (inputs + recurrent).chunk(4, -1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(c), c


class Pieces(NamedTuple):
    """Sequences cut where episodes begin, longest piece first, as `PackedSequence` wants them."""

    order: Tensor
    """[L * B] positions in the flattened [B, L], step by step over all pieces"""
    batch_sizes: Tensor
    """[longest] on the CPU: pieces that are still running at each step"""
    sequence: Tensor
    """[pieces] the sequence that a piece comes from"""
    from_start: Tensor
    """[pieces, 1, 1] 1.0 for the first piece of a sequence, which goes on from the stored state; 0.0 for the others"""


def cut(fresh: Tensor) -> Pieces:
    """`fresh` [L, B]."""
    length, batch = fresh.shape
    begins = fresh.t().clone()  # [B, L]
    begins[:, 0] = True
    starts = begins.reshape(-1).nonzero().squeeze(-1)  # in the flattened [B, L]
    lengths = torch.diff(starts, append=starts.new_tensor([length * batch]))
    lengths, by_length = lengths.sort(descending=True, stable=True)
    starts = starts[by_length]
    steps = torch.arange(int(lengths[0]), device=fresh.device).unsqueeze(-1)  # [longest, 1]
    running = steps < lengths  # [longest, pieces]
    return Pieces(
        order=(starts + steps)[running],
        batch_sizes=running.sum(1).cpu(),
        sequence=starts // length,
        from_start=(starts % length == 0).float().view(-1, 1, 1),
    )
