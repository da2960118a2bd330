"""The game state: everything that a simulator knows about E arenas with C seats each, as tensors.

An arena is one record of words, and every field below is a view over the records of all arenas: `ball.position` is [E, 3],
`cars.velocity` [E, C, 3]. So copying a state, keeping the previous one, moving it to another device or resetting some of its
arenas is one operation, and simulators write where tasks read.

Units are the game's: uu (1 cm), uu/s, radians/s, seconds. Y points from blue's goal (-) to orange's (+), X along the goal
lines, Z up. The columns of a rotation are the forward, right and up axes of a body. Team 0 is blue, 1 is orange. Cars are
numbered by seat, 0 to C - 1, blue's first; -1 means no car.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor

from wavedash.rocket.constants import FLIP_WINDOW, PADS, TICK_RATE

CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
"""The eight controls of a car, in the order of every tensor of controls: five sticks from -1 to 1, three buttons 0 or 1"""
THROTTLE, STEER, PITCH, YAW, ROLL, JUMP, BOOST, HANDBRAKE = range(len(CONTROLS))
STICKS = len(CONTROLS) - 3
"""Number of sticks, which come before the buttons"""
PIECE = 16
"""Bytes that a thread of a GPU loads at once: parts of a record begin at multiples of it"""
WORD = 4
"""Bytes of a word"""


def _of(*shape: int, dtype: torch.dtype = torch.float32) -> Any:
    return field(metadata={"shape": shape, "dtype": dtype})


def _flag(*shape: int) -> Any:
    return _of(*shape, dtype=torch.bool)


def _number(*shape: int) -> Any:
    return _of(*shape, dtype=torch.int32)


@dataclass
class Ball:
    """[E, ...]"""

    position: Tensor = _of(3)
    rotation: Tensor = _of(3, 3)
    velocity: Tensor = _of(3)
    angular_velocity: Tensor = _of(3)
    last_touch: Tensor = _number()
    """Seat of the car that touched it last in this episode, -1: none yet"""


@dataclass
class Cars:
    """[E, C, ...]. The fields are those of RocketSim's car state."""

    position: Tensor = _of(3)
    rotation: Tensor = _of(3, 3)
    velocity: Tensor = _of(3)
    angular_velocity: Tensor = _of(3)
    boost: Tensor = _of()
    """0 to 100"""
    boost_time: Tensor = _of()
    """Seconds since boosting began; 0: not boosting"""
    supersonic_time: Tensor = _of()
    handbrake: Tensor = _of()
    """How far the handbrake has closed, 0 to 1"""
    air_time: Tensor = _of()
    """Seconds since the wheels left the ground"""
    air_time_since_jump: Tensor = _of()
    """Seconds since the jump ended: a flip or double jump is possible up to 1.25 s"""
    jump_time: Tensor = _of()
    flip_time: Tensor = _of()
    flip_torque: Tensor = _of(3)
    """The axis of the flip, in the car's frame"""
    auto_flip_timer: Tensor = _of()
    auto_flip_torque: Tensor = _of()
    """Direction in which a car on its roof turns over, -1 or 1"""
    demo_timer: Tensor = _of()
    """Seconds until the respawn of a demolished car"""
    contact_normal: Tensor = _of(3)
    """Normal of the arena where the car's body touches it"""
    contact_cooldown: Tensor = _of()
    """Seconds until the car can bump the same car again"""
    ball_hit_offset: Tensor = _of(3)
    """Last hit: its point relative to the ball"""
    ball_hit_position: Tensor = _of(3)
    """Last hit: where the ball was"""
    ball_hit_impulse: Tensor = _of(3)
    """Last hit: velocity added on top of the collision"""
    controls: Tensor = _of(8)
    """Controls of the last tick, in the order of CONTROLS"""
    contact_car: Tensor = _number()
    """Seat of the car that was touched last, -1: none"""
    ball_hit_tick: Tensor = _number()
    """Last hit: tick of the arena's clock; -1: the ball was not hit"""
    ball_hit_impulse_tick: Tensor = _number()
    team: Tensor = _number()
    hitbox: Tensor = _number()
    """Index into HITBOXES"""
    wheel_contact: Tensor = _flag(4)
    """Front right, front left, back right, back left"""
    present: Tensor = _flag()
    """False: an empty seat. Its other fields mean nothing."""
    on_ground: Tensor = _flag()
    """Three wheels or more touch something"""
    has_jumped: Tensor = _flag()
    has_double_jumped: Tensor = _flag()
    has_flipped: Tensor = _flag()
    is_jumping: Tensor = _flag()
    is_flipping: Tensor = _flag()
    is_auto_flipping: Tensor = _flag()
    is_supersonic: Tensor = _flag()
    is_demoed: Tensor = _flag()
    has_contact: Tensor = _flag()
    """The car's body touches the arena"""

    @property
    def forward(self) -> Tensor:
        return self.rotation[..., 0]

    @property
    def right(self) -> Tensor:
        return self.rotation[..., 1]

    @property
    def up(self) -> Tensor:
        return self.rotation[..., 2]

    def once(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Returns what `compute` returns. That is called once for all parts of a task while `keeping` is on. Nobody may change
        it."""
        known: dict[str, Tensor] | None = self.__dict__.get("known")
        if known is None:
            return compute()
        if name not in known:
            known[name] = compute()
        return known[name]

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While it is on, the state must not change, and `once` keeps what it has computed."""
        self.__dict__["known"] = {}  # no field: fields are views of the state
        try:
            yield
        finally:
            del self.__dict__["known"]

    @property
    def alive(self) -> Tensor:
        """Cars on the field: neither an empty seat nor demolished."""
        return self.once("alive", lambda: self.present > self.is_demoed)  # present and not demolished, in one operation

    @property
    def has_flip(self) -> Tensor:
        """Cars that can flip or double jump: in the air, not done yet, and not too late after a jump."""
        used = self.has_flipped | self.has_double_jumped
        return ~self.on_ground & ~used & (self.air_time_since_jump < FLIP_WINDOW)


@dataclass
class Pads:
    """[E, 34], in the order of PADS."""

    timer: Tensor = _of(len(PADS))
    """Seconds until the pad is back; 0: it is there"""
    locked_car: Tensor = _number(len(PADS))
    """Seat of the car that took it last and has not left it, -1: none"""

    @property
    def active(self) -> Tensor:
        return self.timer <= 0


@dataclass
class Game:
    """[E, ...]: the arena's clock and score, and the goal of the last step."""

    tick: Tensor = _number()
    """Ticks (1/120 s) since the episode began"""
    score: Tensor = _number(2)
    """Goals of blue and orange in this episode"""
    goal: Tensor = _number()
    """Team that scored during the last step, -1: none"""


@dataclass
class Events:
    """[E, C]: what each car did during the last step, and to whom."""

    touches: Tensor = _number()
    """Ticks in which the car hit the ball"""
    bumped: Tensor = _number()
    """Seat of the car that it bumped, -1: none"""
    demolished: Tensor = _number()
    """Seat of the car that it demolished, -1: none"""
    small_pads: Tensor = _number()
    big_pads: Tensor = _number()
    goal: Tensor = _flag()
    """It scored: it was the last car of its team to touch the ball before a goal against the other"""
    assist: Tensor = _flag()
    shot: Tensor = _flag()
    """Its touch put the ball on course for the other goal"""
    save: Tensor = _flag()
    """Its touch kept the ball from its own goal"""


@dataclass
class GameState:
    """The five parts over one block of memory."""

    ball: Ball
    cars: Cars
    pads: Pads
    game: Game
    events: Events
    memory: Tensor
    """[E, W] int32: the records, as words"""

    tick_rate: ClassVar = float(TICK_RATE)
    """Ticks per second"""
    PER_CAR: ClassVar = ("cars", "events")
    PARTS: ClassVar = {"ball": Ball, "cars": Cars, "pads": Pads, "game": Game, "events": Events}

    @property
    def arenas(self) -> int:
        return self.game.tick.shape[0]

    @property
    def seats(self) -> int:
        return self.cars.team.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Arenas E, seats C."""
        arenas, seats = self.cars.team.shape
        return arenas, seats

    @property
    def device(self) -> torch.device:
        return self.memory.device

    @property
    def clock(self) -> Tensor:
        """[E]: ticks since the episode began."""
        return self.game.tick

    @classmethod
    def record_bytes(cls, seats: int) -> int:
        """Bytes of the record of one arena."""
        end = 0
        for *_, dtype, shape, offset, stride in cls.layout(seats):
            end = max(end, offset + (seats - 1) * stride + prod(shape) * dtype.itemsize)
        return -(-end // PIECE) * PIECE

    @classmethod
    def layout(cls, seats: int) -> Iterator[tuple[str, str, torch.dtype, tuple[int, ...], int, int]]:
        """For every field: part, name, type, shape, offset in the record, and stride from car to car (0: not per car); in
        bytes."""
        offset = 0
        for part, kind in cls.PARTS.items():
            columns = [(f.name, f.metadata["dtype"], f.metadata["shape"]) for f in fields(kind)]
            size = sum(prod(shape) * dtype.itemsize for _, dtype, shape in columns)
            stride = -(-size // PIECE) * PIECE
            at = offset
            for name, dtype, shape in columns:  # words are declared before flags, four flags before one: none crosses words
                yield part, name, dtype, shape, at, stride if part in cls.PER_CAR else 0
                at += prod(shape) * dtype.itemsize
            offset += stride * (seats if part in cls.PER_CAR else 1)

    @classmethod
    def over(cls, memory: Tensor, seats: int) -> GameState:
        """A state whose fields are views over existing words [E, W]."""
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in cls.PARTS}
        for part, name, dtype, shape, offset, stride in cls.layout(seats):
            per_car = [(seats, stride)] if stride else []
            inner = [(size, prod(shape[i + 1 :]) * dtype.itemsize) for i, size in enumerate(shape)]
            parts[part][name] = view_of(memory, dtype, offset, *per_car, *inner)
        return cls(**{part: kind(**parts[part]) for part, kind in cls.PARTS.items()}, memory=memory)

    @classmethod
    def empty(cls, arenas: int, seats: int, device: torch.device | str = "cpu") -> GameState:
        """A state of zeros, in which all seats are empty."""
        words = cls.record_bytes(seats) // WORD
        return cls.over(torch.zeros(arenas, words, dtype=torch.int32, device=device), seats)

    def clone(self) -> GameState:
        return GameState.over(self.memory.clone(), self.seats)

    def repeated(self, times: int) -> GameState:
        """A state with so many copies of all arenas, one after the other."""
        return GameState.over(self.memory.repeat(times, 1), self.seats)

    def to(self, device: torch.device | str) -> GameState:
        return GameState.over(self.memory.to(device), self.seats)

    def copy_(self, other: GameState, arenas: Tensor | None = None) -> GameState:
        """Takes over another state, all of it or the arenas [E] that are true."""
        if arenas is None:
            self.memory.copy_(other.memory)
        else:
            torch.where(arenas.unsqueeze(-1), other.memory, self.memory, out=self.memory)
        return self

    def picked(self, places: Tensor) -> GameState:
        """A copy of the arenas at these places [n]."""
        return GameState.over(self.memory[places], self.seats)

    def put_(self, places: Tensor, other: GameState, chosen: Tensor) -> GameState:
        """Takes over another state [n, ...] at these places [n], as far as it is `chosen` [n]."""
        self.memory[places] = torch.where(chosen.unsqueeze(-1), other.memory, self.memory[places])
        return self

    def part(self, arenas: slice) -> GameState:
        """A state of views over a range of arenas."""
        return GameState.over(self.memory[arenas], self.seats)

    def clear_events(self) -> None:
        """Sets goal and events to nothing happened."""
        self.game.goal.fill_(-1)
        for f in fields(self.events):
            getattr(self.events, f.name).fill_(-1 if f.name in ("bumped", "demolished") else 0)

    def mirrored(self) -> GameState:
        """The same game seen from the other side: rotated by half a turn about the center, teams exchanged, seats kept."""
        other = self.clone()
        half_turn = torch.tensor([-1.0, -1.0, 1.0], device=self.memory.device)
        for body in (other.ball, other.cars):
            for name in ("position", "velocity", "angular_velocity"):
                getattr(body, name).mul_(half_turn)
            body.rotation.mul_(half_turn.unsqueeze(-1))
        for name in ("contact_normal", "ball_hit_offset", "ball_hit_position", "ball_hit_impulse"):
            getattr(other.cars, name).mul_(half_turn)
        other.cars.team.copy_(1 - self.cars.team)
        other.pads.timer.copy_(self.pads.timer.flip(-1))  # the order of PADS is symmetric
        other.pads.locked_car.copy_(self.pads.locked_car.flip(-1))
        other.game.score.copy_(self.game.score.flip(-1))
        other.game.goal.copy_(torch.where(self.game.goal < 0, self.game.goal, 1 - self.game.goal))
        return other


def view_of(memory: Tensor, dtype: torch.dtype, offset: int, *dims: tuple[int, int]) -> Tensor:
    """[E, ...]: a view over one field of all records [E, W]. `offset`: where it begins in a record, in bytes; `dims`: size and
    stride in bytes of every dimension."""
    typed = memory.view(dtype)
    steps = [step // dtype.itemsize for _, step in dims]
    return typed.as_strided((len(memory), *(size for size, _ in dims)), (typed.stride(0), *steps),
                            typed.storage_offset() + offset // dtype.itemsize)
