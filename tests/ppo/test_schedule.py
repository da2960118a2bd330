"""Schedules of the learning rate, the clip range, the entropy bonus and the discount against numbers worked out by hand."""
from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from tests.ppo.learners import identity_learner
from tests.roundings import assert_rounded, gamma
from wavedash.config import DecayConfig, PPOConfig, ScheduleConfig
from wavedash.ppo.schedule import Schedule, discount


@pytest.mark.parametrize(("kind", "floor", "progress", "multiplier"), [
    ("constant", 0.1, 0.7, 1.0),
    ("linear", 0.0, 0.0, 1.0), ("linear", 0.0, 0.25, 0.75), ("linear", 0.0, 1.0, 0.0), ("linear", 0.2, 0.5, 0.6),
    ("cosine", 0.0, 0.0, 1.0), ("cosine", 0.0, 0.5, 0.5), ("cosine", 0.0, 1 / 3, 0.75), ("cosine", 0.2, 0.5, 0.6),
    ("cosine", 0.2, 1.0, 0.2),
    ("linear", 0.2, 1.5, 0.2), ("cosine", 0.2, 1.5, 0.2),  # past the goal of a run that was made longer and shorter again
])
def test_the_learning_rate_falls_with_progress(kind, floor, progress, multiplier):
    for config in (ScheduleConfig, DecayConfig):
        assert Schedule(config(kind=kind, floor=floor)).advance(progress, kl=99.0) == pytest.approx(multiplier)


