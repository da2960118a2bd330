"""Evaluation: which episodes count, and how certain the metrics are."""
from __future__ import annotations

import math
from pathlib import Path

import gymnasium
import pytest
import torch

from tests.toy_vec_envs import TapeEnv
from wavedash.envs.headline import Headline
from wavedash.envs.vec_env import Obs, Step
from wavedash.evaluate.episodes import Games, play
from wavedash.evaluate.own_task import EvaluationResult
from wavedash.evaluate.random_play import RandomPlayer
from wavedash.evaluate.shares import NORMAL, Sample, Share, spread_of_sum, student_95


class ReportingEnv(TapeEnv):
    """It reports the reward as a metric too, and success where an episode ends."""

    def step(self, action: torch.Tensor) -> Step:
        step = super().step(action)
        return step._replace(metrics={"twice": 2 * step.reward, "episode/success": step.terminated.float()})


def test_whole_episodes_are_counted_row_by_row():
    # Row 0 has episodes of 1 and 2 steps, row 1 one of 3; rewards are the powers of two of the step.
    reward = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    terminated = torch.tensor([[True, False], [False, False], [False, True]])
    truncated = torch.tensor([[False, False], [False, False], [True, False]])
    env = ReportingEnv(torch.zeros(3, 2, 1), reward, terminated, truncated)
    games = play(env, lambda obs: torch.zeros(2, dtype=torch.int64), episodes=2, rounds=1, seed=0)
    assert games.returns == [1.0, 70.0], "only the first episode of row 0 counts, so that short ones are not favoured"
    assert games.lengths == [1.0, 3.0]
    assert games.success == [1.0, 1.0]
    assert games.metrics == {"twice": [2.0, pytest.approx(140 / 3)]}
    more = play(env, lambda obs: torch.zeros(2, dtype=torch.int64), episodes=4, rounds=2, seed=0)
    assert sorted(more.returns) == [1.0, 6.0, 70.0, 70.0] and sorted(more.success) == [0.0, 1.0, 1.0, 1.0]


class LanesEnv(ReportingEnv):
    """Its second row plays a lane, in which alone `skill` is measured."""

    lanes = ("drill",)

    def step(self, action: torch.Tensor) -> Step:
        step = super().step(action)
        metrics = {**step.metrics, "skill": torch.tensor([torch.nan, 3.0]), "attempt/trick": torch.tensor([1.0, 0.0])}
        return step._replace(metrics=metrics, lane=torch.tensor([0, 1]))


def test_episodes_of_lanes_are_told_apart():
    reward = torch.tensor([[1.0, 10.0], [2.0, 20.0]])
    terminated = torch.tensor([[False, False], [True, True]])
    env = LanesEnv(torch.zeros(2, 2, 1), reward, terminated)
    games = play(env, lambda obs: torch.zeros(2, dtype=torch.int64), episodes=2, rounds=1, seed=0)
    assert (games.returns, games.lengths, games.success) == ([3.0], [2.0], [1.0])
    assert games.metrics == {"twice": [3.0], "attempt/trick": [1.0, 1.0], "lane/drill/twice": [30.0],
                             "lane/drill/skill": [3.0], "lane/drill/attempt/trick": [0.0, 0.0]}


class AttemptsEnv(TapeEnv):
    """Its rows try something now and then: NaN where they do not."""

    OUTCOME = torch.tensor([[1.0, torch.nan], [torch.nan, 0.0], [0.0, 1.0]])

    def step(self, action: torch.Tensor) -> Step:
        outcome = self.OUTCOME[self.played % 3]
        return super().step(action)._replace(metrics={"attempt/trick": outcome, "attempt/never": outcome * torch.nan})


