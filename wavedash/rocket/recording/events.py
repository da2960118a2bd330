"""What happened in a game, as events of a recording: goals, shots, saves, demolitions, bumps, touches and mechanics."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavedash.recordings.header import Event, event
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.state import GameState

TEAMS = ("blue", "orange")
BETWEEN_TOUCHES = 0.5
"""Seconds after which another touch of the same car is told: a dribble would fill the timeline"""
DEEDS = {"goal": "scores", "shot": "shoots at the goal", "save": "saves"}
ENCOUNTERS = {"demolished": ("demo", "demolishes"), "bumped": ("bump", "bumps")}
"""By field: the kind of the event, and what one car does to another"""

Happened = NDArray[Any]
"""[T]: a structured array that says of every frame what happened in the step that led to it"""


def happened_type(cars: int, measures: int = 0) -> np.dtype[Any]:
    """The fields of `Happened` for so many cars and measures."""
    each: list[tuple[Any, ...]] = [("goal_of", "i1"), *((name, "?", (cars,)) for name in (*DEEDS, "touch"))]
    each += [(name, "i1", (cars,)) for name in ENCOUNTERS]
    return np.dtype(each + ([("success", "?", (measures, cars))] if measures else []))


def nothing_happened(kind: np.dtype[Any]) -> Happened:
    """[1]: a frame before which nothing happened."""
    found = np.zeros(1, kind)
    for name in ("goal_of", *ENCOUNTERS):
        found[name] = -1
    return found


def happened_in(state: GameState, frames: RocketFrames) -> Happened:
    """[E]: what happened in the last step of arenas, whose state is in the memory of the host."""
    events, seats = state.events, frames.seats
    found = np.zeros(state.arenas, happened_type(frames.cars))
    found["goal_of"] = state.game.goal.numpy()
    for name in DEEDS:
        found[name] = getattr(events, name).numpy()[:, seats]
    found["touch"] = events.touches.numpy()[:, seats] > 0
    for name in ENCOUNTERS:
        found[name] = frames.cars_at(getattr(events, name).numpy()[:, seats])
    return found


def with_success(happened: Happened, success: NDArray[np.bool_]) -> Happened:
    """The same, with the attempts that succeeded: `success` [T, M, C], by measure and car."""
    found = np.zeros(len(happened), happened_type(success.shape[2], success.shape[1]))
    for name in happened.dtype.names or ():
        found[name] = happened[name]
    found["success"] = success
    return found


class Narrator:
    """Tells the events of one game, from its beginning. It remembers who touched the ball last."""

    def __init__(self, players: Sequence[Mapping[str, Any]], frame_seconds: float, measures: Sequence[str] = ()) -> None:
        """`players`: of the header; `measures`: names of the mechanics whose success is told."""
        self.names = names = spoken_names(players)
        self.mechanics = [name.replace("_", " ") for name in measures]
        self.patience = BETWEEN_TOUCHES / frame_seconds
        self.last = -1
        """The car whose touch was told last"""
        self.told, self.contact = [-float("inf")] * len(names), [-2] * len(names)
        """By car: the frame of its last touch that was told, and the last one in which it touched the ball"""

    def tell(self, happened: Happened, first: int = 0) -> list[Event]:
        """Returns what happened in these frames, the first of which has this number."""
        told: list[Event] = []
        for index in np.flatnonzero(_busy(happened)).tolist():
            told += self._frame(happened[index], first + index)
        return told

    def _frame(self, now: Any, frame: int) -> list[Event]:
        told = [event(frame, "touch", car, f"{self.names[car]} touches the ball")
                for car in np.flatnonzero(now["touch"]).tolist() if self._is_new(car, frame)]
        for kind, words in DEEDS.items():
            told += [event(frame, kind, car, f"{self.names[car]} {words}") for car in np.flatnonzero(now[kind]).tolist()]
        if now["goal_of"] >= 0 and not now["goal"].any():
            told.append(event(frame, "goal", None, f"an own goal for {TEAMS[now['goal_of']]}"))
        for field, (kind, words) in ENCOUNTERS.items():
            told += [event(frame, kind, car, f"{self.names[car]} {words} {self.names[other]}")
                     for car, other in enumerate(now[field].tolist()) if other >= 0]
        for number, mechanic in enumerate(self.mechanics):
            told += [event(frame, "mechanic", car, f"{self.names[car]}: {mechanic}")
                     for car in np.flatnonzero(now["success"][number]).tolist()]
        return told

    def _is_new(self, car: int, frame: int) -> bool:
        """Whether this touch is told: the first one of another car than the last, or one some time after its last."""
        begins, self.contact[car] = self.contact[car] != frame - 1, frame
        new = (begins and car != self.last) or frame - self.told[car] >= self.patience
        if new:
            self.last, self.told[car] = car, frame
        return new


def spoken_names(players: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each car that tells it apart: with its team, and its number there, where several have the same."""
    names = [str(player["name"]) for player in players]
    told = [name if names.count(name) == 1 else f"{name} ({TEAMS[player['team']]})"
            for name, player in zip(names, players, strict=True)]
    return [name if told.count(name) == 1 else f"{name[:-1]} {told[:car + 1].count(name)})" for car, name in enumerate(told)]


def _busy(happened: Happened) -> NDArray[np.bool_]:
    """[T]: frames in which anything happened."""
    busy: NDArray[np.bool_] = happened["goal_of"] >= 0
    for name in (*DEEDS, "touch"):
        busy = busy | happened[name].any(-1)
    for name in ENCOUNTERS:
        busy = busy | (happened[name] >= 0).any(-1)
    assert happened.dtype.names is not None
    return busy | happened["success"].any((1, 2)) if "success" in happened.dtype.names else busy
