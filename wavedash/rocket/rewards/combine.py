"""The weighted sum of rewards in Rocket League, shared between team mates and opponents."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.state import GameState
from wavedash.tasks import rewards
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.numbers import Numbers
from wavedash.tasks.rewards import Reward, empty_table, label


class Rewards(rewards.Rewards):
    """The weighted sum of named rewards. An empty seat gets nothing, and a demolished car gets only sparse rewards.

    `team_spirit`: 0 pays each car what it earned itself, 1 the mean of its team. Raise it as team play begins to matter.
    `zero_sum`: the share of the opponents' mean that is subtracted: with 1 (or true), what is good for them is bad for the car.
    `zero_sums`: that share for single rewards, by name; the others keep `zero_sum`. `lane_zero_sums`: the same in each lane.
    In a lane with rewards of its own the others have 0: they are paid in full, also where both sides practise the same.
    Other options are `mode`, `dense_scale`, `scale` and `lanes`, as in tasks of any environment.
    """

    settings = (*rewards.Rewards.settings, "team_spirit", "zero_sum")
    _is_sparse: Tensor
    _team_spirit: Tensor
    _zero_sum: Tensor
    _zero_sums: Tensor
    """As `_factors`: the share of what opponents earned by each reward that is subtracted"""
    _current_zero_sums: Tensor
    """As `_current`"""

    def __init__(self, rewards: Sequence[tuple[str, Reward, float | None]], *, team_spirit: float = 0.0, zero_sum: float = 0.0,
                 zero_sums: Mapping[str, float] | None = None, lane_zero_sums: Mapping[str, Mapping[str, float]] | None = None,
                 **options: Any):
        self.team_spirit, self.zero_sum = team_spirit, zero_sum
        self.zero_sums = _by_label(zero_sums or {})
        self.lane_zero_sums = {lane: _by_label(own) for lane, own in (lane_zero_sums or {}).items()}
        self.register_buffer("_team_spirit", torch.zeros(()), persistent=False)
        self.register_buffer("_zero_sum", torch.zeros(()), persistent=False)
        self.register_buffer("_zero_sums", empty_table(rewards, options.get("lanes") or ()), persistent=False)
        self._zero_sum_numbers = Numbers(self._zero_sums)
        sparse = [reward.sparse for _, reward, _ in rewards]
        self.register_buffer("_is_sparse", torch.tensor(sparse, dtype=torch.bool).view(-1, 1, 1), persistent=False)
        super().__init__(rewards, **options)

    @classmethod
    def named(cls, rewards: Mapping[str, Any], lookup: Lookup = names.PARTS,
              lanes: Mapping[str, Mapping[str, Any] | None] | None = None, **options: Any) -> Rewards:
        """Makes rewards as a YAML file has them. Beside its weight, each may have a `zero_sum` of its own:
        `goal: {weight: 10, zero_sum: 1}`."""
        zero_sums, rest = _split(rewards)
        of_lanes = {lane: None if own is None else _split(own) for lane, own in (lanes or {}).items()}
        made = super().named(
            rest, lookup, {lane: None if own is None else own[1] for lane, own in of_lanes.items()}, zero_sums=zero_sums,
            lane_zero_sums={lane: zero_sums if own is None else own[0] for lane, own in of_lanes.items()}, **options)
        assert isinstance(made, cls)
        return made

    def due(self, values: Tensor, state: GameState) -> Tensor:
        cars = state.cars
        return torch.where((self._is_sparse & cars.present) | cars.alive, values, 0.0)

    def bind(self, state: GameState) -> None:
        cars = state.cars
        member = torch.stack([cars.team == 0, cars.team != 0], 1) & cars.present.unsqueeze(1)  # [E, 2, C]
        self._member = member.float()
        self._size = self._member.sum(-1).clamp(min=1.0)  # [E, 2]
        self._own_team = (cars.team != 0).long()  # [E, C]
        self._other_team = 1 - self._own_team
        self.register_buffer("_current_zero_sums", self._in_lanes(self._zero_sums, state.shape), persistent=False)
        super().bind(state)

    def lanes_changed(self) -> None:
        super().lanes_changed()
        if self.lane is not None:
            self._current_zero_sums.copy_(self._in_lanes(self._zero_sums, self._shares.shape[1:]))

    def spread(self, own: Tensor, state: GameState) -> Tensor:
        """Applies team spirit and zero-sum. Cars never change their teams or seats, so who is in which is known."""
        on_host = own.device.type == "cpu"  # a CUDA graph cannot branch when it is replayed
        if on_host and not self._spreads:
            return own
        shared = own
        if not (on_host and self.team_spirit == 0.0):
            shared = torch.lerp(own, self._team_means(own).gather(1, self._own_team), self._team_spirit)
        if self._differ:
            theirs = self._team_means((self._current_zero_sums * self._shares).sum(0)).gather(1, self._other_team)
        else:
            theirs = self._zero_sum * self._team_means(own).gather(1, self._other_team)
        return (shared - theirs) * state.cars.present

    def spread_table(self, state: GameState) -> Tensor:
        """[K, E, C]: what each reward contributed to what cars were paid for the last step, after team spirit and zero-sum.
        Summed over the rewards it is what was paid."""
        own, teams = self._shares, (len(self._shares), -1, -1)
        means = (self._member * own.unsqueeze(2)).sum(-1) / self._size  # [K, E, 2]
        shared = torch.lerp(own, means.gather(2, self._own_team.expand(teams)), self._team_spirit)
        theirs = self._current_zero_sums * means.gather(2, self._other_team.expand(teams))
        return (shared - theirs) * state.cars.present

    def _team_means(self, x: Tensor) -> Tensor:
        """[E, 2]: the means of blue and of orange over their cars."""
        return (self._member * x.unsqueeze(1)).sum(-1) / self._size

    def write_settings(self) -> None:
        if not 0.0 <= self.team_spirit <= 1.0:
            raise UserError(f"team_spirit must be from 0 (own reward) to 1 (mean of the team), not {self.team_spirit}")
        if not 0.0 <= self.zero_sum <= 1.0:
            raise UserError(f"zero_sum must be from 0 (or false) to 1 (or true), not {self.zero_sum}")
        tables = self.zero_sums, *(self.lane_zero_sums.get(lane, {}) for lane in self.lanes)
        for name, share in (item for table in tables for item in table.items()):
            if not isinstance(share, (int, float)) or not 0.0 <= share <= 1.0:
                raise UserError(f"zero_sum of the reward {name!r} must be from 0 (or false) to 1 (or true), not {share!r}")
        self._check_mode()  # before anything is written
        self._team_spirit.fill_(self.team_spirit)
        self._zero_sum.fill_(self.zero_sum)
        others = self.zero_sum, *(self.zero_sum if own is None else 0.0 for own in self.lanes.values())
        shares = [table.get(title, other) for title in self.titles for table, other in zip(tables, others, strict=True)]
        self._zero_sum_numbers.write(self._zero_sums, shares)
        self._spreads = bool(self.team_spirit) or any(shares)
        super().write_settings()

    @property
    def _differ(self) -> bool:
        """Whether rewards may have different zero-sum shares. It does not change with settings: a CUDA graph depends on it."""
        return bool(self.zero_sums) or any(self.lane_zero_sums.values()) or any(own is not None for own in self.lanes.values())


def _by_label(shares: Mapping[str, float]) -> dict[str, float]:
    return {label(name): share for name, share in shares.items()}


def _split(rewards: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """The `zero_sum` of rewards by name, as far as they have one, and the rewards without it."""
    zero_sums = {name: value["zero_sum"] for name, value in rewards.items()
                 if isinstance(value, Mapping) and "zero_sum" in value}
    rest = {name: {key: option for key, option in value.items() if key != "zero_sum"} if name in zero_sums else value
            for name, value in rewards.items()}
    return zero_sums, rest
