"""One replay becomes states to start from and demonstrations, with a count of everything that was left out."""
from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.replays.filters import KEPT, REASONS, segments, sort_out
from wavedash.replays.inverse import InverseModel
from wavedash.replays.read import read_replay
from wavedash.replays.replay import NotAReplayError, Replay
from wavedash.replays.resample import resample
from wavedash.replays.states import FIELDS, carried_controls, states_of
from wavedash.rocket.possible import rules
from wavedash.rocket.state import GameState

SHORTEST = 8
"""Decisions of a segment below which it is left out"""

MOST_OUTSIDE = 0.05
"""Share of frames out of bounds above which the game was played in another arena"""


@dataclass(frozen=True)
class ImportSettings:
    """How replays are imported."""

    ticks: int = 8
    """Ticks between the decisions of demonstrations; raise it for a policy that decides less often"""
    start_seconds: float = 0.25
    """Seconds between states to start from; raised, files are smaller and states less alike"""
    confidence: float = 0.6
    """Least probability that the inverse model must give to each control that matters, or the car's controls are no label.
    Raised, labels are fewer and better"""
    inverse: str = "shipped"
    """A model that infers what replays do not carry: `shipped`, a file, or `none`. Without one only cars on the ground have
    labels"""


@dataclass
class Imported:
    """What one file gave."""

    file: str
    problem: str = ""
    """Why the file was skipped; empty: it was imported"""
    size: int = 0
    identity: str = ""
    frames: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    gaps: int = 0
    short: int = 0
    """Segments that are too short for demonstrations"""
    starts: int = 0
    moments: int = 0
    labels: int = 0
    """Cars at moments whose controls are labels"""
    goals: int = 0
    names: list[str] = field(default_factory=list)
    arrays: dict[str, Tensor] = field(default_factory=dict)


def import_file(path: Path, settings: ImportSettings, model: InverseModel | None) -> Imported:
    """Never raises for what is in a file."""
    try:
        return import_replay(path.name, read_replay(path), settings, model)
    except NotAReplayError as problem:
        return Imported(path.name, problem=str(problem))
    except OSError as error:
        return Imported(path.name, problem=f"cannot be read: {error.strerror or error}")
    except Exception as error:  # what the parser made of a damaged file breaks anything
        return Imported(path.name, problem=f"cannot be understood: {type(error).__name__}: {str(error)[:200]}")


def import_replay(name: str, replay: Replay, settings: ImportSettings, model: InverseModel | None) -> Imported:
    """States and demonstrations of one game."""
    reason = sort_out(replay)
    counted = Counter(reason.tolist())
    runs, gaps = segments(replay, reason)
    result = Imported(name, size=replay.size, identity=replay.identity, frames=replay.frames, gaps=gaps,
                      goals=len(replay.goals), names=replay.names,
                      reasons={text: counted.get(i, 0) for i, text in enumerate(REASONS)})
    outside = sum(result.reasons[text] for text in ("ball out of bounds", "car out of bounds"))
    if outside > MOST_OUTSIDE * (outside + counted.get(KEPT, 0)):
        result.problem = f"another arena or mode: {outside} frames of play are outside of the standard field"
        return result
    if not counted.get(KEPT):
        result.problem = "no frame of play is left"
        return result
    starts: list[GameState] = []
    demonstrations: list[GameState] = []
    controls: list[Tensor] = []
    known: list[Tensor] = []
    episodes: list[Tensor] = []
    for run in runs:
        if len(run) < 2 or (replay.time[run[-1]] - replay.time[run[0]]) * 120 < SHORTEST * settings.ticks:
            result.short += 1
            continue
        moments = resample(replay, run, settings.ticks)
        state = states_of(moments)
        possible = ~torch.stack([rule.broken.reshape(state.arenas, -1).any(-1) for rule in rules(state)]).any(0)
        thin = np.unique((moments.time / settings.start_seconds).astype(int), return_index=True)[1]
        chosen = torch.from_numpy(thin)
        starts.append(state.picked(chosen[possible[chosen]]))
        chosen_controls, labels = label(moments, state, model, settings.confidence)
        demonstrations.append(state)
        controls.append(chosen_controls)
        known.append(labels & possible.unsqueeze(-1))
        episodes.append(torch.full((state.arenas,), len(episodes), dtype=torch.int32))
    if starts:
        result.arrays = {f"starts.{key}": value for key, value in _arrays(starts).items()}
        result.arrays |= {f"moments.{key}": value for key, value in _arrays(demonstrations).items()}
        result.arrays |= {"moments.controls": torch.cat(controls), "moments.known": torch.cat(known),
                          "moments.episode": torch.cat(episodes)}
        result.starts = sum(state.arenas for state in starts)
        result.moments = sum(state.arenas for state in demonstrations)
        result.labels = int(result.arrays["moments.known"].sum())
    return result


def label(moments: Replay, state: GameState, model: InverseModel | None, confidence: float) -> tuple[Tensor, Tensor]:
    """[K, C, 8] controls and [K, C] whether they are a label."""
    controls, carried = carried_controls(moments)
    if model is None:
        known = torch.from_numpy(carried[..., :2].all(-1)) & state.cars.on_ground
        known[-1] = False
        return torch.from_numpy(controls), known
    return model.label(moments, state, controls, carried, confidence)


def _arrays(states: list[GameState]) -> dict[str, Tensor]:
    memory = torch.cat([state.memory for state in states])
    whole = GameState.over(memory, states[0].seats)
    return {key: getattr(getattr(whole, key.split(".")[0]), key.split(".")[1]).contiguous() for key in FIELDS}


def write_part(path: Path, result: Imported) -> None:
    """Keeps the result of one file, at once: an import that is interrupted goes on with it."""
    from safetensors.torch import save

    from wavedash.runs.durable import replace_file
    facts: dict[str, Any] = {key: value for key, value in vars(result).items() if key != "arrays"}
    replace_file(path, save(result.arrays or {"none": torch.zeros(1)}, {"import": json.dumps(facts)}))


def read_part(path: Path) -> Imported | None:
    """Returns what `write_part` kept; None: nothing, or something else."""
    from safetensors import safe_open
    try:
        with safe_open(path, "pt") as file:
            result = Imported(**json.loads(file.metadata()["import"]))
            # Copies: Windows does not remove a file that tensors are views of.
            result.arrays = {key: file.get_tensor(key).clone() for key in file.keys() if key != "none"}  # noqa: SIM118
            return result
    except Exception:  # a file of another kind, torn, or of another version: it is made again
        return None
