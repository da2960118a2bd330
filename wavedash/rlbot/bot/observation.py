"""Observations of one car in numpy: the numbers of training, in the same order, as the own team sees the field.

`ByName` chooses rows among all numbers that have a name (`wavedash/rocket/observations/names.py`); `Default` is RLGym's.
A game is a mapping of arrays by car: see `game.py`.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import BACK_NET_Y, BIG_PAD_SECONDS, FLIP_SECONDS, FLIP_WINDOW, GOAL_HEIGHT, JUMP, PADS, UNIT

Array = NDArray[Any]
FLAGS = ("present", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
         "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact")
MOTION = 18
BODY = MOTION + 1 + len(FLAGS) + 1
INNER = (("boost_time", 10.0), ("supersonic_time", 1.0), ("handbrake", 1.0), ("air_time", 1.0),
         ("air_time_since_jump", 1 / FLIP_WINDOW), ("jump_time", 1 / 0.2), ("flip_time", 1 / 0.95), ("flip_torque", 1.0),
         ("auto_flip_timer", 1 / 0.4), ("auto_flip_torque", 1.0), ("demo_timer", 1 / 3.0))
SCALE = np.array([1 / UNIT] * 3 + [1.0] * 9 + [1 / 2300.0] * 3 + [1 / 5.5] * 3, np.float32)
TURN = np.array([-1, -1, 1] + [-1] * 6 + [1] * 3 + [-1, -1, 1] * 2, np.float32)
SQUARE, REACH = 100.0, int(BACK_NET_Y / 100.0)
SIDE = 2 * REACH + 1


def places(teams: Array, me: int, allies: int, opponents: int) -> list[int]:
    """Returns who is seen where: oneself, allies, opponents, each in the order of seats; -1 is an empty place."""
    mates = [car for car, team in enumerate(teams) if team == teams[me] and car != me][:allies]
    others = [car for car, team in enumerate(teams) if team == 1 - teams[me]][:opponents]
    return [me, *mates, *[-1] * (allies - len(mates)), *others, *[-1] * (opponents - len(others))]


class ByName:
    """`rows` are the places of the numbers that are seen, among all those that have a name."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.team_size, self.pads, self.frames = settings["team_size"], settings["pads"], settings["frames"]
        self.allies, self.opponents = self.team_size - 1, self.team_size
        self.rows = np.array(settings["rows"])
        bodies, near = 2 * self.team_size + 1, 2 * self.pads
        self.vectors = 4 + 2 * (bodies - 1) + 4 + near
        self.body = np.zeros((BODY, bodies), np.float32)
        self.timer_scale = np.array([scale for name, scale in INNER for _ in range(3 if name == "flip_torque" else 1)],
                                    np.float32)
        self.goals = np.array([[0, 0], [UNIT, -UNIT], [GOAL_HEIGHT / 2] * 2], np.float32) / np.float32(UNIT)
        facts = PADS.T.copy()
        facts[3] *= np.float32(UNIT)
        self.facts = facts / np.float32(UNIT)
        middles = (np.arange(-REACH, REACH + 1) * SQUARE).astype(np.float32)
        distance = (middles[:, None, None] - PADS[:, 0]) ** 2 + (middles[None, :, None] - PADS[:, 1]) ** 2
        self.near = distance.reshape(-1, len(PADS)).argsort(-1, kind="stable")[:, : self.pads]
        self.history: Array | None = None

    def begin(self) -> None:
        self.history = None

    def build(self, game: Mapping[str, Array], me: int, previous: Array) -> Array:
        frame = self._numbers(game, me, previous)[self.rows]
        if self.frames == 1:
            return frame
        old = self.history
        self.history = np.tile(frame, (self.frames, 1)) if old is None else np.concatenate([frame[None], old[:-1]])
        return self.history.reshape(-1)

    def _numbers(self, game: Mapping[str, Array], me: int, previous: Array) -> Array:
        orange = game["team"][me] == 1
        body = self._bodies(game, me, bool(orange))
        timers = np.concatenate([game[name][me].reshape(-1) for name, _ in INNER]) * self.timer_scale
        inner = np.concatenate([np.minimum(timers, np.float32(1.0)), game["wheel_contact"][me], previous])

        own, ball = body[:, 0], body[:, 1]
        pads = game["pads"] * np.float32(1 / BIG_PAD_SECONDS)
        pads = pads[::-1] if orange else pads
        near = np.stack([self._near(own), self._near(ball)], 1).reshape(-1)
        facts = self.facts[:, near]
        exists = body[MOTION + 1, 1:]
        vectors = np.concatenate([
            np.stack([own[12:15], ball[12:15], own[15:18], ball[15:18]], 1),
            body[0:3, 1:] - exists * body[0:3, :1], body[12:15, 1:] - exists * body[12:15, :1],
            np.stack([goal - x[:3] for goal in self.goals.T for x in (own, ball)], 1),
            facts[:3] - own[:3, None],
        ], 1).astype(np.float32)
        local = own[3:12].reshape(3, 3).T @ vectors
        length = np.sqrt((vectors * vectors).sum(0))
        return np.concatenate([body.reshape(-1), inner, vectors.reshape(-1), local.reshape(-1), length, facts[3], pads[near],
                               pads]).astype(np.float32)

    def _bodies(self, game: Mapping[str, Array], me: int, orange: bool) -> Array:
        body = self.body
        body.fill(0.0)
        seats = places(game["team"], me, self.allies, self.opponents)
        for place, car in zip([0, *range(2, body.shape[1])], seats, strict=True):
            if car >= 0:
                moves = np.concatenate([game["position"][car], game["rotation"][car].reshape(-1), game["velocity"][car],
                                        game["angular_velocity"][car]])
                body[:MOTION, place] = moves * SCALE
                body[MOTION, place] = game["boost"][car] * np.float32(0.01)
                body[MOTION + 1 : -1, place] = [game[flag][car] for flag in FLAGS]
                used = game["on_ground"][car] or game["has_flipped"][car] or game["has_double_jumped"][car]
                body[-1, place] = game["air_time_since_jump"][car] < FLIP_WINDOW and not used
        body[:MOTION, 1] = game["ball"] * SCALE
        body[MOTION + 1, 1] = 1.0
        if orange:
            body[:MOTION] *= TURN[:, None]
        return body

    def _near(self, body: Array) -> Array:
        square = np.clip(np.float32(REACH + 0.5) + body[:2] * np.float32(UNIT / SQUARE), 0, SIDE - 1).astype(np.int64)
        return self.near[square[0] * SIDE + square[1]]


