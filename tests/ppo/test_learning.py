"""Shipped presets reach published scores. These are the slowest tests; each stops as soon as its goal is reached.

Scores are means over whole episodes of fresh environments, played deterministically (the mode of the policy).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.ppo.learners import learner_over
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.ppo.learner import Learner
from wavedash.trained_policy import TrainedPolicy

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_thread():
    """Runs choose one thread themselves for networks of this size."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def score(learner: Learner, episodes: int) -> float:
    """The mean return of the first episode of each of so many environments."""
    env = make_env(learner.config.env.model_copy(update={"count": episodes}))
    player, obs = TrainedPolicy(learner.policy), env.reset(seed=4_321)
    returns, playing = torch.zeros(episodes), torch.ones(episodes, dtype=torch.bool)
    while playing.any():
        step = env.step(player.step(obs, deterministic=True))
        obs = step.obs
        returns += step.reward * playing
        playing &= ~(step.terminated | step.truncated)
    env.close()
    return float(returns.mean())


def train(
    config: RunConfig,
    look_every: int | None = None,
    reached: Callable[[Learner], bool] = lambda learner: False,
    wrap: Callable[[VecEnv], VecEnv] = lambda env: env,
) -> Learner:
    """Trains to the end of the run, or until the goal is reached, which is checked every `look_every` steps."""
    learner = learner_over(wrap(make_env(config.env)), config)
    next_look = look_every or config.total_steps + 1
    while learner.steps < config.total_steps:
        learner.iterate()
        if learner.steps >= next_look:
            next_look += look_every or 0
            if reached(learner):
                break
    return learner


@pytest.mark.parametrize(("preset", "seed", "look_every", "episodes", "goal", "untrained"), [
    *(("cartpole", seed, 10_000, 100, 475.0, 200.0) for seed in range(3)),
    *(("pendulum", seed, 20_000, 100, -250.0, -900.0) for seed in range(3)),
    *(("inverted-pendulum", seed, 20_000, 20, 950.0, 100.0) for seed in range(2)),
])
def test_a_preset_reaches_its_published_score(preset, seed, look_every, episodes, goal, untrained):
    """CartPole 475 (solved; rl-zoo 500), Pendulum -250 (rl-zoo -172 +- 104), InvertedPendulum 950 (CleanRL 963 +- 22)."""
    if preset == "inverted-pendulum":
        pytest.importorskip("mujoco")
    config = load_config(preset, [f"seed={seed}"])
    assert score(learner_over(make_env(config.env), config), episodes) < untrained
    scores: list[float] = []

    def reached(learner: Learner) -> bool:
        scores.append(score(learner, episodes))
        return scores[-1] >= goal

    learner = train(config, look_every, reached)
    assert scores and scores[-1] >= goal, f"after {learner.steps} steps; every {look_every}: {scores}"
    assert learner.steps <= 100_000


# --- memory ----------------------------------------------------------------------------------------------------------

PUZZLES = {"cartpole-memory": (10_000, 50_000, 450.0, 100.0), "repeat-previous": (25_000, 150_000, 0.95, 0.0),
           "t-maze": (25_000, 150_000, 0.95, 0.8)}
"""Steps between two checks, steps in all, score to reach, and score that a policy without memory stays below."""


@pytest.mark.parametrize(("preset", "kind"), [
    ("cartpole-memory", "gru"), ("cartpole-memory", "lstm"), ("repeat-previous", "gru"), ("repeat-previous", "lstm"),
    ("t-maze", "gru"),
])
def test_a_policy_with_memory_solves_what_needs_memory(preset, kind):
    look_every, most, goal, _ = PUZZLES[preset]
    scores: list[float] = []

    def reached(learner: Learner) -> bool:
        scores.append(score(learner, 50))
        return scores[-1] >= goal

    learner = train(load_config(preset, [f"policy.memory.kind={kind}", "seed=5"]), look_every, reached)
    assert scores[-1] >= goal, f"after {learner.steps} steps; every {look_every}: {scores}"
    assert learner.steps <= 1.05 * most


@pytest.mark.parametrize("preset", PUZZLES)
def test_a_policy_without_memory_does_not_solve_it(preset):
    """The control has the same settings and as many steps."""
    _, most, _, hopeless = PUZZLES[preset]
    learner = train(load_config(preset, ["policy.memory.kind=none", f"total_steps={most}", "seed=5"]))
    assert score(learner, 50) < hopeless


# --- the future of an episode that was cut off -----------------------------------------------------------------------

CUT = ["env.kwargs.max_episode_steps=50", "ppo.gamma=0.98", "total_steps=35_000", "ppo.rollout_steps=64", "ppo.epochs=10",
       "ppo.minibatch_size=128", "ppo.critic_learning_rate=3e-3", "ppo.gae_lambda=0.9", "ppo.schedule.kind=cosine"]
"""CartPole is cut off after 50 steps. Once it balances, every step is rewarded with 1 for ever: V = 1 / (1 - 0.98) = 50."""


class TruncationsAsTerminations(VecEnv):
    """Most libraries have made this mistake."""

    def __init__(self, env: VecEnv):
        self.env = env
        self.num_rows, self.observation_space, self.action_space = env.num_rows, env.observation_space, env.action_space

    def reset(self, seed: int | None = None) -> Any:
        return self.env.reset(seed)

    def step(self, action: torch.Tensor) -> Step:
        step = self.env.step(action)
        return step._replace(terminated=step.terminated | step.truncated, truncated=torch.zeros_like(step.truncated))


@torch.no_grad()
def value_at_the_start(learner: Learner) -> float:
    starts = make_env(learner.config.env.model_copy(update={"count": 100})).reset(seed=4_321)
    return float(learner.policy.value(learner.policy.normalize(starts), {}).mean())


@pytest.mark.parametrize("seed", range(3))
def test_the_value_of_an_episode_that_is_cut_off_is_that_of_its_endless_future(seed):
    learner = train(load_config("cartpole", [*CUT, f"seed={seed}"]))
    assert learner.recent.metrics()["recent/length"] > 45, "it balances until it is cut off"
    assert value_at_the_start(learner) == pytest.approx(50.0, rel=0.02)


def test_without_the_bootstrap_the_value_is_far_off():
    """The control: V settles near the (1 - 0.98^50) / 0.02 = 31.8 of fifty steps, or below, since no state tells the time."""
    learner = train(load_config("cartpole", CUT), wrap=TruncationsAsTerminations)
    assert learner.recent.metrics()["recent/length"] > 45
    assert value_at_the_start(learner) < 35.0
