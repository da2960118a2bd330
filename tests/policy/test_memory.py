"""Memory: whole sequences with resets inside, against torch's own layers run episode by episode, in float64."""
from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from wavedash.policy.memory import Memory, State, sequence, step

FEATURES, SIZE, LENGTH, BATCH = 5, 7, 11, 6
NAMES = {"weight_ih": "weight_in", "weight_hh": "weight_rec", "bias_ih": "bias_in", "bias_hh": "bias_rec"}


def memory_and_twin(kind: str, layers: int) -> tuple[Memory, nn.Module]:
    """Our layer, and torch's with the same weights, all of them random (biases too)."""
    torch.manual_seed(layers)
    ours = Memory(kind, FEATURES, SIZE, layers).double()
    twin = (nn.GRU if kind == "gru" else nn.LSTM)(FEATURES, SIZE, layers).double()
    for index, layer in enumerate(ours.layers):
        for theirs, mine in NAMES.items():
            parameter = getattr(layer, mine)
            nn.init.normal_(parameter, std=0.5)
            getattr(twin, f"{theirs}_l{index}").data.copy_(parameter.data)
    return ours, twin


def run(memory: Memory, x: Tensor, state: State, fresh: Tensor) -> Tensor:
    return sequence([memory], [x], [state], fresh)[0]


def example(memory: Memory, resets: float) -> tuple[Tensor, State, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(LENGTH, BATCH, FEATURES, dtype=torch.float64, requires_grad=True)
    state = {part: torch.randn_like(values) for part, values in memory.initial(BATCH).items()}
    fresh = torch.rand(LENGTH, BATCH) < resets
    fresh[0] = False
    return x, state, fresh


def episode_by_episode(twin: nn.Module, x: Tensor, state: State, fresh: Tensor) -> Tensor:
    """torch's layer runs over each stretch of a sequence on its own: from the stored state first, from zero after a reset."""
    columns = []
    for row in range(x.shape[1]):
        starts = [0, *(t for t in range(1, len(x)) if fresh[t, row]), len(x)]
        pieces = []
        for begin, end in pairwise(starts):
            start = [values[row].unsqueeze(1) * (begin == 0) for values in state.values()]
            out, _ = twin(x[begin:end, row : row + 1], start[0] if len(start) == 1 else tuple(start))
            pieces.append(out[:, 0])
        columns.append(torch.cat(pieces))
    return torch.stack(columns, 1)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("resets", [0.0, 0.3, 1.0])
def test_sequences_and_their_gradients_are_those_of_torch_episode_by_episode(kind, layers, resets):
    ours, twin = memory_and_twin(kind, layers)
    x, state, fresh = example(ours, resets)
    mine, reference = run(ours, x, state, fresh), episode_by_episode(twin, x, state, fresh)
    torch.testing.assert_close(mine, reference, rtol=0, atol=1e-12)
    gradient = torch.randn_like(mine)
    parameters = [getattr(layer, name) for layer in ours.layers for name in NAMES.values()]
    got = torch.autograd.grad((mine * gradient).sum(), [x, *parameters])
    expected = torch.autograd.grad((reference * gradient).sum(), [x, *twin.parameters()])
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_forgotten_reset_would_be_seen(kind):
    """The control: one flag moved by one step changes the result."""
    ours, twin = memory_and_twin(kind, 1)
    x, state, fresh = example(ours, 0.3)
    late = torch.roll(fresh, 1, 0)
    assert (run(ours, x, state, late) - episode_by_episode(twin, x, state, fresh)).abs().max() > 1e-3


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_acting_step_by_step_is_the_sequence(kind, layers):
    ours, _ = memory_and_twin(kind, layers)
    x, state, fresh = example(ours, 0.3)
    carried, steps = state, []
    for t in range(LENGTH):
        carried = {part: values * (~fresh[t]).view(-1, 1, 1) for part, values in carried.items()}
        (out,), (carried,) = step([ours], [x[t]], [carried])
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps), run(ours, x, state, fresh), rtol=0, atol=1e-12)


def test_what_happened_before_a_reset_changes_nothing_after_it():
    """Garbage in one episode has no effect on values or gradients of the next."""
    ours, _ = memory_and_twin("lstm", 2)
    x, state, fresh = example(ours, 0.0)
    fresh[5] = True
    other = x.detach().clone()
    other[:5] = 1e3 * torch.randn_like(other[:5])
    clean, garbage = run(ours, x, state, fresh), run(ours, other, state, fresh)
    assert torch.equal(clean[5:], garbage[5:]) and not torch.equal(clean[:5], garbage[:5])
    (gradient,) = torch.autograd.grad(clean[5:].sum(), [x])
    assert (gradient[:5] == 0).all() and (gradient[5:] != 0).any()


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_networks_side_by_side_do_not_see_each_other(kind):
    """Actor and critic run in one recurrence; values, gradients and steps are those of each alone."""
    pair = [memory_and_twin(kind, layers)[0] for layers in (2, 2)]
    nn.init.normal_(pair[1].layers[0].weight_rec)
    x, state, fresh = example(pair[0], 0.3)
    inputs, states = [x, 2 * x.detach()], [state, {part: -values for part, values in state.items()}]
    together = sequence(pair, inputs, states, fresh)
    alone = [run(*each, fresh) for each in zip(pair, inputs, states, strict=True)]
    for a, b in zip(together, alone, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    for index, memory in enumerate(pair):
        got = torch.autograd.grad(sum(out.square().sum() for out in together), list(memory.parameters()), retain_graph=True)
        for a, b in zip(got, torch.autograd.grad(alone[index].square().sum(), list(memory.parameters())), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    features, after = step(pair, [y[0] for y in inputs], states)
    for index, memory in enumerate(pair):
        (own,), (own_after,) = step([memory], [inputs[index][0]], [states[index]])
        torch.testing.assert_close(features[index], own, rtol=0, atol=1e-12)
        for part, values in own_after.items():
            torch.testing.assert_close(after[index][part], values, rtol=0, atol=1e-12)
