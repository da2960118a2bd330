"""GRU and LSTM run over whole sequences, with their gradients written out.

Everything that does not depend on the step before (input projections, all weight gradients, the gradients of the gates) is done
for the whole sequence at once, and networks of the same size (actor and critic) run as one batch. What remains inside the loop
over time is one small matrix product and a few element-wise operations, forward and backward; autograd would record some
twenty for every step and network. Shapes never change and resets are masks, so on an accelerator the loop can be captured in a
CUDA graph. A test compares both with torch's own layers.

    inputs   [K, L, B, gates * H]  what each step adds to the gates, of K networks: x W_in^T + b_in
    keep     [L, B, 1]             0 where an episode begins: the state before counts as zero (ignored at step 0)
    start    [K, B, H]             the state before the first step; no gradient flows into it (truncated BPTT)
    weight   [K, gates * H, H]     recurrent weights; bias [K, gates * H]

In mixed precision the matrix products are in low precision; states and gates are not.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

InputGradients = tuple[Tensor, Tensor, Tensor]
"""The gradients of `inputs`, `weight` and `bias`"""
Result = tuple[Tensor, Callable[[Tensor], InputGradients]]
"""h' of every step [K, L, B, H], and the function that backpropagates its gradients"""


def product_dtype(x: Tensor) -> torch.dtype:
    """Returns the dtype of matrix products with x: autocast's, where it is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def _product(x: Tensor, weight: Tensor, offset: Tensor, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
    """Computes x @ weight + offset of each network, in one operation where the precision allows it."""
    if dtype == x.dtype:
        return torch.baddbmm(offset, x, weight) if out is None else torch.baddbmm(offset, x, weight, out=out)
    return torch.add(torch.bmm(x.to(dtype), weight), offset, out=out)


def gru_cell(inputs: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor]:
    """Takes one step: r, z = sigma(..), n = tanh(in + r * (W h + b)), h' = n + z * (h - n). Gates are in torch's order: r, z,
    n.

    Tensors hold K networks: inputs [K, N, 3 H], h [K, N, H].
    """
    dtype = product_dtype(h)
    with torch.autocast(h.device.type, enabled=False):
        recurrent = _product(h, weight.mT.to(dtype), bias.unsqueeze(1), dtype)
        size = h.shape[-1]
        inputs = inputs.to(h.dtype)
        r, z = torch.sigmoid(inputs[..., : 2 * size] + recurrent[..., : 2 * size]).chunk(2, -1)
        new = torch.tanh(torch.addcmul(inputs[..., 2 * size :], r, recurrent[..., 2 * size :]))
        return (torch.lerp(new, h, z),)


def lstm_cell(inputs: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Takes one step: c' = f * c + i * g, h' = o * tanh(c'). Gates are in torch's order: i, f, g, o."""
    dtype = product_dtype(h)
    with torch.autocast(h.device.type, enabled=False):
        gates = _product(h, weight.mT.to(dtype), inputs.to(h.dtype) + bias.unsqueeze(1), dtype)
        input_gate, forget_gate, new, output_gate = gates.chunk(4, -1)
        c = torch.addcmul(torch.sigmoid(forget_gate) * c, torch.sigmoid(input_gate), torch.tanh(new))
        return torch.sigmoid(output_gate) * torch.tanh(c), c


