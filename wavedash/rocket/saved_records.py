"""Saved records of arenas are checked before a simulator gets them: kernels and RocketSim index memory by their numbers.

States that are merely impossible in the game (a ball behind a wall) are left to the simulators, which restart and count such
arenas.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.state import GameState
from wavedash.saved import Saved

LARGEST = 1.0e6
"""Greatest absolute value of any number of a state: uu, uu/s, seconds"""
CHOICES = {"cars.team": 1, "cars.hitbox": len(HITBOXES) - 1}
"""Fields that hold integers from 0 to this"""
TEAMS = ("game.goal",)
"""Fields that hold a team, or -1 for none"""
SEATS = ("ball.last_touch", "cars.contact_car", "pads.locked_car", "events.bumped", "events.demolished")
"""Fields that hold the seat of a car, or -1 for none"""
ALWAYS = ("cars.hitbox", "cars.present")
"""Fields that are checked in empty seats too, whose other fields mean nothing"""


def check_records(saved: Saved, name: str, like: GameState) -> None:
    """Refuses saved records unless they have the shape of `like` and all their numbers can be used."""
    saved.is_like(name, like.memory)
    state = GameState.over(saved.tensors[name].contiguous(), like.seats)
    empty = ~(state.cars.present.view(torch.uint8) == 1)  # [E, C]
    for part, field, dtype, _, _, per_car in GameState.layout(like.seats):
        label = f"{part}.{field}"
        values: Tensor = getattr(getattr(state, part), field)
        wrong = _wrong(label, values, dtype, like.seats)
        if per_car and label not in ALWAYS:
            wrong = wrong & ~empty.view(*empty.shape, *(1,) * (wrong.dim() - 2))
        if bool(wrong.any()):
            arena = int(wrong.reshape(len(wrong), -1).any(-1).int().argmax())
            found = values.view(torch.uint8) if dtype == torch.bool else values
            saved.refuse(f"{saved.prefix}{name}: {label} of arena {arena} is {found[wrong][0].item():g}, which is not valid")


def _wrong(label: str, values: Tensor, dtype: torch.dtype, seats: int) -> Tensor:
    if dtype == torch.bool:
        return values.view(torch.uint8) > 1
    if dtype == torch.float32:
        return ~(values.abs() <= LARGEST)  # true for NaN
    if label in CHOICES:
        return (values < 0) | (values > CHOICES[label])
    if label in SEATS or label in TEAMS:
        return (values < -1) | (values > (seats - 1 if label in SEATS else 1))
    return torch.zeros_like(values, dtype=torch.bool)
