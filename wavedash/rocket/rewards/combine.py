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
from wavedash.tasks.rewards import Reward


class Rewards(rewards.Rewards):
    """The weighted sum of named rewards. An empty seat gets nothing, and a demolished car gets only sparse rewards.

    `team_spirit`: 0 pays each car what it earned itself, 1 the mean of its team. Raise it as team play begins to matter.
    `zero_sum`: the share of the opponents' mean that is subtracted: with 1 (or true), what is good for them is bad for the car.
    Other options are `mode`, `dense_scale` and `scale`, as in tasks of any environment.
    """

    settings = (*rewards.Rewards.settings, "team_spirit", "zero_sum")
    _is_sparse: Tensor
    _team_spirit: Tensor
    _zero_sum: Tensor

    def __init__(self, rewards: Sequence[tuple[str, Reward, float]], *, team_spirit: float = 0.0, zero_sum: float = 0.0,
                 **options: Any):
        self.team_spirit, self.zero_sum = team_spirit, zero_sum
        self.register_buffer("_team_spirit", torch.zeros(()), persistent=False)
        self.register_buffer("_zero_sum", torch.zeros(()), persistent=False)
        sparse = [reward.sparse for _, reward, _ in rewards]
        self.register_buffer("_is_sparse", torch.tensor(sparse, dtype=torch.bool).view(-1, 1, 1), persistent=False)
        super().__init__(rewards, **options)

    @classmethod
    def named(cls, rewards: Mapping[str, Any], lookup: Lookup = names.PARTS, **options: Any) -> Rewards:
        made = super().named(rewards, lookup, **options)
        assert isinstance(made, cls)
        return made

    def due(self, values: Tensor, state: GameState) -> Tensor:
        cars = state.cars
        return torch.where((self._is_sparse & cars.present) | cars.alive, values, 0.0)

    def spread(self, own: Tensor, state: GameState) -> Tensor:
        """Applies team spirit and zero-sum."""
        if own.device.type == "cpu" and not (self.team_spirit or self.zero_sum):
            return own  # not on a GPU: a CUDA graph cannot branch when it is replayed
        cars = state.cars
        blue = cars.team == 0
        member = (torch.stack([blue, ~blue], 1) & cars.present.unsqueeze(1)).float()  # [E, 2, C]
        mean = (member * own.unsqueeze(1)).sum(-1, keepdim=True) / member.sum(-1, keepdim=True).clamp(min=1.0)  # [E, 2, 1]
        blue_mean, orange_mean = mean.unbind(1)
        shared = torch.lerp(own, torch.where(blue, blue_mean, orange_mean), self._team_spirit)
        shared = shared - self._zero_sum * torch.where(blue, orange_mean, blue_mean)
        return shared * cars.present

    def write_settings(self) -> None:
        if not 0.0 <= self.team_spirit <= 1.0:
            raise UserError(f"team_spirit must be from 0 (own reward) to 1 (mean of the team), not {self.team_spirit}")
        if not 0.0 <= self.zero_sum <= 1.0:
            raise UserError(f"zero_sum must be from 0 (or false) to 1 (or true), not {self.zero_sum}")
        super().write_settings()
        self._team_spirit.fill_(self.team_spirit)
        self._zero_sum.fill_(self.zero_sum)
