"""What the page says about a run, all from its folder, so a finished run shows the same as one that runs.

Folders may be half written, deleted at any moment, or somebody else's: what cannot be read is left out.
"""
from __future__ import annotations

import logging
import math
import os
import re
import shutil
import socket
import time
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from wavedash.errors import UserError
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.events import EventsFile, in_words
from wavedash.runs.links import plain_file
from wavedash.runs.plain import from_json
from wavedash.web.library import Library
from wavedash.web.machine import Machine, folder_bytes, process_lives
from wavedash.web.metrics import MetricsTail, phase_name
from wavedash.web.run import Run, kind_name, stamp_of

log = logging.getLogger(__name__)

HEALTHY = {
    "policy/clip_fraction": [0.05, 0.3],
    "policy/kl": [0.001, 0.03],
    "policy/entropy_share": [0.1, None],
    "loss/explained_variance": [0.5, 1.0],
}
"""Bands that metrics of a healthy run are usually in; `wavedash/debug/learning.py` warns far outside of them"""
KEPT = 8
"""Runs whose metrics are kept in memory"""
LOG_LINES = 40
QUIET = 600.0
"""Seconds after which a run on another machine that writes nothing is taken for stopped"""
RATING = "rating/elo"
RATED_WITHIN = 4 << 20
"""Bytes at the end of the metrics in which the list of runs looks for a rating"""
SIZED_EVERY = 30.0
"""Seconds between two countings of all files of a run"""


