"""Data that cannot be learned from ends the run with a message that names what is wrong, in which row and in which step."""
from __future__ import annotations

import re

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from tests.toy_vec_envs import IdentityEnv, TapeEnv
from wavedash.envs.errors import EnvError
from wavedash.envs.vec_env import Step
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic

T, N, D, ROLLOUTS = 8, 5, 3, 4
PPO = {"rollout_steps": T, "epochs": 2, "minibatch_size": 10}
SETTINGS = {
    "plain": ({}, {}),
    "normalised": ({"normalize_obs": True, "normalize_reward": True, "normalize_advantage": "minibatch"}, {}),
    "with memory": ({"buffer_rollouts": 2}, {"memory": {"kind": "gru", "size": 8, "sequence": 4}}),
}


def tape(seed: int, kind: type[TapeEnv] = TapeEnv) -> TapeEnv:
    draw = torch.Generator().manual_seed(seed)
    shape = (T * ROLLOUTS, N)
    ends = torch.rand(shape, generator=draw)
    return kind(torch.randn(*shape, D, generator=draw), torch.randn(shape, generator=draw), ends < 0.1, (ends > 0.8),
                torch.rand(shape, generator=draw) < 0.9)


def step_of_episode(env: TapeEnv, t: int, row: int) -> int:
    """Transitions of this row since its episode began, step t included. The learner counts the same way."""
    steps = 0
    for i in range(t + 1):
        steps += bool(env.active[i, row])
        if i < t and (env.terminated[i, row] or env.truncated[i, row] or not env.active[i, row]):
            steps = 0
    return steps


def run_to_the_end(env, ppo, policy, rollouts=ROLLOUTS):
    run = learner_over(env, run_config({**PPO, **ppo}, policy), started=False)
    run.start()
    for _ in range(rollouts):
        run.iterate()
    return run


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_number_that_is_not_finite_is_named_with_its_row_and_step(setting, bad):
    for seed, what in enumerate(["reward", "obs", "reward", "obs"]):
        env = tape(seed)
        # The step is after the first rollout, which may only calibrate, and does not follow a truncation, where the tape shows
        # the last observation.
        places = (env.active[T:] & ~env.truncated[T - 1 : -1]).nonzero() + torch.tensor([T, 0])
        t, row = places[37 * (seed + 1) % len(places)].tolist()
        getattr(env, what)[t, row] = bad
        with pytest.raises(EnvError) as raised:
            run_to_the_end(env, *SETTINGS[setting])
        step = step_of_episode(env, t, row)
        shown = "nan" if setting == "normalised" and what == "obs" else str(bad)  # it may be known by its standardised value
        expected = {"reward": f"the reward of row {row} is {bad} in step {step} of its episode",
                    "obs": f"observation[0] of row {row} is {shown} before step {step} of its episode"}[what]
        assert expected in str(raised.value)
        assert f"(found at the end of iteration {t // T + (setting != 'normalised')}, " in str(raised.value)
        assert "division by zero" in str(raised.value)


def test_a_number_that_is_not_finite_in_the_calibrating_rollout_is_named_too():
    env = tape(0)
    env.reward[3, 2], env.active[3, 2] = np.nan, True
    with pytest.raises(EnvError, match=r"the reward of row 2 is nan .*iteration 0, after step 0"):
        run_to_the_end(env, *SETTINGS["normalised"])


class BadLast(TapeEnv):
    """The last observation of the first episode that is cut off is NaN."""

    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        final = step.final_obs.clone()
        cut = step.truncated & step.active
        final[cut] = np.nan
        return step._replace(final_obs=final)


@pytest.mark.parametrize("setting", ["plain", "with memory"])
def test_a_last_observation_that_is_not_finite_is_named(setting):
    env = tape(1, BadLast)
    t, row = (env.truncated & env.active).nonzero()[0].tolist()
    with pytest.raises(EnvError, match=rf"the last observation \(final_obs\) of row {row} is not finite.* cut after step "
                                       rf"{step_of_episode(env, t, row)}"):
        run_to_the_end(env, *SETTINGS[setting])


