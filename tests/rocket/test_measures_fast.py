"""Measures that leave out work and share it decide exactly what the plain formulation of them decides."""
from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from tests.rocket import plain_measures
from tests.rocket.test_env import random_actions, simulated
from tests.rocket.test_measures_metrics import ALL, SHORT
from tests.rocket.test_measures_reference import games
from wavedash.rocket import names
from wavedash.rocket.measures.common import Look, SharedMeasure
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.state import GameState

PLAIN: dict[str, type[Measure]] = {
    "turtle": plain_measures.Turtle, "wall": plain_measures.Wall, "air_dribble": plain_measures.AirDribble,
    "flip_reset": plain_measures.FlipReset, "jump_challenge": plain_measures.JumpChallenge, "dribble": plain_measures.Dribble,
}
STARTS = "env.rocket.starts={kickoff: 1, turtle: 1, wall: 1, air_dribble: 1, flip_reset: 1, jump_challenge: 1, dribble: 1}"


def same(fast: Outcome | None, plain: Outcome) -> bool:
    if fast is None:
        return not bool(plain.over.any())
    timed = fast.ticks is None or plain.ticks is None or torch.equal(fast.ticks[plain.success], plain.ticks[plain.success])
    return torch.equal(fast.over, plain.over) and torch.equal(fast.success, plain.success) and timed


@pytest.mark.parametrize("arenas", [1, 2, 24])
@pytest.mark.parametrize("name", PLAIN)
def test_outcomes_are_those_of_the_plain_formulation(name: str, arenas: int) -> None:
    """With few arenas there is often nothing to do; in the middle the memory is restored from what was saved."""
    everything, begins = games(name, seed=4 + arenas)
    states = [GameState.over(state.memory[:arenas].contiguous(), 2) for state in everything]
    everywhere = torch.ones(arenas, dtype=torch.bool)
    fast, plain = names.make("measure", name), PLAIN[name]()
    assert isinstance(fast, SharedMeasure)
    for measure in (fast, plain):
        measure.bind(states[0])
        measure.begin(states[0], everywhere)
    left_out = decided = 0
    for step, (previous, state) in enumerate(pairwise(states)):
        outcome, expected = fast.judge(Look(state, previous, state.events, may_read=True)), plain(state, previous, state.events)
        assert same(outcome, expected), step
        left_out, decided = left_out + (outcome is None), decided + int(expected.over.sum())
        for measure in (fast, plain):
            measure.begin(state, begins[step + 1, :arenas])
        if step == len(states) // 2:
            saved = {key: x.clone() for key, x in fast.state_dict().items()}
            for x in fast.state_dict().values():
                x.zero_()
            fast.judge(Look(state, state, state.events, may_read=True))
            for key, x in fast.state_dict().items():
                x.copy_(saved[key])
    assert arenas < 24 or decided >= 5
    assert arenas > 2 or left_out > 10, "there was nothing to do now and then"


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_metrics_of_games_are_those_of_the_plain_formulation(simulator: str) -> None:
    env = simulated(ALL, STARTS, SHORT, "env.count=8", simulator=simulator)
    env.reset(5)
    state, everywhere = env._shards[0].state, torch.ones(8, dtype=torch.bool)
    plain: dict[str, Measure] = {
        "turtle": plain_measures.Turtle(window=0.5), "wall": plain_measures.Wall(),
        "dribble": plain_measures.Dribble(least=0, seconds=0.2), "air_dribble": plain_measures.AirDribble(least=1),
        "flip_reset": plain_measures.FlipReset(), "jump_challenge": plain_measures.JumpChallenge()}
    for measure in plain.values():
        measure.bind(state)
        measure.begin(state, everywhere)
    shard, seen = env._shards[0], dict.fromkeys(plain, 0)
    expected: dict[str, Outcome] = {}

    def after_the_simulator(receive):
        receive()
        expected.update({name: measure(state, shard.previous, state.events) for name, measure in plain.items()})

    receive = shard.simulator.recv
    shard.simulator.recv = lambda: after_the_simulator(receive)
    for action in random_actions(env, 150):
        step = env.step(action)
        for name, outcome in expected.items():
            over = outcome.over.flatten()
            success = torch.where(over, outcome.success.flatten().float(), -1.0)
            assert torch.equal(step.metrics[f"attempt/{name}"].nan_to_num(-1), success), name
            assert torch.equal(step.metrics[f"per_minute/{name}_attempts"], 900.0 * over), name
            seen[name] += int(over.sum())
        began = (step.terminated | step.truncated).view(8, 2).any(-1)
        for measure in plain.values():
            measure.begin(state, began)
    assert min(seen[name] for name in ("turtle", "dribble", "air_dribble")) > 0
    env.close()
