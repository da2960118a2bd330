"""The recurrences of GRU and LSTM over whole sequences, with their gradients written out.

Everything that does not depend on the step before (input projections, all weight gradients, the slopes of the gates) is done
for the whole sequence at once; what remains inside the loop over time is one small matrix product and a handful of element-wise
operations, forward and back. Autograd would record some twenty operations for every step instead. Shapes never change and
resets are masks, so on an accelerator the loop is captured in a CUDA graph. A test holds both against torch's own layers.

    inputs   [L, B, gates * H]  what each step adds to the gates: x W_in^T + b_in
    keep     [L, B, 1]          0 where an episode begins: the state before that step counts as zero (step 0 is not looked at)
    start    [B, H]             the state before the first step; no gradient flows into it (truncated BPTT)
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class GRURecurrence(torch.autograd.Function):
    """r = sigma(..), z = sigma(..), n = tanh(in + r * (W h + b)), h' = n + z * (h - n). Gates in torch's order: r, z, n."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        length, batch, size = *inputs.shape[:2], start.shape[-1]
        before = inputs.new_empty(length, batch, size)  # the state before each step
        gates = inputs.new_empty(length, batch, 2 * size)
        recurrent = inputs.new_empty(length, batch, 3 * size)
        new = inputs.new_empty(length, batch, size)
        out = inputs.new_empty(length, batch, size)
        transposed = weight.t()
        for t in range(length):
            h = before[t].copy_(start) if t == 0 else torch.mul(out[t - 1], keep[t], out=before[t])
            rec = torch.addmm(bias, h, transposed, out=recurrent[t])
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
        slopes = torch.empty_like(to_gates)
        slope = out_slope.new_zeros(batch, size)
        every = torch.empty_like(before)
        for t in range(length - 1, -1, -1):
            slope = torch.add(slope, out_slope[t], out=every[t])
            torch.mul(slope.unsqueeze(1), to_gates[t], out=slopes[t])
            slope = torch.addmm(slope * z[t], slopes[t].view(batch, -1), weight).mul_(keep[t])
        flat = slopes.view(length * batch, -1)
        weight_slope, bias_slope = flat.t() @ before.view(-1, size), flat.sum(0)
        input_slope = slopes.index_copy(2, torch.tensor([2], device=slopes.device), (every * to_new).unsqueeze(2))
        return input_slope.view(length, batch, -1), None, None, weight_slope, bias_slope


class LSTMRecurrence(torch.autograd.Function):
    """c' = f * c + i * g, h' = o * tanh(c'). Gates in torch's order: i, f, g, o. Returns h'; `start` is [B, 2 * H]: h, c."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        length, batch, size = *inputs.shape[:2], start.shape[-1] // 2
        h_before, c_before = inputs.new_empty(length, batch, size), inputs.new_empty(length, batch, size)
        gates = inputs.new_empty(length, batch, 4, size)
        cell_tanh, out = inputs.new_empty(length, batch, size), inputs.new_empty(length, batch, size)
        cell = start[:, size:]
        transposed, with_bias = weight.t(), inputs + bias
        for t in range(length):
            h = h_before[t].copy_(start[:, :size]) if t == 0 else torch.mul(out[t - 1], keep[t], out=h_before[t])
            c = c_before[t].copy_(cell) if t == 0 else torch.mul(cell, keep[t], out=c_before[t])
            gate = torch.addmm(with_bias[t], h, transposed, out=gates[t].view(batch, -1)).view(batch, 4, size)
            gate[:, :2].sigmoid_()
            gate[:, 2].tanh_()
            gate[:, 3].sigmoid_()
            enter, forget, new, leave = gate.unbind(1)
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
        slopes = torch.empty_like(gates)
        slope, cell_slope = out_slope.new_zeros(batch, size), out_slope.new_zeros(batch, size)
        for t in range(length - 1, -1, -1):
            slope = slope + out_slope[t]
            cell_slope = torch.addcmul(cell_slope, slope, out_to_cell[t])
            torch.mul(cell_slope.unsqueeze(1), from_cell[t], out=slopes[t, :, :3])
            torch.mul(slope, from_out[t], out=slopes[t, :, 3])
            slope = (slopes[t].view(batch, -1) @ weight).mul_(keep[t])
            cell_slope = (cell_slope * forget[t]).mul_(keep[t])
        flat = slopes.view(length * batch, -1)
        weight_slope, bias_slope = flat.t() @ h_before.view(-1, size), flat.sum(0)
        return slopes.view(length, batch, -1), None, None, weight_slope, bias_slope
