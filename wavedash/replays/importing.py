"""Imports a folder of replays: every file by itself in worker processes, then all of one team size into one file."""
from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.imitate.demonstrations import write_states
from wavedash.replays.filters import REASONS
from wavedash.replays.inverse import SHIPPED, load_model
from wavedash.replays.one_file import Imported, ImportSettings, import_file, read_part, write_part
from wavedash.replays.read import check_installed
from wavedash.runs.durable import replace_file

VERSION = 5
"""Parts of an interrupted import that another version made are made again"""
FACTS = ("file", "problem", "size", "frames", "reasons", "gaps", "short", "starts", "moments", "labels", "goals", "names")


def import_folder(folder: Path, out: Path, settings: ImportSettings, workers: int = 1,
                  show: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Imports all `.replay` files below `folder`, and returns what import.json says. `workers`: processes; 0: in this one,
    where a crash of the parser ends the import."""
    check_installed()
    load_model(settings.inverse)  # says what is wrong with it before any work
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; name the one that holds your .replay files")
    paths = sorted(path for path in folder.rglob("*.replay") if path.is_file())
    if not paths:
        raise UserError(f"{folder} holds no .replay files; the game saves them in Documents/My Games/Rocket League/"
                        "TAGame/Demos")
    parts = out / "parts"
    try:
        parts.mkdir(parents=True, exist_ok=True)
        return _import(paths, out, parts, settings, workers, show)
    except KeyboardInterrupt:
        show("interrupted: the same command goes on with what was imported so far")
        raise
    except OSError as error:
        raise UserError(f"cannot write into {out}: {error.strerror or error}. Make room or name another folder; what was "
                        "imported so far is kept, and the same command goes on with it") from error


def _import(paths: Sequence[Path], out: Path, parts: Path, settings: ImportSettings, workers: int,
            show: Callable[[str], None]) -> dict[str, Any]:
    """OSError: something cannot be written. What cannot be read is named in the result."""
    results: dict[Path, Imported] = {}
    todo: list[tuple[Path, Path]] = []
    seen: dict[str, Path] = {}
    part_of: dict[Path, Path] = {}
    found = 0
    for path in paths:
        try:
            digest = _digest(path, settings)
        except OSError as error:
            results[path] = Imported(path.name, problem=f"cannot be read: {error.strerror or error}")
            continue
        if digest in seen:
            results[path] = Imported(path.name, problem=f"duplicate: the same file as {seen[digest].name}")
            continue
        seen[digest] = path
        part_of[path] = parts / f"{digest}.safetensors"
        part = read_part(part_of[path])
        if part is None:
            todo.append((path, part_of[path]))
        else:
            results[path] = replace(part, arrays={})
            found += 1
    if found:
        show(f"{found} of {len(paths)} files were imported before the interruption")
    for path, result in _work(todo, settings, workers):
        results[path] = result
        show(f"{len(results)} of {len(paths)} files")
    ordered = [results[path] for path in paths]
    _refuse_same_games(ordered)
    before = _written_before(out)
    summary = _write(out, ordered, [part_of.get(path) for path in paths], settings)
    for name in sorted(before - summary["written"].keys()):
        show(f"{out / name} is of an earlier import, and this one says nothing about it")
    for part_path in (*parts.glob("*.safetensors"), *parts.glob(".*.tmp")):  # also those of an import with other settings
        part_path.unlink(missing_ok=True)
    with suppress(OSError):
        parts.rmdir()
    return summary


def _written_before(out: Path) -> set[str]:
    """Files that an earlier import wrote into this folder and that are still there."""
    try:
        names = json.loads((out / "import.json").read_bytes())["written"]
        return {name for name in names if (out / name).is_file()}
    except (OSError, ValueError, KeyError, TypeError):  # there was none, or somebody changed its file
        return set()


def _digest(path: Path, settings: ImportSettings) -> str:
    """Returns what a part depends on: the file, the settings, the model."""
    digest = hashlib.sha256(json.dumps([VERSION, asdict(settings)]).encode())
    model = SHIPPED if settings.inverse == "shipped" else Path(settings.inverse)
    for name in (path, model):
        if name.is_file():
            with open(name, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]


def work_on(path: Path, part: Path, settings: ImportSettings) -> Imported:
    """Imports one file and keeps its part. It runs in a worker process. The arrays stay in the part: each tensor that goes from
    process to process holds a file open, and systems allow 256 or 1024 of them."""
    torch.set_num_threads(1)
    result = import_file(path, settings, load_model(settings.inverse))
    write_part(part, result)
    return replace(result, arrays={})


def _work(todo: Sequence[tuple[Path, Path]], settings: ImportSettings, workers: int) -> Iterator[tuple[Path, Imported]]:
    """Results in any order. A file that ends its process is tried once more alone, then named."""
    if workers == 0:
        for path, part in todo:
            yield path, work_on(path, part, settings)
        return
    waiting, suspects = list(todo), []
    while waiting:
        running: dict[Future[Imported], tuple[Path, Path]] = {}
        with ProcessPoolExecutor(min(workers, len(waiting)), multiprocessing.get_context("spawn")) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < workers:
                        job = waiting.pop(0)
                        running[pool.submit(work_on, *job, settings)] = job
                    for done in wait(running, return_when=FIRST_COMPLETED).done:
                        result = done.result()
                        yield running.pop(done)[0], result
            except BrokenProcessPool:
                suspects += list(running.values())
    for path, part in suspects:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            try:
                yield path, pool.submit(work_on, path, part, settings).result()
            except BrokenProcessPool:
                yield path, Imported(path.name, problem="the parser crashed on it")


def _refuse_same_games(results: Sequence[Imported]) -> None:
    """Two players save the same game under different names: the first file counts."""
    first: dict[str, str] = {}
    for result in results:
        if result.identity and not result.problem:
            if result.identity in first:
                result.problem = f"duplicate: the same game as {first[result.identity]}"
            first.setdefault(result.identity, result.file)


def _write(out: Path, results: Sequence[Imported], parts: Sequence[Path | None], settings: ImportSettings) -> dict[str, Any]:
    from safetensors.torch import save
    used = [result for result in results if not result.problem]
    files = {}
    for size in sorted({result.size for result in used if result.moments}):
        chosen = [part for result, part in zip(results, parts, strict=True)
                  if part is not None and not result.problem and result.size == size and result.moments]
        games = [game for game in map(read_part, chosen) if game is not None]
        if len(games) < len(chosen):
            raise UserError(f"a file in {out / 'parts'} was removed or changed while the import ran; run it again")
        episodes = 0
        for number, game in enumerate(games):  # numbers of episodes go on from game to game
            game.arrays["moments.episode"] = game.arrays["moments.episode"] + episodes
            episodes = int(game.arrays["moments.episode"].max()) + 1
            game.arrays["moments.recording"] = torch.full_like(game.arrays["moments.episode"], number)
        for kind, name in (("starts", "frames"), ("moments", "demonstrations")):
            arrays: dict[str, Tensor] = {key.removeprefix(f"{kind}."): torch.cat([game.arrays[key] for game in games])
                                         for key in games[0].arrays if key.startswith(f"{kind}.")}
            path = out / f"{name}-{size}v{size}.safetensors"
            files[path.name] = len(next(iter(arrays.values())))
            if kind == "starts":
                replace_file(path, save(arrays, {"format": "wavedash-frames", "version": "1"}))
                continue
            controls, known, episode, recording = (arrays.pop(key) for key in ("controls", "known", "episode", "recording"))
            write_states(path, arrays, controls, known, episode, settings.ticks, {"source": "replays"}, recording)
    reasons: Counter[str] = Counter()
    for result in used:
        reasons.update(result.reasons)
    summary = {
        "files": len(results), "imported": len(used), "skipped": len(results) - len(used),
        "frames": {name: reasons.get(name, 0) for name in REASONS}, "gaps": sum(result.gaps for result in used),
        "short segments": sum(result.short for result in used), "starts": sum(result.starts for result in used),
        "moments": sum(result.moments for result in used), "labels": sum(result.labels for result in used),
        "cars at moments": sum(result.moments * 2 * result.size for result in used),
        "goals": sum(result.goals for result in used), "written": files, "settings": asdict(settings),
        "games": [{key: getattr(result, key) for key in FACTS} for result in results],
    }
    replace_file(out / "import.json", json.dumps(summary, indent=1).encode())
    return summary


def import_table(summary: dict[str, Any]) -> str:
    """Says what was imported, what was left out and why, as text."""
    total = max(sum(summary["frames"].values()), 1)
    lines = [f"{summary['files']} files: {summary['imported']} imported, {summary['skipped']} skipped", "",
             f"{'frames':24}{'count':>10}{'share':>9}"]
    lines += [f"{name:24}{count:10,}{100 * count / total:8.2f} %" for name, count in summary["frames"].items()]
    lines += ["", f"gaps in time {summary['gaps']:,}, segments too short {summary['short segments']:,}, "
                  f"goals {summary['goals']:,}",
              f"states to start from {summary['starts']:,}, moments of demonstrations {summary['moments']:,}, "
              f"cars with labels {summary['labels']:,} of {summary['cars at moments']:,}"]
    lines += [f"{name}: {count:,}" for name, count in summary["written"].items()]
    skipped = [game for game in summary["games"] if game["problem"]]
    lines += ["", "skipped:"] * bool(skipped) + [f"  {game['file']}: {game['problem']}" for game in skipped]
    return "\n".join(lines)
