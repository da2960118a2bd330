"""A run from its configuration to its end: what `wavedash train` and `wavedash resume` do.

Under torchrun every process goes through here. Only the first one reads and writes the run folder and reports; it sends the
others their part of the state.
"""
from __future__ import annotations

import gc
import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from wavedash import report
from wavedash.assembly import RankState, assembled, find_guests, find_guides, prepare_torch, restored
from wavedash.config import RatingConfig, RunConfig
from wavedash.config_file import changed_config, load_config, read_override
from wavedash.curriculum.curriculum import Curriculum
from wavedash.curriculum.plan import Plan, counting, only_in_phases
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.memory.choice import chosen, resolved
from wavedash.ppo.learner import Learner
from wavedash.ppo.learner_state import fingerprint_of
from wavedash.ppo.listener import Listener
from wavedash.ppo.rank_state import state_of_rank
from wavedash.ppo.ranks import Ranks, init_ranks
from wavedash.ppo.state_checks import check_counters
from wavedash.preflight import check_phases, check_setup, usable_device
from wavedash.report.log_file import EarlyMessages
from wavedash.runs.auto_resume import Choice, choose
from wavedash.runs.changes import value_at
from wavedash.runs.compatible import check_changes
from wavedash.runs.content import reading
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.find import Fork, Found, find_run
from wavedash.runs.folder import RunFolder
from wavedash.runs.fork import fork
from wavedash.runs.initial import initialize, with_absolute_paths
from wavedash.runs.interrupt import Interrupts, SaveNow, SignalKeeper
from wavedash.runs.live import Live
from wavedash.runs.policy_copy import PolicyCopy
from wavedash.runs.saver import Saver
from wavedash.runs.trust import read_config, run_config
from wavedash.runs.typed import typed
from wavedash.yaml_text import Key

if TYPE_CHECKING:
    from wavedash.league.panel import Panel

log = logging.getLogger(__name__)


class Process(NamedTuple):
    """What belongs to this process, whichever learner it has."""

    ranks: Ranks
    interrupts: Interrupts
    early: EarlyMessages
    listeners: Sequence[Listener]
    """Those that the caller handed over"""
    trust: bool
    asked: RunConfig | None = None
    """What `train` was asked for"""


def train(source: str, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = (),
          resume: str | None = None) -> int:
    """Trains a preset or YAML file in a new run folder; returns the exit code (0: finished, 130: interrupted). With `trust` it
    also runs code that the configuration of somebody else's run names. `listeners` are called before those that a run always
    has; their state is saved with every checkpoint. With `resume="auto"` it goes on with the newest run of this name that fits,
    if there is one (runs/auto_resume.py); with a path, with that run or milestone."""
    config = read_config(source, overrides, trust)
    if resume is None:
        check_setup(config, trust)
    with Interrupts() as interrupts, EarlyMessages() as early, init_ranks() as ranks, ExitStack() as held:
        process = Process(ranks, interrupts, early, listeners, trust, config)
        if resume is not None:
            chosen = None if ranks.rank > 0 else _chosen(config, resume, trust, ranks)
            if ranks.any(chosen is not None):
                return _resume(process, chosen, held)
            check_setup(config, trust)
        if ranks.rank == 0:
            _warn_of_phases(config, overrides)
        return _go_on(process, *_begin(process, config, held))
    return interrupts.exit_code


def _chosen(config: RunConfig, resume: str, trust: bool, ranks: Ranks) -> Choice | None:
    """Looks for what `train` goes on with, and tells the user."""
    def fingerprint() -> dict[str, Any]:
        clip = config.ppo.obs_clip if config.ppo.normalize_obs else None
        env = Plan(config).stages()[0].env
        return fingerprint_of(kind_of(env).spaces(env, usable_device(config, ranks)), config.policy, clip)

    def say(line: str) -> None:
        if config.report.console != "off":
            with suppress(OSError):  # the terminal was closed
                print(line, flush=True)

    return choose(config, resume, fingerprint, trust, say)


