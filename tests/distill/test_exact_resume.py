"""A student that is resumed is the one that never stopped, bit for bit: the teacher's memory is a part of its state."""
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.distill.students import GRU, LSTM, student_of, teacher_of
from tests.ppo.test_exact_resume import differences, saved
from tests.ppo.test_interrupted_iteration import run_with
from wavedash.distill.teacher import LABEL
from wavedash.ppo.learner import Learner
from wavedash.runs.changes import ChangeError, change
from wavedash.saved import SavedError

ITERATIONS = 6
RECIPES: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {  # action, memory of teacher and of student, options
    "both remember": ("discrete", GRU, LSTM, {"ppo": {"normalize_obs": True}}),
    "the teacher remembers": ("multi-discrete", LSTM, None, {"masked": True}),
    "the student remembers": ("tanh", None, GRU, {"distill": {"act": "mean"}}),
    "several rollouts, critic": ("gaussian", GRU, GRU, {"ppo": {"buffer_rollouts": 3, "normalize_reward": True},
                                                        "distill": {"critic": True}}),
    "bf16": ("gsde", GRU, GRU, {"precision": "bf16"}),
}


def fresh(recipe: str, started: bool = True, **changes: Any) -> Learner:
    action, teacher, student, options = RECIPES[recipe]
    options = {**options, **changes}
    options["ppo"] = {"rollout_steps": 4, **options.get("ppo", {}), **changes.get("ppo", {})}
    return student_of(teacher_of(action, teacher), action, student, started=started, seed=7, **options)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_resumed_student_is_the_one_that_never_stopped(recipe):
    whole = fresh(recipe)
    metrics = [whole.iterate().metrics for _ in range(ITERATIONS)]
    for stop in (0, 2, 5):
        first = fresh(recipe)
        for _ in range(stop):
            first.iterate()
        state = saved(first)
        for _ in range(2):
            first.iterate()  # what the old process still does must not reach the saved state
        second = fresh(recipe, started=False)
        second.load_state(*state)
        second.start()
        assert [second.iterate().metrics for _ in range(ITERATIONS - stop)] == metrics[stop:]
        assert differences(whole, second) == set()


def test_without_the_teachers_memory_it_would_be_another():
    whole = fresh("the teacher remembers")
    for _ in range(3):
        whole.iterate()
    tensors, plain = saved(whole)
    remembered = [name for name in tensors["learner"] if name.startswith("labels.")]
    assert remembered == ["labels.0.actor.h", "labels.0.actor.c"] and tensors["learner"][remembered[0]].any()
    second, third = (fresh("the teacher remembers", started=False) for _ in range(2))
    second.load_state(*copy.deepcopy((tensors, plain)))
    for name in remembered:
        tensors["learner"][name].zero_()
    third.load_state(tensors, plain)
    labels = []
    for learner in (whole, second, third):
        learner.start()
        learner.iterate()
        labels.append(learner.rollout.labels[LABEL].clone())
    assert torch.equal(labels[0], labels[1]) and not torch.equal(labels[0][0], labels[2][0])


def test_a_checkpoint_that_lacks_the_teachers_memory_is_refused():
    whole = fresh("both remember")
    whole.iterate()
    tensors, plain = saved(whole)
    del tensors["learner"]["labels.0.actor.h"]
    with pytest.raises(SavedError, match=r"labels\.0\.actor\.h"):
        fresh("both remember", started=False).load_state(tensors, plain)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["both remember", "several rollouts, critic"])
def test_from_any_line_of_an_iteration_it_goes_on_as_if_it_had_never_been_stopped(recipe):
    options = {"started": False, "total_steps": 90}
    whole = fresh(recipe, **options)
    lines = run_with(whole, None)
    assert lines > 1000
    tries = 8
    for k in range(tries):
        at = 1 + (lines - 1) * k // tries + (k * 7919) % (lines // tries)
        first, second = fresh(recipe, **options), fresh(recipe, **options)
        run_with(first, at)
        assert first.steps < whole.steps, "it was stopped"
        second.load_state(*saved(first))
        second.learn()
        assert differences(whole, second) == set(), (at, lines, first.iteration)


def test_a_change_while_it_runs_is_one_on_resume():
    live, first = fresh("both remember"), fresh("both remember")
    for learner in (live, first):
        for _ in range(2):
            learner.iterate()
    change(live, {"ppo.learning_rate": 1e-4, "ppo.epochs": 1})
    resumed, unchanged = (fresh("both remember", started=False, ppo={"normalize_obs": True, **options})
                          for options in ({"learning_rate": 1e-4, "epochs": 1}, {}))
    for learner in (resumed, unchanged):
        learner.load_state(*saved(first))
        learner.start()
    metrics = [[learner.iterate().metrics for _ in range(2)] for learner in (live, resumed, unchanged)]
    assert metrics[0] == metrics[1] != metrics[2]
    assert differences(live, resumed) == set()
    with pytest.raises(ChangeError, match=r"distill\.teacher cannot change in a run: it says from whom a run learns"):
        change(live, {"distill.teacher": "another"})
    with pytest.raises(ChangeError, match=r"distill\.act cannot change while the run runs. Stop the run and resume it"):
        change(live, {"distill.act": "mean"})
