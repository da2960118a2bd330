"""Finds the run or checkpoint that a user means by a path (`runs/cartpole`, `runs/cartpole/best`) or by none."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from wavedash import champions
from wavedash.errors import UserError
from wavedash.runs.checkpoint import MANIFEST, MILESTONES, Checkpoint
from wavedash.runs.folder import STORES, RunError, RunFolder, runs_root
from wavedash.runs.milestones import HOW, MilestoneError, MilestoneStore
from wavedash.runs.pointer import follow, is_pointer, newest_pointer
from wavedash.runs.policy_folder import POLICY_FILES, PolicyFolder
from wavedash.runs.store import CheckpointStore
from wavedash.runs.typed import typed

OFFERED = 3
"""The most other runs that an error names"""


class Found(NamedTuple):
    """A run, and the checkpoint from which it goes on."""

    run: RunFolder
    checkpoint: Checkpoint

    @property
    def config(self) -> Path:
        """The configuration to go on with."""
        return self.run.config


class Fork(Found):
    """A run and one of its milestones. A new run goes on from it, with the settings of that time; see fork.py."""

    @property
    def config(self) -> Path:
        return self.checkpoint.run_config


def find_run(path: str | Path | None = None, milestone: str | None = None) -> Found:
    """Returns what `resume` goes on with: the given checkpoint, or the newest one of the given store, run or folder of runs;
    without a path, of the newest run under the root that is not finished. With a milestone, by its name or by its path, a
    `Fork`."""
    if milestone is not None:
        checkpoint = _milestone(path, milestone)
        return Fork(RunFolder(checkpoint.home), checkpoint)
    if path is not None and not str(path):
        raise RunError("an empty path names no run; name a run folder, or a folder of runs")
    if path is None:
        return _newest_unfinished(runs_root())
    checkpoint = _resolve(Path(path), RunFolder.newest)
    run = RunFolder(checkpoint.home)
    if not RunFolder.is_run(run.path):
        raise RunError(f"{checkpoint.path} is not inside a run folder, so there is no config.yaml to go on with; name a run")
    # A milestone that was asked for, and not one that a run without any other checkpoint falls back to.
    fallback = run.path.is_relative_to(Path(path).absolute())
    asked = checkpoint.path.absolute().is_relative_to(run.path / MILESTONES) and not fallback
    return Fork(run, checkpoint) if asked else Found(run, checkpoint)


def run_with_milestones(path: str | Path | None = None) -> RunFolder:
    """Returns the run whose milestones a user means: the given one, or the newest in a folder (by default in that of all runs)
    that has any. RunError: there is none."""
    folder = runs_root() if path is None else Path(path)
    if RunFolder.is_run(folder):
        return RunFolder(folder)
    runs = runs_under(folder)
    for run in runs:
        if any(run.milestones.listed()):
            return run
    if not runs:
        what = "no run found at" if folder.exists() else "there is no folder"
        raise RunError(f"{what} {folder.absolute()}; name a run folder")
    looked = "".join(f"\n  {run.path}" for run in runs)
    raise RunError(f"no milestones at {folder.absolute()}; looked at:{looked}\n"
                   f"{HOW}")


def others_with_milestones(run: RunFolder, path: str | Path | None) -> list[RunFolder]:
    """Returns the other runs of this name that have milestones, if a user has named a folder of runs, or nothing, and not this
    one."""
    if path is not None and RunFolder.is_run(Path(path)):
        return []
    return [other for other in runs_under(run.path.parent) if other.path != run.path and any(other.milestones.listed())]


def _milestone(path: str | Path | None, name: str) -> Checkpoint:
    """Returns the milestone of a run, or of the newest run in a folder that has any. MilestoneError: it has none of this name;
    the message says which other run there has: a fork begins without those of the run that it came from."""
    run = run_with_milestones(path)
    try:
        return run.milestones.find(name)
    except MilestoneError as error:
        beside = run.path.absolute().parent if path is None or RunFolder.is_run(Path(path)) else Path(path)
        others = [other for other in runs_under(beside) if other.path.absolute() != run.path.absolute()]
        having = [f"\nanother run has it: {typed(f'{other.path}@{name}')}" for other in others if other.milestones.has(name)]
        raise MilestoneError(f"{error}{''.join(having[:OFFERED])}") from None


def run_at(path: str | Path) -> RunFolder:
    """Returns the run at a path, or the newest one in a folder of runs. RunError: there is none."""
    folder = Path(path)
    runs = [RunFolder(folder)] if RunFolder.is_run(folder) else runs_under(folder)
    if not runs:
        what = "no run found at" if folder.exists() else "there is no folder"
        raise RunError(f"{what} {folder.absolute()}; name a run folder")
    return runs[0]


def resolve_policy(path: str | Path, teams: int | None = None) -> Checkpoint | PolicyFolder:
    """Returns what `load_run`, `load_policy` and `init` read: a champion by its name, a policy folder, or what
    `resolve_checkpoint` finds. `teams` is how many cars a team has where it is to play, if that is known."""
    folder = champions.champion_folder(path, teams) if champions.is_champion(path) else Path(path)
    return PolicyFolder(folder) if PolicyFolder.is_one(folder) else resolve_checkpoint(folder)


def resolve_checkpoint(path: str | Path) -> Checkpoint:
    """Returns a verified checkpoint: the one at this path; the newest one of a store (best, final, ...); the best one, else the
    newest, of a run or of the newest run in a folder; for `runs/<name>/best` that of the newest run that has one; for `RUN@40M`
    that milestone."""
    return _resolve(Path(path), lambda run: run.store("best").newest() or run.newest())


def _resolve(path: Path, choose: Callable[[RunFolder], Checkpoint | None]) -> Checkpoint:
    if "@" in path.name and not path.exists():
        folder, _, milestone = str(path).rpartition("@")
        return _milestone(folder, milestone)
    if (path / MANIFEST).exists():
        checkpoint = Checkpoint.open(path)
        checkpoint.verify()
        return checkpoint
    if policies := _policies_in(path):
        raise RunError(f"{path.absolute()} holds several policies: name one of them, {', '.join(policies)}")
    if len(path.parts) > 1 and (named := _milestone_at(path)):
        return named
    if found := (MilestoneStore(path) if path.name == MILESTONES else CheckpointStore(path)).newest():
        return found
    pointer = path if is_pointer(path) else newest_pointer(list(path.glob("*"))) if path.is_dir() else None
    if pointer is not None:
        checkpoint = follow(pointer)
        checkpoint.verify()
        return checkpoint
    if path.name in STORES and not path.exists():
        runs, choose = runs_under(path.parent), lambda run: run.store(path.name).newest()
    else:
        runs = [RunFolder(path)] if RunFolder.is_run(path) else runs_under(path)
    for run in runs:
        if found := choose(run):
            return found
    looked = "".join(f"\n  {run.path}: no usable checkpoint" for run in runs)
    reason = f"; looked at:{looked}" if looked else f": {_what_is_there(path)}"
    raise RunError(f"no checkpoint found at {path.absolute()}{reason}\n"
                   "Name a checkpoint, a run folder, a folder that holds runs, or one with a policy")


def _milestone_at(path: Path) -> Checkpoint | None:
    """Returns the milestone that `RUN/milestones/NAME` means, where NAME may be anything that `MilestoneStore.find` takes, and
    RUN a folder of runs. None: the path is no such one."""
    for store in path.parents[:2]:
        if store.name == MILESTONES:
            return _milestone(store.parent, path.relative_to(store).as_posix())
    return None


def _policies_in(path: Path) -> list[str]:
    """Policies in a folder that is no run and holds none, such as `league/` of a run."""
    if RunFolder.is_run(path) or runs_under(path):
        return []
    return sorted(str(folder) for folder in path.glob("*") if PolicyFolder.is_one(folder))


def _what_is_there(path: Path) -> str:
    """Says why a path leads to no checkpoint."""
    if not path.exists():
        return "there is no such file or folder"
    if not path.is_dir():
        return "that is a file"
    lacking = [name for name in POLICY_FILES if not (path / name).is_file()]
    if lacking and len(lacking) < len(POLICY_FILES):
        return f"a folder with a policy holds {', '.join(POLICY_FILES)}, and this one lacks {' and '.join(lacking)}"
    return "neither a checkpoint nor a run is there"


def runs_under(folder: Path) -> list[RunFolder]:
    """Returns the runs in the folder or one level below, the one that saved last first."""
    configs = [*folder.glob("*/config.yaml"), *folder.glob("*/*/config.yaml")]
    runs = [RunFolder(config.parent) for config in configs if RunFolder.is_run(config.parent)]
    return sorted(runs, key=_last_saved, reverse=True)


def _last_saved(run: RunFolder) -> tuple[int, str]:
    latest = run.store("checkpoints").latest()
    return (latest.manifest.saved_at if latest else 0, run.path.name)


def _newest_unfinished(root: Path) -> Found:
    looked = ""
    for run in runs_under(root):
        try:
            if run.finished():
                looked += f"\n  {run.path}: finished (to go on, resume it by name with a higher total_steps)"
            elif checkpoint := run.newest():
                return Found(run, checkpoint)
            else:
                looked += f"\n  {run.path}: no usable checkpoint"
        except UserError as error:
            looked += f"\n  {run.path}: {error}"
    raise RunError(f"nothing to resume under {root.absolute()}; looked at:{looked or ' no runs there'}\n"
                   "Start one with `wavedash train`, name a run folder, or set WAVEDASH_RUNS to where your runs are")
