"""The library knows the runs, players and recordings that there are, and gives each an id.

Clients name things by id alone. An id is a hash of where a thing was found; it is looked up in tables that were made by looking
into the folders, so no text of a client ever becomes a path. Folders are looked at again at most once a second, and only where
something has changed.
"""
from __future__ import annotations

import difflib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from wavedash import champions
from wavedash.config import RunConfig
from wavedash.errors import UserError
from wavedash.runs.checkpoint import MANIFEST, MILESTONES
from wavedash.runs.find import runs_under
from wavedash.runs.folder import RunFolder, runs_root
from wavedash.runs.plain import from_json
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.trust import run_config
from wavedash.web.shipped import shipped

RECORDINGS = "recordings"
RUNGS = "rungs"
NAMED = "named in the terminal"
NEWEST = "newest"
"""The name of the player that is the newest checkpoint of a run"""
OFTEN = 1.0
"""Seconds between two looks at the folders"""


class UnknownError(UserError):
    """A client has named something that is not there."""


@dataclass(frozen=True)
class Player:
    """Somebody who can be watched, and what `find_entrant` makes a player of."""

    id: str
    name: str
    group: str
    source: str
    """A name or a path, which never leaves the server"""
    step: int | None = None
    size: int | None = None
    kind: str = "rocket"
    run: str | None = None
    refused: str | None = None
    """Why it must not play here"""
    follows: bool = False
    """Whether it is the newest checkpoint of its run, whichever that is. Its id stays when a newer one is saved"""

    def as_json(self) -> dict[str, Any]:
        shown = ("id", "name", "group", "step", "size", "kind", "run", "refused")
        return {name: getattr(self, name) for name in shown}


@dataclass(frozen=True)
class RecordingFile:
    """A file with a recording."""

    id: str
    path: Path
    run: str | None


@dataclass
class Run:
    """A run folder, and what was read of it the last time."""

    id: str
    folder: RunFolder
    title: str
    seen: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def cached(self, what: str, stamp: Any, read: Callable[[], Any]) -> Any:
        """What was read when the stamp was the same, else what is read now."""
        if what not in self.seen or self.seen[what][0] != stamp:
            self.seen[what] = (stamp, read())
        return self.seen[what][1]

    def config(self) -> RunConfig | None:
        """The configuration, read as data: nothing that it names is run. None: it cannot be read."""
        return self.cached("config", stamp_of(self.folder.config), lambda: _config(self.folder.config))