def test_every_attempt_counts_once_and_only_in_episodes_that_count():
    terminated = torch.tensor([[True, False], [False, False], [True, True]])
    env = AttemptsEnv(torch.zeros(3, 2, 1), torch.ones(3, 2), terminated)
    games = play(env, lambda obs: torch.zeros(2, dtype=torch.int64), episodes=2, rounds=1, seed=0)
    assert games.metrics == {"attempt/trick": [1.0, 0.0, 1.0]}, "not the second episode of row 0, which failed"
    active = torch.tensor([[True, False]] * 3)
    env = AttemptsEnv(torch.zeros(3, 2, 1), torch.ones(3, 2), terminated, active=active)
    assert play(env, lambda obs: torch.zeros(2, dtype=torch.int64), 2, 1, 0).metrics == {"attempt/trick": [1.0]}


def test_headlines_come_first_and_amounts_of_a_whole_with_their_share():
    metrics = {"pay/a": [0.5, 0.7], "other": [1.0, 1.0], "pay/b": [-0.2, -0.2], "rate": [3.0, 5.0]}
    headlines = [Headline("rates", {"rate": "per minute"}), Headline("pay", {"pay/a": "a", "pay/b": "b"}, shares=True)]
    result = EvaluationResult(Path("p"), Games([1.0, 2.0], [3.0, 3.0], metrics=metrics), True, headlines=headlines)
    lines = str(result).splitlines()
    assert [line.split()[0] for line in lines] == ["policy", "episodes", "return", "length", "rate", "pay/a", "pay/b", "other"]
    assert [line.partition("; ")[2] for line in lines[4:]] == ["", "+75.0 % of all", "-25.0 % of all", ""]


def test_inactive_rows_do_not_count():
    reward = torch.full((2, 2), float("nan"))
    reward[:, 0] = 1.0
    active = torch.tensor([[True, False], [True, False]])
    env = ReportingEnv(torch.zeros(2, 2, 1), reward, torch.tensor([[False, False], [True, True]]), active=active)
    games = play(env, lambda obs: torch.zeros(2, dtype=torch.int64), episodes=2, rounds=1, seed=0)
    assert games.returns == [2.0] and games.lengths == [2.0] and games.metrics == {"twice": [2.0]}


@pytest.mark.parametrize("count", [2, 3, 5, 50])
def test_a_95_percent_interval_contains_the_mean_in_95_percent_of_samples(count):
    """The control is the interval of a normal distribution, which is too narrow for few numbers."""
    torch.manual_seed(0)
    held, as_normal = 0, 0
    for _ in range(2_000):
        sample = Sample((3.0 + 2.0 * torch.randn(count)).tolist())
        low, high = sample.interval
        held += low < 3.0 < high
        as_normal += abs(sample.mean - 3.0) < NORMAL * sample.error
    assert 0.93 < held / 2_000 < 0.97
    assert count == 50 or as_normal / 2_000 < 0.92


def test_students_distribution_is_that_of_the_tables():
    printed = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 7: 2.365, 10: 2.228, 29: 2.045, 120: 1.980}
    assert {freedom: round(student_95(freedom), 3) for freedom in printed} == printed
    assert student_95(1_000) == pytest.approx(student_95(1_001), abs=3e-3)
    assert math.isnan(student_95(0)) and math.isnan(Sample([3.0]).interval[0])


def test_a_sum_of_means_with_unequal_errors_lies_in_its_95_percent_interval():
    """Means of 3 and of 8 numbers, which spread differently; the control gives both of them the freedom of all numbers."""
    torch.manual_seed(0)
    held, pooled = 0, 0
    for _ in range(2_000):
        samples = [Sample((5.0 * torch.randn(3)).tolist()), Sample(torch.randn(8).tolist())]
        off = abs(sum(sample.mean for sample in samples))
        held += off < spread_of_sum([(sample.error, len(sample.values)) for sample in samples])
        pooled += off < student_95(9) * math.hypot(*(sample.error for sample in samples))
    assert 0.93 < held / 2_000 < 0.98 and pooled / 2_000 < 0.92
    assert spread_of_sum([(0.0, 3), (0.0, 3)]) == 0.0 and math.isnan(spread_of_sum([(1.0, 3), (1.0, 1)]))


