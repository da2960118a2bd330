"""Games in which a worker died: they are written to a file, as beginning and controls, and can be played again."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from wavedash.rocket.rocketsim.batch import ArenaBatch
from wavedash.rocket.rocketsim.episode_log import EpisodeLog
from wavedash.rocket.rocketsim.layout import record_layout
from wavedash.rocket.rocketsim.record import Array, SharedArrays
from wavedash.rocket.seats import Seat
from wavedash.rocket.state import GameState


def how_to_play_it_again(log: EpisodeLog, arena: int, seats: Sequence[Seat]) -> str:
    """Writes the game of an arena to a file, and returns the line of Python that plays it."""
    path = Path(tempfile.gettempdir(), f"wavedash-{os.getpid()}-arena-{arena}.npz")
    beginning, controls, timing = log.game_of(arena)
    try:
        np.savez_compressed(path, beginning=beginning, controls=controls, timing=timing, seats=np.array(seats, np.int64))
    except OSError as error:
        return f"(its game could not be written to {path.parent}: {error.strerror})"
    return f"To see it again:\n    from wavedash.rocket.rocketsim.again import play\n    play({str(path)!r})"


def play(path: str | Path) -> GameState:
    """Plays a game from its file, including the step in which its worker died, and returns the state after that."""
    with np.load(path, allow_pickle=False) as file:
        beginning, controls, timing = file["beginning"], file["controls"], file["timing"]
        seats = [Seat(int(team), int(hitbox), bool(present)) for team, hitbox, present in file["seats"]]
    layout = record_layout(len(seats))
    memory: Array = np.zeros(SharedArrays.nbytes(layout, 1), np.uint8)
    arrays = SharedArrays.over(memory.data, layout, 1)
    batch = ArenaBatch(layout, [seats], arrays)
    arrays.records[0], arrays.placed[0] = beginning, True
    for number, (pressed, (ticks, delay)) in enumerate(zip(controls, timing.tolist(), strict=True), 1):
        arrays.controls[0] = pressed
        batch.step(number, ticks, delay)
    return GameState.over(torch.from_numpy(arrays.records.view(np.int32)), len(seats))
