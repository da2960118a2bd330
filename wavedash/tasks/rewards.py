"""Rewards: the weighted sum of many rewards. Each environment decides how the sum is spread between agents."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.lookup import Lookup, snake_case
from wavedash.tasks.part import Part, Parts

Mode = Literal["dense", "sparse", "hybrid"]


class Reward(Part):
    """What an agent is paid for, positive if it is good for that agent. `Rewards` decides how others share it."""

    sparse: bool = False
    """True: it pays when something happens (a goal, a touch). False: it pays for a state of things, at every step"""

    @abstractmethod
    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        """[E, C]: the reward of the step from `previous` to `state`, during which `events` happened. True and false count as 1
        and 0."""


class Rewards(Part):
    """The weighted sum of named rewards.

    `mode`: `dense` pays everything, `sparse` only events, `hybrid` events in full and the rest times `dense_scale`.
    `scale`: multiplies everything.
    """

    holds_parts = True
    settings: tuple[str, ...] = ("mode", "dense_scale", "scale")
    _factors: Tensor
    _shares: Tensor

    def __init__(self, rewards: Sequence[tuple[str, Reward, float]], *, mode: Mode = "dense", dense_scale: float = 0.1,
                 scale: float = 1.0):
        self.given_names = [name for name, _, _ in rewards]
        """The names as the configuration has them"""
        self.names = [label(name) for name in self.given_names]
        self.rewards = [reward for _, reward, _ in rewards]
        if not rewards or len(set(self.names)) < len(rewards):
            raise UserError(f"rewards need at least one, and each a name of its own; got: {', '.join(self.names) or 'none'}")
        self.weights = {label(name): float(weight) for name, _, weight in rewards}
        """Weights by name; `set_weights` changes them"""
        self.mode, self.dense_scale, self.scale = mode, dense_scale, scale
        self.parts = Parts(dict(zip(self.names, self.rewards, strict=True)))
        self.register_buffer("_factors", torch.zeros(len(rewards), 1, 1), persistent=False)  # [K, 1, 1]: weight, mode, scale
        self.write_settings()

    @classmethod
    def named(cls, rewards: Mapping[str, Any], lookup: Lookup, **options: Any) -> Rewards:
        """Makes rewards as a YAML file has them: `goal: 10`, `boost_pickup: {weight: 0.5, small: 0.2}`, `my_module:MyReward:
        1`. To use one twice, give it another name: `far_touch: {reward: touch, weight: 1}`."""
        return cls([(name, *_read(name, value, lookup)) for name, value in rewards.items()], **options)

    def bind(self, state: Any) -> None:
        super().bind(state)
        self.register_buffer("_shares", torch.zeros(len(self.rewards), *state.shape, device=state.device), persistent=False)
        for reward in self.rewards:
            reward.bind(state)

    def begin(self, state: Any, mask: Tensor) -> None:
        for reward in self.rewards:
            reward.begin(state, mask)

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        """[E, C]: what each agent gets for this step."""
        values, shape = [reward(state, previous, events) for reward in self.rewards], state.shape
        for name, value in zip(self.names, values, strict=True):
            if value.shape != shape:
                raise UserError(f"reward {name!r} returned {list(value.shape)} numbers, not one for each agent of each "
                                f"environment: {list(shape)}")
        torch.mul(self.due(torch.stack(values), state), self._factors, out=self._shares)
        return self.spread(self._shares.sum(0), state)

    def due(self, values: Tensor, state: Any) -> Tensor:
        """[K, E, C]: the values of all rewards that are paid: an environment may exclude agents."""
        return values

    def spread(self, own: Tensor, state: Any) -> Tensor:
        """[E, C]: what each agent gets when `own` [E, C] is what it has earned itself."""
        return own

    @property
    def table(self) -> Tensor:
        """[K, E, C]: the same as `shares` in one tensor, which every step overwrites."""
        return self._shares

    def shares(self) -> dict[str, Tensor]:
        """What each reward contributed to the last step, by name: [E, C], weighted, before it is spread between agents."""
        return dict(zip(self.names, self._shares.unbind(0), strict=True))

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Changes weights from the next step on, without a host sync; rewards that are not named keep theirs."""
        for name in weights:
            if label(name) not in self.weights:
                raise UserError(f"no reward {name!r} to give a weight: this task has {', '.join(self.names)}. To add one "
                                "later, name it among the rewards with weight 0")
        self.weights |= {label(name): float(weight) for name, weight in weights.items()}
        self.write_settings()

    def write_settings(self) -> None:
        if self.mode not in get_args(Mode):
            raise UserError(f"there is no reward mode {self.mode!r}; the modes are: {', '.join(get_args(Mode))}")
        dense = {"dense": 1.0, "sparse": 0.0, "hybrid": self.dense_scale}[self.mode]
        for factor, reward, weight in zip(self._factors, self.rewards, self.weights.values(), strict=True):
            factor.fill_(weight * (self.scale * (1.0 if reward.sparse else dense)))


def label(name: str) -> str:
    """The name of a reward in logs: `goal` for `Goal`, `my_reward` for `my_module:MyReward`."""
    return snake_case(name.rpartition(":")[2])


def _read(name: str, value: Any, lookup: Lookup) -> tuple[Reward, float]:
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = options.pop("weight", None)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not isfinite(weight):
        raise UserError(f"reward {name!r} needs a weight: write '{name}: 1.0' or '{name}: {{weight: 1.0, ...}}', not {value!r}")
    return lookup.make("reward", options.pop("reward", name), options), float(weight)
