"""A run from configuration to the end: what `wavedash train` and `wavedash resume` do.

Started by torchrun, every process goes through here. The first has the run folder: it alone reads it, giving the others their
part, writes into it, and reports.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from wavedash import report
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import Spaces
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import Listener
from wavedash.ppo.rank_state import StateTensors, state_of_rank
from wavedash.ppo.ranks import ALONE, Ranks, init_ranks
from wavedash.ppo.state_checks import check_counters
from wavedash.preflight import check_surroundings, usable_device
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import changes, check_changes, check_compatible
from wavedash.runs.content import reading
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.find import Found, find_run
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import Interrupts, SaveNow
from wavedash.runs.saver import Saver
from wavedash.runs.trust import read_config, run_config
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads, give_torch

log = logging.getLogger(__name__)


def train(source: str, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = ()) -> int:
    """Train a preset or YAML file in a new run folder; returns the exit code (0: finished, 130: interrupted). `trust`: also run
    code that the configuration of somebody else's run names. `listeners`: told about the run beside those that it has by
    itself, and before them; their state is saved with every checkpoint."""
    config = read_config(source, overrides, trust)
    check_surroundings(config)
    with Interrupts() as interrupts, init_ranks() as ranks, assembled(config, ranks, listeners) as learner:
        interrupts.watch(learner)  # before there is a run folder: whatever has one can be resumed
        if ranks.rank > 0:
            return _follow(learner, interrupts)
        run = RunFolder.create(config.name)
        with run.locked():
            return _learn(learner, run, interrupts)
    return interrupts.exit_code


def resume(path: str | None = None, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = ()) -> int:
    """Go on with a run (the newest unfinished one if none is named) exactly where it stopped. `trust`: also where it names code
    and was started by somebody else; it is this user's run from then on. `listeners`: as in `train`. Each goes on from the
    state that was saved under its name; one that is new begins fresh."""
    with Interrupts() as interrupts, init_ranks() as ranks:
        if ranks.rank > 0:
            return _go_on(ranks, None, None, interrupts, listeners)
        run, checkpoint = found = find_run(path)
        config = run_config(run.config, overrides, trust)
        check_changes(load_config(str(run.config)), config)
        with run.locked():
            return _go_on(ranks, _parts_of(run, checkpoint, config, ranks.size), found, interrupts, listeners)
    return interrupts.exit_code


Part = tuple[RunConfig, StateTensors, dict[str, Any]]
"""What a rank goes on from: configuration, tensors, plain values"""


def _parts_of(run: RunFolder, checkpoint: Checkpoint, config: RunConfig, size: int) -> list[Part]:
    tensors, state = checkpoint.load()
    with reading(checkpoint):
        check_counters(state)
    if state["steps"] >= config.total_steps and run.finished():
        raise UserError(f"{run.path} is finished ({state['steps']:,} steps). To go on, raise the goal: "
                        f"wavedash resume {run.path} total_steps={2 * config.total_steps}")
    if not checkpoint.metadata.get("exact", True):
        log.warning("%s was saved in the middle of an iteration: the run goes on, but not bit for bit", checkpoint.path)
    return [(config, state_of_rank(rank, size, tensors, state.get("ranks", 1)), state) for rank in range(size)]


def _go_on(ranks: Ranks, parts: list[Part] | None, found: Found | None, interrupts: Interrupts,
           listeners: Sequence[Listener]) -> int:
    """`parts` and `found` are known to the first rank, which gives each of the others its part."""
    with reassembled(ranks.scatter(parts), ranks, found, listeners) as learner:
        interrupts.watch(learner)
        return _follow(learner, interrupts) if found is None else _learn(learner, found.run, interrupts)


@contextmanager
def reassembled(part: Part, ranks: Ranks = ALONE, found: Found | None = None,
                listeners: Sequence[Listener] = ()) -> Iterator[Learner]:
    """As `assembled`, and with the state that was saved."""
    config, tensors, state = part
    with assembled(config, ranks, listeners) as learner:
        changed = [] if found is None else changes(load_config(str(found.run.config)), config).values()
        with reading(None if found is None else found.checkpoint):
            check_compatible(state["fingerprint"], learner.fingerprint(), changed)
            learner.load_state(tensors, state)
        yield learner


@contextmanager
def assembled(config: RunConfig, ranks: Ranks = ALONE, listeners: Sequence[Listener] = ()) -> Iterator[Learner]:
    """Environment, policy and learner as configured; the environment is closed at the end."""
    device = prepare_torch(config, ranks)
    ranks.set_device(device)
    env = make_env(config.env, device)
    try:
        yield Learner(env, make_policy(env, config), config, listeners, ranks)
    finally:
        env.close()


def _learn(learner: Learner, run: RunFolder, interrupts: Interrupts) -> int:
    config, ranks, saver = learner.config, learner.ranks, Saver(run, learner.config.checkpoint)
    learner.listeners.add(*report.listeners(config, run.path), SkippedUpdates(run.crash), saver)
    # Only now: a start that failed has left the folder of the run as it was.
    run.record_start(config)
    beside = "" if ranks.size == 1 else f", in {ranks.size} processes"
    log.info("%s %s on %s%s", "resuming" if learner.steps else "training", run.path, learner.env.device, beside)
    with suppress(SaveNow):
        learner.learn()
    interrupts.finish()
    if saver.failure is not None:
        raise saver.failure
    if config.report.console != "off":
        again = "wavedash" if ranks.size == 1 else f"torchrun --nproc-per-node {ranks.local_size} -m wavedash"
        with suppress(OSError):  # the terminal was closed
            print(f"finished after {learner.steps:,} steps; see how it plays: wavedash eval {run.path}"
                  if learner.steps >= learner.total_steps else
                  f"stopped at step {saver.saved_step:,}; go on with: {again} resume {run.path}", flush=True)
    return interrupts.exit_code


def _follow(learner: Learner, interrupts: Interrupts) -> int:
    """Learn along with the first rank, which reports for all."""
    with suppress(SaveNow):
        learner.learn()
    interrupts.finish()
    return interrupts.exit_code


def prepare_torch(config: RunConfig, ranks: Ranks = ALONE) -> torch.device:
    """The device, and torch's settings for it."""
    device = usable_device(config, ranks)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # CUDA graphs and NCCL use the current one
    decide_threads(config.threads, ranks.local_size)
    give_torch(1)  # until somebody has something large for it
    torch.use_deterministic_algorithms(config.deterministic)
    return device


def make_policy(env: VecEnv | Spaces, config: RunConfig) -> ActorCritic:
    give_torch(1)  # with more threads the same seed draws orthogonal weights whose last bits differ
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "weights"))
        normalize_obs = config.ppo.obs_clip if config.ppo.normalize_obs else None
        return ActorCritic(env.observation_space, env.action_space, config.policy, normalize_obs)
