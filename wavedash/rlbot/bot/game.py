"""Game: packets become the arrays of one game, by car, as the trainer's state has them. What packets do not carry of cars is
reconstructed in car.py."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bodies import standing_wheels
from .car import Car
from .constants import BIG_PAD_SECONDS, DT, PADS, SMALL_PAD_SECONDS
from .field import Field
from .motion import Motion, motion_of

Array = NDArray[Any]
LONGEST_GAP = 120
"""Ticks without a packet after which the past no longer counts"""
FASTEST_CAR, FASTEST_BALL, SLACK = 2300.0, 6000.0, 30.0
"""uu/s and uu: what moves more than twice as fast, and this much farther, was placed"""
MOTION = ("position", "rotation", "velocity", "angular_velocity")
FIELDS = ("present", "team", "controls", "boost", "boost_time", "supersonic_time", "handbrake", "air_time",
          "air_time_since_jump", "jump_time", "flip_time", "flip_torque", "auto_flip_timer", "auto_flip_torque", "demo_timer",
          "wheel_contact", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
          "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact")


class Game:
    """`arrays` are what the trainer's state has; `seats` are the indices of the cars among the packet's players."""

    def __init__(self, pads: Sequence[Any], field: Field) -> None:
        """`pads`: those of the field info, in the order of packets."""
        places = np.array([[pad.location.x, pad.location.y] for pad in pads], np.float32).reshape(-1, 2)
        distance = ((PADS[:, None, :2] - places) ** 2).sum(-1)
        self.order, self.known_pads = distance.argmin(1) if len(places) else np.zeros(0, np.int64), len(places)
        self.whole = np.where(PADS[:, 3] > 0, BIG_PAD_SECONDS, SMALL_PAD_SECONDS).astype(np.float32)
        self.field, self.frame = field, -1
        self.seats: list[int] = []
        self.cars: list[Car] = []
        self.who: list[tuple[int, int, int]] = []
        self.ball: Motion | None = None
        self._pads: Sequence[Any] = ()
        self._arrays: dict[str, Array] | None = None

    def forget(self) -> None:
        """Forgets what was seen so far, so that it does not count for the next packet."""
        self.who = []

    def update(self, packet: Any) -> bool:
        """Takes over a packet, which has a ball. Whether a new history begins with it: at first, after a long gap, and where
        somebody came, went, or was placed elsewhere."""
        frame, players = packet.match_info.frame_num, packet.players
        seats = [i for i, player in enumerate(players) if player.team in (0, 1)]  # others are spectators
        who = [(i, players[i].player_id, players[i].team) for i in seats]
        ticks, ball = frame - self.frame, motion_of(packet.balls[0].physics)
        new = who != self.who or not 0 <= ticks <= LONGEST_GAP or self._placed(packet, ball, ticks)
        began = ball if new or self.ball is None else self.ball if ticks == 1 else ball.earlier(DT)
        self.frame, self.ball, self.seats, self.who = frame, ball, seats, who
        self._update_cars([players[i] for i in seats], 0 if new else ticks, began, new)
        self._pads, self._arrays = packet.boost_pads, None
        return new

    @property
    def arrays(self) -> dict[str, Array]:
        """Returns arrays by name, [cars, ...]; `ball` [18] and `pads` [34], seconds until each is back, in the order of
        training."""
        if self._arrays is None:
            self._arrays = self._written()
        return self._arrays

    def _update_cars(self, players: Sequence[Any], ticks: int, ball: Motion, new: bool) -> None:
        """`ball`: where it was when the tick of this packet began."""
        if new:
            self.cars = [Car(player, self.field) for player in players]
        elif not ticks:
            return
        began = [car.began(player, ticks) for car, player in zip(self.cars, players, strict=True)]
        standing = standing_wheels(self.cars, began, ball)
        for car, player, at, wheels in zip(self.cars, players, began, standing, strict=True):
            if new:
                car.feel_ground(player, at, wheels)
            else:
                car.update(player, ticks, at, wheels)

    def _placed(self, packet: Any, ball: Motion, ticks: int) -> bool:
        """Whether the ball or a car is where it cannot have moved to. A car that comes back after a demolition may be
        anywhere."""
        seconds = 2.0 * float(DT) * ticks
        if self.ball is None or np.abs(ball.position - self.ball.position).max() > FASTEST_BALL * seconds + SLACK:
            return True
        for car, i in zip(self.cars, self.seats, strict=True):
            at, before = packet.players[i].physics.location, car.motion.position
            apart = max(abs(at.x - before[0]), abs(at.y - before[1]), abs(at.z - before[2]))
            if not car.is_demoed and apart > FASTEST_CAR * seconds + SLACK:
                return True
        return False

    def _written(self) -> dict[str, Array]:
        assert self.ball is not None
        arrays = {name: np.array([getattr(car, name) for car in self.cars]) for name in FIELDS}
        arrays |= {name: np.array([car.motion[i] for car in self.cars]) for i, name in enumerate(MOTION)}
        arrays["ball"] = np.concatenate([x.reshape(-1) for x in self.ball])
        arrays["pads"] = np.zeros(len(PADS), np.float32)
        if len(self.order) and len(self._pads) == self.known_pads:  # else nobody knows which is which: all count as there
            gone = np.array([-1.0 if pad.is_active else pad.timer for pad in self._pads], np.float32)[self.order]
            arrays["pads"] = np.where(gone < 0, np.float32(0.0), np.maximum(self.whole - gone, np.float32(0.0)))
        return arrays
