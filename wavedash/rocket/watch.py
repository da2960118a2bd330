"""Checks on a running task: for rewards that are not finite, and for starts that write impossible states.

There is no host sync. The rewards of the first step that had a NaN are kept, by operations that a CUDA graph can capture; they
are read only when an explanation is wanted.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.parts import Start
from wavedash.rocket.possible import rules
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.state import GameState
from wavedash.tasks.lookup import name_of
from wavedash.tasks.starts import Mixture

TEAMS = ("blue", "orange")


class RewardWatch:
    """Keeps the shares of all rewards [K, E, C] and the clocks [E] of the first step whose rewards were not all finite."""

    def __init__(self, state: GameState, rewards: Rewards) -> None:
        self._state, self._rewards = state, rewards
        self._shares = torch.zeros_like(rewards.table)
        self._ticks = torch.zeros_like(state.game.tick)
        self.seen = torch.zeros((), dtype=torch.bool, device=state.memory.device)

    def check(self, paid: Tensor) -> None:
        """Checks the rewards of this step, `paid` [N] to each car."""
        torch.where(self.seen, self._shares, self._rewards.table, out=self._shares)
        torch.where(self.seen, self._ticks, self._state.game.tick, out=self._ticks)
        self.seen.logical_or_(~paid.sum().isfinite())

    def explain(self, first_arena: int, ticks_per_step: int) -> str | None:
        """A message about the reward that was not finite, if there was one. (`check` cannot tell that from a sum of many huge
        rewards, which is not finite either.)"""
        bad = (~self._shares.isfinite()).nonzero()
        if not bool(self.seen) or not len(bad):
            self.seen.zero_()
            return None
        place, names = bad[0], self._rewards.given_names
        reward, arena, seat = place.tolist()
        others = sorted({names[term] for term in bad[:, 0].tolist() if term != reward})
        also = f"; in the same step not finite either: {', '.join(others)}" if others else ""
        car = f"the car in seat {seat} ({TEAMS[int(self._state.cars.team[arena, seat])]}) of arena {first_arena + arena}"
        tick = int(self._ticks[arena])
        return (f"reward {names[reward]!r} paid {float(self._shares[tuple(place)])} to {car}, in step "
                f"{-(-tick // ticks_per_step)} of its episode (tick {tick}){also}")


def impossible(beginnings: GameState) -> Tensor:
    """A flag on the device: whether any arena breaks a rule."""
    return torch.stack([rule.broken.any() for rule in rules(beginnings)]).any()


def explain_beginnings(beginnings: GameState, start: Start, first_arena: int, arenas: int) -> str | None:
    """A message about the start that broke a rule, if one did. Beginning b belongs to arena b modulo `arenas` (0: there are no
    arenas yet)."""
    for rule in rules(beginnings):
        places = rule.broken.nonzero()
        if len(places):
            number, *seat = places[0].tolist()
            part, field = rule.field.split(".")
            values = getattr(getattr(beginnings, part), field)[tuple(places[0])].tolist()
            which = start.writer(number) if isinstance(start, Mixture) else start
            of_seat = f" of seat {seat[0]}" if seat else ""
            where = f"first in arena {first_arena + number % arenas}, " if arenas else ""
            count = int(rule.broken.reshape(beginnings.arenas, -1).any(-1).sum())
            bounds = f". Bounds: {rule.bounds}" if rule.bounds else ""
            return (f"start {name_of(which)!r} writes a state that cannot be in the game: {rule.field}{of_seat} {rule.says}, "
                    f"it is {values} ({where}in {count} of {beginnings.arenas} beginnings){bounds}. "
                    "Correct its `write`")
    return None