def stamp_of(*paths: Path) -> tuple[Any, ...]:
    """Changes whenever one of the files or folders does."""
    found: list[Any] = []
    for path in paths:
        try:
            facts = os.stat(path)
            found.append((facts.st_mtime_ns, facts.st_size, facts.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


class Library:
    """Everything that the page can show. All methods may be called from any thread."""

    def __init__(self, root: Path | None = None, extra: Path | None = None, trust: bool = False) -> None:
        """`extra`: a run folder outside of the root. `trust`: policies of runs that name somebody else's code may play."""
        self.root, self.trust = (root or runs_root()).absolute(), trust
        self.extra = [] if extra is None else [extra.absolute()]
        """Run folders outside of the root"""
        self._lock, self._at = Lock(), float("-inf")
        self._runs: dict[str, Run] = {}
        self._recordings: dict[str, RecordingFile] = {}
        self._named: dict[str, Player] = {}

    # --- runs --------------------------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs, the one that was written to last first."""
        self._look()
        return list(self._runs.values())

    def run(self, id: str) -> Run:
        """UnknownError: there is no such run."""
        self._look()
        try:
            return self._runs[id]
        except KeyError:
            raise UnknownError("there is no such run; it may have been deleted") from None

    def run_at(self, path: Path) -> Run | None:
        """The run in this folder."""
        return next((run for run in self.runs() if run.folder.path.absolute() == path.absolute()), None)

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._at < OFTEN:
                return
            found = {}
            for path in self._folders():
                id = self._id(path)
                found[id] = self._runs.get(id) or Run(id, RunFolder(path), "/".join(path.parts[-2:]))
            self._runs = found
            self._recordings = {file.id: file for file in self._find_recordings()}
            self._at = time.monotonic()

    def _folders(self) -> list[Path]:
        configs = [*_glob(self.root, "*/config.yaml"), *_glob(self.root, "*/*/config.yaml")]
        folders = [config.parent for config in configs if _inside(config.parent, self.root) and RunFolder.is_run(config.parent)]
        folders += [path for path in self.extra if path not in folders and RunFolder.is_run(path)]
        return sorted(folders, key=_written, reverse=True)

    def _id(self, path: Path) -> str:
        """Names a path: relative to the root where it is inside, so that the root may be moved."""
        inside = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.absolute().as_posix()
        return _hash(inside)

    # --- players -----------------------------------------------------------------------------------------------------

    def players(self) -> list[Player]:
        """Everybody who can play: those who were named in the terminal, scripts, champions, rungs, and those of runs. The first
        call takes a second or more, in which the scripts are looked for."""
        found = list(self._named.values())
        found += [Player(_hash(f"script:{name}"), name, "scripts", name) for name in shipped("player")]
        found += [_champion(mode) for mode in champions.modes()]
        found += self._rungs()
        for run in self.runs():
            found += self._players_of(run)
        return found

    def player(self, id: str) -> Player:
        """UnknownError: nobody has this id, or the code of somebody else would run."""
        player = next((player for player in self.players() if player.id == id), None)
        if player is None:
            raise UnknownError("there is no such player; its checkpoint may have been replaced by a newer one")
        if player.refused is not None:
            raise UserError(player.refused)
        return player

    def champion(self, size: int = 1) -> Player:
        """The champion of teams of this size. UserError: none ships."""
        champions.champion_folder(champions.NAME, size)
        return _champion(f"{size}v{size}")

    def named(self, text: str, size: int | None = None) -> Player:
        """Whom a user has named in the terminal, as for `wavedash match`; of a run, its newest checkpoint. UserError: nobody
        has this name."""
        path = Path(text)
        if champions.is_champion(text):
            return self.champion(int(text[-1]) if "-" in text else size or 1)
        if path.exists():
            if (run := self.run_named(path)) is not None and (newest := self.newest(run)) is not None:
                return newest
            config = _config(path / "config.yaml")
            made = Player(_hash(f"named:{path.absolute()}"), path.name, NAMED, str(path.absolute()), _steps(path),
                          team_size(config), kind_name(config) if config is not None else "rocket")
        elif any(sign in text for sign in ":+@"):  # a class, a team or a milestone, which the stage looks for
            made = Player(_hash(f"named:{text}"), text, NAMED, text)
        else:
            return self._script(text)
        self._named[made.id] = made
        return made

    def _script(self, text: str) -> Player:
        """The script of this name, which may be written as its class is."""
        scripts = shipped("player")
        for name in scripts:
            if name.replace("_", "") == text.replace("_", "").lower():
                return Player(_hash(f"script:{name}"), name, "scripts", name)
        known = [*scripts, *champions.champion_names()]
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UserError(f"there is no player or run {text!r}{hint} A player is one of {', '.join(known)}; a class of your own "
                        "as 'module:Class'; or a trained policy: a run, a checkpoint or a folder with one")

    def run_named(self, path: Path) -> Run | None:
        """The run in a folder, or the newest one in a folder of runs. None: there is none."""
        if not RunFolder.is_run(path):
            if PolicyFolder.is_one(path) or (path / MANIFEST).exists() or not (below := runs_under(path)):
                return None
            path = below[0].path
        if self.run_at(path) is None:
            with self._lock:
                self.extra.append(path.absolute())
                self._at = float("-inf")
        return self.run_at(path)

    def starts(self) -> list[str]:
        """Names of the ways in which a game can begin."""
        return shipped("start")

    def _rungs(self) -> Iterator[Player]:
        for beside in dict.fromkeys([self.root, self.root / RUNGS, self.root.parent / RUNGS]):
            for path in sorted(_glob(beside, "*/policy.safetensors")):
                folder = path.parent
                if PolicyFolder.is_one(folder) and not RunFolder.is_run(folder):
                    config = _config(folder / "config.yaml")
                    yield Player(self._id(folder), folder.name, RUNGS, str(folder), _steps(folder), team_size(config),
                                 kind_name(config), None, self._refused(folder / "config.yaml"))

    def _players_of(self, run: Run) -> list[Player]:
        """The newest and best checkpoint and all milestones of a run, as their manifests say."""
        stores = [run.folder.path / name for name in ("final", "best", "checkpoints", MILESTONES)]
        phases = [path for path in _glob(stores[-1], "*") if path.is_dir()]
        stamp = stamp_of(run.folder.config, *stores, *phases)
        return list(run.cached("players", stamp, lambda: self._read_players(run)))

    def _read_players(self, run: Run) -> list[Player]:
        config = run.config()
        if config is None:
            return []
        refused = self._refused(run.folder.config)
        size, kind = team_size(config), kind_name(config)
        stores = {name: run.folder.store(name).latest() for name in ("checkpoints", "final", "best")}
        found = {name: one for name, one in stores.items() if one is not None and name != "checkpoints"}
        if newest := stores["checkpoints"] or stores["final"]:
            found = {NEWEST: newest, **found}
        with suppress(UserError, OSError):
            found |= {one.full_name: one.checkpoint for one in run.folder.milestones.listed()[0]}
        # The newest checkpoint may be pruned before it is loaded: whoever loads it looks into the store.
        return [Player(self._id(run.folder.path / NEWEST if name == NEWEST else one.path), f"{config.name} {name}", run.title,
                       str(one.path.parent if name == NEWEST else one.path), one.step, size, kind, run.id, refused,
                       name == NEWEST) for name, one in found.items()]

    def newest(self, run: Run) -> Player | None:
        """The newest checkpoint of a run. None: it has none yet."""
        return next((player for player in self._players_of(run) if player.follows), None)

    def renewed(self, player: Player) -> Player:
        """The player as it is now: one that follows a run may have a newer checkpoint."""
        run = self._runs.get(player.run or "") if player.follows else None
        return player if run is None else self.newest(run) or player

    def _refused(self, config: Path) -> str | None:
        """Why a policy must not play here: its configuration names code of somebody else."""
        try:
            run_config(config, trust=self.trust)
        except UserError as error:
            return str(error)
        return None

    # --- recordings --------------------------------------------------------------------------------------------------

    def recordings(self) -> list[RecordingFile]:
        self._look()
        return list(self._recordings.values())

    def recording(self, id: str) -> RecordingFile:
        """UnknownError: there is no such recording."""
        self._look()
        try:
            return self._recordings[id]
        except KeyError:
            raise UnknownError("there is no such recording; it may have been deleted") from None

    def _find_recordings(self) -> Iterator[RecordingFile]:
        places = [(run.folder.path / name, run.id) for run in self._runs.values() for name in (RECORDINGS, "crash")]
        for folder, run in [(self.root / RECORDINGS, None), *places]:
            for path in sorted(_glob(folder, "*.wdr"), reverse=True):
                if not path.is_symlink() and path.is_file():
                    yield RecordingFile(self._id(path), path, run)


def kind_name(config: RunConfig | None) -> str:
    """`rocket`, `walk` or `other`."""
    if config is None:
        return "other"
    return next((name for name in ("rocket", "walk") if getattr(config.env, name, None) is not None), "other")


def team_size(config: RunConfig | None) -> int | None:
    """How many cars a team had in training. Only the kind of Rocket League is asked: others may be somebody else's code."""
    if config is None or kind_name(config) != "rocket":
        return None
    from wavedash.envs.kinds import kind_of

    try:
        return kind_of(config.env).team_size(config.env)
    except (UserError, ValueError):
        return None


def _champion(mode: str) -> Player:
    name = f"{champions.NAME}-{mode}"
    return Player(_hash(f"champion:{mode}"), name, "champions", name, _steps(champions.FOLDER / mode), int(mode[0]))


def _config(path: Path) -> RunConfig | None:
    from wavedash.config_file import load_config

    try:
        return load_config(str(path))
    except (UserError, OSError, ValueError):
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _glob(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return list(folder.glob(pattern))
    return []


def _inside(path: Path, root: Path) -> bool:
    """Whether a folder is below the root in truth: a link may lead out of it."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def _written(run: Path) -> float:
    for name in ("metrics.jsonl", "config.yaml"):
        with suppress(OSError):
            return os.stat(run / name).st_mtime
    return 0.0


def _steps(folder: Path) -> int | None:
    try:
        steps = from_json((folder / "state.json").read_bytes())["steps"]
        return steps if isinstance(steps, int) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