def test_the_kl_schedule_moves_against_the_kl_within_its_bounds():
    schedule = Schedule(ScheduleConfig(kind="kl", target_kl=0.01, factor=2.0, bounds=(0.2, 3.0)))
    kls = [0.03, 0.021, 0.015, 0.019, 0.5, 0.004, None, 0.0, 0.0, 0.0, 0.0, 0.006]
    expected = [0.5, 0.25, 0.25, 0.25, 0.2, 0.4, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
    assert [schedule.advance(0.5, kl) for kl in kls] == pytest.approx(expected)


def test_a_run_uses_the_multiplier_of_its_progress():
    """An iteration has 8 rows x 5 steps, and the run 200 steps."""
    learner = identity_learner("discrete", {"rollout_steps": 5, "epochs": 1, "learning_rate": 0.01,
                                            "schedule": {"kind": "linear", "floor": 0.0}}, total_steps=200)
    rates = [learner.iterate().metrics["optim/learning_rate"] for _ in range(5)]
    assert rates == pytest.approx([0.01, 0.008, 0.006, 0.004, 0.002])
    assert_rounded(learner.updater.optimizer.rates["policy"], 0.002, 1)  # stored in float32


def test_a_run_follows_its_kl():
    schedule = {"kind": "kl", "target_kl": 1e-4, "factor": 2.0}
    learner = identity_learner("discrete", {"rollout_steps": 16, "epochs": 4, "learning_rate": 0.02, "schedule": schedule})
    reports = [learner.iterate().metrics for _ in range(3)]
    for before, after in pairwise(reports):
        kl, ratio = before["policy/kl"], after["optim/learning_rate"] / before["optim/learning_rate"]
        assert kl > 2e-4 and ratio == pytest.approx(0.5)


MOVING = {"rollout_steps": 5, "epochs": 2, "learning_rate": 0.05, "clip_range": 0.1, "entropy_coef": 0.4,
          "clip_schedule": {"kind": "linear", "floor": 0.0}, "entropy_schedule": {"kind": "linear", "floor": 0.5}}


def test_clip_range_and_entropy_bonus_are_reported_as_they_are_now():
    learner = identity_learner("discrete", MOVING, total_steps=200)
    reports = [learner.iterate().metrics for _ in range(5)]
    assert [report["optim/clip_range"] for report in reports] == pytest.approx([0.1, 0.08, 0.06, 0.04, 0.02])
    assert [report["optim/entropy_coef"] for report in reports] == pytest.approx([0.4, 0.36, 0.32, 0.28, 0.24])
    assert learner.updater.loss.coefficients["clip_range"].item() == pytest.approx(0.02)


@pytest.mark.parametrize("wrong", [None, "clip_range", "entropy_coef"])
def test_an_update_uses_the_scheduled_values_of_its_time(wrong):
    """The third update of a run with schedules is that of a run whose values have always been what they are by then."""
    moving = identity_learner("discrete", MOVING, total_steps=200)
    for _ in range(2):
        moving.iterate()
    now = {"clip_range": 0.06, "entropy_coef": 0.32}
    if wrong is not None:  # the control
        now[wrong] = MOVING[wrong]
    plain = {name: x for name, x in MOVING.items() if not name.endswith("schedule")}
    fixed = identity_learner("discrete", {**plain, **now}, total_steps=200, started=False)
    fixed.load_state(*moving.state())
    for decay in fixed.decays.values():
        decay.multiplier = 1.0
    moving.iterate()
    fixed.iterate()
    same = torch.equal(moving.updater.optimizer.parameters, fixed.updater.optimizer.parameters)
    assert same == (wrong is None)


@pytest.mark.parametrize(("begin", "end", "progress", "expected"), [
    (0.99, None, 0.7, 0.99), (0.9, 0.999, 0.0, 0.9), (0.9, 0.999, 0.5, 0.99), (0.9, 0.999, 1.0, 0.999),
    (0.9, 0.999, 1.5, 0.999), (0.99, 0.9, 0.5, 1 - 0.1**1.5), (0.0, 0.75, 0.5, 0.5),
])
def test_the_horizon_moves_by_the_same_factor_in_equal_parts_of_the_run(begin, end, progress, expected):
    assert discount(PPOConfig(gamma=begin, gamma_end=end), progress) == pytest.approx(expected)


def test_a_finite_end_needs_a_finite_beginning():
    with pytest.raises(ValueError, match=r"ppo.gamma_end needs ppo.gamma below 1"):
        PPOConfig(gamma=1.0, gamma_end=0.9)


DISCOUNTED = {"rollout_steps": 5, "epochs": 2, "learning_rate": 0.05, "normalize_reward": True}


@pytest.mark.parametrize("then", [0.99, 0.9])
def test_an_iteration_uses_the_discount_of_its_time_for_advantages_and_for_the_scale_of_rewards(then):
    """After half of the run gamma has come from 0.9 to 0.99. The control is a run whose gamma stays at 0.9."""
    moving = identity_learner("discrete", {**DISCOUNTED, "gamma": 0.9, "gamma_end": 0.999}, total_steps=240)
    gammas = [moving.iterate().metrics["optim/gamma"] for _ in range(2)]  # calibration and an iteration are 8 * 5 steps each
    assert moving.steps == 120 and gammas == pytest.approx([1 - 0.1 ** (1 + 2 / 6), 1 - 0.1 ** (1 + 4 / 6)])
    fixed = identity_learner("discrete", {**DISCOUNTED, "gamma": then}, total_steps=240, started=False)
    fixed.load_state(*moving.state())
    reports = [learner.iterate().metrics for learner in (moving, fixed)]
    assert reports[0]["optim/gamma"] == pytest.approx(0.99) and "optim/gamma" not in reports[1]
    assert moving.return_moments is not None and fixed.return_moments is not None
    pairs = [(moving.rollout.advantage, fixed.rollout.advantage), (moving.return_moments.var, fixed.return_moments.var)]
    for one, other in pairs:
        # Where gamma is a tensor, its product with lambda is rounded once more, in each of five steps that are added up.
        close = bool((one - other).abs().max() <= gamma(40) * one.abs().max())
        assert close == (then == 0.99)


def test_a_resumed_run_goes_on_with_its_discount():
    first, second = (identity_learner("discrete", {**DISCOUNTED, "gamma": 0.9, "gamma_end": 0.999}, total_steps=240,
                                      started=started) for started in (True, False))
    first.iterate()
    second.load_state(*first.state())
    assert first.iterate().metrics == second.iterate().metrics
    assert torch.equal(first.updater.optimizer.parameters, second.updater.optimizer.parameters)