class RunData:
    """Answers the questions of the page about runs. All methods may be called from any thread."""

    def __init__(self, library: Library) -> None:
        self.library, self.machine = library, Machine()
        self._tails: OrderedDict[str, MetricsTail] = OrderedDict()
        self._sizes: dict[str, list[tuple[float, int]]] = {}
        self._lock, self._sizing = Lock(), Lock()

    def tail(self, run: Run) -> MetricsTail:
        """The metrics of a run as they are now."""
        with self._lock:
            tail = self._tails.pop(run.id, None) or MetricsTail(run.folder.metrics)
            self._tails[run.id] = tail
            while len(self._tails) > KEPT:
                self._tails.popitem(last=False)
        tail.refresh()
        return tail

    # --- all runs ----------------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """The list of all runs, without those that cannot be understood: one must not hide the others."""
        found = []
        for run in self.library.runs():
            try:
                found.append(self.row(run))
            except (ValueError, TypeError, OverflowError, OSError) as error:
                log.warning("%s is left out: %s", run.title, error)
        return found

    def row(self, run: Run) -> dict[str, Any]:
        """A line of the list of runs. Only the end of its metrics is read."""
        config = run.config()
        last = run.cached("last", stamp_of(run.folder.metrics), lambda: last_row(run.folder.metrics))
        total = None if config is None else config.total_steps
        steps = int(last.get("steps", 0))
        return {"id": run.id, "name": run.folder.path.parent.name if config is None else config.name, "title": run.title,
                "started": _started(run.folder.path), "steps": steps, "total_steps": total,
                "state": state_of(run, steps, total),
                "kind": kind_name(config), "return": last.get("recent/return"), "rating": last.get(RATING)}

    # --- one run -----------------------------------------------------------------------------------------------------

    def details(self, run: Run) -> dict[str, Any]:
        tail, path = self.tail(run), run.folder.path
        last, row = tail.last, self.row(run)
        speed, total = tail.mean("time/steps_per_second"), row["total_steps"]
        eta = (total - row["steps"]) / speed if row["state"] == "running" and speed and total else None
        phase = last.get("phase")
        checkpoints, milestones = self._saved(run)
        starts = [line for line in _text(path / "command.txt").splitlines() if line]
        return {**row, "config": _text(run.folder.config), "command": starts[-1] if starts else None, "starts": len(starts),
                "versions": _last_json(path / "env.jsonl"), "holder": run.folder.holder if row["state"] == "running" else None,
                "checkpoints": checkpoints, "milestones": milestones,
                "phase": phase_name(phase) if isinstance(phase, str) else None, "log": _text(run.folder.log, LOG_LINES),
                "disk": self._disk(run), "health": _health(tail, len(starts), checkpoints), "steps_per_second": speed,
                "time_split": _time_split(tail), "eta_seconds": None if eta is None else max(0.0, eta),
                "machine": self.machine.look(), "healthy": {name: band for name, band in HEALTHY.items()
                                                            if name in tail.names()}}

    def metrics(self, run: Run, names: list[str] | None, points: int, after: float | None) -> dict[str, Any]:
        found = self.tail(run).table(names, points, after)
        return {**found, "events": self.events(run, curves=True)}

    def events(self, run: Run, curves: bool = False) -> list[dict[str, Any]]:
        """Returns what was done to a run, in words; with `curves` only what has changed something."""
        rows = run.cached("events", stamp_of(run.folder.events), lambda: EventsFile(run.folder.events).rows())
        found = []
        for row in rows:
            with suppress(KeyError, TypeError, ValueError):
                said = in_words(row)
                refused = str(row["refused"]) if "refused" in row else None
                if curves and said is None:
                    continue
                found.append({"step": row["step"], "time": row.get("time"), "text": said or _unchanged(row, refused),
                              "by": row.get("by"), "key": row.get("key"), "refused": refused})
        return found

    def ladder(self, run: Run, size: int | None = None) -> dict[str, Any]:
        """Ratings with intervals, and who beat whom how often, in games of so many cars per team; by default of the largest
        teams. UserError: the run has no such games."""
        stamp = stamp_of(run.folder.games, run.folder.events)
        found: dict[str, Any] = run.cached(f"ladder {size}", stamp, lambda: _ladder(run, size))
        if "error" in found:
            raise UserError(found["error"])
        return found

    def _saved(self, run: Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """All checkpoints, the last saved first, and the milestones."""
        path = run.folder.path
        stores = ("checkpoints", "best", "spaced", "final")
        folders = [path / name for name in (*stores, "milestones")]
        with suppress(OSError):
            folders += [phase for phase in (path / "milestones").glob("*") if phase.is_dir()]

        def read() -> tuple[list[tuple[str, Checkpoint]], list[dict[str, Any]]]:
            found = [(f"{name}/{one.path.name}", one) for name in stores for one in run.folder.store(name)._open_all()[0]]
            marked = []
            with suppress(UserError, OSError):
                marked = [{"name": one.full_name, "step": one.checkpoint.step, **one.facts()}
                          for one in run.folder.milestones.listed()[0]]
            return sorted(found, key=lambda item: -item[1].manifest.saved_at), marked

        found, marked = run.cached("saved", stamp_of(*folders), read)
        now = time.time()
        shown = [{"name": name, "step": one.step, "saved_at": _iso(one.manifest.saved_at / 1000),
                  "age": max(0.0, now - one.manifest.saved_at / 1000),
                  "bytes": sum(file.size for file in one.manifest.files.values())} for name, one in found]
        return shown, marked

    def _disk(self, run: Run) -> dict[str, Any]:
        """The room on the disk, what the run takes of it, and for how many hours it lasts at the pace of the last hour."""
        try:
            free = shutil.disk_usage(run.folder.path).free
        except OSError:
            return {"free": None, "run_bytes": None, "hours_left": None}
        now = time.monotonic()
        with self._sizing:  # a lock of its own: to count many files may take long
            seen = self._sizes.setdefault(run.id, [])
            if not seen or now - seen[-1][0] > SIZED_EVERY:
                size = folder_bytes(run.folder.path)
                if size is not None:
                    seen.append((now, size))
                del seen[:-120]
            if not seen:
                return {"free": free, "run_bytes": None, "hours_left": None}
            seconds, grown = seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]
            return {"free": free, "run_bytes": seen[-1][1], "hours_left": free * seconds / grown / 3600 if grown > 0 else None}


def state_of(run: Run, steps: int, total: int | None) -> str:
    """`running`, `finished` or `stopped`."""
    if is_trained(run):
        return "running"
    return "finished" if total is not None and steps >= total else "stopped"


def is_trained(run: Run) -> bool:
    """Whether a process trains the run. One that was killed leaves its name behind, so it is looked for."""
    holder = re.fullmatch(r"process (\d{1,18}) on (.*)", run.folder.holder or "")
    if holder is None:
        return False
    try:
        since = os.stat(run.folder.path / ".lock-holder.json").st_mtime
    except OSError:
        return False
    if holder[2] == socket.gethostname():
        return process_lives(int(holder[1]), since)
    with suppress(OSError):
        since = max(since, os.stat(run.folder.metrics).st_mtime)
    return time.time() - since < QUIET