def resume(path: str | None = None, *overrides: str, trust: bool = False, listeners: Sequence[Listener] = (),
           milestone: str | None = None) -> int:
    """Resumes a run (the newest unfinished one if none is named) exactly where it stopped. With `trust` it may name code and be
    started by somebody else; it is this user's run from then on. `listeners` are as in `train`. Each goes on from the state
    that was saved under its name; a new one begins fresh. With `milestone`, such as `40M`, a new run goes on from there, with
    the settings of that time; the run itself stays as it is."""
    with Interrupts() as interrupts, EarlyMessages() as early, init_ranks() as ranks, ExitStack() as held:
        process = Process(ranks, interrupts, early, listeners, trust)
        if ranks.rank > 0:
            return _resume(process, None, held)
        found = find_run(path, milestone)
        return _resume(process, Choice(found, resumed_config(found, overrides, trust)), held)
    return interrupts.exit_code


def _begin(process: Process, config: RunConfig, held: ExitStack) -> tuple[RunFolder | None, Curriculum]:
    """Begins a run and learns to its end, or until it needs another learner. `held` keeps the lock of its folder."""
    decided = _decided(config, process.ranks)
    curriculum = Curriculum(decided)
    settings = curriculum.settings(0)
    guests, guides = find_guests(settings, None, process.trust), find_guides(settings, None, process.ranks, process.trust)
    with assembled(settings, process.ranks, process.listeners, guests, decided=True, guides=guides) as learner:
        begun = _begin_with_policy(learner)
        if said := chosen(config, decided, learner.env.device):
            begun += f"; {said}"
        process.interrupts.watch(learner)  # before there is a run folder: whatever has one can be resumed
        run = None
        if process.ranks.rank == 0:
            run = RunFolder.create(config.name)
            held.enter_context(run.locked())
        _learn(learner, curriculum, run, process, begun)
    return run, curriculum


def _decided(config: RunConfig, ranks: Ranks) -> RunConfig:
    """The configuration with numbers instead of `auto`. Of several phases that leave a number open, that with the fewest
    environments decides: all of them must fit."""
    device = prepare_torch(config, ranks)
    stages = [(stage, resolved(stage, device, ranks)) for stage in Plan(config).stages()]
    stages.sort(key=lambda stage: (stage[1].env.count, stage[1].ppo.microbatch_size or math.inf))
    open_names = [*config.undecided, *(["ppo.microbatch_size"] if config.ppo.microbatch_size is None else [])]
    keys = [tuple(name.split(".")) for name in open_names]

    def number(key: Key) -> Any:
        left_open = [made for stage, made in stages if value_at(stage, key) == value_at(config, key)]
        return value_at(left_open[0] if left_open else stages[0][1], key)

    return changed_config(config, {key: number(key) for key in keys})


def _resume(process: Process, chosen: Choice | None, held: ExitStack) -> int:
    """Goes on with a run or milestone, which only the first rank knows, and learns to its end. `held` keeps the lock of the run
    folder."""
    if chosen is not None:
        recorded = load_config(str(chosen.found.config))
        check_changes(recorded, chosen.config)
        if undecided := chosen.config.undecided:
            raise UserError(f"{undecided[0]}=auto is decided when a run begins; to go on with another value, give a number")
        if chosen.config.phases and chosen.config != recorded:
            check_phases(chosen.config, process.trust)
        if not isinstance(chosen.found, Fork):
            held.enter_context(chosen.found.run.locked())
    return _go_on(process, *_learn_on(process, chosen, held))


def _go_on(process: Process, run: RunFolder | None, curriculum: Curriculum) -> int:
    """Goes on for as long as phases ask for what only a new learner can have, such as teams of other sizes: as a resume does,
    but in the same process."""
    while curriculum.resumes and not process.ranks.any(process.interrupts.exit_code != 0):
        process.interrupts.release()
        process.early.start()
        gc.collect()  # frees the memory of the last learner
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # the simulator takes its memory elsewhere
        checkpoint = None if run is None else run.newest()
        chosen = None
        if run is not None and checkpoint is not None and run.recorded is not None:
            chosen = Choice(Found(run, checkpoint), run.recorded)
        _, curriculum = _learn_on(process, chosen)
    process.interrupts.finish()
    return process.interrupts.exit_code


