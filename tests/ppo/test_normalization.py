"""Normalisers in a run: what they measure, when they change, and what the advantages are computed from."""
from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.oracle import gae_by_episode
from tests.ppo.learners import learner_over, run_config
from tests.roundings import assert_rounded, assert_within, gamma
from tests.toy_vec_envs import TapeEnv
from wavedash.ppo.learner import Learner

T, N, GAMMA, LAMBDA = 16, 6, 0.9, 0.8


def tape(rollouts: int, inactive: float = 0.3, end: float = 0.2) -> TapeEnv:
    torch.manual_seed(0)
    shape = (T * rollouts, N)
    drift = torch.linspace(0, 5, shape[0]).view(-1, 1, 1)
    flags = [torch.rand(shape) < share for share in (end / 2, end / 2, inactive)]
    active = ~flags[2]
    active[0, :4] = True  # statistics start from the median of the first observations
    obs = (torch.randn(*shape, 2) * torch.tensor([1.0, 10.0]) + drift).masked_fill(~active.unsqueeze(-1), 1e4)
    return TapeEnv(obs, 3.0 * torch.randn(shape) + 1.0, flags[0], flags[1], active)


def learner(env: TapeEnv, started: bool = True, **ppo) -> Learner:
    settings = {"rollout_steps": T, "epochs": 1, "gamma": GAMMA, "gae_lambda": LAMBDA, "reward_clip": 1e9, **ppo}
    return learner_over(env, run_config(settings), started)


def test_the_calibration_rollout_measures_and_makes_no_gradient_step():
    env = tape(1)
    run = learner(env, started=False, normalize_obs=True, normalize_reward=True)
    weights = run.updater.optimizer.parameters.clone()
    run.start()
    assert torch.equal(run.updater.optimizer.parameters, weights)
    assert all(step == 0 for step in run.updater.optimizer.steps.values()) and run.iteration == 0
    assert run.steps == int(env.active.sum()) and run.buffer.filled == 0
    measured = run.policy.normalizer.parts["obs"]
    counted = env.obs[env.active].double()
    assert float(measured.count) == len(counted)
    far = (counted - env.obs[0].double().nanmedian(0).values).abs().amax(0) + 1.0  # from where the statistics start
    assert_rounded(measured.mean, counted.mean(0), N + 8, far)
    assert_rounded(measured.var, counted.var(0, correction=0), 4 * (N + 8), far**2)
    run.iterate()
    assert not torch.equal(run.updater.optimizer.parameters, weights)


def test_without_normalisers_nothing_is_calibrated():
    env = tape(1)
    run = learner(env)
    assert run.steps == 0 and env.played == 0


def test_observations_are_normalised_by_everything_seen_before_this_rollout():
    env = tape(4)
    run = learner(env, normalize_obs=True, obs_clip=3.0)
    for k in range(1, 4):
        run.iterate()
        past = env.obs[: T * k][env.active[: T * k]].double()
        expected = ((env.obs[T * k : T * (k + 1)].double() - past.mean(0)) / past.std(0, correction=0)).clamp(-3, 3)
        active = env.active[T * k : T * (k + 1)]
        # Roundings are of the largest number seen, 60, and of its square in the variance; the deviation is about 1.
        assert_within(run.rollout.obs[active], expected[active], gamma(4 * (N + 8)) * 60**2)
        assert run.rollout.obs.abs().max() <= 3.0
        one_rollout_late = env.obs[: T * (k + 1)][env.active[: T * (k + 1)]].double()
        assert (one_rollout_late.mean(0) - past.mean(0)).abs().max() > 0.1


