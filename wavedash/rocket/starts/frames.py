"""Starts from stored game states: frames of replays, or of games that were played here.

A file of frames, `.npz` or `.safetensors`, holds arrays over N frames, with the names and units of the state: `ball.position`
[N, 3], `cars.velocity` [N, C, 3] and so on. Those in REQUIRED must be there; others may be.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import CAR_REST_Z
from wavedash.rocket.parts import Start
from wavedash.rocket.possible import rules
from wavedash.rocket.starts.weights import frame_weights
from wavedash.rocket.state import GameState

REQUIRED = (
    "ball.position", "ball.velocity", "ball.angular_velocity", "cars.team", "cars.position", "cars.rotation", "cars.velocity",
    "cars.angular_velocity", "cars.boost",
)
FORGOTTEN = ("ball.last_touch", "cars.contact_car", "cars.ball_hit_tick", "cars.ball_hit_impulse_tick", "pads.locked_car")
"""Fields about touches before the frame, which a new episode does not keep"""


def save_frames(path: str | Path, state: GameState) -> None:
    """Writes the arenas of a state as frames to start from. The ending of the file's name chooses the format."""
    path, arrays = Path(path), frame_arrays(state)
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file
        save_file(arrays, path)
    elif path.suffix == ".npz":
        np.savez_compressed(path, **{name: array.numpy() for name, array in arrays.items()})
    else:
        raise UserError(f"{path}: frames are stored as .npz or .safetensors; choose one of these endings")


def frame_arrays(state: GameState) -> dict[str, Tensor]:
    """The arenas of a state as the arrays of a file of frames."""
    return {
        f"{part}.{field.name}": getattr(getattr(state, part), field.name).cpu().contiguous()
        for part, kind in GameState.PARTS.items() if part != "events" for field in fields(kind)
    }


def load_frames(path: str | Path) -> GameState:
    """The frames of a file as a state of N arenas, with as many seats as the file has cars. Raises UserError if it is no such
    file, or if a frame cannot occur in the game."""
    path = Path(path)
    frames = frames_of(_read(path), path)
    for name in FORGOTTEN:
        part, field = name.split(".")
        getattr(getattr(frames, part), field).fill_(-1)
    frames.game.tick.zero_()
    frames.game.score.zero_()
    _check(frames, path)
    return frames


def frames_of(arrays: Mapping[str, Any], path: Path) -> GameState:
    """Arrays of numpy or tensors, as a file has them, as a state of N arenas; what is not given is filled in. Raises UserError
    if arrays are missing or have other shapes. `path`: for messages."""
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        raise UserError(f"{path} holds no {', '.join(missing)}; frames need {', '.join(REQUIRED)} (save_frames writes them)")
    count, seats = arrays["cars.position"].shape[:2] if arrays["cars.position"].ndim == 3 else (0, 0)
    if not count * seats:
        raise UserError(f"{path}: cars.position must be [frames, cars, 3], is {list(arrays['cars.position'].shape)}")
    frames = GameState.empty(count, seats)
    for part, name, dtype, shape, _, per_car in GameState.layout(seats):
        array = arrays.get(f"{part}.{name}")
        if array is not None and part != "events":
            wanted = [count, seats, *shape] if per_car else [count, *shape]
            if list(array.shape) != wanted or np.asarray(array).dtype.kind not in "biuf":
                raise UserError(f"{path}: {part}.{name} must be numbers {wanted}, is {array.dtype} {list(array.shape)}")
            getattr(getattr(frames, part), name).copy_(torch.as_tensor(array).to(dtype))
    _complete(frames, arrays)
    return frames


