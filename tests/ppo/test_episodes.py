"""Episode statistics of a run against a slow count, row by row and step by step."""
from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ppo.learners import learner_over, run_config
from tests.roundings import assert_rounded
from tests.toy_vec_envs import TapeEnv
from wavedash.ppo.episodes import Episode, EpisodeWindow, latest_rows

T, N = 8, 5


def random_tape(seed: int, rollouts: int, inactive: float, end: float) -> TapeEnv:
    generator = torch.Generator().manual_seed(seed)
    shape = (T * rollouts, N)
    flags = [torch.rand(shape, generator=generator) < share for share in (end, end, inactive)]
    reward = torch.randn(shape, generator=generator)
    return TapeEnv(torch.randn(*shape, 2, generator=generator), reward, flags[0], flags[1], ~flags[2])


def finished(env: TapeEnv) -> list[tuple[int, float, int]]:
    """(time, return, length) of every episode that ended, in the order of their ends. An inactive row drops its episode."""
    episodes = []
    running = [(0.0, 0)] * N
    for t in range(len(env.reward)):
        for n in range(N):
            ret, length = running[n]
            if not env.active[t, n]:
                running[n] = (0.0, 0)
                continue
            ret, length = ret + float(env.reward[t, n]), length + 1
            running[n] = (ret, length)
            if env.terminated[t, n] or env.truncated[t, n]:
                episodes.append((t, ret, length))
                running[n] = (0.0, 0)
    return episodes


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), inactive=st.sampled_from([0.0, 0.2, 0.6]), end=st.sampled_from([0.0, 0.05, 0.4]))
def test_returns_lengths_and_counts_are_those_of_a_slow_count(seed, inactive, end):
    rollouts, window = 4, 6
    env = random_tape(seed, rollouts, inactive, end)
    learner = learner_over(env, run_config({"rollout_steps": T, "epochs": 1}, checkpoint={"best_window": window}))
    episodes = finished(env)
    for k in range(rollouts):
        report = learner.iterate()
        here = [e for e in episodes if e[0] // T == k]
        so_far = [e for e in episodes if e[0] // T <= k]
        active = env.active[T * k : T * (k + 1)]
        metrics = report.metrics
        assert metrics["rollout/steps"] == int(active.sum()) and report.steps == int(env.active[: T * (k + 1)].sum())
        assert metrics["rollout/episodes"] == len(here) and report.episodes == len(so_far)
        assert ("rollout/return" in metrics) == bool(here) and ("recent/return" in metrics) == bool(so_far)
        for prefix, chosen in (("rollout", here), ("recent", so_far[-window:])):
            if chosen:
                # Rewards are standard normal: no sum of them exceeds 5 for each that is added.
                added = max(e[2] for e in chosen) + len(chosen)
                assert_rounded(metrics[f"{prefix}/return"], sum(e[1] for e in chosen) / len(chosen), added, 5.0 * added)
                assert_rounded(metrics[f"{prefix}/length"], sum(e[2] for e in chosen) / len(chosen), 4)
        if active.any():
            expected = float(env.reward[T * k : T * (k + 1)][active].mean())
            assert_rounded(metrics["rollout/reward"], expected, 2 * T * N, 5.0)


def test_a_dropped_episode_counts_nowhere():
    """A row that is inactive and done at once lost its worker. Its return is forgotten; its next episode starts from zero."""
    never, ends, active = (torch.zeros(T, N, dtype=torch.bool) for _ in range(3))
    active[:] = True
    ends[3], active[3] = True, False
    ends[6] = True
    env = TapeEnv(torch.randn(T, N, 2), torch.ones(T, N), never, ends, active)
    report = learner_over(env, run_config({"rollout_steps": T, "epochs": 1})).iterate()
    assert report.metrics["rollout/episodes"] == N
    assert report.metrics["rollout/return"] == report.metrics["rollout/length"] == 3.0


def test_an_episode_may_be_longer_than_many_rollouts():
    ends = torch.zeros(T * 4, N, dtype=torch.bool)
    ends[T * 3 + 2, 1] = True
    env = TapeEnv(torch.randn(T * 4, N, 2), torch.full((T * 4, N), 0.5), ends)
    learner = learner_over(env, run_config({"rollout_steps": T}))
    lengths = [learner.iterate().metrics.get("rollout/length") for _ in range(4)]
    assert lengths == [None, None, None, T * 3 + 3]


def test_the_window_holds_the_latest_in_the_order_of_their_ends():
    ended = torch.zeros(4, 3, dtype=torch.bool)
    ended[0, 2] = ended[1, 0] = ended[3, 1] = True
    rows, real = latest_rows(ended)
    assert rows[real].tolist() == [2, 3, 10]
    rows, real = latest_rows(ended, most=2)
    assert rows[real].tolist() == [3, 10]
    assert not latest_rows(torch.zeros(4, 3, dtype=torch.bool))[1].any()


def test_success_is_averaged_over_the_episodes_that_report_it():
    window = EpisodeWindow(3)
    assert window.metrics() == {}
    window.extend([Episode(9.0, 9.0, 1.0), Episode(1.0, 2.0, 1.0), Episode(2.0, 4.0, torch.nan), Episode(6.0, 6.0, 0.0)])
    assert window.metrics() == {"recent/count": 3.0, "recent/return": 3.0, "recent/length": 4.0, "recent/success": 0.5}