@pytest.mark.parametrize("setting", SETTINGS)
def test_huge_numbers_and_whatever_an_inactive_row_holds_are_no_fault(setting):
    """The controls: a sum over the rollout overflows here, and rows that are not active hold NaN."""
    env = tape(2)
    env.obs[:, 1] = 3e38
    env.reward[~env.active] = np.nan
    sits_out = ~env.active
    sits_out[1:] &= ~env.truncated[:-1]  # what an episode that was cut led to is valued
    env.obs[sits_out] = np.nan
    ppo, policy = SETTINGS[setting]
    run_to_the_end(env, ppo, policy)


def test_a_policy_that_is_broken_itself_is_not_blamed_on_the_environment():
    """Rewards follow the action here: NaN weights make NaN rewards, and the cause is not in the environment."""
    run = learner_over(IdentityEnv(gymnasium.spaces.Box(-1.0, 1.0, (2,)), rows=8), run_config(PPO))
    run.iterate()
    with torch.no_grad():
        run.updater.optimizer.parameters.fill_(torch.nan)
    metrics = run.iterate().metrics
    assert metrics["optim/skipped"] > 0 and np.isnan(metrics["rollout/reward"])


# --- masks -----------------------------------------------------------------------------------------------------------


class Masked(IdentityEnv):
    """Its mask allows `row` no option of one choice, once, in step `at` of the run."""

    at, row, choice = 11, 3, 0

    def _next(self):
        obs = super()._next()
        self.count = getattr(self, "count", -1) + 1
        if self.count == self.at:
            start = sum(self.sizes[: self.choice])
            obs["action_mask"][self.row, start : start + self.sizes[self.choice]] = 0
        return obs


@pytest.mark.parametrize(("space", "choice"), [
    (gymnasium.spaces.Discrete(5), 0), (gymnasium.spaces.MultiDiscrete([3, 2, 4]), 1), (gymnasium.spaces.MultiBinary(3), 2),
])
def test_a_mask_that_allows_nothing_is_named(space, choice):
    env = Masked(space, rows=6, masked=True, episode=10**9)
    env.choice = choice
    run = learner_over(env, run_config(PPO))
    run.iterate()
    with pytest.raises(EnvError, match=r"the action mask of row 3 allows no action before step 12 of its episode: .*at least"):
        run.iterate()


def test_the_mask_of_an_inactive_row_may_allow_nothing():
    env = Masked(gymnasium.spaces.Discrete(5), rows=6, masked=True)
    step = env.step

    def without_row_3(action):
        done = step(action)
        done.active[3] = False
        return done

    env.step = without_row_3
    run = learner_over(env, run_config(PPO))
    for _ in range(3):
        run.iterate()


@pytest.mark.parametrize(("mask", "action", "says"), [
    (gymnasium.spaces.MultiBinary(4), gymnasium.spaces.Discrete(5), r"shape \(4,\), but .*has 5 actions: .*MultiBinary\(5\)"),
    (gymnasium.spaces.MultiBinary(6), gymnasium.spaces.MultiDiscrete([3, 2]), r"shape \(6,\).* has 5 actions \(3 \+ 2, one"),
    (gymnasium.spaces.MultiBinary([3, 2]), gymnasium.spaces.MultiBinary(3), r"shape \(3, 2\).* has 6 actions \(2 \+ 2 \+ 2"),
    (gymnasium.spaces.MultiBinary(2), gymnasium.spaces.Box(-1, 1, (2,)), r"'action_mask', but actions are continuous"),
])
def test_a_mask_that_does_not_fit_the_actions_is_refused_before_anything_runs(mask, action, says):
    seen = gymnasium.spaces.Dict({"obs": gymnasium.spaces.Box(-1, 1, (3,)), "action_mask": mask})
    with pytest.raises(UserError, match=says):
        ActorCritic(seen, action, run_config().policy)


def test_messages_end_with_what_to_do():
    env = tape(0)
    env.reward[9, 1], env.active[9, 1] = np.nan, True
    with pytest.raises(EnvError) as raised:
        run_to_the_end(env, {}, {})
    assert re.search(r"put it right, then resume or train anew", str(raised.value))
