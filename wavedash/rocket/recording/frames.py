"""What is recorded of a moment of a game: the fields of a frame, and game states as records.

Only cars that take part are recorded: car c of a recording is the c-th seat that is not empty.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wavedash.recordings.header import Header, make_header
from wavedash.recordings.layout import Layout, Records, fields
from wavedash.rocket.constants import HITBOXES, PADS, TICK_RATE
from wavedash.rocket.recording.quaternions import quaternion_of
from wavedash.rocket.state import CONTROLS, Cars, GameState

POSITION, TURN, SPIN = 0.25, 1 / 32767, 0.0005
"""What one step of the stored numbers is: uu and uu/s, elements of a quaternion, radians/s"""
TOP = 5
"""Likeliest actions that are recorded of a policy"""
ON_GROUND, BOOSTING, SUPERSONIC, DEMOED, HAS_FLIP, JUMPING, FLIPPING, TOUCHED = range(8)
"""Bits of cars.flags"""
PAD_BYTES = -(-len(PADS) // 8)


@dataclass(frozen=True)
class Head:
    """What the policies of the cars thought, [E, S, ...] for all seats S; what is None is recorded as unknown."""

    value: NDArray[Any] | None = None
    action: NDArray[Any] | None = None
    """The index of the chosen action"""
    top_action: NDArray[Any] | None = None
    """[E, S, 5]: the likeliest actions, -1 where there are fewer"""
    top_probability: NDArray[Any] | None = None
    reward: NDArray[Any] | None = None
    """[E, S, K]: what each reward term paid in this step, weighted"""


class RocketFrames:
    """Makes records of game states."""

    def __init__(self, present: Sequence[bool], head: bool = False, terms: int = 0) -> None:
        """`present`: which seats are taken. `head`: with what policies think, and so many reward `terms`."""
        self.seats = [seat for seat, taken in enumerate(present) if taken]
        self.head, self.terms = head, terms
        self.car_of = np.full(len(present) + 1, -1)  # its last element is that of seat -1, nobody
        self.car_of[self.seats] = range(len(self.seats))
        self.layout = rocket_layout(len(self.seats), head, terms)

    @classmethod
    def of(cls, state: GameState, arena: int = 0, head: bool = False, terms: int = 0) -> RocketFrames:
        """Frames of the cars that take part in one arena. This is a host sync."""
        return cls(state.cars.present[arena].tolist(), head, terms)

    @property
    def cars(self) -> int:
        return len(self.seats)

    def record(self, state: GameState, arena: int = 0, head: Head | None = None) -> Records:
        """The record [1] of one arena as it is now. This is a host sync. `head` is of this arena: [1, S, ...]."""
        if state.arenas == 1 and state.memory.device.type == "cpu":  # as on a stage, where other views would take as long again
            return self.records(state, head)
        return self.records(GameState.over(state.memory[arena:arena + 1].cpu(), state.seats), head)

    def records(self, state: GameState, head: Head | None = None) -> Records:
        """Records [E] of a state in the memory of the host. All arenas must have the same seats taken; they may be moments of
        one game (`GameState.over(tape, seats)`)."""
        cars, ball, game = state.cars, state.ball, state.game
        values: dict[str, NDArray[Any]] = {
            "tick": _array(game.tick),
            "score": _array(game.score),
            "goal": _array(game.goal),
            "touched": self.cars_at(_array(ball.last_touch)),
            "ball.position": _array(ball.position),
            "ball.rotation": quaternion_of(_array(ball.rotation)),
            "ball.velocity": _array(ball.velocity),
            "ball.angular_velocity": _array(ball.angular_velocity),
            "cars.position": self._cars(cars.position),
            "cars.rotation": quaternion_of(self._cars(cars.rotation)),
            "cars.velocity": self._cars(cars.velocity),
            "cars.angular_velocity": self._cars(cars.angular_velocity),
            "cars.boost": self._cars(cars.boost),
            "cars.flags": self._flags(cars, state.events.touches),
            "cars.controls": self._cars(cars.controls),
            "pads": np.packbits(_array(state.pads.active), axis=-1, bitorder="little"),
        }
        if self.head:
            values |= self._thoughts(head or Head(), state.arenas)
        return self.layout.encode(values)

    def cars_at(self, seats: NDArray[Any]) -> NDArray[Any]:
        """The cars in these seats, -1 for nobody."""
        return self.car_of[np.clip(seats, -1, len(self.car_of) - 2)]

    def header(self, title: str, source: str, ticks_per_frame: int, players: Sequence[Mapping[str, Any]],
               **more: Any) -> Header:
        """The header of a recording of these frames; `more` as in `make_header`."""
        return make_header("rocket", title, source, ticks_per_frame, 1 / TICK_RATE, self.layout, players=players, **more)

    def _cars(self, x: Tensor) -> NDArray[Any]:
        """[E, C, ...]: the cars that take part."""
        return _array(x)[:, self.seats]

    def _flags(self, cars: Cars, touches: Tensor) -> NDArray[Any]:
        """[E, C]: the bits of every car."""
        bits = {ON_GROUND: cars.on_ground, BOOSTING: cars.boost_time > 0, SUPERSONIC: cars.is_supersonic,
                DEMOED: cars.is_demoed, HAS_FLIP: cars.has_flip, JUMPING: cars.is_jumping, FLIPPING: cars.is_flipping,
                TOUCHED: touches > 0}
        return sum((self._cars(on).astype(np.uint8) << bit for bit, on in bits.items()),
                   np.zeros((len(touches), self.cars), np.uint8))

    def _thoughts(self, head: Head, frames: int) -> dict[str, NDArray[Any]]:
        def of(x: NDArray[Any] | None, unknown: float, *shape: int) -> NDArray[Any]:
            return np.full((frames, self.cars, *shape), unknown) if x is None else np.asarray(x)[:, self.seats]

        found = {"cars.value": of(head.value, np.nan), "cars.action": of(head.action, -1),
                 "cars.top_action": of(head.top_action, -1, TOP), "cars.top_probability": of(head.top_probability, 0.0, TOP)}
        return found | ({"cars.reward": of(head.reward, 0.0, self.terms)} if self.terms else {})


def rocket_layout(cars: int, head: bool = False, terms: int = 0) -> Layout:
    """The fields of a game of so many cars."""
    found = fields(
        ("tick", "i32", [], 1.0), ("score", "u8", [2], 1.0), ("goal", "i8", [], 1.0), ("touched", "i8", [], 1.0),
        *_body("ball", []), *_body("cars", [cars]),
        ("cars.boost", "u8", [cars], 1.0), ("cars.flags", "u8", [cars], 1.0),
        ("cars.controls", "i8", [cars, len(CONTROLS)], 1 / 127), ("pads", "u8", [PAD_BYTES], 1.0),
    )
    if head:
        found += fields(("cars.value", "f32", [cars], 1.0), ("cars.action", "i16", [cars], 1.0),
                        ("cars.top_action", "i16", [cars, TOP], 1.0), ("cars.top_probability", "u8", [cars, TOP], 1 / 255))
        if terms:
            found += fields(("cars.reward", "f32", [cars, terms], 1.0))
    return Layout(found)


def players_of(state: GameState, arena: int, names: Sequence[str], policies: Sequence[bool] | None = None,
               humans: Sequence[bool] | None = None) -> list[dict[str, Any]]:
    """The players of a header, one per car that takes part. `names`, `policies`, `humans`: one per seat. This is a host
    sync."""
    cars = state.cars
    present, team, hitbox = (x[arena].tolist() for x in (cars.present, cars.team, cars.hitbox))
    return [{"name": names[seat], "team": team[seat], "hitbox": HITBOXES[hitbox[seat]].name,
             "policy": bool(policies and policies[seat]), "human": bool(humans and humans[seat])}
            for seat in range(state.seats) if present[seat]]


def _body(name: str, each: list[int]) -> tuple[tuple[str, str, Sequence[int], float], ...]:
    return ((f"{name}.position", "i16", [*each, 3], POSITION), (f"{name}.rotation", "i16", [*each, 4], TURN),
            (f"{name}.velocity", "i16", [*each, 3], POSITION), (f"{name}.angular_velocity", "i16", [*each, 3], SPIN))


def _array(x: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = x.numpy()
    return array
