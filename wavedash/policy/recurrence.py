"""The recurrences of GRU and LSTM, with their gradients over whole sequences written out.

Everything that does not depend on the step before (input projections, all weight gradients, the slopes of the gates) is done
for the whole sequence at once; what remains inside the loop over time is one small matrix product and a handful of element-wise
operations, forward and back. Autograd would record some twenty operations for every step instead. Shapes never change and
resets are masks, so on an accelerator the loop is captured in a CUDA graph. A test holds both against torch's own layers.

    inputs   [L, B, gates * H]  what each step adds to the gates: x W_in^T + b_in
    keep     [L, B, 1]          0 where an episode begins: the state before that step counts as zero (step 0 is not looked at)
    start    [B, H]             the state before the first step; no gradient flows into it (truncated BPTT)

In mixed precision the matrix products are of the low precision, states and gates are not.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def product_dtype(x: Tensor) -> torch.dtype:
    """Of matrix products with x: autocast's, where it is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def gru_cell(inputs: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """One step: r, z = sigma(..), n = tanh(in + r * (W h + b)), h' = n + z * (h - n). Gates in torch's order: r, z, n."""
    dtype = product_dtype(h)
    with torch.autocast(h.device.type, enabled=False):
        recurrent = (h.to(dtype) @ weight.t().to(dtype)).to(h.dtype) + bias
        r, z, new = inputs.to(h.dtype).chunk(3, -1)
        r_rec, z_rec, new_rec = recurrent.chunk(3, -1)
        new = torch.tanh(torch.addcmul(new, torch.sigmoid(r + r_rec), new_rec))
        return torch.lerp(new, h, torch.sigmoid(z + z_rec))