def _learn_on(process: Process, chosen: Choice | None, held: ExitStack | None = None) -> tuple[RunFolder | None, Curriculum]:
    """Learns from a checkpoint to the end of the run, or until it needs another learner. The first rank sends each of the
    others its state. `held` keeps the lock of the run folder; None: this process has it already, and goes on."""
    found = None if chosen is None else chosen.found
    states = None if chosen is None else _rank_states(chosen.found, chosen.config, process.ranks.size)
    state = process.ranks.scatter(states)
    again = held is None
    with restored(state, process.ranks, found, process.listeners, process.trust, again) as (learner, curriculum):
        process.interrupts.watch(learner)
        run, begun = None if found is None else found.run, ""
        if isinstance(found, Fork) and held is not None:
            run = fork(found, learner.config)
            held.enter_context(run.locked())
            begun = f", from {found.checkpoint.path}, which stays as it is"
        _learn(learner, curriculum, run, process, begun, again)
    return run, curriculum


def _rank_states(found: Found, config: RunConfig, size: int) -> list[RankState]:
    run, checkpoint = found
    tensors, state = checkpoint.load()
    with reading(checkpoint):
        check_counters(state)
    if state["steps"] >= config.total_steps and (isinstance(found, Fork) or run.finished()):
        path = checkpoint.path if isinstance(found, Fork) else run.path
        raise UserError(f"{path} is finished ({state['steps']:,} steps). To go on, raise total_steps: "
                        f"wavedash resume {typed(path)} total_steps={2 * max(state['steps'], config.total_steps)}")
    if not checkpoint.metadata.get("exact", True):
        log.warning("%s was saved in the middle of an iteration: the run goes on, but not bit for bit", checkpoint.path)
    saved_by = state.get("ranks", 1)
    return [(run.path.absolute(), config, state_of_rank(rank, size, tensors, saved_by), state) for rank in range(size)]


def resumed_config(found: Found, overrides: Sequence[str], trust: bool) -> RunConfig:
    """The configuration to go on with. In a run with phases, an override of what the phase sets is a setting of that phase from
    now on, as `wavedash set` makes it; it would not count otherwise."""
    typed_keys = {override: read_override(override)[0] for override in overrides}
    phases = [override for override, key in typed_keys.items() if key[0] == "phases"]
    inner = only_in_phases(run_config(found.config, phases, trust=True), typed_keys.values())  # read only, nothing of it runs
    config = run_config(found.config, [override for override, key in typed_keys.items() if key not in inner], trust)
    return counting(config, dict(map(read_override, overrides)), found.checkpoint.load([])[1]) if config.phases else config


def _warn_of_phases(config: RunConfig, overrides: Sequence[str]) -> None:
    """Warns of overrides of a new run that do not count in all phases, because some phases set the same."""
    plan = Plan(config)
    for key, _ in map(read_override, overrides):
        if key[0] != "phases" and (names := plan.set_by(key)):
            log.warning("%s does not count from phase %s on, which sets it: change `phases` in a file of your own, or the "
                        "running run by `wavedash set`", ".".join(map(str, key)), names[0])


def _begin_with_policy(learner: Learner) -> str:
    """Gives the learner of a new run the weights that `init` names. The first rank reads them for all, and returns what the log
    says of them."""
    if learner.config.init is None:
        return ""
    source = initialize(learner.policy, learner.config) if learner.ranks.rank == 0 else None
    for tensor in learner.policy.state_dict().values():
        learner.ranks.broadcast_(tensor)
    return "" if source is None else f", beginning with the policy of {source.path.absolute()} after {source.step:,} steps"


def _open_league(learner: Learner, run: RunFolder) -> None:
    from wavedash.league.league import League

    for listener in learner.listeners:
        if isinstance(listener, League):
            listener.run = run