def test_a_95_percent_interval_of_a_ratio_contains_it_in_95_percent_of_samples():
    torch.manual_seed(0)
    held = 0
    for _ in range(400):
        ratio, low, high = Sample((12.0 + 4.0 * torch.randn(60)).tolist()).times(Sample((1.0 + torch.randn(60)).tolist()))
        held += low < 12.0 < high
        assert math.isclose(ratio * ratio, low * high, rel_tol=1e-9)
    assert 0.92 < held / 400 < 0.98


@pytest.mark.parametrize("space", [
    gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiDiscrete([2, 3]), gymnasium.spaces.MultiBinary(2),
    gymnasium.spaces.Box(-2.0, 1.0, (2,)),
], ids=["discrete", "multi-discrete", "multi-binary", "box"])
def test_random_play_uses_every_action_and_no_other(space):
    rows = 2_000
    env = TapeEnv(torch.zeros(1, rows, 1), torch.zeros(1, rows), action_space=space)
    action = RandomPlayer(env, seed=0)(torch.zeros(rows, 1))
    assert all(space.contains(a) for a in action.numpy().astype(space.dtype))
    if isinstance(space, gymnasium.spaces.Box):
        assert action.min() < -1.98 and action.max() > 0.98 and abs(float(action.mean()) + 0.5) < 0.05
    else:
        for column in action.view(rows, -1).t():
            share = column.bincount() / rows
            assert torch.allclose(share, torch.full_like(share, 1 / len(share)), atol=0.05)


def test_random_play_keeps_to_the_mask():
    rows = 500
    env = TapeEnv(torch.zeros(1, rows, 1), torch.zeros(1, rows), action_space=gymnasium.spaces.MultiDiscrete([3, 2]))
    mask = torch.tensor([1, 0, 1, 0, 1], dtype=torch.int8).expand(rows, 5)
    obs: Obs = {"obs": torch.zeros(rows, 1), "action_mask": mask}
    action = RandomPlayer(env, seed=0)(obs)
    assert set(action[:, 0].tolist()) == {0, 2} and set(action[:, 1].tolist()) == {1}


@pytest.mark.parametrize(("hits", "cases", "low", "high"), [
    (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718),
])
def test_the_interval_of_a_share_is_the_published_one(hits, cases, low, high):
    """Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3."""
    assert Share(hits, cases).interval == pytest.approx((low, high), abs=5e-5)
    mirrored = Share(cases - hits, cases).interval
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=5e-5)


@pytest.mark.parametrize(("first", "second", "low", "high"), [
    ((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((6, 7), (2, 7), 0.0582, 0.8062),
    ((5, 56), (0, 29), -0.0381, 0.1926), ((0, 10), (0, 20), -0.1611, 0.2775), ((10, 10), (0, 20), 0.6791, 1.0),
])
def test_the_interval_of_a_difference_of_shares_is_the_published_one(first, second, low, high):
    """Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 10."""
    difference, *interval = Share(*first).minus(Share(*second))
    assert difference == pytest.approx(first[0] / first[1] - second[0] / second[1])
    assert interval == pytest.approx([low, high], abs=5e-5)


def test_without_cases_the_interval_of_a_share_is_0_to_1():
    assert math.isnan(Share(0, 0).value) and Share(0, 0).interval == (0.0, 1.0)


def test_95_percent_intervals_of_shares_contain_them_in_95_percent_of_samples():
    torch.manual_seed(0)
    held = held_difference = 0
    for _ in range(1_000):
        a, b = (Share(int((torch.rand(40) < p).sum()), 40) for p in (0.15, 0.3))
        low, high = a.interval
        held += low <= 0.15 <= high
        _, low, high = a.minus(b)
        held_difference += low <= -0.15 <= high
    assert 0.93 < held / 1_000 < 0.98 and 0.93 < held_difference / 1_000 < 0.98
