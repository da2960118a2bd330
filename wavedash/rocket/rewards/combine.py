"""Rewards: many rewards, weighted, summed and shared between team mates and opponents."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.parts import Part, Reward
from wavedash.rocket.state import Cars, Events, GameState

Mode = Literal["dense", "sparse", "hybrid"]


class Rewards(Part):
    """The weighted sum of named rewards.

    `team_spirit`: 0 pays each car what it earned itself, 1 the mean of its team. Raise it as team play begins to matter; a
    rollout that is replayed from a recording keeps the value of its first.
    `zero_sum`: takes off the mean of the opponents: what is good for them is bad for the car.
    `mode`: `dense` pays everything, `sparse` only events, `hybrid` events in full and the rest times `dense_scale`.
    `scale`: of everything.
    """

    def __init__(self, rewards: Sequence[tuple[str, Reward, float]], *, team_spirit: float = 0.0, zero_sum: bool = False,
                 mode: Mode = "dense", dense_scale: float = 0.1, scale: float = 1.0):
        self.given_names = [name for name, _, _ in rewards]
        """As the configuration has them"""
        self.names = [_label(name) for name in self.given_names]
        self.rewards = [reward for _, reward, _ in rewards]
        if not rewards or len(set(self.names)) < len(rewards):
            raise UserError(f"rewards need at least one, and each a name of its own; got: {', '.join(self.names) or 'none'}")
        if not 0.0 <= team_spirit <= 1.0:
            raise UserError(f"team_spirit must be from 0 (own reward) to 1 (mean of the team), not {team_spirit}")
        if mode not in get_args(Mode):
            raise UserError(f"there is no reward mode {mode!r}; the modes are: {', '.join(get_args(Mode))}")
        self.team_spirit, self.zero_sum = team_spirit, zero_sum
        dense = {"dense": 1.0, "sparse": 0.0, "hybrid": dense_scale}[mode]
        self._factors = [scale * (1.0 if reward.sparse else dense) for reward in self.rewards]
        self._first_weights = {name: float(weight) for name, _, weight in rewards}

    @classmethod
    def named(cls, rewards: Mapping[str, Any], **options: Any) -> Rewards:
        """As a YAML file has them: `goal: 10`, `boost_pickup: {weight: 0.5, small: 0.2}`, `my_module:MyReward: 1`. To have one
        twice, give it a name and say which it is: `far_touch: {reward: touch, weight: 1}`."""
        return cls([(name, *_read(name, value)) for name, value in rewards.items()], **options)

    def bind(self, state: GameState) -> None:
        device = state.memory.device
        self._is_sparse = torch.tensor([reward.sparse for reward in self.rewards], device=device).view(-1, 1, 1)
        self._weights = torch.zeros(len(self.rewards), 1, 1, device=device)  # [K, 1, 1], mode and scale included
        self._shares = torch.zeros(len(self.rewards), state.arenas, state.seats, device=device)  # [K, E, C]
        self.set_weights(self._first_weights)
        for reward in self.rewards:
            reward.bind(state)

    def begin(self, state: GameState, arenas: Tensor) -> None:
        for reward in self.rewards:
            reward.begin(state, arenas)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        """[E, C]: what each car gets for this step."""
        cars = state.cars
        values = [reward(state, previous, events) for reward in self.rewards]
        for name, value in zip(self.names, values, strict=True):
            if value.shape != cars.team.shape:
                raise UserError(f"reward {name!r} returned {list(value.shape)} numbers, not one for each car of each arena: "
                                f"{list(cars.team.shape)}")
        paid = (self._is_sparse & cars.present) | cars.alive
        torch.mul(torch.where(paid, torch.stack(values), 0.0), self._weights, out=self._shares)
        total = self._shares.sum(0)
        return self._between_cars(total, cars) if self.team_spirit or self.zero_sum else total

    @property
    def table(self) -> Tensor:
        """[K, E, C]: the same as `shares`, in one tensor, which every step overwrites."""
        return self._shares

    def shares(self) -> dict[str, Tensor]:
        """What each reward contributed to the last step, [E, C] by name: weighted, before team spirit and zero-sum."""
        return dict(zip(self.names, self._shares.unbind(0), strict=True))

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """From the next step on; rewards that are not named keep theirs. Nothing waits for the device."""
        for name, weight in weights.items():
            if _label(name) not in self.names:
                raise UserError(f"no reward {name!r} to give a weight: this task has {', '.join(self.names)}. If it shall come "
                                "later, name it among the rewards with weight 0")
            place = self.names.index(_label(name))
            self._weights[place].fill_(weight * self._factors[place])

    def _between_cars(self, own: Tensor, cars: Cars) -> Tensor:
        """Team spirit and zero-sum."""
        blue = cars.team == 0
        member = (torch.stack([blue, ~blue], 1) & cars.present.unsqueeze(1)).float()  # [E, 2, C]
        mean = (member * own.unsqueeze(1)).sum(-1, keepdim=True) / member.sum(-1, keepdim=True).clamp(min=1.0)  # [E, 2, 1]
        blue_mean, orange_mean = mean.unbind(1)
        shared = torch.lerp(own, torch.where(blue, blue_mean, orange_mean), self.team_spirit)
        if self.zero_sum:
            shared = shared - torch.where(blue, orange_mean, blue_mean)
        return shared * cars.present


def _label(name: str) -> str:
    """The name in logs: `goal` for `Goal`, `my_reward` for `my_module:MyReward`."""
    return names.snake_case(name.rpartition(":")[2])


def _read(name: str, value: Any) -> tuple[Reward, float]:
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = options.pop("weight", None)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not isfinite(weight):
        raise UserError(f"reward {name!r} needs a weight: write '{name}: 1.0' or '{name}: {{weight: 1.0, ...}}', not {value!r}")
    return names.make("reward", options.pop("reward", name), options), float(weight)
