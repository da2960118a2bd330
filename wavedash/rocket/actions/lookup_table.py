"""LookupTable: the policy chooses a row of a table of controls. A mask offers the rows that differ in their effect now."""
from __future__ import annotations

from functools import cache
from itertools import product

import gymnasium
import torch
from torch import Tensor

from wavedash.rocket.actions import effects
from wavedash.rocket.actions.parser import Parser
from wavedash.rocket.state import BOOST, HANDBRAKE, JUMP, PITCH, ROLL, GameState

Row = list[float]


class LookupTable(Parser):
    """One of 90 combinations of controls: the rows of RLGym's `LookupTableAction`, in its order, so that policies trained with
    it can be run. To use combinations of your own, derive a class with another `rows`.

    masked: rows that would have the same effect as another one now are not offered: pitch and roll on four wheels or in a flip,
    jump without a jump left, boost with an empty tank. This makes early learning faster. The row without any control is always
    offered.
    """

    def __init__(self, ticks: int = 8, delay: int = 1, masked: bool = True, sticky: int = 0):
        super().__init__(ticks, delay, sticky)
        self.masked = masked
        self.space = gymnasium.spaces.Discrete(len(self.rows()))

    def rows(self) -> list[Row]:
        """All combinations, each in the order of CONTROLS."""
        ground = [
            [throttle or boost, steer, 0, steer, 0, 0, boost, handbrake]
            for throttle, steer, boost, handbrake in product((-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1))
            if throttle == 1 or not boost
        ]
        air = [
            [boost, yaw, pitch, yaw, roll, jump, boost, jump and bool(pitch or roll)]
            for pitch, yaw, roll, jump, boost in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1))
            if not (jump and yaw)  # roll is enough for flips to the side
            and (pitch or roll or jump)  # the others are in `ground` already
        ]
        return [[float(control) for control in row] for row in ground + air]

    def bind(self, state: GameState) -> None:
        super().bind(state)
        rows, device = self.rows(), state.memory.device
        self.table = torch.tensor(rows, device=device)
        self.different = torch.tensor(_offered(tuple(map(tuple, rows))), device=device)  # [situations, rows]

    def controls(self, action: Tensor) -> Tensor:
        return self.table.index_select(0, action.flatten()).view(*action.shape[:2], -1)

    def nearest(self, controls: Tensor, state: GameState) -> Tensor:
        distance = (controls.unsqueeze(-2) - self.table).square().sum(-1)  # [E, C, rows]
        offered = self.mask(state)
        return (distance if offered is None else distance.masked_fill(~offered, torch.inf)).argmin(-1)

    def mask(self, state: GameState) -> Tensor | None:
        if not self.masked:
            return None
        cars = state.cars
        situation = effects.balance(cars, self.seconds)
        situation = torch.add(situation, effects.no_boost(cars), alpha=effects.BALANCES)
        situation = torch.add(situation, effects.no_jump(cars, held=self.delay < self.ticks), alpha=2 * effects.BALANCES)
        situation = torch.where(effects.gone(cars, self.seconds), len(self.different) - 1, situation)
        return self.different.index_select(0, situation.flatten()).view(*situation.shape, -1)


@cache
def _offered(table: tuple[tuple[float, ...], ...]) -> list[list[bool]]:
    """For each situation and row, whether it is offered; in the last situation, without a car, only the one with no control.
    It is worked out once for each table, although every group of arenas binds a parser of its own."""
    rows = [list(row) for row in table]
    situations = product((False, True), (False, True), range(effects.BALANCES))
    lightest = min(rows, key=_strength)
    return [*(_different(rows, *situation) for situation in situations), [row == lightest for row in rows]]


def _different(rows: list[Row], no_jump: bool, no_boost: bool, balance: int) -> list[bool]:
    """For each row, whether it is offered: of rows with the same effect, only the one with the fewest controls is."""
    simplest: dict[tuple[float, ...], Row] = {}
    for row in sorted(rows, key=_strength):
        simplest.setdefault(_effect(row, no_jump, no_boost, balance), row)
    return [simplest[_effect(row, no_jump, no_boost, balance)] is row for row in rows]


def _effect(row: Row, no_jump: bool, no_boost: bool, balance: int) -> tuple[float, ...]:
    """The row without the controls that do nothing."""
    left = list(row)
    if no_boost:
        left[BOOST] = 0
    if no_jump and row[JUMP]:
        left[JUMP] = 0
        if balance != effects.WHEELS:
            left[HANDBRAKE] = 0  # in the air it does nothing before the wheels touch, and other rows have it
    cancels = any(balance == effects.FLIP[sign, side] and row[PITCH] * sign > 0 for sign in (-1, 1) for side in (0, 1))
    if not (balance in (effects.FREE, effects.STALL) or left[JUMP] or cancels):
        left[PITCH] = 0
        left[ROLL] = row[ROLL] if balance == effects.NO_PITCH else 0
    return tuple(left)


def _strength(row: Row) -> int:
    return sum(control != 0 for control in row)
