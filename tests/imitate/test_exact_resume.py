"""A clone that is resumed is the one that never stopped, bit for bit, wherever in the file it was."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.imitate.cloners import GRU, LSTM, cloner_of
from tests.ppo.test_exact_resume import differences, saved
from tests.ppo.test_interrupted_iteration import run_with
from wavedash.imitate.playback import Playback
from wavedash.ppo.learner import Learner

ITERATIONS = 6
RECIPES: dict[str, tuple[str, Any, dict[str, Any]]] = {  # action, memory, options
    "memory, normalised": ("discrete", GRU, {"ppo": {"normalize_obs": True}, "unknown": 0.3}),
    "lstm, several rollouts": ("tanh", LSTM, {"ppo": {"buffer_rollouts": 3}}),
    "masked": ("multi-discrete", None, {"masked": True}),
    "bf16": ("gsde", GRU, {"precision": "bf16"}),
}


def fresh(folder: Path, recipe: str, started: bool = True, **changes: Any) -> Learner:
    action, memory, options = RECIPES[recipe]
    return cloner_of(folder, action, memory, started=started, seed=7, **{**options, **changes})


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_resumed_clone_is_the_one_that_never_stopped(recipe: str, tmp_path: Path) -> None:
    whole = fresh(tmp_path, recipe)
    metrics = [whole.iterate().metrics for _ in range(ITERATIONS)]
    for stop in (0, 2, 5):
        first = fresh(tmp_path, recipe)
        for _ in range(stop):
            first.iterate()
        state = saved(first)
        for _ in range(2):
            first.iterate()  # what the old process still does must not reach the saved state
        second = fresh(tmp_path, recipe, started=False)
        second.load_state(*state)
        second.start()
        assert [second.iterate().metrics for _ in range(ITERATIONS - stop)] == metrics[stop:]
        assert differences(whole, second) == set()


def test_the_place_in_the_file_and_the_memory_there_are_saved(tmp_path: Path) -> None:
    """The control: without either of them it would be another run."""
    whole = fresh(tmp_path, "memory, normalised")
    for _ in range(3):
        whole.iterate()
    tensors, plain = saved(whole)
    assert isinstance(whole.env, Playback) and tensors["learner"]["memory.0.actor.h"].any()
    assert not whole.env.samples.begins[whole.env.current].all(), "rows are in the middle of episodes"
    gradients = []
    for change in ("none", "place", "memory"):
        changed = {group: {name: x.clone() for name, x in part.items()} for group, part in tensors.items()}
        if change == "place":
            changed["env"]["place"].zero_()
        if change == "memory":
            changed["learner"]["memory.0.actor.h"].zero_()
        second = fresh(tmp_path, "memory, normalised", started=False)
        second.load_state(changed, plain)
        second.start()
        second.iterate()
        gradients.append(second.updater.optimizer.parameters.clone())
    whole.iterate()
    assert torch.equal(gradients[0], whole.updater.optimizer.parameters)
    assert not torch.equal(gradients[0], gradients[1]) and not torch.equal(gradients[0], gradients[2])


@pytest.mark.slow
def test_from_any_line_of_an_iteration_it_goes_on_as_if_it_had_never_been_stopped(tmp_path: Path) -> None:
    options = {"started": False, "total_steps": 144}
    whole = fresh(tmp_path, "memory, normalised", **options)
    lines = run_with(whole, None)
    assert lines > 500
    tries = 6
    for k in range(tries):
        at = 1 + (lines - 1) * k // tries + (k * 7919) % (lines // tries)
        first, second = fresh(tmp_path, "memory, normalised", **options), fresh(tmp_path, "memory, normalised", **options)
        run_with(first, at)
        assert first.steps < whole.steps, "it was stopped"
        second.load_state(*saved(first))
        second.learn()
        assert differences(whole, second) == set(), (at, lines, first.iteration)