def test_normalisers_do_not_change_from_the_first_step_to_the_last_gradient():
    run = learner(tape(5), normalize_obs=True, normalize_reward=True)
    moments = run.normalizers[0].parts["obs"], run.normalizers[1]
    readings = []

    def read() -> list[torch.Tensor]:
        return [x.clone() for m in moments for x in (m.shift, m.scale)]

    def watched(function):
        def wrapper(*args):
            readings.append(read())
            result = function(*args)
            readings.append(read())
            return result
        return wrapper

    run.collector._act = watched(run.collector._act)
    run.updater._gradient_step = watched(run.updater._gradient_step)
    for _ in range(3):
        readings.clear()
        run.iterate()
        assert len(readings) > 2 * T
        assert all(torch.equal(a, b) for reading in readings for a, b in zip(reading, readings[0], strict=True))
        assert not any(torch.equal(a, b) for a, b in zip(read(), readings[0], strict=True))


# --- rewards ---------------------------------------------------------------------------------------------------------


def discounted_returns(env: TapeEnv, steps: int, gamma: float) -> list[float]:
    """R_t = r_t + gamma * R_{t-1} of every transition, row by row; a new episode or an inactive step starts afresh."""
    returns = []
    for n in range(N):
        running = 0.0
        for t in range(steps):
            if not env.active[t, n]:
                running = 0.0
                continue
            running = float(env.reward[t, n]) + gamma * running
            returns.append(running)
            if env.terminated[t, n] or env.truncated[t, n]:
                running = 0.0
    return returns


def test_rewards_are_divided_by_the_deviation_of_the_discounted_return_so_far():
    env = tape(4)
    run = learner(env, normalize_reward=True)
    for k in range(1, 4):
        run.iterate()
        deviation = np.std(discounted_returns(env, T * k, GAMMA))
        rollout, part = run.rollout, slice(T * k, T * (k + 1))
        with torch.no_grad():
            last_value = run.policy.value(run.collector.shards[0].obs, {})
        # The policy has changed since: values at the edge are known only after an end of an episode or an inactive step.
        known = (env.terminated | env.truncated | ~env.active)[part][-1]
        expected = gae_by_episode(env.reward[part] / deviation, rollout.value, last_value, rollout.final_value,
                                  rollout.terminated, rollout.truncated, rollout.active, GAMMA, LAMBDA)
        assert known.any()
        # The sums are of 16 steps, of numbers below 40 in all; the scale has the roundings of all returns.
        assert_within(rollout.advantage[:, known], expected[:, known], gamma(T * N + 4 * T) * 40.0)
    assert_rounded(run.return_moments.var.sqrt(), np.std(discounted_returns(env, T * 4, GAMMA)), 4 * T * N)


def test_the_discount_of_the_reward_scale_is_ppos():
    env = tape(2)
    run = learner(env, normalize_reward=True, gamma=0.5)
    measured = float(run.return_moments.var.sqrt())
    assert_rounded(measured, np.std(discounted_returns(env, T, 0.5)), 4 * T * N)
    assert measured != pytest.approx(np.std(discounted_returns(env, T, 0.99)), rel=0.1)


def test_a_normalised_reward_is_clipped():
    env = tape(2, inactive=0.0, end=0.0)
    env.reward[T + 3, 2] = 1e6
    run = learner(env, normalize_reward=True, reward_clip=5.0, gae_lambda=0.0)
    run.iterate()
    advantage = run.rollout.advantage
    value, following = run.rollout.value[3, 2], run.rollout.value[4, 2]
    assert_rounded(advantage[3, 2], 5.0 + GAMMA * following - value, 8, 5.0 + following.abs() + value.abs())
    assert math.isfinite(float(advantage.abs().max())) and float(advantage.abs().max()) < 10


def test_the_reward_of_an_empty_seat_counts_nowhere():
    """A simulator may leave NaN there."""
    outcomes = []
    for paid in (0.0, torch.nan):
        env = tape(3)
        env.reward.masked_fill_(~env.active, paid)
        run = learner(env, normalize_reward=True)
        metrics = [run.iterate().metrics for _ in range(2)]
        outcomes.append((run.updater.optimizer.parameters.clone(), metrics))
    assert torch.equal(outcomes[0][0], outcomes[1][0]) and outcomes[0][1] == outcomes[1][1]
    assert outcomes[0][1][0]["optim/skipped"] == 0
