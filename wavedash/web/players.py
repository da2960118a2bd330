"""Players that can be watched: scripts, champions, rungs, and checkpoints of runs. Clients name them by id."""
from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavedash import champions
from wavedash.config import RunConfig
from wavedash.errors import UserError
from wavedash.runs.checkpoint import MILESTONES
from wavedash.runs.folder import RunFolder
from wavedash.runs.links import plain_file
from wavedash.runs.plain import from_json
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.trust import code_of, run_config
from wavedash.web.library import Library, UnknownError, found_in, hashed
from wavedash.web.run import Run, kind_name, read_config, stamp_of, team_size
from wavedash.web.shipped import shipped

RUNGS = "rungs"
NAMED = "named in the terminal"
NEWEST = "newest"
"""The name of the player that is the newest checkpoint of a run"""


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
    """Whether it is the newest checkpoint of its run, whichever that is"""

    def as_json(self) -> dict[str, Any]:
        shown = ("id", "name", "group", "step", "size", "kind", "run", "refused")
        return {name: getattr(self, name) for name in shown}


class Players:
    """Finds players, by id or by what a user types. All methods may be called from any thread."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._named: dict[str, Player] = {}

    def all(self) -> list[Player]:
        """Everybody who can play: those who were named in the terminal, scripts, champions, rungs, and those of runs. The first
        call takes a second or more, in which the scripts are looked for."""
        found = list(self._named.values())
        found += [Player(hashed(f"script:{name}"), name, "scripts", name) for name in shipped("player")]
        found += [_champion(mode) for mode in [*champions.modes(), *champions.walkers()]]
        found += self._rungs()
        for run in self.library.runs():
            found += self._players_of(run)
        return found

    def find(self, id: str) -> Player:
        """UnknownError: nobody has this id, or the code of somebody else would run."""
        player = next((player for player in self.all() if player.id == id), None)
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
            return _champion(champions.champion_folder(text, size).name)
        if path.exists():
            if (run := self.library.run_named(path)) is not None and (newest := self.newest(run)) is not None:
                return newest
            config = read_config(path / "config.yaml")
            made = Player(hashed(f"named:{path.absolute()}"), path.name, NAMED, str(path.absolute()), _steps(path),
                          team_size(config), kind_name(config) if config is not None else "rocket")
        elif any(sign in text for sign in ":+@"):  # a class, a team or a milestone, which the stage looks for
            made = Player(hashed(f"named:{text}"), text, NAMED, text)
        else:
            return self._script(text)
        self._named[made.id] = made
        return made

    def _script(self, text: str) -> Player:
        """The script of this name, which may be written as its class is."""
        scripts = shipped("player")
        for name in scripts:
            if name.replace("_", "") == text.replace("_", "").lower():
                return Player(hashed(f"script:{name}"), name, "scripts", name)
        known = [*scripts, *champions.champion_names()]
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UserError(f"there is no player or run {text!r}{hint} A player is one of {', '.join(known)}; a class of your own "
                        "as 'module:Class'; or a trained policy: a run, a checkpoint or a folder with one")

    def _rungs(self) -> Iterator[Player]:
        for beside in dict.fromkeys([self.library.root, self.library.root / RUNGS, self.library.root.parent / RUNGS]):
            for path in sorted(found_in(beside, "*/policy.safetensors")):
                folder = path.parent
                if PolicyFolder.is_one(folder) and not RunFolder.is_run(folder):
                    config = read_config(folder / "config.yaml")
                    yield Player(self.library.id_of(folder), folder.name, RUNGS, str(folder), _steps(folder), team_size(config),
                                 kind_name(config), None, self._refused(config, folder / "config.yaml"))

    def _players_of(self, run: Run) -> list[Player]:
        """The newest and best checkpoint and all milestones of a run, as their manifests say."""
        stores = [run.folder.path / name for name in ("final", "best", "checkpoints", MILESTONES)]
        phases = [path for path in found_in(stores[-1], "*") if path.is_dir()]
        stamp = stamp_of(run.folder.config, *stores, *phases)
        return list(run.cached("players", stamp, lambda: self._read_players(run)))

    def _read_players(self, run: Run) -> list[Player]:
        config = run.config()
        if config is None:
            return []
        refused = self._refused(config, run.folder.config)
        size, kind = team_size(config), kind_name(config)
        stores = {name: run.folder.store(name).latest() for name in ("checkpoints", "final", "best")}
        found = {name: one for name, one in stores.items() if one is not None and name != "checkpoints"}
        if newest := stores["checkpoints"] or stores["final"]:
            found = {NEWEST: newest, **found}
        with suppress(UserError, OSError):
            found |= {one.full_name: one.checkpoint for one in run.folder.milestones.listed()[0]}
        made = []
        for name, one in found.items():
            # These may be replaced before they are loaded: whoever loads one looks into its store. So its id stays as well.
            moves = name in (NEWEST, "final", "best")
            id, source = (run.folder.path / name, one.path.parent) if moves else (one.path, one.path)
            made.append(Player(self.library.id_of(id), f"{config.name} {name}", run.title, str(source), one.step, size, kind,
                               run.id, refused, name == NEWEST))
        return made

    def newest(self, run: Run) -> Player | None:
        """The newest checkpoint of a run. None: it has none yet."""
        return next((player for player in self._players_of(run) if player.follows), None)

    def renewed(self, player: Player) -> Player:
        """The player as it is now: one that follows a run may have a newer checkpoint."""
        run = self.library.known(player.run) if player.follows else None
        return player if run is None else self.newest(run) or player

    def _refused(self, config: RunConfig | None, file: Path) -> str | None:
        """Why a policy must not play here: its configuration names code of somebody else."""
        if config is None:
            return "its configuration cannot be read"
        if not any(code_of(config)):
            return None  # the usual case, in which the file need not be read again
        try:
            run_config(file, trust=self.library.trust)
        except UserError as error:
            return str(error)
        return None


def _champion(mode: str) -> Player:
    name, walks = f"{champions.NAME}-{mode}", mode in champions.WALKERS
    return Player(hashed(f"champion:{mode}"), name, "champions", name, _steps(champions.FOLDER / mode),
                  None if walks else int(mode[0]), "walk" if walks else "rocket")


def _steps(folder: Path) -> int | None:
    try:
        steps = from_json(_content(folder / "state.json"))["steps"]
        return steps if isinstance(steps, int) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _content(path: Path) -> bytes:
    with open(path, "rb", opener=plain_file) as file:
        return file.read()
