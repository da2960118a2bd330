"""How often frames of games are drawn as starts: by height, or by the state of play."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import BACK_WALL_Y, CEILING_Z, GOAL_HALF_WIDTH, SIDE_WALL_X
from wavedash.rocket.state import GameState

STATES_OF_PLAY = ("kickoff", "near_goal", "aerial", "wall", "ground")
"""A frame belongs to the first that applies"""
LEAST = 1.0 / 9.0
"""Added to the share of the height: a frame at the ceiling is drawn ten times as often as one on the floor"""


def frame_weights(frames: GameState, weight_by: str, shares: dict[str, float] | None) -> Tensor | None:
    """[N] weights of the frames; None: all alike."""
    if shares is not None and weight_by != "state_of_play":
        raise UserError("shares are those of states of play: set weight_by: state_of_play, or leave shares out")
    if weight_by == "none":
        return None
    if weight_by == "height":
        present = frames.cars.present
        cars = torch.where(present, frames.cars.position[..., 2], 0.0).sum(-1) / present.sum(-1).clamp(min=1)
        return LEAST + ((frames.ball.position[:, 2] + cars) / (2.0 * CEILING_Z)).clamp(0.0, 1.0)
    if weight_by == "state_of_play":
        return _by_state(frames, shares)
    raise UserError(f"weight_by is none, height or state_of_play, not {weight_by!r}")


def state_of_play(frames: GameState) -> Tensor:
    """[N]: index into STATES_OF_PLAY."""
    x, y, z = frames.ball.position.unbind(-1)
    up = frames.cars.present & (frames.cars.position[..., 2] > 300.0)
    beside_wall = frames.cars.position[..., 0].abs().maximum(frames.cars.position[..., 1].abs() - (BACK_WALL_Y - SIDE_WALL_X))
    applies = torch.stack([
        (x.abs() < 1.0) & (y.abs() < 1.0) & (frames.ball.velocity.norm(dim=-1) < 1.0),
        (y.abs() > BACK_WALL_Y - 1300.0) & (x.abs() < 2.0 * GOAL_HALF_WIDTH),
        (z > 500.0) & (up & (beside_wall < SIDE_WALL_X - 150.0)).any(-1),
        (up & (beside_wall >= SIDE_WALL_X - 150.0)).any(-1),
        torch.ones_like(z, dtype=torch.bool),
    ])
    return applies.int().argmax(0)


def _by_state(frames: GameState, shares: dict[str, float] | None) -> Tensor:
    wanted = dict.fromkeys(STATES_OF_PLAY, 1.0) if shares is None else shares
    unknown = [name for name in wanted if name not in STATES_OF_PLAY]
    if unknown or any(not share >= 0 for share in wanted.values()):
        raise UserError(f"shares are numbers from 0 for {', '.join(STATES_OF_PLAY)}; there is {wanted}")
    state = state_of_play(frames)
    counts = torch.bincount(state, minlength=len(STATES_OF_PLAY))
    share = torch.tensor([wanted.get(name, 0.0) for name in STATES_OF_PLAY])
    weights = (share / counts.clamp(min=1))[state]
    if not float(weights.sum()) > 0:
        found = {name: int(count) for name, count in zip(STATES_OF_PLAY, counts, strict=True)}
        raise UserError(f"no frame is in a state of play that has a share; the file has {found}")
    return weights
