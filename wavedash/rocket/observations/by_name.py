"""ObservationByName: an observation that is a list of names. Copy `advanced.py`, change its list, and it is yours."""
from __future__ import annotations

from abc import abstractmethod
from difflib import get_close_matches

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import PADS
from wavedash.rocket.observations.car_numbers import CarNumbers
from wavedash.rocket.observations.names import Names
from wavedash.rocket.observations.seating import check_team_size
from wavedash.rocket.parts import Observation
from wavedash.rocket.state import GameState


class ObservationByName(Observation):
    """The numbers that `sees` lists. Numbers of your own are named in `more`, and `more_numbers` works them out.

    frames: how many steps it sees, the newest first. 1 is right for policies with memory; 2 to 4 can help those without.
    team_size: places per team, so that the same policy plays 1v1 up to this size; fewer make the network smaller.
    pads: how many boost pads near the car, and how many near the ball, are known by distance.
    """

    more: tuple[str, ...] = ()
    """Names of numbers that are not in `names.py`; `sees` lists them where they shall stand"""
    selected: Tensor
    both_frames: Tensor
    fresh: Tensor
    """[E, 1, 1, 1]: an episode began since the last observation"""
    history: Tensor
    """[E, C, frames, numbers]: the latest frames, the newest first. It exists where more than one is seen."""

    def __init__(self, frames: int = 1, team_size: int = 3, pads: int = 4):
        if frames < 1 or not 0 <= pads <= len(PADS):
            raise UserError(f"{type(self).__name__} needs frames of at least 1 and pads of 0 to {len(PADS)}, got {frames} and "
                            f"{pads}")
        self.frames, self.team_size = frames, team_size
        self.known = Names(team_size, pads)

    @abstractmethod
    def sees(self) -> list[str]:
        """Names in the order of the observation: those of `names.py` and of `more`."""

    def more_numbers(self, state: GameState) -> Tensor:
        """[E, C, len(more)]: the numbers that `more` names, for every car."""
        raise UserError(f"{type(self).__name__} names numbers of its own, {', '.join(self.more)}: it must have a method "
                        "more_numbers(self, state) that works them out for every car, [E, C, numbers]")

    def size(self, seats: int) -> int:
        return len(self.names(seats))

    def names(self, seats: int) -> list[str]:
        """A name for every number; `ball.position.x@1` is that of one step earlier."""
        check_team_size(seats, self.team_size, "team_size")
        return [f"{name}@{age}" if age else name for age in range(self.frames) for name in self.sees()]

    def bind(self, state: GameState) -> None:
        check_team_size(state.seats, self.team_size, "team_size")
        cars, device, seen = state.arenas * state.seats, state.memory.device, self.sees()
        self.chosen = torch.tensor(self._rows_of(seen), device=device)
        self.numbers = CarNumbers(self.known, len(self.more), state)
        self.more_by_car = self.numbers.more.t().view(*state.shape, len(self.more))
        self.register_buffer("selected", torch.zeros(len(seen), cars, device=device), persistent=False)
        self.register_buffer("both_frames", torch.zeros(2, cars, len(seen), device=device), persistent=False)
        self.frames_out = list(self.both_frames.unbind(0))
        if self.frames > 1:
            self.register_buffer("fresh", torch.ones(state.arenas, 1, 1, 1, dtype=torch.bool, device=device))
            self.register_buffer("history", torch.zeros(*state.shape, self.frames, len(seen), device=device))

    def _rows_of(self, seen: list[str]) -> list[int]:
        rows = {name: row for row, name in enumerate([*self.known, *self.more])}
        for name in seen:
            if name not in rows:
                like = get_close_matches(name, rows, n=3)
                raise UserError(f"{type(self).__name__} sees {name!r}, which is no number that is known"
                                + (f"; did you mean {' or '.join(like)}?" if like else "")
                                + " All names are listed in wavedash/rocket/observations/names.py")
        return [rows[name] for name in seen]

    def begin(self, state: GameState, arenas: Tensor) -> None:
        if self.frames > 1:
            self.fresh |= arenas.view(-1, 1, 1, 1)

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        """[E, C, size], in memory that the call after the next writes again."""
        self.numbers.update(state, controls)
        if self.more:
            self._write_more(state)
        torch.index_select(self.numbers.rows, 0, self.chosen, out=self.selected)
        self.frames_out.reverse()
        frame = self.frames_out[0].copy_(self.selected.t()).view(state.arenas, state.seats, -1)
        return frame if self.frames == 1 else self._stacked(frame, stepped)

    def _write_more(self, state: GameState) -> None:
        numbers = self.more_numbers(state)
        if numbers.shape != self.more_by_car.shape:
            raise UserError(f"{type(self).__name__}.more_numbers returned {list(numbers.shape)} numbers; it names "
                            f"{len(self.more)} for every car, which makes {list(self.more_by_car.shape)}")
        self.more_by_car.copy_(torch.where(state.cars.present.unsqueeze(-1), numbers, 0.0))

    def _stacked(self, frame: Tensor, stepped: bool) -> Tensor:
        """The newest frame before the last ones; where an episode begins, all frames are the newest."""
        newest = frame.unsqueeze(2)
        frames = torch.cat([newest, self.history[:, :, :-1]], 2) if stepped else self.history
        frames = torch.where(self.fresh, newest, frames)
        self.history.copy_(frames)
        self.fresh.zero_()
        return frames.flatten(2)