def last_row(path: Path) -> dict[str, Any]:
    """The last whole line of a file of metrics, with the last rating, which not every line has; empty if there is none."""
    for line in reversed(_text(path, 3, whole=True)):
        with suppress(ValueError, RecursionError):
            row = from_json(line.encode())
            if isinstance(row, dict) and isinstance(row.get("steps"), int | float) and math.isfinite(row["steps"]):
                return row if RATING in row else {**row, RATING: _last_rating(path)}
    return {}


def _last_rating(path: Path) -> float | None:
    """The last rating in the end of a file of metrics. Lines are not read one by one: a run may have many between two."""
    with suppress(OSError, ValueError, RecursionError, AttributeError), open(path, "rb", opener=plain_file) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - RATED_WITHIN))
        text = file.read(RATED_WITHIN)
        at = text.rfind(f'"{RATING}"'.encode())
        if at >= 0:
            rating = from_json(text[text.rfind(b"\n", 0, at) + 1:].partition(b"\n")[0]).get(RATING)
            return float(rating) if isinstance(rating, int | float) else None
    return None


def _health(tail: MetricsTail, starts: int, checkpoints: list[dict[str, Any]]) -> dict[str, Any]:
    """Counters of trouble by name. All are 0 in a run without any."""
    found = {name.removeprefix("health/"): value for name, value in tail.last.items()
             if name.startswith("health/") and isinstance(value, int | float)}
    return {**found, "skipped_updates": tail.total("optim/skipped"), "resumes": max(0, starts - 1),
            "checkpoint_age": checkpoints[0]["age"] if checkpoints else None}


def _time_split(tail: MetricsTail) -> dict[str, float]:
    """The share of an iteration that each of its parts takes, over the last iterations."""
    parts = {name.removeprefix("time/"): tail.mean(name) or 0.0 for name in tail.names()
             if name.startswith("time/") and name != "time/steps_per_second"}
    whole = sum(parts.values())
    return {name: seconds / whole for name, seconds in parts.items()} if whole > 0 else {}


def _ladder(run: Run, wanted: int | None) -> dict[str, Any]:
    from wavedash.league.games import GamesFile
    from wavedash.league.ladder import read_ladder
    from wavedash.league.reference import shipped

    try:
        sizes = sorted({game.size for game in GamesFile(run.folder.games).read()})
        size = wanted if wanted is not None else sizes[-1] if sizes else None
        ladder = read_ladder([run.folder.games], shipped(), size)
        results, order = ladder.results, [player for player in ladder.ratings if player in ladder.results.players]
        at = [results.players.index(player) for player in order]
        played = results.played[at][:, at]
        points = (results.wins + results.draws / 2)[at][:, at]
        rates = [[None if n == 0 else w / n for w, n in zip(won, games, strict=True)]
                 for won, games in zip(points.tolist(), played.tolist(), strict=True)]
        return {**ladder.as_json(), "size": size, "sizes": sizes,
                "matrix": {"players": order, "win_rate": rates, "games": played.tolist()}}
    except (UserError, OSError, ValueError) as error:
        return {"error": str(error) if isinstance(error, UserError) else "the run has no rated games yet"}


def _unchanged(row: dict[str, Any], refused: str | None) -> str:
    what = row.get("key") or "a request"
    return f"{what} refused: {refused}" if refused is not None else f"{what}: {row.get('new')} already"


def _started(path: Path) -> str | None:
    try:
        return datetime.strptime(path.name[:15], "%Y%m%d-%H%M%S").astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        with suppress(OSError):
            return _iso(os.stat(path / "config.yaml").st_mtime)
    return None


def _iso(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def _last_json(path: Path) -> dict[str, Any] | None:
    for line in reversed(_text(path, 3)):
        with suppress(ValueError, RecursionError):
            row = from_json(line.encode())
            if isinstance(row, dict):
                return row
    return None


def _text(path: Path, lines: int | None = None, whole: bool = False, most: int = 256 * 1024) -> Any:
    """The beginning of a text file or, as a list, its last lines. Nothing if it cannot be read. `whole`: without a last line
    that is not complete."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(0 if lines is None else max(0, size - most))
            text = file.read(most).decode("utf-8", "replace")
    except OSError:
        return "" if lines is None else []
    if lines is None:
        return text
    if whole:
        text = text[: text.rfind("\n") + 1]
    return text.splitlines()[-lines:]
