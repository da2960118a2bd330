"""A tick that is launched stage by stage over lists, as on a GPU, gives the same games as the loop of a CPU."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import Kickoff, Random
from wavedash.rocket.state import CONTROLS, GameState

ARENAS, STEPS = 256, 12


def crowded(state: GameState, generator: torch.Generator) -> None:
    """Random states in which much happens: in half of the arenas both cars and the ball are within a few car lengths, some of
    them near walls and posts."""
    for start in (Kickoff(), Random()):
        start.bind(state)
        start.write(state, generator)
    half = ARENAS // 2
    spread = torch.randn(half, 3, 3, generator=generator) * torch.tensor([150.0, 150.0, 60.0])
    middle = torch.randn(half, 3, generator=generator) * torch.tensor([2000.0, 3000.0, 0.0]) + torch.tensor([0.0, 0.0, 200.0])
    middle[:20] = torch.tensor([890.0, 5050.0, 150.0])
    state.ball.position[:half] = (middle + spread[:, 0]).clamp(torch.tensor([-3900.0, -5000.0, 95.0]),
                                                               torch.tensor([3900.0, 5000.0, 1900.0]))
    state.cars.position[:half] = (middle.unsqueeze(1) + spread[:, 1:]).clamp(torch.tensor([-3900.0, -4900.0, 20.0]),
                                                                             torch.tensor([3900.0, 4900.0, 1900.0]))
    state.cars.velocity[:half] = torch.randn(half, 2, 3, generator=generator) * 900.0


def played(simulator: WarpSimulator) -> list[Tensor]:
    """The records after every step."""
    generator = torch.Generator().manual_seed(7)
    crowded(simulator.state, generator)
    simulator.place(torch.ones(ARENAS, dtype=torch.bool))
    seen = []
    for _ in range(STEPS):
        controls = torch.rand(ARENAS, 2, 8, generator=generator) * 2 - 1
        controls[..., 5:] = (controls[..., 5:] > 0.3).float()
        simulator.step(controls, ticks=8, delay=1)
        seen.append(simulator.state.memory.clone())
    return seen


def test_stages_launched_one_by_one_make_the_same_games_to_the_bit():
    whole, staged = WarpSimulator(ARENAS, 1, 1), WarpSimulator(ARENAS, 1, 1, by_stage=True)
    for step, (one, other) in enumerate(zip(played(whole), played(staged), strict=True)):
        assert torch.equal(one, other), f"step {step}: {int((one != other).any(1).sum())} arenas differ"
    assert int((whole.state.cars.ball_hit_tick >= 0).sum()) > 20, "too few cars hit the ball for a proof"
    assert int(whole.state.cars.has_contact.sum()) > 5


def test_controls_that_come_with_the_whole_delay_are_in_force_in_the_next_step():
    """As in RocketSim, a delay by all ticks of a step moves controls by one step and drops none."""
    simulator = WarpSimulator(1, 1, 1)
    throttle = torch.zeros(1, 2, 8)
    throttle[..., CONTROLS.index("throttle")] = 1.0
    simulator.step(throttle, ticks=8, delay=8)
    assert simulator.state.cars.velocity[0, 0].norm() < 5.0
    simulator.step(throttle, ticks=8, delay=8)
    assert simulator.state.cars.velocity[0, 0].norm() > 50.0