class Default:
    """RLGym's observation: ball, pads, own jumps, then the cars."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.team_size, self.seats = settings["team_size"], settings["seats"]
        self.coefs = [np.float32(c) for c in settings["body_coefs"]]
        self.pad_coef, self.boost_coef = np.float32(settings["pad_timer_coef"]), np.float32(settings["boost_coef"])

    def begin(self) -> None:
        """It remembers nothing."""

    def build(self, game: Mapping[str, Array], me: int, previous: Array) -> Array:
        turn = np.array([-1, -1, 1] if game["team"][me] == 1 else [1, 1, 1], np.float32)
        position, velocity, spin = self.coefs
        ball = game["ball"]
        parts = [ball[:3] * position * turn, ball[12:15] * velocity * turn, ball[15:18] * spin * turn]
        pads = game["pads"] * self.pad_coef
        parts += [pads[::-1] if game["team"][me] == 1 else pads, self._jumps(game, me)]
        for car in self._places(game["team"], me):
            if car < 0:
                parts.append(np.zeros(20, np.float32))
                continue
            rotation = game["rotation"][car]
            parts += [game["position"][car] * position * turn, rotation[:, 0] * turn, rotation[:, 2] * turn,
                      game["velocity"][car] * velocity * turn, game["angular_velocity"][car] * spin * turn,
                      np.array([game["boost"][car] * self.boost_coef, game["demo_timer"][car], game["on_ground"][car],
                                game["boost_time"][car] > 0, game["supersonic_time"][car] > 0], np.float32)]
        return np.concatenate(parts).astype(np.float32)

    def _places(self, teams: Array, me: int) -> list[int]:
        """Returns who is seen where. Without a team size, empty places come last; where there are more cars than places,
        opponents have half of them at least, so that nobody of the own team stands in their place."""
        if self.team_size is not None:
            return places(teams, me, self.team_size - 1, self.team_size)
        others, mates = self.seats - 1, int((teams == teams[me]).sum()) - 1
        opponents = min(int((teams == 1 - teams[me]).sum()), max(-(-others // 2), others - mates))
        seen = places(teams, me, min(mates, others - opponents), opponents)
        return seen + [-1] * (self.seats - len(seen))

    @staticmethod
    def _jumps(game: Mapping[str, Array], me: int) -> Array:
        car = {name: x[me] for name, x in game.items() if name not in ("ball", "pads")}
        holding, since = car["controls"][JUMP], car["air_time_since_jump"]
        used = car["on_ground"] or car["has_flipped"] or car["has_double_jumped"]
        return np.array([holding, car["handbrake"], car["has_jumped"], car["is_jumping"], car["has_flipped"],
                         car["has_flipped"] and car["flip_time"] < FLIP_SECONDS, car["has_double_jumped"],
                         since < FLIP_WINDOW and not used and holding == 0, since], np.float32)


def make_observation(settings: Mapping[str, Any]) -> ByName | Default:
    return ByName(settings) if settings["kind"] == "by_name" else Default(settings)
