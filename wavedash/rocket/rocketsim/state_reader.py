"""StateReader: writes RocketSim's states into records. Each state is read as a few hundred bytes; the rest is done for all
arenas at once: numbers of cars become seats, ticks of the arena become ticks of the episode, and all goes into its field.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wavedash.rocket.rocketsim.fields import BALL_COLUMNS, CAR_COLUMNS
from wavedash.rocket.rocketsim.record import Array, RecordLayout
from wavedash.rocket.rocketsim.state_bytes import WORD, StateBytes, ball_and_car_bytes


class StateReader:
    """Writes the states of n arenas with C seats into their records [n, R]."""

    def __init__(self, layout: RecordLayout, records: Array, by_attributes: bool = False) -> None:
        n, seats = len(records), layout.seats
        self._ball, self._car = ball_and_car_bytes(by_attributes)
        self._size = self._ball.size + seats * self._car.size
        places = _places(layout, self._ball, self._car)
        floats, numbers, ticks, flags, was_hit = (places[kind] for kind in ("f", "I", "Q", "?", "hit"))
        words = [*floats, *numbers, *ticks]
        self._word_source, self._word_place = (np.array([place[i] // WORD for place in words]) for i in range(2))
        self._flag_source, self._flag_place = (np.array([place[i] for place in flags]) for i in range(2))
        self._hit_source = np.array([place.source for place in was_hit] * 2)
        self._record_words, self._record_bytes = records.view(np.uint32), records

        self._words = np.empty((n, len(words)), np.uint32)
        self._numbers = self._words[:, len(floats):]  # [n, 1 + 3 C]: numbers of cars, then ticks, as unsigned words
        self._signed = self._numbers.view(np.int32)
        self._ticks = self._signed[:, len(numbers):]  # [n, 2 C]
        self._offsets = np.zeros((n, 1 + 3 * seats), np.uint32)

    def set_offsets(self, arena: int, number: int, tick: int) -> None:
        """Sets what is subtracted from RocketSim's numbers of cars to get seats, and from its ticks to get those of the
        episode."""
        split = self._offsets.shape[1] - self._ticks.shape[1]
        self._offsets[arena, :split], self._offsets[arena, split:] = number, tick % 2**32

    def read(self, ball: Any, cars: Sequence[Any]) -> list[bytes]:
        """The bytes of the states of one arena, `cars` by seat."""
        return [self._ball.read(ball), *map(self._car.read, cars)]

    def write(self, read: list[bytes]) -> None:
        """Writes the bytes that were read of all arenas, one after the other, into their records."""
        bytes_ = np.frombuffer(b"".join(read), np.uint8).reshape(len(self._words), self._size)
        np.take(bytes_.view(np.uint32), self._word_source, axis=1, out=self._words, mode="clip")
        self._numbers -= self._offsets  # the lower 32 bits of ticks are enough: the difference fits in them
        np.maximum(self._signed, -1, out=self._signed)
        self._ticks[bytes_[:, self._hit_source] == 0] = -1
        self._record_words[:, self._word_place] = self._words
        self._record_bytes[:, self._flag_place] = bytes_[:, self._flag_source]


class _Place(NamedTuple):
    """Offsets of a number in bytes: among those that were read of an arena, and in its record."""

    source: int
    target: int


def _places(layout: RecordLayout, ball: StateBytes, car: StateBytes) -> dict[str, list[_Place]]:
    """The places of all numbers of an arena, by the code of their type. `hit`: the flags that say, seat by seat, whether ticks
    mean anything."""
    places: dict[str, list[_Place]] = {}
    start = 0
    for part, seat, columns, state in (("ball", 0, BALL_COLUMNS, ball),
                                       *(("cars", seat, CAR_COLUMNS, car) for seat in range(layout.seats))):
        for (field, position, code), offset in zip(columns, state.offsets, strict=True):
            target = layout.place(part, field, position, seat) if field else -1
            places.setdefault(code if field else "hit", []).append(_Place(start + offset, target))
        start += state.size
    # Ticks by kind, then seat by seat: the order in which the flags of hits are repeated.
    places["Q"] = [place for kind in range(2) for place in places["Q"][kind::2]]
    return places
