"""Advantages against a reference that cuts the rollout into episodes and sums each by hand."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.oracle import cut_into_pieces, gae_by_episode
from tests.roundings import assert_rounded, assert_same_in_float64
from wavedash.ppo.gae import gae, next_values

GAMMA, LAMBDA = 0.875, 0.75
"""Their product has few digits and is exact in float32 too, so that only roundings of float64 remain."""


class Case:
    """Random numbers [T, N] around given flags; everything that must not matter is far out of range."""

    def __init__(self, seed: int, terminated: np.ndarray, truncated: np.ndarray, active: np.ndarray):
        rng = np.random.default_rng(seed)
        self.terminated, self.truncated, self.active = terminated, truncated, active
        shape = terminated.shape
        self.reward = np.where(active, rng.normal(size=shape), 1e6)
        self.value = rng.normal(size=shape)
        self.last_value = rng.normal(size=shape[1])
        self.final_value = np.where(truncated, rng.normal(size=shape), 1e6)

    def tensors(self, **changed: np.ndarray) -> dict[str, Tensor]:
        return {name: torch.from_numpy(np.asarray(x)) for name, x in {**vars(self), **changed}.items()}

    def ours(self, **changed: np.ndarray) -> Tensor:
        x = self.tensors(**changed)
        following = next_values(x["value"], x["last_value"], x["final_value"], x["terminated"], x["truncated"])
        done = x["terminated"] | x["truncated"]
        return gae(x["reward"], x["value"], following, done, x["active"], GAMMA, LAMBDA)

    def reference(self, **changed: np.ndarray) -> np.ndarray:
        return gae_by_episode(**{**vars(self), **changed}, gamma=GAMMA, gae_lambda=LAMBDA)


def autoreset(mode: str, steps: int, rows: int, seed: int, chance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """terminated, truncated and active [T, N] as an environment of that mode would report them."""
    rng = np.random.default_rng(seed)
    terminated, truncated, active = (np.zeros((steps, rows), bool) for _ in range(3))
    for n in range(rows):
        waiting = over = False
        for t in range(steps):
            active[t, n] = not waiting and not over
            if not active[t, n]:
                waiting = False  # the reset row: the next one belongs to a new episode
                continue
            ended = rng.random() < chance
            terminated[t, n] = ended and rng.random() < 0.6
            truncated[t, n] = ended and (not terminated[t, n] or rng.random() < 0.3)
            waiting, over = ended and mode == "next-step", ended and mode == "disabled"
    return terminated, truncated, active


@settings(derandomize=True, deadline=None, max_examples=60)
@given(mode=st.sampled_from(["same-step", "next-step", "disabled"]), steps=st.integers(1, 12), rows=st.integers(1, 4),
       chance=st.sampled_from([0.0, 0.2, 0.6, 1.0]), seed=st.integers(0, 10**6))
def test_advantages_are_those_of_each_episode_in_every_autoreset_mode(mode, steps, rows, chance, seed):
    case = Case(seed, *autoreset(mode, steps, rows, seed, chance))
    assert_same_in_float64(case.ours(), case.reference())


@settings(derandomize=True, deadline=None, max_examples=100)
@given(data=st.data(), steps=st.integers(1, 10), rows=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_rows_may_be_active_and_inactive_at_any_time(data, steps, rows, seed):
    flag = st.lists(st.booleans(), min_size=steps * rows, max_size=steps * rows)
    terminated, truncated, active = (np.array(data.draw(flag)).reshape(steps, rows) for _ in range(3))
    case = Case(seed, terminated, truncated, active)
    assert_same_in_float64(case.ours(), case.reference())


# Each of these is a known mistake, made on purpose: the comparison above must be able to see it.
MISTAKES = {
    "a truncation treated as a termination": lambda c: {"terminated": c.terminated | c.truncated},
    "a termination that is bootstrapped": lambda c: {"terminated": np.zeros_like(c.terminated)},
    "a truncation that is not noticed": lambda c: {"truncated": np.zeros_like(c.truncated)},
    "reset rows taken for transitions": lambda c: {"active": np.ones_like(c.active)},
    "no bootstrap at the rollout's edge": lambda c: {"last_value": np.zeros_like(c.last_value)},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_common_mistake_would_be_seen(mistake):
    case = Case(0, *autoreset("next-step", 30, 4, 1, 0.2))
    right = case.ours()
    assert not np.allclose(case.reference(**MISTAKES[mistake](case)), right, atol=1e-3)
    assert not np.allclose(case.ours(**MISTAKES[mistake](case)), case.reference(), atol=1e-3)


def test_random_flags_cover_every_kind_of_cut():
    case = Case(0, *autoreset("next-step", 30, 4, 1, 0.2))
    both = case.terminated & case.truncated
    assert both.any() and (case.terminated & ~both).any() and (case.truncated & ~both).any() and (~case.active).any()
    lengths = {len(piece.times) for piece in cut_into_pieces(
        case.value, case.last_value, case.final_value, case.terminated, case.truncated, case.active)}
    assert len(lengths) > 3


def test_the_advantage_of_a_constant_environment_is_the_geometric_series():
    """Reward 1, value 0, no end: A_t = sum of (gamma * lambda)^k over what is left of the rollout."""
    steps = 6
    none, every = torch.zeros(steps, 1, dtype=torch.bool), torch.ones(steps, 1, dtype=torch.bool)
    zero = torch.zeros(steps, 1)
    advantage = gae(torch.ones(steps, 1), zero, zero, none, every, GAMMA, LAMBDA)
    q = GAMMA * LAMBDA
    for t in range(steps):
        assert_rounded(advantage[t, 0], (1 - q ** (steps - t)) / (1 - q), 2 * steps)
