"""A run from its configuration to its end: what `wavedash train` and `wavedash resume` do.

Under torchrun every process goes through here. Only the first one reads and writes the run folder and reports; it sends the
others their part of the state.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from wavedash import report
from wavedash.config import RatingConfig, RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.memory.choice import chosen, explained_shortage, resolved
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import PRECISIONS, Learner
from wavedash.ppo.listener import Listener
from wavedash.ppo.rank_state import StateTensors, state_of_rank
from wavedash.ppo.ranks import ALONE, Ranks, init_ranks
from wavedash.ppo.state_checks import check_counters
from wavedash.preflight import check_setup, usable_device
from wavedash.report.log_file import EarlyMessages
from wavedash.runs.compatible import changes, check_changes, check_compatible
from wavedash.runs.content import reading
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.find import Fork, Found, find_run
from wavedash.runs.folder import RunFolder
from wavedash.runs.fork import fork
from wavedash.runs.initial import initialize, with_absolute_init
from wavedash.runs.interrupt import Interrupts, SaveNow, SignalKeeper
from wavedash.runs.live import Live
from wavedash.runs.saver import Saver
from wavedash.runs.trust import read_config, run_config
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads, give_torch

if TYPE_CHECKING:
    from wavedash.league.league import League
    from wavedash.league.panel import Panel
    from wavedash.league.seating import Guest

log = logging.getLogger(__name__)


def train(source: str, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = ()) -> int:
    """Trains a preset or YAML file in a new run folder; returns the exit code (0: finished, 130: interrupted). With `trust` it
    also runs code that the configuration of somebody else's run names. `listeners` are called before those that a run always
    has; their state is saved with every checkpoint."""
    config = read_config(source, overrides, trust)
    check_setup(config, trust)
    with (Interrupts() as interrupts, EarlyMessages() as early, init_ranks() as ranks,
          assembled(config, ranks, listeners, _guests(config, None, trust)) as learner):
        begun = _begin_with_policy(learner)
        if said := chosen(config, learner.config, learner.env.device):
            begun += f"; {said}"
        interrupts.watch(learner)  # before there is a run folder: whatever has one can be resumed
        if ranks.rank > 0:
            return _learn_silently(learner, interrupts)
        run = RunFolder.create(config.name)
        with run.locked():
            return _learn(learner, run, interrupts, early, trust, begun)
    return interrupts.exit_code


def resume(path: str | None = None, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = (),
           milestone: str | None = None) -> int:
    """Resumes a run (the newest unfinished one if none is named) exactly where it stopped. With `trust` it may name code and be
    started by somebody else; it is this user's run from then on. `listeners` are as in `train`. Each goes on from the state
    that was saved under its name; a new one begins fresh. With `milestone`, such as `40M`, a new run goes on from there, with
    the settings of that time; the run itself stays as it is."""
    with Interrupts() as interrupts, EarlyMessages() as early, init_ranks() as ranks:
        if ranks.rank > 0:
            return _resume(ranks, None, None, interrupts, listeners, early, trust)
        found = find_run(path, milestone)
        config = run_config(found.config, overrides, trust)
        check_changes(load_config(str(found.config)), config)
        with nullcontext() if isinstance(found, Fork) else found.run.locked():
            states = _rank_states(found, config, ranks.size)
            return _resume(ranks, states, found, interrupts, listeners, early, trust)
    return interrupts.exit_code


RankState = tuple[Path, RunConfig, StateTensors, dict[str, Any]]
"""The state from which a rank goes on: run folder, configuration, tensors, plain values"""


def _rank_states(found: Found, config: RunConfig, size: int) -> list[RankState]:
    run, checkpoint = found
    tensors, state = checkpoint.load()
    with reading(checkpoint):
        check_counters(state)
    if state["steps"] >= config.total_steps and (isinstance(found, Fork) or run.finished()):
        path = checkpoint.path if isinstance(found, Fork) else run.path
        raise UserError(f"{path} is finished ({state['steps']:,} steps). To go on, raise total_steps: "
                        f"wavedash resume {path} total_steps={2 * config.total_steps}")
    if not checkpoint.metadata.get("exact", True):
        log.warning("%s was saved in the middle of an iteration: the run goes on, but not bit for bit", checkpoint.path)
    saved_by = state.get("ranks", 1)
    return [(run.path.absolute(), config, state_of_rank(rank, size, tensors, saved_by), state) for rank in range(size)]


def _resume(ranks: Ranks, states: list[RankState] | None, found: Found | None, interrupts: Interrupts,
            listeners: Sequence[Listener], early: EarlyMessages, trust: bool) -> int:
    """Only the first rank knows `states` and `found`; it sends each of the others its state."""
    with restored(ranks.scatter(states), ranks, found, listeners, trust) as learner:
        interrupts.watch(learner)
        if found is None:
            return _learn_silently(learner, interrupts)
        if not isinstance(found, Fork):
            return _learn(learner, found.run, interrupts, early, trust)
        run = fork(found, learner.config)
        with run.locked():
            return _learn(learner, run, interrupts, early, trust, f", from {found.checkpoint.path}, which stays as it is")


@contextmanager
def restored(saved: RankState, ranks: Ranks = ALONE, found: Found | None = None,
             listeners: Sequence[Listener] = (), trust: bool = False) -> Iterator[Learner]:
    """Does what `assembled` does, and loads the state that was saved."""
    run, config, tensors, state = saved
    with assembled(config, ranks, listeners, _guests(config, run, trust), resumed=True) as learner:
        changed = [] if found is None else changes(load_config(str(found.config)), config).values()
        with reading(None if found is None else found.checkpoint):
            check_compatible(state["fingerprint"], learner.fingerprint(), changed)
            learner.load_state(tensors, state)
        yield learner


@contextmanager
def assembled(config: RunConfig, ranks: Ranks = ALONE, listeners: Sequence[Listener] = (),
              guests: Sequence[Guest] | None = None, resumed: bool = False) -> Iterator[Learner]:
    """Makes environment, policy and learner as configured; the environment is closed at the end. `guests` are the opponents
    from elsewhere, if they were looked up already. The learner's configuration has numbers instead of `auto`; what the machine
    decides of a new run is left as it was in one that is `resumed`."""
    device = prepare_torch(config, ranks)
    ranks.set_device(device)
    config = resolved(config, device, ranks, resumed)
    league = None if config.opponents is None else _league(config, device, ranks, guests)
    with explained_shortage(config, device):
        env = make_env(config.env, device, None if league is None else league.seating.line_up)
        try:
            yield Learner(env, make_policy(env, config), config, listeners if league is None else [*listeners, league], ranks)
        finally:
            env.close()


def _begin_with_policy(learner: Learner) -> str:
    """Gives the learner of a new run the weights that `init` names. The first rank reads them for all, and returns what the log
    says of them."""
    if learner.config.init is None:
        return ""
    source = initialize(learner.policy, learner.config) if learner.ranks.rank == 0 else None
    for tensor in learner.policy.state_dict().values():
        learner.ranks.broadcast_(tensor)
    return "" if source is None else f", beginning with the policy of {source.path.absolute()} after {source.step:,} steps"


def _guests(config: RunConfig, run: Path | None, trust: bool) -> list[Guest] | None:
    """Looks up the opponents from elsewhere that a run names. Rocket League is imported only where a run needs it."""
    if config.opponents is None:
        return None
    from wavedash.league.league import FOLDER
    from wavedash.league.seating import invited

    return invited(config, None if run is None else run / FOLDER, trust)


def _league(config: RunConfig, device: torch.device, ranks: Ranks, guests: Sequence[Guest] | None) -> League:
    """Makes the listener that decides who plays against the policy, and the slots that they play in."""
    from wavedash.league.league import League
    from wavedash.league.seating import Seating

    policy = make_policy(kind_of(config.env).spaces(config.env, device), config)
    policy.precision = PRECISIONS.get(config.precision)
    guests = (_guests(config, None, trust=False) or []) if guests is None else guests
    return League(Seating(config, policy, guests, ranks.rank), config)


def _open_league(learner: Learner, run: RunFolder) -> None:
    from wavedash.league.league import League

    for listener in learner.listeners:
        if isinstance(listener, League):
            listener.run = run


def _learn(learner: Learner, run: RunFolder, interrupts: Interrupts, early: EarlyMessages, trust: bool,
           begun: str = "") -> int:
    config, ranks, saver = learner.config, learner.ranks, Saver(run, learner.config.checkpoint, learner.config.milestones)
    if config.opponents is not None:
        _open_league(learner, run)
    panel = None if config.rating is None else _panel(config, config.rating, run, trust)
    rated = [] if panel is None else [panel]
    reports = report.listeners(config, run.path, early.stop())
    learner.listeners.add(SignalKeeper(interrupts), Live(run, saver), *rated, *reports, SkippedUpdates(run.crash), saver)
    # This comes late, so that a start that failed leaves the folder of the run as it was.
    recorded = with_absolute_init(config)
    run.record_start(recorded if panel is None else panel.recorded(recorded))
    processes = "" if ranks.size == 1 else f", in {ranks.size} processes"
    log.info("%s %s on %s%s%s", "resuming" if learner.steps else "training", run.path, learner.env.device, processes, begun)
    with suppress(SaveNow):
        learner.learn()
    interrupts.finish()
    if saver.failure is not None:
        raise saver.failure
    if config.report.console != "off":
        again = "wavedash" if ranks.size == 1 else f"torchrun --nproc-per-node {ranks.local_size} -m wavedash"
        with suppress(OSError):  # the terminal was closed
            folder = f'"{run.path}"' if " " in str(run.path) else str(run.path)
            rates = f"; its ratings: wavedash ladder {folder}" if panel is not None and panel.rated else ""
            print(f"finished after {learner.steps:,} steps; see how it plays: wavedash eval {folder}{rates}"
                  if learner.steps >= learner.total_steps else
                  f"stopped at step {saver.saved_step:,}; go on with: {again} resume {folder}", flush=True)
    return interrupts.exit_code


def _panel(config: RunConfig, rating: RatingConfig, run: RunFolder, trust: bool) -> Panel:
    """Makes the listener that rates the policy. Rocket League is imported only where a run needs it."""
    from wavedash.league.panel import Panel

    return Panel(config, rating, run.path, trust)


def _learn_silently(learner: Learner, interrupts: Interrupts) -> int:
    """Learns as another rank than the first, which saves and reports for all."""
    learner.listeners.add(SignalKeeper(interrupts), Live())
    with suppress(SaveNow):
        learner.learn()
    interrupts.finish()
    return interrupts.exit_code


def prepare_torch(config: RunConfig, ranks: Ranks = ALONE) -> torch.device:
    """Returns the device, after setting torch up for it."""
    device = usable_device(config, ranks)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # CUDA graphs and NCCL use the current one
    decide_threads(config.threads, ranks.local_size)
    give_torch(1)  # large matrices get more when they are computed
    if config.deterministic or torch.are_deterministic_algorithms_enabled():  # the call imports torch's compiler: 1.6 seconds
        torch.use_deterministic_algorithms(config.deterministic)
    return device


def make_policy(env: VecEnv | Spaces, config: RunConfig) -> ActorCritic:
    """Makes the policy with initial weights that follow from the seed."""
    give_torch(1)  # with more threads the same seed gives orthogonal weights whose last bits differ
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "weights"))
        normalize_obs = config.ppo.obs_clip if config.ppo.normalize_obs else None
        return ActorCritic(env.observation_space, env.action_space, config.policy, normalize_obs)
