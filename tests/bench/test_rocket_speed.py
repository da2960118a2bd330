"""The benchmarks of simulator and iteration run, and measure real games and real updates."""
from __future__ import annotations

import sys
from argparse import Namespace

import pytest
import torch

from wavedash.bench import iteration, sim
from wavedash.rocket.rocketsim import package


@pytest.mark.slow
def test_the_simulators_play_from_the_same_starts():
    pytest.importorskip("RocketSim")
    options = Namespace(device="cpu", seconds=0.05, starts="random")
    ours, theirs = sim.Ours(64, 1, options, threads=1), sim.BareRocketSim(1, options)
    assert ours() > 0 and theirs() > 0
    for contestant in (ours, theirs):
        contestant.place()
    for e, (arena, cars) in enumerate(zip(theirs.arenas, theirs.cars, strict=True)):
        state = ours.simulator.state
        places = torch.tensor([body.get_state().pos.as_tuple() for body in (arena.ball, *cars)])
        torch.testing.assert_close(places, torch.stack([state.ball.position[e], *state.cars.position[e]]), rtol=1e-5, atol=1e-2)
        assert bool(state.cars.on_ground[e, 0]) == cars[0].get_state().is_on_ground


def test_without_rocketsim_our_own_simulator_is_measured_alone(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "RocketSim", None)  # importing it fails, as where it is not installed
    package.rocketsim.cache_clear()
    monkeypatch.setattr(sim, "TEAMS", {})
    sim.main(["--device", "cpu", "--arenas", "16", "--rounds", "1", "--seconds", "0.05"])
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("│") and "not installed" in line)
    arenas, rocketsim, ours, *_ = (cell.strip() for cell in row.strip("│").split("│"))
    assert (arenas, rocketsim) == ("16", "not installed") and float(ours.replace(",", "")) > 0


@pytest.mark.slow
def test_an_iteration_is_measured_together_with_what_it_learned(capsys):
    small = ["--device", "cpu", "--arenas", "4", "--steps", "4", "--minibatch", "16", "--hidden", "8", "--iterations", "1"]
    iteration.main(small)
    out = capsys.readouterr().out
    assert "entropy" in out and "KL" in out and "update size" in out
    row = next(line.split() for line in out.splitlines() if line.startswith("4 off "))
    entropy, moved = float(row[5]), float(row[8])
    assert 2.0 < entropy < 4.5 and moved > 0.0
    iteration.main([*small, "--profile"])
    assert "aten::addmm" in capsys.readouterr().out
