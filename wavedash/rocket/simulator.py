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
    """E arenas that step together. It reads and writes `state`, whose tensors stay the same for its whole life."""

    state: GameState
    device: torch.device
    capturable: bool = False
    """Whether `step` and `place` may be captured in a CUDA graph"""

    @abstractmethod
    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        """Starts `ticks` ticks with `controls` [E, C, 8] and returns at once. For the first `delay` ticks the previous controls
        are still in force, as in the real game, where an action takes effect one tick late."""

    @abstractmethod
    def recv(self) -> None:
        """Waits until the step is done: `state` then holds its result, and the events of this step alone."""

    def step(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        self.send(controls, ticks, delay)
        self.recv()

    @property
    def health(self) -> dict[str, int]:
        """Counters of what went wrong since the start, such as worker restarts."""
        return {}

    @property
    def ready(self) -> bool:
        """Whether `recv` would return without waiting."""
        return True

    @abstractmethod
    def place(self, arenas: Tensor) -> None:
        """Takes over what was written into `state` for these arenas [E]: before the next tick bodies, pads and everything else
        are as it says, and the past is forgotten. Team, hitbox and presence of a car cannot be changed."""

    def rest(self, arenas: Tensor) -> None:  # noqa: B027 (optional)
        """The games in these arenas [E] do not matter until it is called again: where a tick of an arena costs time of its own,
        they are not ticked, and their state stays as it is."""

    def save(self) -> dict[str, Tensor]:
        """Everything that the next step depends on. It must not be called during a step."""
        return {"records": self.state.memory.clone()}

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """A function that returns later what `save` would return now: long copies can wait until they are needed."""
        saved = self.save()
        return lambda: saved

    def load(self, saved: dict[str, Tensor]) -> None:
        """Goes on from what `save` returned, with as many arenas and seats."""
        check_records(Saved("env", saved, "simulator."), "records", self.state)
        self.state.memory.copy_(saved["records"])
        self.place(torch.ones(self.state.arenas, dtype=torch.bool, device=self.device))

    def close(self) -> None:  # noqa: B027 (optional)
        """Releases processes and memory. It may be called twice."""