def gru(inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Result:
    """Runs `gru_cell` over sequences; `start` is h [K, B, H]."""
    dtype, input_dtype = product_dtype(start), inputs.dtype
    with torch.autocast(start.device.type, enabled=False):
        inputs = inputs.to(start.dtype)
        networks, length, batch, size = *inputs.shape[:3], start.shape[-1]
        before = inputs.new_empty(networks, length, batch, size)  # the state before each step
        gates = inputs.new_empty(networks, length, batch, 2 * size)
        recurrent = inputs.new_empty(networks, length, batch, 3 * size)
        new, out = torch.empty_like(before), torch.empty_like(before)
        transposed, offset = weight.mT.to(dtype), bias.unsqueeze(1)
        # Views of every step are made at once: indexing inside the loop would cost as much as the arithmetic.
        to_gates, to_new = inputs[..., : 2 * size].unbind(1), inputs[..., 2 * size :].unbind(1)
        rec_gates, rec_new = recurrent[..., : 2 * size].unbind(1), recurrent[..., 2 * size :].unbind(1)
        r, z = (x.unbind(1) for x in gates.chunk(2, -1))
        steps = zip(before.unbind(1), recurrent.unbind(1), to_gates, rec_gates, gates.unbind(1), to_new, r, rec_new,
                    new.unbind(1), z, out.unbind(1), keep.unbind(0), strict=True)
        state: Tensor | None = None
        for h, rec, to_gate, rec_gate, gate, to_n, r_t, rec_n, n, z_t, after, kept in steps:
            h.copy_(start) if state is None else torch.mul(state, kept, out=h)
            _product(h, transposed, offset, dtype, rec)
            torch.add(to_gate, rec_gate, out=gate).sigmoid_()
            torch.addcmul(to_n, r_t, rec_n, out=n).tanh_()
            state = torch.lerp(n, h, z_t, out=after)

    def backward(out_gradient: Tensor) -> InputGradients:
        r, z = gates.chunk(2, -1)
        # Factors from the gradient of h' to those of the recurrent parts of the gates, [K, L, B, 3, H]; none depends on the
        # loop.
        to_new = (1 - z) * (1 - new.square())
        to_gates = torch.stack([to_new * recurrent[..., 2 * size :] * r * (1 - r), (before - new) * z * (1 - z), to_new * r], 3)
        gradients, every = torch.empty_like(to_gates), torch.empty_like(before)
        gradient, low = before.new_zeros(networks, batch, size), weight.to(dtype)
        steps = zip(every.unbind(1), out_gradient.unbind(1), to_gates.unbind(1), gradients.unbind(1),
                    gradients.flatten(3).unbind(1), z.unbind(1), keep.unbind(0), strict=True)
        for total, here, to_gate, gate_gradient, flat, z_t, kept in reversed(list(steps)):
            torch.add(gradient, here, out=total)
            torch.mul(total.unsqueeze(2), to_gate, out=gate_gradient)
            gradient = torch.addcmul(torch.bmm(flat.to(dtype), low), total, z_t).mul_(kept)
        weight_gradient, bias_gradient = _weight_gradients(gradients, before, dtype)
        gradients[..., 2, :] = every * to_new  # gradients of the inputs differ in the part of n only
        return gradients.flatten(3).to(input_dtype), weight_gradient, bias_gradient

    return out, backward


def lstm(inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Result:
    """Runs `lstm_cell` over sequences; `start` is h and c concatenated, [K, B, 2 H]."""
    dtype, input_dtype = product_dtype(start), inputs.dtype
    with torch.autocast(start.device.type, enabled=False):
        inputs = inputs.to(start.dtype) + bias[:, None, None]
        networks, length, batch, size = *inputs.shape[:3], start.shape[-1] // 2
        h_before, c_before = (inputs.new_empty(networks, length, batch, size) for _ in range(2))
        gates = inputs.new_empty(networks, length, batch, 4 * size)
        cell_tanh, out = torch.empty_like(h_before), torch.empty_like(h_before)
        transposed = weight.mT.to(dtype)
        input_gate, forget_gate, new, output_gate = gates.chunk(4, -1)
        steps = zip(h_before.unbind(1), c_before.unbind(1), inputs.unbind(1), gates.unbind(1), gates[..., : 2 * size].unbind(1),
                    input_gate.unbind(1), forget_gate.unbind(1), new.unbind(1), output_gate.unbind(1), cell_tanh.unbind(1),
                    out.unbind(1), keep.unbind(0), strict=True)
        state = cell = None
        for h, c, given, gate, first_two, i, f, g, o, c_tanh, after, kept in steps:
            h.copy_(start[..., :size]) if state is None else torch.mul(state, kept, out=h)
            c.copy_(start[..., size:]) if cell is None else torch.mul(cell, kept, out=c)
            _product(h, transposed, given, dtype, gate)
            first_two.sigmoid_()
            g.tanh_()
            o.sigmoid_()
            cell = torch.addcmul(f * c, i, g)
            state = torch.mul(o, torch.tanh(cell, out=c_tanh), out=after)

    def backward(out_gradient: Tensor) -> InputGradients:
        # Factors from the gradient of c' to those of i, f, g, and from the gradient of h' to those of o and of c'.
        from_cell = torch.stack([new * input_gate * (1 - input_gate), c_before * forget_gate * (1 - forget_gate),
                                 input_gate * (1 - new.square())], 3)
        from_out = cell_tanh * output_gate * (1 - output_gate)
        out_to_cell = output_gate * (1 - cell_tanh.square())
        gradients, low = gates.new_empty(networks, length, batch, 4, size), weight.to(dtype)
        gradient = cell_gradient = h_before.new_zeros(networks, batch, size)
        steps = zip(out_gradient.unbind(1), out_to_cell.unbind(1), from_cell.unbind(1), gradients[..., :3, :].unbind(1),
                    from_out.unbind(1), gradients[..., 3, :].unbind(1), gradients.flatten(3).unbind(1), forget_gate.unbind(1),
                    keep.unbind(0), strict=True)
        for here, to_cell, from_c, cell_gradients, from_o, output_gate_gradient, flat, f, kept in reversed(list(steps)):
            gradient = gradient + here
            cell_gradient = torch.addcmul(cell_gradient, gradient, to_cell)
            torch.mul(cell_gradient.unsqueeze(2), from_c, out=cell_gradients)
            torch.mul(gradient, from_o, out=output_gate_gradient)
            gradient = torch.bmm(flat.to(dtype), low) * kept
            cell_gradient = (cell_gradient * f).mul_(kept)
        weight_gradient, bias_gradient = _weight_gradients(gradients, h_before, dtype)
        return gradients.flatten(3).to(input_dtype), weight_gradient, bias_gradient

    return out, backward


def _weight_gradients(gradients: Tensor, before: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Computes the gradients of recurrent weights [K, gates * H, H] and of their bias over all steps at once."""
    flat, before = gradients.flatten(3).flatten(1, 2), before.flatten(1, 2)
    return torch.bmm(flat.mT.to(dtype), before.to(dtype)).to(flat.dtype), flat.sum(1)


class RecurrenceFunction(torch.autograd.Function):
    """`gru` or `lstm` as an autograd function."""

    @staticmethod
    def forward(ctx: Any, recurrence: Any, keep: Tensor, start: Tensor, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out, ctx.backward_pass = recurrence(inputs, keep, start, weight, bias)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, out_gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *ctx.backward_pass(out_gradient)
