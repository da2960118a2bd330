"""Simulator: the contract between the physics of E arenas and the tasks that are played in them."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from wavedash.rocket.saved_records import check_records
from wavedash.rocket.state import GameState
from wavedash.saved import Saved


class Simulator(ABC):
    """E arenas that step together. `state` is where it reads and writes: the same tensors for its whole life."""

    state: GameState
    device: torch.device
    capturable: bool = False
    """Whether `step` and `place` may be recorded in a CUDA graph"""

    @abstractmethod
    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        """Start `ticks` ticks with `controls` [E, C, 8] and return at once. For the first `delay` ticks the controls before are
        still in force, as in the real game, where an answer comes one tick late."""

    @abstractmethod
    def recv(self) -> None:
        """Wait until the step is done: `state` is then what it led to, its events those of this step alone."""

    def step(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        self.send(controls, ticks, delay)
        self.recv()

    @property
    def health(self) -> dict[str, int]:
        """Counters of trouble since the start."""
        return {}

    @property
    def ready(self) -> bool:
        """Whether `recv` would return without waiting."""
        return True

    @abstractmethod
    def place(self, arenas: Tensor) -> None:
        """What was written into `state` counts for these arenas [E]: bodies, pads, everything is put there before the next
        tick, whatever was before is forgotten. Team, hitbox and presence of a car cannot be changed."""

    def save(self) -> dict[str, Tensor]:
        """Everything that the next step depends on. Not while a step is under way."""
        return {"records": self.state.memory.clone()}

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """What `save` would give now, to be asked for later if at all."""
        saved = self.save()
        return lambda: saved

    def load(self, saved: dict[str, Tensor]) -> None:
        """Go on from `save`, with as many arenas and seats."""
        check_records(Saved("env", saved, "simulator."), "records", self.state)
        self.state.memory.copy_(saved["records"])
        self.place(torch.ones(self.state.arenas, dtype=torch.bool, device=self.device))

    def close(self) -> None:  # noqa: B027 (optional)
        """Release processes and memory. Safe to call twice."""
