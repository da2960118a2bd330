"""Actions: what the policy chose becomes controls, and the mask of choices that have an effect now, as in training."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import FLIP_SECONDS, FLIP_WINDOW, JUMP, STICKS, TICK_RATE

Array = NDArray[Any]
BALANCES, PITCH_LOCK = 9, 0.95
WHEELS, NO_PITCH = 1, 8


class Actions:
    """`kind`: lookup_table, multi_discrete or continuous; the other settings are those of the parser in training."""

    def __init__(self, settings: Mapping[str, Any], tables: Mapping[str, Array]) -> None:
        self.kind: str = settings["kind"]
        self.ticks, self.delay, self.sticky = settings["ticks"], settings["delay"], settings["sticky"]
        self.masked: bool = settings.get("masked", False)
        self.seconds = (self.ticks + self.delay) / TICK_RATE
        self.tables = {name.removeprefix("action."): x for name, x in tables.items() if name.startswith("action.")}
        self.begin()

    def begin(self) -> None:
        self.left = np.zeros(3, np.int32)

    def controls(self, action: Array) -> Array:
        """[8], in the order of CONTROLS."""
        if self.kind == "lookup_table":
            controls = self.tables["table"][int(action[0])].copy()
        elif self.kind == "multi_discrete":
            chosen = action[self.tables["source"]].astype(np.float32)
            controls = self.tables["offset"] + chosen * self.tables["scale"]
        else:
            controls = np.clip(action, -1.0, 1.0).astype(np.float32)
            controls[STICKS:] = controls[STICKS:] > 0
        if self.sticky:
            self.left = np.where(controls[STICKS:] > 0, self.sticky + 1, np.maximum(self.left - 1, 0))
            controls[STICKS:] = self.left > 0
        return controls

    def mask(self, car: Mapping[str, Any]) -> Array | None:
        """The choices that are offered to this car, or None where all of them are."""
        if not self.masked:
            return None
        gone = bool(car["demo_timer"] > self.seconds)
        no_jump, no_boost = self._no_jump(car), bool(car["boost"] <= 0)
        if self.kind == "lookup_table":
            table = self.tables["different"]
            situation = self._balance(car) + BALANCES * no_boost + 2 * BALANCES * no_jump
            return table[len(table) - 1 if gone else situation]
        forbidden = gone & self.tables["active"] | no_jump & self.tables["jumps"] | no_boost & self.tables["boosts"]
        return ~forbidden

    def _no_jump(self, car: Mapping[str, Any]) -> bool:
        flip = car["air_time_since_jump"] < FLIP_WINDOW and not (car["has_flipped"] or car["has_double_jumped"])
        useful = bool(np.any(car["wheel_contact"])) or car["has_contact"] or flip
        if self.delay < self.ticks:
            useful = useful and car["controls"][JUMP] == 0
        return not (useful or car["is_jumping"])

    def _balance(self, car: Mapping[str, Any]) -> int:
        time, torque = car["flip_time"], car["flip_torque"]
        if car["is_flipping"] and time < FLIP_SECONDS - self.seconds:
            return int(torque[0] != 0) + 2 * int(np.sign(torque[1])) + 4
        if car["has_flipped"] and FLIP_SECONDS <= time < PITCH_LOCK - self.seconds:
            return NO_PITCH
        return WHEELS if np.all(car["wheel_contact"]) and not car["is_jumping"] else 0
