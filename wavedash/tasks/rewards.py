"""Rewards: the weighted sum of many rewards. Each environment decides how the sum is spread between agents."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from math import isfinite
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.lanes import Lanes, instances
from wavedash.tasks.lookup import Lookup, snake_case
from wavedash.tasks.numbers import Numbers
from wavedash.tasks.part import Faster, Part, Parts

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
    `lanes`: the weights of the rewards in each lane, by name; None: the lane has the rewards of the main task. A lane's own
    rewards are always paid in full: `mode` is for those of the main task.
    """

    holds_parts = True
    settings: tuple[str, ...] = ("mode", "dense_scale", "scale")
    lane: Tensor | None = None
    """[E]: the lane that each environment plays, if there are lanes"""
    _factors: Tensor
    """[K, 1, 1], or if there are lanes [K, 1 + L]: what the value of each reward is multiplied by"""
    _current: Tensor
    """[K, 1, 1], or if there are lanes [K, E, 1]: that factor in the lanes that environments play now"""
    _shares: Tensor
    _places: Tensor
    """[n * E], if there are lanes: where the shares of each title are in the table of all rewards"""

    def __init__(self, rewards: Sequence[tuple[str, Reward, float | None]], *, mode: Mode = "dense", dense_scale: float = 0.1,
                 scale: float = 1.0, lanes: Mapping[str, Mapping[str, float] | None] | None = None):
        """Each of `rewards` has a name, and a weight in the main task; None: only lanes have it, see `instances`."""
        self.given_names = [name for name, _, _ in rewards]
        """The names as the configuration has them"""
        self.names = [label(name) for name in self.given_names]
        self.rewards = [reward for _, reward, _ in rewards]
        if not rewards or len(set(self.names)) < len(rewards):
            raise UserError(f"rewards need at least one, and each a name of its own; got: {', '.join(self.names) or 'none'}")
        self.weights = {label(name): float(weight) for name, _, weight in rewards if weight is not None}
        """Weights in the main task by name; `set_weights` changes them"""
        self.lanes = {lane: None if own is None else {label(name): float(weight) for name, weight in own.items()}
                      for lane, own in (lanes or {}).items()}
        """Weights in lanes by name; None: those of the main task"""
        self.titles = [name if name in self.weights else name.partition(".")[2] for name in self.names]
        """Names without the lane that a reward belongs to"""
        self.shown = list(self.names)
        """The names in `shares`: where there are lanes, the different titles"""
        self.mode, self.dense_scale, self.scale = mode, dense_scale, scale
        self.parts = Parts(dict(zip(self.names, self.rewards, strict=True)))
        self.register_buffer("_factors", empty_table(rewards, self.lanes), persistent=False)  # weight, mode, scale
        self._numbers = Numbers(self._factors)
        self._bound = False
        self._faster: Faster | None = None
        self.write_settings()

    @classmethod
    def named(cls, rewards: Mapping[str, Any], lookup: Lookup, lanes: Mapping[str, Mapping[str, Any] | None] | None = None,
              **options: Any) -> Rewards:
        """Makes rewards as a YAML file has them: `goal: 10`, `boost_pickup: {weight: 0.5, small: 0.2}`, `my_module:MyReward:
        1`. To use one twice, give it another name: `far_touch: {reward: touch, weight: 1}`. `lanes`: those of each lane; None:
        the same as in the main task."""
        def is_fixed(name: str, value: Any) -> bool:
            return not lookup.find("reward", value.get("reward", name) if isinstance(value, Mapping) else name).settings

        found = instances(rewards, lanes or {}, is_fixed)
        read = {instance: _read(name, value, lookup) for instance, (name, value) in found.given.items()}
        title = {instance: instance if instance in rewards else f"{instance.removesuffix(name)}{label(name)}"
                 for instance, (name, _) in found.given.items()}
        own = {lane: None if names is None else {title[instance]: _read(name, lanes[lane][name], lookup)[1]  # type: ignore[index]
                                                 for name, instance in names.items()}
               for lane, names in found.of_lanes.items()} if lanes else {}
        return cls([(title[instance], reward, weight if instance in rewards else None)
                    for instance, (reward, weight) in read.items()], lanes=own, **options)

    def follow(self, lanes: Lanes) -> None:
        """Is called before `bind` with the lanes that environments play."""
        self.lane = lanes.lane

    def bind(self, state: Any) -> None:
        super().bind(state)
        shares = torch.full((len(self.rewards) + 1, *state.shape), torch.nan, device=state.device)
        self.register_buffer("_shares", shares[:-1], persistent=False)
        self._shares.zero_()
        self.register_buffer("_current", self._in_lanes(self._factors, state.shape), persistent=False)
        if self.lane is not None:
            self._bind_lanes(shares)
        for reward in self.rewards:
            reward.bind(state)
        self._bound = True
        self.lanes_changed()

    def use(self, faster: Faster) -> None:
        """Takes another way to compute some of these rewards, which pays and remembers the same."""
        self._faster = faster

    def begin(self, state: Any, mask: Tensor) -> None:
        for reward in self.rewards:
            reward.begin(state, mask)

    def lanes_changed(self) -> None:
        """Is called after environments have changed their lanes, or lanes their weights: what each step needs of that is kept
        until then."""
        if self.lane is not None:
            self._current.copy_(self._in_lanes(self._factors, self._shares.shape[1:]))
            rows = self._row_of_title.index_select(1, self.lane) * len(self.lane) + self._environments
            self._places.copy_(rows.flatten())

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        """[E, C]: what each agent gets for this step."""
        found = {} if self._faster is None else self._faster(state, previous, events)
        values = [found[name] if name in found else reward(state, previous, events) for name, reward in self.parts.items()]
        shape = state.shape
        for name, value in zip(self.names, values, strict=True):
            if value.shape != shape:
                raise UserError(f"reward {name!r} returned {list(value.shape)} numbers, not one for each agent of each "
                                f"environment: {list(shape)}")
        torch.mul(self.due(torch.stack(values), state), self._current, out=self._shares)
        return self.spread(self._shares.sum(0), state)

    def due(self, values: Tensor, state: Any) -> Tensor:
        """[K, E, C]: the values of all rewards that are paid: an environment may exclude agents."""
        return values

    def spread(self, own: Tensor, state: Any) -> Tensor:
        """[E, C]: what each agent gets when `own` [E, C] is what it has earned itself."""
        return own

    @property
    def table(self) -> Tensor:
        """[K, E, C]: what each reward contributed to the last step, in one tensor, which every step overwrites."""
        return self._shares

    def shares(self) -> dict[str, Tensor]:
        """Returns what each reward contributed to the last step, by name: [E, C], weighted, before it is spread between
        agents. NaN where an environment plays a lane that does not have this reward."""
        return dict(zip(self.shown, self.rows().view(-1, *self._shares.shape[1:]).unbind(0), strict=True))

    def rows(self) -> Tensor:
        """[n, E * C]: `shares` as one table, in the order of `shown`."""
        if self.lane is None:
            return self._shares.flatten(1)
        return self._with_nan.flatten(0, 1).index_select(0, self._places).view(len(self.shown), -1)

    def set_weights(self, weights: Mapping[str, float], lane: str | None = None) -> None:
        """Changes weights from the next step on, without a host sync; rewards that are not named keep theirs. `lane`: those of
        a lane, else of the main task."""
        known = self.weights if lane is None else self.lanes[lane]
        if known is None:
            raise UserError(f"lane {lane!r} has the rewards of the main task: change those")
        for name in weights:
            if label(name) not in known:
                raise UserError(f"no reward {name!r} to give a weight: this task has {', '.join(known)}. To add one "
                                "later, name it among the rewards with weight 0")
        known |= {label(name): float(weight) for name, weight in weights.items()}
        self.write_settings()

    def take_over(self, wanted: Rewards, settings: Iterable[str]) -> None:
        """Takes over all weights, and these settings, of rewards with the same names, from the next step on, without a host
        sync."""
        before = self.weights, self.lanes
        self.weights, self.lanes = dict(wanted.weights), {lane: wanted.lanes[lane] for lane in self.lanes}
        try:
            self.set(**{setting: getattr(wanted, setting) for setting in settings})
        except BaseException:
            self.weights, self.lanes = before
            raise

    def write_settings(self) -> None:
        self._check_mode()
        dense = {"dense": 1.0, "sparse": 0.0, "hybrid": self.dense_scale}[self.mode]
        factors: list[float] = []
        for name, reward in self.parts.items():
            main = self.weights.get(name, 0.0) * (self.scale * (1.0 if reward.sparse else dense))
            in_lanes = (main if own is None else own.get(name, 0.0) * self.scale for own in self.lanes.values())
            factors += main, *in_lanes
        self._numbers.write(self._factors, factors)
        if self._bound:
            self.lanes_changed()

    def _check_mode(self) -> None:
        if self.mode not in get_args(Mode):
            raise UserError(f"there is no reward mode {self.mode!r}; the modes are: {', '.join(get_args(Mode))}")

    def _in_lanes(self, table: Tensor, shape: Sequence[int]) -> Tensor:
        """The numbers of a table [K, 1 + L] in the lanes that environments play now, for rewards of this shape: [K, E, 1];
        without lanes a view of the table, [K, 1, 1]."""
        numbers = table if self.lane is None else table.index_select(1, self.lane)
        return numbers.view(*numbers.shape, *(1,) * (len(shape) - 1))

    def _bind_lanes(self, shares: Tensor) -> None:
        """Makes the table of which reward has which title in which lane; the last row of `shares` is NaN, for those that a lane
        does not have."""
        tasks = [self.weights, *(self.weights if own is None else own for own in self.lanes.values())]
        self.shown = list(dict.fromkeys(self.titles))
        rows = [[next((row for row, (name, title) in enumerate(zip(self.names, self.titles, strict=True))
                       if title == wanted and name in task), len(self.names)) for task in tasks] for wanted in self.shown]
        self._with_nan = shares
        self._row_of_title = torch.tensor(rows, device=shares.device)  # [titles, 1 + L]
        self._environments = torch.arange(shares.shape[1], device=shares.device)
        self.register_buffer("_places", torch.zeros(len(rows) * shares.shape[1], dtype=torch.int64, device=shares.device),
                             persistent=False)


def empty_table(rewards: Sized, lanes: Sized) -> Tensor:
    """A number for each reward: [K, 1], or if there are lanes [K, 1 + L], from which each environment takes its own."""
    return torch.zeros(len(rewards), 1 + len(lanes))


def label(name: str) -> str:
    """The name of a reward in logs: `goal` for `Goal`, `my_reward` for `my_module:MyReward`."""
    return snake_case(name.rpartition(":")[2])


def _read(name: str, value: Any, lookup: Lookup) -> tuple[Reward, float]:
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = options.pop("weight", None)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not isfinite(weight):
        raise UserError(f"reward {name!r} needs a weight: write '{name}: 1.0' or '{name}: {{weight: 1.0, ...}}', not {value!r}")
    return lookup.make("reward", options.pop("reward", name), options), float(weight)