def lstm_cell(inputs: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """One step: c' = f * c + i * g, h' = o * tanh(c'). Gates in torch's order: i, f, g, o."""
    dtype = product_dtype(h)
    with torch.autocast(h.device.type, enabled=False):
        gates = (h.to(dtype) @ weight.t().to(dtype)).to(h.dtype) + (inputs.to(h.dtype) + bias)
        enter, forget, new, leave = gates.chunk(4, -1)
        c = torch.addcmul(torch.sigmoid(forget) * c, torch.sigmoid(enter), torch.tanh(new))
        return torch.sigmoid(leave) * torch.tanh(c), c


class GRURecurrence(torch.autograd.Function):
    """`gru_cell` over sequences; returns h' of every step."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.dtype = dtype = product_dtype(start)
        ctx.input_dtype = inputs.dtype
        with torch.autocast(start.device.type, enabled=False):
            inputs = inputs.to(start.dtype)
            length, batch, size = *inputs.shape[:2], start.shape[-1]
            before = inputs.new_empty(length, batch, size)  # the state before each step
            gates = inputs.new_empty(length, batch, 2 * size)
            recurrent = inputs.new_empty(length, batch, 3 * size)
            new, out = torch.empty_like(before), torch.empty_like(before)
            transposed = weight.t().to(dtype)
            for t in range(length):
                h = before[t].copy_(start) if t == 0 else torch.mul(out[t - 1], keep[t], out=before[t])
                rec = torch.add(h.to(dtype) @ transposed, bias, out=recurrent[t])
                torch.add(inputs[t, :, : 2 * size], rec[:, : 2 * size], out=gates[t]).sigmoid_()
                torch.addcmul(inputs[t, :, 2 * size :], gates[t, :, :size], rec[:, 2 * size :], out=new[t]).tanh_()
                torch.lerp(new[t], h, gates[t, :, size:], out=out[t])
        ctx.save_for_backward(keep, before, gates, recurrent[..., 2 * size :], new, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, out_slope: Tensor) -> tuple[Tensor | None, ...]:
        keep, before, gates, new_rec, new, weight = ctx.saved_tensors
        length, batch, size = before.shape
        r, z = gates.chunk(2, -1)
        # Slope of h' -> slopes of the recurrent parts of the gates: products of things known beforehand, [L, B, 3, H].
        to_new = (1 - z) * (1 - new.square())
        to_gates = torch.stack([to_new * new_rec * r * (1 - r), (before - new) * z * (1 - z), to_new * r], 2)
        slopes, every = torch.empty_like(to_gates), torch.empty_like(before)
        slope, low = before.new_zeros(batch, size), weight.to(ctx.dtype)
        for t in range(length - 1, -1, -1):
            slope = torch.add(slope, out_slope[t], out=every[t])
            torch.mul(slope.unsqueeze(1), to_gates[t], out=slopes[t])
            slope = torch.addcmul(slopes[t].view(batch, -1).to(ctx.dtype) @ low, slope, z[t]).mul_(keep[t])
        weight_slope, bias_slope = _weight_slopes(slopes, before, ctx.dtype)
        slopes[:, :, 2] = every * to_new  # of the inputs: only n's part differs
        return slopes.view(length, batch, -1).to(ctx.input_dtype), None, None, weight_slope, bias_slope


class LSTMRecurrence(torch.autograd.Function):
    """`lstm_cell` over sequences; returns h' of every step. `start` is [B, 2 * H]: h, c."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.dtype = dtype = product_dtype(start)
        ctx.input_dtype = inputs.dtype
        with torch.autocast(start.device.type, enabled=False):
            inputs = inputs.to(start.dtype) + bias
            length, batch, size = *inputs.shape[:2], start.shape[-1] // 2
            h_before, c_before = inputs.new_empty(length, batch, size), inputs.new_empty(length, batch, size)
            gates = inputs.new_empty(length, batch, 4, size)
            cell_tanh, out = torch.empty_like(h_before), torch.empty_like(h_before)
            cell, transposed = start[:, size:], weight.t().to(dtype)
            for t in range(length):
                h = h_before[t].copy_(start[:, :size]) if t == 0 else torch.mul(out[t - 1], keep[t], out=h_before[t])
                c = c_before[t].copy_(cell) if t == 0 else torch.mul(cell, keep[t], out=c_before[t])
                torch.add(h.to(dtype) @ transposed, inputs[t], out=gates[t].view(batch, -1))
                gates[t, :, :2].sigmoid_()
                gates[t, :, 2].tanh_()
                gates[t, :, 3].sigmoid_()
                enter, forget, new, leave = gates[t].unbind(1)
                cell = torch.addcmul(forget * c, enter, new)
                torch.mul(leave, torch.tanh(cell, out=cell_tanh[t]), out=out[t])
        ctx.save_for_backward(keep, h_before, c_before, gates, cell_tanh, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, out_slope: Tensor) -> tuple[Tensor | None, ...]:
        keep, h_before, c_before, gates, cell_tanh, weight = ctx.saved_tensors
        length, batch, size = h_before.shape
        enter, forget, new, leave = gates.unbind(2)
        # Slope of c' -> slopes of i, f, g; slope of h' -> slopes of o and of c'.
        from_cell = torch.stack([new * enter * (1 - enter), c_before * forget * (1 - forget), enter * (1 - new.square())], 2)
        from_out = cell_tanh * leave * (1 - leave)
        out_to_cell = leave * (1 - cell_tanh.square())
        slopes, low = torch.empty_like(gates), weight.to(ctx.dtype)
        slope, cell_slope = h_before.new_zeros(batch, size), h_before.new_zeros(batch, size)
        for t in range(length - 1, -1, -1):
            slope = slope + out_slope[t]
            cell_slope = torch.addcmul(cell_slope, slope, out_to_cell[t])
            torch.mul(cell_slope.unsqueeze(1), from_cell[t], out=slopes[t, :, :3])
            torch.mul(slope, from_out[t], out=slopes[t, :, 3])
            slope = (slopes[t].view(batch, -1).to(ctx.dtype) @ low) * keep[t]
            cell_slope = (cell_slope * forget[t]).mul_(keep[t])
        weight_slope, bias_slope = _weight_slopes(slopes, h_before, ctx.dtype)
        return slopes.view(length, batch, -1).to(ctx.input_dtype), None, None, weight_slope, bias_slope


def _weight_slopes(slopes: Tensor, before: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Over all steps at once: of the recurrent weights [gates * H, H] and their bias."""
    flat, before = slopes.flatten(2).flatten(0, 1), before.flatten(0, 1)
    return (flat.t().to(dtype) @ before.to(dtype)).to(flat.dtype), flat.sum(0)