def _open_copies(learner: Learner, run: RunFolder) -> None:
    for listener in learner.listeners:
        if isinstance(listener, PolicyCopy):
            listener.run = run


def _learn(learner: Learner, curriculum: Curriculum, run: RunFolder | None, process: Process, begun: str = "",
           again: bool = False) -> None:
    """Learns to the end of the run, or until it goes on with another learner; `again`: this one goes on. Ranks other than the
    first have no run folder: they learn silently, and the first one saves and reports for all."""
    keeper = SignalKeeper(process.interrupts)
    if run is None:
        learner.listeners.add(keeper, Live(curriculum), curriculum)
        _iterate(learner, curriculum, process)
        return
    config, ranks = learner.config, learner.ranks
    saver = Saver(run, config.checkpoint, config.milestones, curriculum.plan.config.best_by)
    curriculum.run, curriculum.saver = run, saver
    if config.opponents is not None:
        _open_league(learner, run)
    _open_copies(learner, run)
    panel = None if config.rating is None else _panel(config, config.rating, run, process.trust)
    rated = [] if panel is None else [panel]
    reports = report.listeners(config, run.path, process.early.stop())
    debugged = [] if again else _debug_reports(config, run)
    learner.listeners.add(keeper, Live(curriculum, run, saver, again), *rated, curriculum, *reports, *debugged,
                          SkippedUpdates(run.crash), *_highlights(config, run), saver)
    # This comes late, so that a start that failed leaves the folder of the run as it was.
    if not again:
        recorded = with_absolute_paths(curriculum.plan.config)
        run.record_start(recorded if panel is None else panel.recorded(recorded))
        if process.asked is not None:
            run.record_asked(process.asked)
    processes = "" if ranks.size == 1 else f", in {ranks.size} processes"
    log.info("%s %s on %s%s%s", "resuming" if learner.steps else "training", run.path, learner.env.device, processes, begun)
    _iterate(learner, curriculum, process)
    if saver.failure is not None:
        raise saver.failure
    if config.report.console != "off" and not curriculum.resumes:
        _print_end(learner, run, saver.saved_step, rated=panel is not None and bool(panel.rated))


def _iterate(learner: Learner, curriculum: Curriculum, process: Process) -> None:
    with suppress(SaveNow):
        learner.learn()
    if not curriculum.resumes:
        process.interrupts.finish()


def _print_end(learner: Learner, run: RunFolder, saved: int, rated: bool) -> None:
    """Tells a user where the run ended and what to do next."""
    ranks = learner.ranks
    again = "wavedash" if ranks.size == 1 else f"torchrun --nproc-per-node {ranks.local_size} -m wavedash"
    folder = typed(run.path)
    rates = f"; its ratings: wavedash ladder {folder}" if rated else ""
    with suppress(OSError):  # the terminal was closed
        print(f"finished after {learner.steps:,} steps; see how it plays: wavedash eval {folder}{rates}"
              if learner.steps >= learner.total_steps else
              f"stopped at step {saved:,}; go on with: {again} resume {folder}", flush=True)


def _panel(config: RunConfig, rating: RatingConfig, run: RunFolder, trust: bool) -> Panel:
    """Makes the listener that rates the policy. Rocket League is imported only where a run needs it."""
    from wavedash.league.panel import Panel

    return Panel(config, rating, run.path, trust)


def _highlights(config: RunConfig, run: RunFolder) -> list[Listener]:
    """Makes the listener that records the training, where its kind of environments has one."""
    if config.recordings is None or config.imitate is not None:  # demonstrations are no games
        return []
    listener = kind_of(config.env).highlights(config.recordings, run)
    if listener is None:
        log.info("recordings: %s has no highlights; this run keeps none", kind_of(config.env).describe(config.env))
        return []
    return [listener]


def _debug_reports(config: RunConfig, run: RunFolder) -> list[Listener]:
    """Makes the listeners that the debug switches ask for. They are imported only where one is on."""
    if not config.debug.switches:
        return []
    from wavedash import debug

    return debug.listeners(config.debug, run)
