"""The ratio is one before an update and a resume is exact, in every combination of tests/ppo/combinations.py."""
from __future__ import annotations

import pytest

from tests.ppo.combinations import (
    CLOSE,
    Combination,
    Watched,
    combinations,
    differences,
    furthest,
    learner_of,
    saved_and_loaded,
)
from tests.ppo.learners import without_updates


class Run(Watched):
    """Two iterations of a learner; its state between them, read back from disk."""

    def __init__(self, combo: Combination, folder):
        super().__init__(learner_of(combo))
        self.learner.iterate()
        self.state = saved_and_loaded(self.learner, folder)
        self.metrics = self.learner.iterate().metrics


@pytest.fixture(scope="module", params=[pytest.param(x, id=str(x), marks=() if x.precision == "fp32" else pytest.mark.slow)
                                        for x in combinations()])
def combo(request):
    return request.param


@pytest.fixture(scope="module")
def run(combo, tmp_path_factory):
    return Run(combo, tmp_path_factory.mktemp("checkpoints"))


def test_the_ratio_is_one_before_every_update_and_not_after_it(run):
    assert max(x.ratio for x in run.before) < CLOSE and max(x.value for x in run.before) < CLOSE
    assert min(x.ratio for x in run.after) > 100 * CLOSE, "an update that changes nothing proves nothing"
    assert run.ended and run.sat_out


def test_a_run_resumed_from_disk_is_the_run_that_never_stopped(run, combo):
    second = learner_of(combo, started=False)
    second.load_state(*run.state)
    second.start()
    assert second.iterate().metrics == run.metrics
    assert differences(run.learner, second) == set()


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
def test_ratio_and_resume_are_exact_where_actor_and_critic_share_a_trunk(memory, tmp_path):
    shared = {"shared": True, "critic_keys": ["camera", "joints"]}
    combo = Combination(memory, "discrete", True, True, "bf16")
    run = Watched(learner_of(combo, policy=shared))
    run.learner.iterate()
    second = learner_of(combo, started=False, policy=shared)
    second.load_state(*saved_and_loaded(run.learner, tmp_path))
    assert run.learner.iterate().metrics == second.iterate().metrics
    assert differences(run.learner, second) == set()
    assert max(x.ratio for x in run.before) < CLOSE


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_learning_in_another_precision_than_acting_would_be_seen(memory, precision):
    """The control: the weights are unchanged, but what was collected in low precision is evaluated in full precision."""
    learner = learner_of(Combination(memory, "discrete", False, False, precision))
    without_updates(learner).iterate()
    assert furthest(learner).ratio < CLOSE
    learner.policy.precision = None
    assert furthest(learner).ratio > 10 * CLOSE


@pytest.mark.parametrize("lost", ["memory", "loss scale", "actions", "environments"])
def test_a_part_of_the_state_that_is_lost_is_seen(lost, tmp_path):
    """The control: without it, the resumed run differs."""
    combo = Combination("gru", "discrete", False, False, "fp16")
    run = Run(combo, tmp_path)
    tensors, plain = run.state
    fresh, _ = learner_of(combo).state()
    names = {"memory": ("learner", "memory.0.actor.h"), "loss scale": ("optimizer", "loss_scale_steps"),
             "actions": ("learner", "actions.0"), "environments": ("env", "number")}
    group, name = names[lost]
    tensors[group][name] = fresh[group][name]
    second = learner_of(combo, started=False)
    second.load_state(tensors, plain)
    second.start()
    second.iterate()
    assert differences(run.learner, second)
