"""The seats of every arena, for all simulators: team and hitbox of each car, and whether the seat is taken."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wavedash.envs.errors import EnvError
from wavedash.rocket.constants import HITBOXES


class Seat(NamedTuple):
    """A seat of an arena; `hitbox` is an index into HITBOXES."""

    team: int
    hitbox: int
    present: bool


def arena_seats(arenas: int, blue: int, orange: int, hitboxes: str | Sequence[str] = "octane",
                sizes: Sequence[tuple[int, int]] | None = None) -> tuple[tuple[Seat, ...], ...]:
    """The seats of `arenas` with `blue` and `orange` seats. `hitboxes`: one name for all cars, or one for each seat. `sizes`:
    how many seats are taken in each arena, (blue, orange); None: all."""
    if arenas < 1 or blue < 0 or orange < 0 or blue + orange < 1:
        raise EnvError(f"{blue} against {orange} is no game: at least one arena and one seat are needed")
    names = [hitboxes] * (blue + orange) if isinstance(hitboxes, str) else list(hitboxes)
    known = [hitbox.name for hitbox in HITBOXES]
    if len(names) != blue + orange or not set(names) <= set(known):
        raise EnvError(f"the hitboxes {', '.join(names)} do not fit {blue + orange} seats: give one name for all cars, or one "
                       f"for each seat. The names are {', '.join(known)}")
    if sizes is not None and (len(sizes) != arenas or any(not (0 <= b <= blue and 0 <= o <= orange) for b, o in sizes)):
        raise EnvError(f"sizes must be {arenas} pairs of numbers of cars, at most ({blue}, {orange}), not {list(sizes)}")

    def seats_of(size: tuple[int, int]) -> tuple[Seat, ...]:
        b, o = size
        return tuple(Seat(int(i >= blue), known.index(name), i < b or blue <= i < blue + o) for i, name in enumerate(names))

    return (seats_of((blue, orange)),) * arenas if sizes is None else tuple(seats_of(size) for size in sizes)
