"""A trial: the policy of a run plays a few steps in environments of their own, apart from the training.

The training is not touched: the environments are others, the policy draws from a random stream of its own, and global random
streams, which code of users may draw from, are put back.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.envs.make import make_env
from wavedash.envs.obs import map_obs
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.seeding import stream_seed
from wavedash.trained_policy import TrainedPolicy

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

ENVIRONMENTS, STEPS = 8, 64


class Played(NamedTuple):
    """One step of a trial."""

    obs: Obs
    """What the policy saw"""
    action: Tensor
    """What the environment received"""
    step: Step
    before: Any
    """What `look` returned before the step"""


@contextmanager
def player(learner: Learner) -> Iterator[TrainedPolicy]:
    """The policy of the learner, which samples as it does in training, from a random stream of its own."""
    training, threads, device = learner.policy.training, torch.get_num_threads(), learner.env.device
    own, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield TrainedPolicy(learner.policy, stream_seed(learner.config.seed, "debug"))
    finally:
        learner.policy.train(training)
        torch.set_num_threads(threads)
        random.setstate(own)
        np.random.set_state(of_numpy)


@contextmanager
def a_few(config: EnvConfig, device: torch.device, count: int = ENVIRONMENTS) -> Iterator[VecEnv]:
    """At most `count` environments of a configuration, in this process."""
    env = make_env(config.model_copy(update={"count": min(count, config.count), "workers": 0, "groups": 1}), device)
    try:
        yield env
    finally:
        env.close()


@torch.no_grad()
def play(env: VecEnv, policy: TrainedPolicy, steps: int = STEPS, look: Callable[[], Any] = lambda: None) -> Iterator[Played]:
    """Plays from a reset on. What it yields is overwritten by the next step. `look` is called before every step."""
    obs = env.reset(0)
    policy.reset()
    for _ in range(steps):
        obs = map_obs(Tensor.clone, obs)  # an environment may overwrite it
        action = policy.step(obs, deterministic=False)
        before = look()
        step = env.step(action)
        yield Played(obs, action, step, before)
        obs, ended = step.obs, step.terminated | step.truncated
        policy.reset(ended)
        if bool(ended.any()):
            env.prepare()
