"""Consecutive fields of the game state as one tensor: what would take an operation per field then takes one."""
from __future__ import annotations

from math import prod

from torch import Tensor

from wavedash.rocket.state import WORD, GameState, view_of


class Columns:
    """The fields from `first` to `last` of a part, in the order of their declaration: [E, numbers], of cars [E, C, numbers].
    Flags come in words, [..., words, 4]: whatever follows the last one in its word is there too."""

    def __init__(self, state: GameState, part: str, first: str, last: str):
        entries = [entry for entry in GameState.layout(state.seats) if entry[0] == part]
        names = [name for _, name, *_ in entries]
        chosen = entries[names.index(first) : names.index(last) + 1]
        _, _, self.dtype, _, offset, stride = chosen[0]
        assert all(dtype == self.dtype for _, _, dtype, *_ in chosen), "fields of one type"
        numbers, size = sum(prod(shape) for *_, shape, _, _ in chosen), self.dtype.itemsize
        assert offset % WORD == 0, "from the beginning of a word on"
        self.offset = offset
        self.dims = [(state.seats, stride)] if stride else []
        self.dims += [(-(-numbers // WORD), WORD), (WORD, size)] if size < WORD else [(numbers, size)]
        self.state, self.view = state, self._view(state)

    def __call__(self, state: GameState) -> Tensor:
        """A view over the state's own memory, made anew only for another state than the last."""
        if state is not self.state:
            self.state, self.view = state, self._view(state)
        return self.view

    def _view(self, state: GameState) -> Tensor:
        return view_of(state.memory, self.dtype, self.offset, *self.dims)
