"""Observations and actions inside a CUDA graph: replaying the graph reads the current state, and gives what a CPU gives."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.random_states import random_state
from wavedash.rocket.actions import Continuous, LookupTable, MultiDiscrete
from wavedash.rocket.observations import AdvancedObsPlus, DefaultObs
from wavedash.rocket.state import GameState

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@pytest.mark.parametrize("kind", [DefaultObs, AdvancedObsPlus, lambda: AdvancedObsPlus(frames=2)])
def test_observations_are_captured(kind):
    states = [random_state(256, 3, 3, seed) for seed in range(4)]
    state, begin = GameState.empty(256, 6, "cuda").copy_(states[0]), torch.ones(256, dtype=torch.bool)
    controls = torch.zeros(256, 6, 8)
    on_gpu, on_cpu = kind(), kind()
    on_gpu.bind(state)
    on_cpu.bind(states[0])
    begins, pressed = begin.cuda(), controls.cuda()
    outputs = []

    def step() -> None:
        on_gpu.begin(state, begins)
        outputs.append(on_gpu.build(state, pressed))

    graph = captured(step)
    for seed, source in enumerate(states):
        begin.copy_(torch.arange(256) % 3 == seed % 3 if seed else torch.ones(256))
        for theirs, ours in ((state.memory, source.memory), (begins, begin)):
            theirs.copy_(ours)
        graph.replay()
        on_cpu.begin(source, begin)
        expected, there = on_cpu.build(source, controls), source.cars.present
        torch.testing.assert_close(outputs[-1].cpu()[there], expected[there], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [LookupTable, MultiDiscrete, Continuous, lambda: LookupTable(sticky=1)])
def test_actions_are_captured(kind):
    states = [random_state(256, 2, 2, seed) for seed in range(3)]
    state = states[0].to("cuda")
    on_gpu, on_cpu = kind(), kind()
    on_gpu.bind(state)
    on_cpu.bind(states[0])
    drawn = [torch.stack([torch.as_tensor(on_cpu.space.sample()) for _ in range(1024)]).view(256, 4, *on_cpu.space.shape)
             for _ in states]
    actions, masks, controls = drawn[0].cuda(), [], []

    def step() -> None:
        masks.append(on_gpu.mask(state))
        controls.append(on_gpu.parse(actions, state))

    graph = captured(step)
    on_gpu.begin(state, torch.ones(256, dtype=torch.bool, device="cuda"))
    for source, action in zip(states, drawn, strict=True):
        state.copy_(source.to("cuda"))
        actions.copy_(action)
        graph.replay()
        expected = on_cpu.mask(source)
        assert (masks[-1] is None and expected is None) or torch.equal(masks[-1].cpu(), expected)
        torch.testing.assert_close(controls[-1].cpu(), on_cpu.parse(action, source))


def captured(step) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
