"""`wavedash page export`: a run as one HTML file that opens without a server, to send to somebody.

Everything in it is what the server would answer, asked once. What would tell about the machine or the user is left out
(export_clean.py), as is what would make the file too large; the file says so.
"""
from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wavedash import __version__
from wavedash.errors import UserError
from wavedash.recordings import RecordingError, read
from wavedash.runs.durable import replace_file
from wavedash.web.export_clean import Cleaner
from wavedash.web.export_html import PageFiles, is_export, packed
from wavedash.web.library import Library
from wavedash.web.recorded import Recorded
from wavedash.web.run import Run
from wavedash.web.run_data import RunData

RECORDINGS = 10
POINTS = 1500
MEGABYTES = 8.0
FEWEST_POINTS = 100
DIGITS = 7
"""Significant digits of curves: more than float32 has"""
FIRST = ("highlight", "rating", "match", "eval", "stage", "crash")
"""Which recordings are taken first, by what made them; of equals the newest"""
HARMLESS = ("config", "starts", "checkpoints", "milestones", "phase", "health", "steps_per_second", "time_split", "eta_seconds",
            "healthy")
"""Parts of the details of a run that tell nothing about the machine; its row in the list does neither"""
KNOWN_FACTS = ("python", "packages", "git_commit", "platform", "cpus", "cuda", "gpus")
"""What an export tells of where a run was trained: the name of the machine is left out"""


@dataclass
class Export:
    """What goes into a file."""

    title: str
    answers: dict[str, Any] = field(default_factory=dict)
    """What the server would answer, by path"""
    errors: dict[str, str] = field(default_factory=dict)
    """Why it would answer nothing, by path"""
    files: dict[str, str] = field(default_factory=dict)
    """Recordings in base64, by path"""
    left_out: list[str] = field(default_factory=list)
    """What is not in it, in words"""
    curves: int = 0
    recordings: int = 0
    """How many there were to choose from"""


def export_page(run: Path, out: Path, recordings: int = RECORDINGS, points: int = POINTS, megabytes: float = MEGABYTES,
                force: bool = False, static: Path | None = None) -> str:
    """Writes the file, whole or not at all, and returns a line about it. `run` is a run folder, `static` the folder of the
    page's files. UserError: it cannot be written, or another file is there."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{out.name}: the exported page is an HTML file: name it {out.name}.html")
    if out.is_dir() or (out.exists() and not force and not is_export(out)):
        raise UserError(f"{out} is there already and is no exported page: name another file, or replace it with --force")
    page = PageFiles() if static is None else PageFiles(static)
    made = collect(run, recordings, points, int(megabytes * 1e6) - page.size)
    data = page.with_data(made.title, {"packed": packed({"answers": made.answers, "errors": made.errors}), "files": made.files})
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, data)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; name another file, or make room there") from error
    return "\n".join([f"wrote {out}: {len(data) / 1e6:.1f} MB, {made.curves} curves, {len(made.files)} of {made.recordings} "
                      "recordings; any browser opens it", *(f"left out: {what}" for what in made.left_out)])


def collect(path: Path, recordings: int, points: int, room: int) -> Export:
    """Everything that the file holds, in about `room` bytes."""
    library = Library(path.absolute().parent, extra=path)  # ids name the folder, and not where it is
    run = library.run_at(path)
    if run is None:
        raise UserError(f"{path} is no run folder: name one, such as runs/cartpole")
    config, clean, data = run.config(), Cleaner(path), RunData(library)
    if config is None or run.folder.path.absolute().parent.name != config.name:
        run.title = run.folder.path.name  # the folder around it may be called after anybody
    made = Export(clean.text(run.title))
    here = f"/api/runs/{run.id}"
    made.answers = {
        "/api/runs": [clean.value(data.row(run))], here: _details(clean, data, run),
        f"{here}/events": _without_names(clean, data.events(run)), "/api/players": [], "/api/starts": [],
    }
    _add_ladder(made, clean, data, run)
    _add_curves(made, clean, data, run, points, room // 2)
    _add_recordings(made, clean, library, run, recordings, room - len(packed(made.answers)))
    made.left_out.append("the log, the command line, and what would name this machine or its users")
    made.answers["/api/about"] = {
        "version": __version__, "loopback": False, "writable": False, "run": run.id, "watching": None,
        "tab": "watch" if made.files else "run",
        "exported": datetime.now(UTC).isoformat(timespec="seconds"), "left_out": made.left_out}
    return made


def _details(clean: Cleaner, data: RunData, run: Run) -> dict[str, Any]:
    """Returns what is known of the run itself. What is not known to be harmless stays here, also what later versions may
    tell."""
    found = data.details(run)
    versions = found["versions"] if isinstance(found["versions"], dict) else {}
    harmless = {*data.row(run), *HARMLESS}
    return {**{key: clean.value(item) if key in harmless else None for key, item in found.items()}, "log": [],
            "versions": clean.value({key: versions[key] for key in KNOWN_FACTS if key in versions}) or None,
            "disk": {"free": None, "run_bytes": (found["disk"] or {}).get("run_bytes"), "hours_left": None}}


def _without_names(clean: Cleaner, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events without who has caused them, and in which time zone."""
    return [clean.value({**event, "by": None, "time": _utc(event.get("time"))}) for event in events]


