"""An iteration that is interrupted at any of its lines is saved as it began: the resumed run equals one that never stopped."""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import gymnasium
import pytest
import torch

from tests.envs.toy_envs import Counter, Mortal
from tests.ppo.learners import ACTIONS, identity_learner, learner_over, run_config
from tests.ppo.test_exact_resume import differences, saved
from tests.toy_vec_envs import ScrambledEnv
from wavedash.envs.errors import EnvError
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener

pytestmark = pytest.mark.slow

NORMALISED = {"normalize_obs": True, "normalize_reward": True}
SMALL = {"rollout_steps": 8, "epochs": 2, "minibatch_size": 30, "learning_rate": 3e-3}
TOTAL = 380


class Stop(KeyboardInterrupt):
    """It is raised from outside, as the second Ctrl-C is."""


class Quiet(Listener):
    """Its `on_iteration` is another place to be interrupted in."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        _ = report.steps


def with_memory(**run: Any) -> Learner:
    env = ScrambledEnv(ACTIONS["discrete"], rows=6)
    config = run_config({**SMALL, "minibatch_size": 24, **NORMALISED}, {"memory": {"kind": "gru", "sequence": 4}}, **run)
    return learner_over(env, config, started=False)


def over_gymnasium(make: Callable[..., Any], **run: Any) -> Learner:
    env = make(partial(gymnasium.make, "CartPole-v1"), 4)
    return learner_over(env, run_config({**SMALL, "normalize_obs": True}, **run), started=False)


LEARNERS: dict[str, Callable[..., Learner]] = {
    "discrete": partial(identity_learner, "discrete", SMALL, started=False),
    "gaussian, normalised, buffer, kl": partial(
        identity_learner, "gaussian",
        {**SMALL, **NORMALISED, "buffer_rollouts": 3, "schedule": {"kind": "kl", "target_kl": 1e-3}},
        inactive=0.2, started=False),
    "memory": with_memory,
    "gymnasium": partial(over_gymnasium, LocalVecEnv),
    "workers": partial(over_gymnasium, partial(WorkerPool, workers=2, groups=2)),
}


def fresh(name: str) -> Learner:
    learner = LEARNERS[name](total_steps=TOTAL, seed=7)
    learner.listeners = [Quiet()]
    return learner


def run_with(learner: Learner, at: int | None) -> int:
    """Learns; raises Stop at the `at`-th line of the package that is run while the learner can be interrupted. Returns how many
    such lines there were."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "/wavedash/" not in frame.f_code.co_filename:
            return None
        if event == "line" and learner.interruptible:
            lines += 1
            if lines == at:
                learner.interruptible = False
                raise Stop
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        learner.learn()
    except Stop:
        pass
    finally:
        sys.settrace(before)
        leave_autocast()
    return lines


def leave_autocast() -> None:
    """A trace function that raises on the line where a `with` block is left keeps its `__exit__` from being called; a signal
    does not. Autocast would then go on using copies of old weights, in this test and in those after it."""
    torch.autocast_increment_nesting()
    while torch.autocast_decrement_nesting() > 0:
        pass
    torch.clear_autocast_cache()


@pytest.mark.parametrize("name", LEARNERS)
def test_from_any_line_the_run_goes_on_as_if_it_had_never_been_stopped(name):
    whole = fresh(name)
    lines = run_with(whole, None)
    assert lines > 1000
    tries = 3 if name == "workers" else 12
    for k in range(tries):
        at = 1 + (lines - 1) * k // tries + (k * 7919) % (lines // tries)
        first, second = fresh(name), fresh(name)
        run_with(first, at)
        assert first.steps < whole.steps, "it was stopped"
        second.load_state(*saved(first))
        second.learn()
        assert differences(whole, second) == set(), (at, lines, first.iteration)
        for learner in (first, second):
            learner.env.close()
    whole.env.close()


def test_what_is_saved_is_not_what_the_broken_iteration_made_of_it():
    """The control: the state in the middle of an iteration leads elsewhere."""
    whole, first = fresh("gaussian, normalised, buffer, kl"), fresh("gaussian, normalised, buffer, kl")
    lines = run_with(whole, None)
    run_with(first, lines // 2)
    second = fresh("gaussian, normalised, buffer, kl")
    first.saved.interrupted = None
    second.load_state(*saved(first))
    second.learn()
    assert differences(whole, second) != set()


@pytest.mark.parametrize("where", ["collect", "update", "listener"])
def test_after_an_error_anywhere_the_run_is_saved_as_the_iteration_began(where):
    whole, first, second = fresh("gymnasium"), fresh("gymnasium"), fresh("gymnasium")
    whole.learn()
    target: Any = {"collect": first.env, "update": first.updater, "listener": first.listeners[0]}[where]
    name = {"collect": "step", "update": "_gradient_step", "listener": "on_iteration"}[where]
    original, calls = getattr(target, name), 0

    def breaks(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        result = original(*arguments)
        if calls == {"collect": 37, "update": 7, "listener": 4}[where]:
            raise ValueError("from inside")
        return result

    setattr(target, name, breaks)
    with pytest.raises(ValueError, match="from inside"):
        first.learn()
    assert 0 < first.steps < whole.steps
    second.load_state(*saved(first))
    second.learn()
    assert differences(whole, second) == set()


def test_a_worker_that_fails_for_the_third_time_loses_no_earlier_iteration():
    ppo = {"rollout_steps": 8, "minibatch_size": 8, "epochs": 1}
    first = learner_over(WorkerPool(partial(Mortal, 50), 2, 1), run_config(ppo), started=False)
    with pytest.raises(EnvError, match="fails 3 times within a minute"):
        first.learn()
    assert first.iteration > 3
    second = learner_over(LocalVecEnv(Counter, 2), run_config(ppo), started=False)
    second.load_state(*saved(first))
    assert second.env.health["dropped_episodes"] == 0
    second.start()
    assert second.iterate().iteration == first.iteration + 1


def test_the_listener_that_saves_is_told_of_the_end_first():
    order: list[str] = []

    class Told(Listener):
        def __init__(self, name: str):
            self.name = name

        def on_stop(self, learner: Learner, error: BaseException | None) -> None:
            order.append(self.name)

    learner = fresh("discrete")
    learner.listeners = [Told("first"), Told("last")]
    learner.learn()
    assert order == ["last", "first"]
