"""The kernels of measures decide and remember, bit for bit, what the classes of the measures do."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rocket.random_states import random_state
from tests.rocket.test_env import random_actions, simulated
from tests.rocket.test_measures_metrics import ALL, SHORT, same, steps
from tests.rocket.test_measures_reference import games
from wavedash.rocket import names
from wavedash.rocket.measures import Turtle, combine
from wavedash.rocket.sim.measuring import KERNELS, MeasuringKernels
from wavedash.rocket.state import GameState
from wavedash.tasks.part import Parts

STARTS = "env.rocket.starts={kickoff: 1, turtle: 1, wall: 1, air_dribble: 1, flip_reset: 1, jump_challenge: 1, dribble: 1}"
OPTIONS: dict[str, dict[str, Any]] = {
    "turtle": {"window": 0.4}, "wall": {"reach": 400, "min_height": 100, "width": 900.5, "min_speed": 333.3, "patience": 0.2},
    "air_dribble": {"hits": 2, "least": 1, "apart": 0.1, "patience": 0.3, "min_height": 200.1},
    "flip_reset": {"within": 0.3, "min_height": 100.0},
    "jump_challenge": {"together": 0.1, "after": 0.1, "min_height": 300, "min_speed": 33.3},
    "dribble": {"seconds": 0.5, "least": 0, "grace": 0.4, "reach": 150.5, "max_height": 300.5},
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def compared(name: str, options: dict[str, Any], states: list[GameState], begins: torch.Tensor, device: str) -> int:
    """Both see the same states. Returns how many attempts were decided."""
    plain, fast = (names.make("measure", name, options) for _ in range(2))
    state, previous = states[0].to(device).clone(), states[0].to(device).clone()
    for measure in (plain, fast):
        measure.bind(state)
        measure.begin(state, torch.ones(state.arenas, dtype=torch.bool, device=device))
    kernels = MeasuringKernels(Parts({name: fast}), state, previous)
    decided = 0
    for step in range(1, len(states)):
        previous.copy_(states[step - 1].to(device))
        state.copy_(states[step].to(device))
        expected, outcome = plain(state, previous, state.events), kernels()[name]
        assert torch.equal(outcome.over, expected.over) and torch.equal(outcome.success, expected.success), step
        assert expected.ticks is None or torch.equal(outcome.ticks, expected.ticks)
        remembered = fast.state_dict()
        assert all(torch.equal(remembered[key], x) for key, x in plain.state_dict().items()), step
        for measure in (plain, fast):
            measure.begin(state, begins[step].to(device))
        decided += int(expected.over.sum())
    return decided


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", names.shipped("measure"))
def test_kernels_decide_and_remember_what_the_classes_do(name: str, device: str) -> None:
    states, begins = games(name, seed=4)
    assert compared(name, {}, states, begins, device) >= 10
    assert compared(name, OPTIONS[name], states, begins, device) >= 5, "every option counts"


@pytest.mark.parametrize("name", names.shipped("measure"))
def test_kernels_agree_in_teams_with_empty_seats(name: str) -> None:
    states = [random_state(40, 3, 2, seed) for seed in range(40)]
    for step, state in enumerate(states):
        state.cars.team.copy_(states[0].cars.team)
        state.cars.present.copy_(states[0].cars.present)
        state.game.tick.fill_(100 + 8 * step)
        state.events.touches.copy_((torch.rand(40, 5, generator=torch.Generator().manual_seed(step)) < 0.3).int())
    compared(name, OPTIONS[name], states, torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) < 0.05, "cpu")


def test_every_shipped_measure_has_a_kernel_and_ones_own_has_none() -> None:
    assert {kind.__name__ for kind in KERNELS} == {kind.__name__ for kind in names.shipped("measure").values()}

    class Own(Turtle):
        """It may decide something else."""

    state = random_state(4, 1, 1, 0)
    own = Own()
    own.bind(state)
    assert not MeasuringKernels(Parts({"own": own}), state, state.clone()).outcomes


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_games_without_kernels_have_the_same_metrics_and_memory(simulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Warp is not installed, the classes are called."""
    said = []
    for kernels in (True, False):
        if not kernels:
            monkeypatch.setattr(combine, "_kernels", lambda *states: None)
        env = simulated(ALL, STARTS, SHORT, "env.count=8", simulator=simulator)
        env.reset(5)
        said.append((steps(env, random_actions(env, 120)), {name: x.clone() for name, x in env.save_state().items()}))
        env.close()
    (metrics, state), (without, memory) = said
    assert same(metrics, without)
    assert all(torch.equal(state[name], x) for name, x in memory.items() if ".measures." in name)
    decided = {name for each in metrics for name, x in each.items() if name.startswith("attempt/") and not x.isnan().all()}
    assert {"attempt/turtle", "attempt/dribble", "attempt/air_dribble"} <= decided