class ReplayFrames(Start):
    """Begins in the middle of stored games: draws a frame from a file (see `save_frames`) with at least as many cars in each
    team as play here; surplus cars are left out. Half of the time the frame is rotated by half a turn and the teams are
    exchanged.

    `weight_by`: how often a frame is drawn. `none`: all equally often; `height`: the higher ball and cars are, the more often,
    up to ten times, since games are mostly played on the floor; `state_of_play`: kick-offs, play near a goal, in the air, on
    walls and on the floor equally often, as far as the file has them. `shares` sets how often each of these is drawn instead,
    such as `{aerial: 3, ground: 1}`: raised, a state of play is drawn more often; those that are not named are not drawn."""

    def __init__(self, path: str, weight_by: str = "none", shares: dict[str, float] | None = None) -> None:
        self.path = path
        self.frames = load_frames(path)
        self.weights = frame_weights(self.frames, weight_by, shares)
        """[N], or None: all alike"""

    def bind(self, state: GameState) -> None:
        both_ways = [self._seated(frames, state) for frames in (self.frames, self.frames.mirrored())]
        self.records = torch.cat(both_ways).to(state.memory.device)
        if self.weights is not None:
            self.reached = self.weights.double().repeat(2).cumsum(0).to(state.memory.device)  # [2 N]

    def write(self, state: GameState, generator: torch.Generator) -> None:
        cars, count = state.cars, len(self.records)
        hitbox, present = cars.hitbox.clone(), cars.present.clone()
        drawn = self._draw(state.arenas, count, generator)
        state.memory.copy_(self.records[drawn])
        cars.hitbox.copy_(hitbox)
        cars.present.copy_(present)

    def _draw(self, arenas: int, count: int, generator: torch.Generator) -> Tensor:
        """[E]: numbers of records, drawn without a host sync."""
        device = self.records.device
        if self.weights is None:
            return torch.randint(count, (arenas,), generator=generator, device=device)
        spot = torch.rand(arenas, generator=generator, device=device, dtype=torch.float64) * self.reached[-1]
        return torch.searchsorted(self.reached, spot, right=True).clamp_(max=count - 1)

    def _seated(self, frames: GameState, state: GameState) -> Tensor:
        """Records [N, W] of the frames with their cars in the seats of `state`: each team's in the order of the file."""
        teams, played = state.cars.team.cpu(), state.cars.present.cpu().any(0)
        if bool((teams != teams[0]).any()):
            raise UserError(f"{self.path}: frames can only be used where a seat has the same team in every arena")
        source = torch.zeros(frames.arenas, state.seats, dtype=torch.int64)  # [N, C]: which car of the frame sits here
        for team, color in enumerate(("blue", "orange")):
            ours = frames.cars.present & (frames.cars.team == team)
            seats = (played & (teams[0] == team)).nonzero().flatten()
            fewest = int(ours.sum(-1).min())
            if fewest < len(seats):
                raise UserError(f"{self.path} has frames with {fewest} {color} cars, and {len(seats)} play here; "
                                "use frames of games with enough players")
            source[:, seats] = ours.int().argsort(dim=-1, descending=True, stable=True)[:, : len(seats)]
        seated = GameState.empty(frames.arenas, state.seats)
        for field in fields(frames.cars):
            values = getattr(frames.cars, field.name)
            getattr(seated.cars, field.name).copy_(values[torch.arange(frames.arenas).unsqueeze(-1), source])
        for part in ("ball", "pads"):
            for field in fields(GameState.PARTS[part]):
                getattr(getattr(seated, part), field.name).copy_(getattr(getattr(frames, part), field.name))
        seated.cars.team.copy_(teams[0])
        seated.clear_events()
        return seated.memory


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, read so that nothing in it can run code."""
    if not path.is_file():
        raise UserError(f"{path}: no such file of frames; write one with wavedash.rocket.starts.save_frames")
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file
            return dict(load_file(path))
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except Exception as error:  # both readers raise many kinds of exceptions
        raise UserError(f"{path} cannot be read as {path.suffix[1:]}: {error}") from error
    raise UserError(f"{path}: frames are stored as .npz or .safetensors, not as {path.suffix or 'this'}")


def _complete(frames: GameState, given: Mapping[str, Any]) -> None:
    """Fills in what a file may leave out."""
    cars = frames.cars
    if "cars.present" not in given:
        cars.present.fill_(True)
    if "cars.on_ground" not in given:
        cars.on_ground.copy_((cars.position[..., 2] < CAR_REST_Z + 5) & (cars.up[..., 2] > 0.95))
    if "cars.wheel_contact" not in given:
        cars.wheel_contact.copy_(cars.on_ground.unsqueeze(-1).expand_as(cars.wheel_contact))
    if "ball.rotation" not in given:
        frames.ball.rotation.copy_(torch.eye(3))
    for name in FORGOTTEN:
        if name not in given:
            part, field = name.split(".")
            getattr(getattr(frames, part), field).fill_(-1)


def _check(frames: GameState, path: Path) -> None:
    """Raises UserError for the first rule that a frame breaks."""
    for rule in rules(frames):
        frame = rule.broken.reshape(frames.arenas, -1).any(-1)
        if bool(frame.any()):
            raise UserError(f"{path}: {rule.field} {rule.says} in {int(frame.sum())} of {frames.arenas} frames, "
                            f"the first of them number {int(frame.int().argmax())}")