def _utc(time: Any) -> str | None:
    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _add_ladder(made: Export, clean: Cleaner, data: RunData, run: Run) -> None:
    """The ladder of the largest teams, and those of other sizes."""
    path = f"/api/runs/{run.id}/ladder"
    try:
        found = data.ladder(run)
        made.answers[path] = clean.value(found)
        for size in found["sizes"]:
            if size != found["size"]:
                made.answers[f"{path}?size={size}"] = clean.value(data.ladder(run, size))
    except UserError as error:
        made.errors[path] = clean.text(str(error))


def _add_curves(made: Export, clean: Cleaner, data: RunData, run: Run, points: int, room: int) -> None:
    """All metrics, with fewer points where they would take too much room."""
    asked = points
    while True:
        found = data.metrics(run, None, points, None)
        columns = {name: [_short(value) for value in column] for name, column in found.pop("columns").items()}
        table = {**clean.value({**found, "events": []}), "columns": columns, "steps": [_short(step) for step in found["steps"]],
                 "events": _without_names(clean, found["events"])}
        if points <= FEWEST_POINTS or len(packed(table)) <= room:
            break
        points //= 2
    made.answers[f"/api/runs/{run.id}/metrics"] = table
    made.curves = len(columns)
    iterations = data.tail(run).rows
    if iterations > points:
        fewer = "" if points == asked else f" (not {asked:,}, to keep the file small)"
        made.left_out.append(f"single iterations: a curve has {len(table['steps']):,} points{fewer}, each the mean of "
                             f"neighbours among {iterations:,}")


def _add_recordings(made: Export, clean: Cleaner, library: Library, run: Run, most: int, room: int) -> None:
    rows = [row for row in Recorded(library).rows() if row["run"] == run.id]
    order = {source: number for number, source in enumerate(FIRST)}
    rows.sort(key=lambda row: order.get(row["source"], len(FIRST)))  # they come with the newest first
    kept: list[dict[str, Any]] = []
    larger = 0
    for row, data in _read(clean, library, rows):
        if len(kept) == most:
            break
        text = base64.b64encode(data).decode("ascii")
        if len(text) > room:
            larger += 1
            continue
        room -= len(text)
        made.files[f"/api/recordings/{row['id']}"] = text
        kept.append({**clean.value(row), "bytes": len(data)})
    made.answers["/api/recordings"] = sorted(kept, key=lambda row: (row["created"], row["id"]), reverse=True)
    made.recordings = len(rows)
    if len(kept) < len(rows):
        why = " (--recordings and --megabytes take more)" if larger or len(kept) == most else ": they cannot be read"
        made.left_out.append(f"{len(rows) - len(kept)} of {len(rows)} recordings{why}")


def _read(clean: Cleaner, library: Library, rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Recordings as they are sent: those that are whole, with clean headers."""
    for row in rows:
        try:
            yield row, clean.recording(read(library.recording(row["id"]).path)).to_bytes()
        except (RecordingError, UserError, OSError):
            continue


def _short(value: float | None) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}") if abs(value) < 10**DIGITS else value
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
