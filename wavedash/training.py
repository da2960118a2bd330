"""A run from configuration to the end: what `wavedash train` and `wavedash resume` do."""
from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from wavedash import report
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import Learner
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import check_compatible
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.find import find_run
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import Interrupts
from wavedash.runs.saver import Saver
from wavedash.seeding import stream_seed

log = logging.getLogger(__name__)

SMALL_MATRIX = 2**26
"""Multiplications of one layer below which a second CPU thread costs more than it brings."""


def train(source: str, *overrides: str) -> int:
    """Train a preset or YAML file in a new run folder; returns the exit code (0: finished, 130: interrupted)."""
    config = load_config(source, overrides)
    with assembled(config) as learner:
        run = RunFolder.create(config.name)
        with run.locked():
            return _learn(learner, run)


def resume(path: str | None = None, *overrides: str) -> int:
    """Go on with a run (the newest unfinished one if none is named) exactly where it stopped."""
    run, checkpoint = find_run(path)
    config = load_config(str(run.config), overrides)
    with run.locked(), assembled(config) as learner:
        restore(learner, checkpoint)
        if learner.steps >= learner.total_steps and run.finished():
            raise UserError(f"{run.path} is finished ({learner.steps:,} steps). To go on, raise the goal: "
                            f"wavedash resume {run.path} total_steps={2 * learner.total_steps}")
        return _learn(learner, run)


@contextmanager
def assembled(config: RunConfig) -> Iterator[Learner]:
    """World, policy and learner as configured; the world is closed at the end."""
    env = make_env(config.env, prepare_torch(config))
    try:
        yield Learner(env, make_policy(env, config), config)
    finally:
        env.close()


def _learn(learner: Learner, run: RunFolder) -> int:
    config = learner.config
    learner.listeners += [*report.listeners(config, run.path), SkippedUpdates(run.crash), Saver(run, config.checkpoint)]
    # Only now: a start that failed has left the folder of the run as it was.
    run.record_start(config)
    log.info("%s %s on %s", "resuming" if learner.steps else "training", run.path, learner.env.device)
    with Interrupts(learner) as interrupts:
        learner.learn()
    if config.report.console != "off":
        steps = f"{learner.steps:,}"
        print(f"stopped at step {steps}; go on with: wavedash resume {run.path}" if interrupts.exit_code else
              f"finished after {steps} steps; see how it plays: wavedash eval {run.path}")
    return interrupts.exit_code


def prepare_torch(config: RunConfig) -> torch.device:
    """The device, and torch's settings for it."""
    name = config.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={name} cannot be used: {str(error).splitlines()[0]}. `wavedash doctor` shows what there is; "
                        "device=cpu always works") from error
    widest = max([*config.policy.hidden, *(config.policy.critic_hidden or []), 1])
    large = config.ppo.minibatch_size * widest * widest >= SMALL_MATRIX
    torch.set_num_threads(config.threads or ((os.cpu_count() or 1) if large else 1))
    torch.use_deterministic_algorithms(config.deterministic)
    return device


def make_policy(env: VecEnv, config: RunConfig) -> ActorCritic:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "weights"))
        normalize_obs = config.ppo.obs_clip if config.ppo.normalize_obs else None
        return ActorCritic(env.observation_space, env.action_space, config.policy, normalize_obs)


def restore(learner: Learner, checkpoint: Checkpoint) -> None:
    tensors, state = checkpoint.load()
    check_compatible(state["fingerprint"], learner.fingerprint())
    if not checkpoint.metadata.get("exact", True):
        log.warning("%s was saved in the middle of an iteration: the run goes on, but not bit for bit", checkpoint.path)
    learner.load_state(tensors, state)
