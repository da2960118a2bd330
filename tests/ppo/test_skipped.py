"""Gradients that are not finite, in real training, are skipped, counted, kept for inspection and never learned from.

They come from rewards so huge that the loss overflows. (A reward that is itself not finite ends the run: see test_faults.)
"""
from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
import torch
from safetensors.torch import load_file

from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.errors import EnvError
from wavedash.ppo.divergence import MOST_DEAD_UPDATES, DivergedError
from wavedash.ppo.learner import Learner
from wavedash.ppo.rollout import RolloutBuffer
from wavedash.ppo.update import Updater
from wavedash.runs.crash import MOST_DUMPS, SkippedUpdates

T, N, EPOCHS = 12, 4, 3
HUGE = 3e38
PPO = {"rollout_steps": T, "epochs": EPOCHS, "minibatch_size": 12, "normalize_advantage": "off", "learning_rate": 1e-2}


def env(rollouts: int = 4) -> TapeEnv:
    torch.manual_seed(0)
    ends = torch.rand(T * rollouts, N) < 0.2
    return TapeEnv(torch.randn(T * rollouts, N, 2), torch.randn(T * rollouts, N), ends)


def learner(made: TapeEnv, folder=None, **ppo) -> Learner:
    listeners = [] if folder is None else [SkippedUpdates(folder)]
    return learner_over(made, run_config({**PPO, **ppo}), listeners=listeners)


def iterate(run: Learner) -> Mapping[str, float]:
    report = run.iterate()
    for listener in run.listeners:
        listener.on_iteration(run, report)
    return report.metrics


def all_finite(run: Learner) -> bool:
    tensors, _ = run.state()
    return all(x.isfinite().all() for name in ("policy", "optimizer") for x in tensors[name].values() if x.is_floating_point())


@pytest.mark.parametrize("bad", [HUGE, -HUGE])
def test_one_bad_reward_costs_the_minibatches_that_hold_it_and_nothing_else(bad, tmp_path, caplog):
    tape = env()
    tape.reward[T, 1] = bad  # the first step of the second rollout: no earlier step's advantage hangs on it
    run = learner(tape, tmp_path / "crash")
    assert iterate(run)["optim/skipped"] == 0 and not (tmp_path / "crash").exists()
    weights = run.updater.optimizer.parameters.clone()
    with caplog.at_level(logging.WARNING):
        metrics = iterate(run)
    assert metrics["optim/skipped"] == EPOCHS and metrics["optim/gradient_steps"] == EPOCHS * 3
    assert "3 gradient step(s) of iteration 2 were not finite" in caplog.text and "ppo.learning_rate" in caplog.text
    assert all_finite(run) and not torch.equal(run.updater.optimizer.parameters, weights)
    assert all(torch.tensor(metrics[name]).isfinite() for name in metrics if name.startswith(("loss/p", "policy/", "optim/")))
    assert iterate(run)["optim/skipped"] == 0
    assert len(list((tmp_path / "crash").iterdir())) == 1


def test_a_skipped_update_can_be_repeated_from_what_was_kept(tmp_path):
    tape = env()
    tape.reward[T, 1] = HUGE
    run = learner(tape, tmp_path)
    iterate(run)
    iterate(run)
    (dump,) = tmp_path.glob("skipped-*.safetensors")
    kept = load_file(dump)
    again = learner(env())
    again.updater.optimizer.parameters.copy_(kept["before.parameters"])
    again.updater.load_state_dict({name.removeprefix("before."): x for name, x in kept.items() if name.startswith("before.")})
    rollout = again.buffer.next_slot()
    for name, x in rollout.tensors().items():
        x.copy_(kept[f"rollout.{name}"])
    again.updater.update(again.buffer)
    assert torch.equal(again.updater.optimizer.parameters, run.updater.optimizer.parameters)


def test_one_bad_gradient_is_skipped_too(monkeypatch):
    run = learner(env())
    evaluate, calls = run.policy.evaluate, []

    def sabotaged(*batch):
        evaluation = evaluate(*batch)
        calls.append(1)
        if len(calls) != 5:
            return evaluation

        def backward(gradients):
            evaluation.backward(gradients)
            run.updater.optimizer.gradient[7] = torch.nan

        return evaluation._replace(backward=backward)

    monkeypatch.setattr(run.policy, "evaluate", sabotaged)
    metrics = iterate(run)
    assert len(calls) == 4 * EPOCHS and metrics["optim/skipped"] == 1 and metrics["optim/gradient_steps"] == 4 * EPOCHS - 1
    assert all_finite(run)


@pytest.mark.parametrize("where", ["reward", "obs"])
def test_statistics_outlive_a_bad_number(where):
    """Returns, their scale and the observations' scale are running sums: one NaN must not stay in them. The iteration ends with
    an error; a learner that goes on all the same, as here, has sound statistics."""
    tape = env(6)
    getattr(tape, where)[T + 5, 1] = torch.nan
    run = learner(tape, normalize_obs=True, normalize_reward=True, normalize_advantage="batch")
    with pytest.raises(EnvError, match=r"of row 1 is nan"):
        run.iterate()
    metrics = [iterate(run) for _ in range(3)]
    assert [f["optim/skipped"] for f in metrics] == [0, 0, 0]
    assert all_finite(run) and run.tracker.running.isfinite().all() and run.return_moments.scale.isfinite()
    assert all(torch.tensor(metrics[-1][name]).isfinite() for name in metrics[-1])


def test_a_run_that_has_nothing_finite_left_ends_with_advice(tmp_path):
    tape = env(2 * MOST_DEAD_UPDATES)
    tape.reward[2 * T :] = HUGE
    run = learner(tape, tmp_path / "crash")
    for _ in range(2 + MOST_DEAD_UPDATES - 1):
        iterate(run)
    weights = run.updater.optimizer.parameters.clone()
    with pytest.raises(DivergedError) as raised:
        iterate(run)
    message = str(raised.value)
    assert "no finite gradient" in message and "ppo.learning_rate" in message and "ppo.normalize_reward=true" in message
    assert str(MOST_DEAD_UPDATES) in message and "then resume" in message
    assert torch.equal(run.updater.optimizer.parameters, weights) and all_finite(run)
    assert len(list((tmp_path / "crash").iterdir())) == MOST_DUMPS


def test_good_iterations_in_between_keep_a_run_alive():
    tape = env(2 * MOST_DEAD_UPDATES + 2)
    for k in range(0, 2 * MOST_DEAD_UPDATES + 2, 2):
        tape.reward[T * k : T * (k + 1)] = HUGE
    run = learner(tape)
    skipped = [iterate(run)["optim/skipped"] for _ in range(2 * MOST_DEAD_UPDATES + 2)]
    assert skipped[::2] == [12.0] * (MOST_DEAD_UPDATES + 1) and not any(skipped[1::2])


def test_without_the_guard_one_nan_would_spoil_the_weights(monkeypatch):
    """The control: torch's own optimiser, as most libraries use it, applies the gradient."""
    policy_run = learner(env())
    buffer: RolloutBuffer = policy_run.buffer
    policy_run.iterate()
    buffer.samples.advantage[0] = torch.nan
    updater: Updater = policy_run.updater
    plain = torch.optim.AdamW(policy_run.policy.parameters(), lr=1e-2)

    def unguarded(skip=None):
        plain.step()
        return torch.linalg.vector_norm(updater.optimizer.gradient), torch.ones((), dtype=torch.bool)

    monkeypatch.setattr(updater.optimizer, "step", unguarded)
    updater.update(buffer)
    assert policy_run.policy.head.logits.weight.isnan().all()
