"""Arenas of RocketSim that rest: they do not tick, the others do not notice, and they go on as if they were placed."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.test_rocketsim import assert_same, chase, everywhere, make  # noqa: F401 (make is a fixture)
from wavedash.envs.errors import EnvError

RESTING = torch.tensor([True, False, False, True, False])


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_arenas_that_rest_stay_as_they_are_and_the_others_play_the_same_games(make, workers):  # noqa: F811
    """References are arenas that never rest, and arenas that are placed where the others have rested."""
    ours, awake, placed = make(5, 1, 1, workers=workers), make(5, 1, 1), make(5, 1, 1)
    for sim in (ours, awake):
        sim.place(everywhere(sim))
    for step in range(20):
        for sim in (ours, awake):
            sim.step(chase(awake, step), ticks=8, delay=1)
    ours.rest(RESTING)
    before = ours.state.memory.clone()
    for step in range(20, 40):
        controls = chase(awake, step)
        for sim in (ours, awake):
            sim.step(controls, ticks=8, delay=1)
        if step == 30:  # one of them is placed meanwhile
            ours.state.ball.position[3, 2] += 500.0
            ours.place(torch.arange(5) == 3)
            before = ours.state.memory.clone()
        assert torch.equal(ours.state.memory[RESTING], before[RESTING])
        assert torch.equal(ours.state.memory[~RESTING], awake.state.memory[~RESTING])
        assert not (awake.state.memory[RESTING] == before[RESTING]).all(-1).any(), "the control: games would have gone on"
    placed.state.memory.copy_(before)
    placed.place(everywhere(placed))
    ours.rest(torch.zeros(5, dtype=torch.bool))
    for step in range(40, 50):
        controls = chase(awake, step)
        for sim in (ours, awake, placed):
            sim.step(controls, ticks=8, delay=1)
        assert torch.equal(ours.state.memory[RESTING], placed.state.memory[RESTING])
        assert torch.equal(ours.state.memory[~RESTING], awake.state.memory[~RESTING])
    resumed, saved = make(5, 1, 1), ours.save()
    resumed.load(saved)
    for step in range(50, 55):
        controls = chase(awake, step)
        for sim in (ours, resumed):
            sim.step(controls, ticks=8, delay=1)
    assert_same(ours.state, resumed.state)


def test_arenas_cannot_be_put_to_rest_during_a_step(make):  # noqa: F811
    sim = make(5, 1, 1)
    sim.send(torch.zeros(5, 2, 8), 8)
    with pytest.raises(EnvError, match=r"still stepping: recv\(\) before rest\(\)"):
        sim.rest(RESTING)
    sim.recv()
