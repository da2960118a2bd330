"""Replay: one recorded game as arrays over its F frames and C players. It is the layer behind the reader of `.replay` files:
games that are played here become the same structure, so that everything behind it can be held against the truth.

Units are those of the game state (uu, uu/s, rad/s) and so are its axes; boost is 0 to 255 and sticks are bytes, as in replays.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavedash.rocket.constants import PADS

Array = NDArray[Any]
PLAY, COUNTDOWN, GOAL, NO_PLAY = range(4)
"""Phases of a game: play, the countdown before a kick-off, what follows a goal until the next countdown, anything else"""
UNKNOWN = -1
"""A byte of a stick that the replay does not carry"""
NEUTRAL = 128
"""The byte of a stick that nobody moves"""
BODY = {"position": (3,), "quaternion": (4,), "velocity": (3,), "angular_velocity": (3,)}
FLAGS = ("jump_active", "double_jump_active", "dodge_active", "boost_active", "handbrake")


class NotAReplayError(Exception):
    """The file holds no game that can be imported. Its text says why."""


@dataclass
class Replay:
    """One game. Players of the blue team come first. A quaternion is x, y, z, w."""

    time: Array
    """[F] seconds; frames come about 30 times a second, at irregular times"""
    phase: Array
    """[F]: PLAY, COUNTDOWN, GOAL or NO_PLAY"""
    ball: dict[str, Array]
    """BODY, each [F, ...]"""
    cars: dict[str, Array]
    """BODY, each [F, C, ...]"""
    flags: dict[str, Array]
    """FLAGS, each [F, C] bool"""
    boost: Array
    """[F, C], 0 to 255"""
    throttle: Array
    """[F, C] bytes, 128 is neutral, or UNKNOWN"""
    steer: Array
    """[F, C] bytes, 128 is straight, 255 is right, or UNKNOWN"""
    ball_known: Array
    """[F] bool"""
    car_known: Array
    """[F, C] bool: the player has a car in this frame"""
    demolished: Array
    """[F, C] bool"""
    pad_timer: Array
    """[F, 34] seconds until a pad is back, 0: there, or not known to be taken"""
    team: Array
    """[C]"""
    hitbox: Array
    """[C], index into HITBOXES"""
    names: list[str]
    goals: list[tuple[int, int]] = field(default_factory=list)
    """Frame and team of every goal"""
    chosen_flags: dict[str, Array] = field(default_factory=dict)
    """FLAGS in the middle between each moment and the next, each [F, C] bool, where games are resampled: what was chosen at the
    moment, which its state cannot show yet"""
    identity: str = ""
    """What two files of the same game have in common; empty: unknown"""

    @property
    def frames(self) -> int:
        return len(self.time)

    @property
    def size(self) -> int:
        """Players per team: of the larger team, in most frames of play. Players who come and go do not count."""
        playing = self.car_known[self.phase == PLAY]
        if not len(playing):
            return 0
        larger = np.maximum(playing[:, self.team == 0].sum(-1), playing[:, self.team == 1].sum(-1))
        return int(np.bincount(larger).argmax())

    @classmethod
    def blank(cls, frames: int, team: list[int]) -> Replay:
        """A game in which nothing is known yet."""
        cars = len(team)
        return cls(
            time=np.zeros(frames), phase=np.full(frames, PLAY),
            ball={name: np.zeros((frames, *shape)) for name, shape in BODY.items()},
            cars={name: np.zeros((frames, cars, *shape)) for name, shape in BODY.items()},
            flags={name: np.zeros((frames, cars), bool) for name in FLAGS}, boost=np.zeros((frames, cars)),
            throttle=np.full((frames, cars), UNKNOWN), steer=np.full((frames, cars), UNKNOWN),
            ball_known=np.zeros(frames, bool), car_known=np.zeros((frames, cars), bool),
            demolished=np.zeros((frames, cars), bool), pad_timer=np.zeros((frames, len(PADS))),
            team=np.array(team), hitbox=np.zeros(cars, int), names=[f"player {i}" for i in range(cars)])
