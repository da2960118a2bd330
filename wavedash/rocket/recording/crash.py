"""What arenas did before a run failed, as recordings in `crash/` of its folder."""
from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from wavedash.recordings.file import SUFFIX
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.episodes import RawEpisode
from wavedash.rocket.recording.watched import Watched

log = logging.getLogger(__name__)

SECONDS = 20.0
"""Seconds that are kept of each arena, the last ones"""
MOST_FILES = 24
"""Recordings in the folder; older ones are removed"""
MOST_LETTERS = 300
"""Letters of the error that a recording holds"""
ARENA = re.compile(r"\barena (\d+)")
"""How messages name the arena in which something went wrong"""


def write_crash(watched: Sequence[Watched], env: RocketEnv, error: Exception, folder: Path, name: str, step: int,
                run: str | None = None) -> list[Path]:
    """Writes the last seconds of the watched arenas, and the last state of the one that the error names. Whatever goes wrong
    here is only logged: the error itself is what matters. `name`: of the policy."""
    written: list[Path] = []
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:MOST_LETTERS]}"
    try:
        folder.mkdir(exist_ok=True)
        for one, raw in _last_episodes(watched, env, str(error)):
            episode = raw.encoded(one.frames)
            part = episode.part(episode.frames - round(SECONDS / one.frame_seconds), episode.frames - 1)
            title = f"arena {episode.arena} before the run failed"
            recording = one.recording(part, name, title, "crash", end=said, run=run, step=step)
            written.append(recording.write(folder / f"{step:012d}-crash-{len(written) + 1:02d}-arena-{episode.arena}{SUFFIX}"))
        _prune(folder, written)
    except Exception as failure:
        log.warning("could not record what arenas did before the run failed: %s: %s", type(failure).__name__, failure)
    if written:
        log.info("what %d arenas did before the run failed is recorded in %s", len(written), folder)
    return written


def _last_episodes(watched: Sequence[Watched], env: RocketEnv, message: str) -> Iterator[tuple[Watched, RawEpisode]]:
    """The episodes that go on, and those that ended in the last rollout where that is longer or something went wrong. The arena
    that the message names is the first; if it is not watched, its last state is a single frame."""
    named = ARENA.search(message)
    failed = int(named[1]) if named is not None else None
    found: list[tuple[Watched, RawEpisode]] = []
    for one in watched:
        ended = {episode.arena: episode for episode in one.episodes.read()}
        for episode in one.episodes.unfinished():
            both = [before for before in [ended.pop(episode.arena, None)] if before is not None] + [episode]
            chosen = both if episode.arena == failed else [max(both, key=lambda each: each.frames)]
            found += [(one, each) for each in chosen]
        found += [(one, episode) for episode in ended.values()]
    if failed is not None and failed not in {episode.arena for _, episode in found}:
        found += _single_frame(watched, env, failed)
    yield from sorted(found, key=lambda pair: pair[1].arena != failed)


def _single_frame(watched: Sequence[Watched], env: RocketEnv, arena: int) -> list[tuple[Watched, RawEpisode]]:
    """The state of an arena as it is now; none where no arena of its team size is watched."""
    with suppress(IndexError):
        state = env.state_of(arena)
        for one in watched:
            if one.plays(state):
                rows, success = state.memory.cpu().numpy(), np.zeros((1, len(one.measures), state.seats), np.bool_)
                return [(one, RawEpisode(arena, rows.copy(), success, np.ones(state.seats, np.bool_), False))]
    return []


def _prune(folder: Path, written: Sequence[Path]) -> None:
    """Removes the oldest recordings, by their names."""
    older = sorted(path for path in folder.glob(f"*-crash-*{SUFFIX}") if path not in written)
    for path in older[:max(0, len(older) + len(written) - MOST_FILES)]:
        with suppress(OSError):
            path.unlink()
