"""A Rocket League task, made as a YAML file describes it."""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from wavedash.config import Named, RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.line_up import LineUp
from wavedash.rocket.measures import Measures
from wavedash.rocket.parts import Action, Ending, Observation, Part, Start
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.series import Series
from wavedash.rocket.state import GameState
from wavedash.tasks import task
from wavedash.tasks.endings import Endings
from wavedash.tasks.lanes import Lane, Lanes
from wavedash.tasks.part import Parts
from wavedash.tasks.starts import Mixture


class Task(task.Task):
    """The parts of a Rocket League task, and who plays in it beside the policy."""

    observation: Observation
    action: Action
    rewards: Rewards
    line_up: LineUp | None
    """None: all cars are the policy's"""
    measures: Measures
    """What is measured beside the rewards"""
    series: Series | None
    """None: every game is an episode"""

    def __init__(self, observation: Observation, action: Action, rewards: Rewards, start: Start,
                 endings: Mapping[str, Ending] | Parts[Ending], line_up: LineUp | None = None,
                 measures: Measures | None = None, lanes: Lanes | None = None, games: int = 1) -> None:
        """`games`: of an episode."""
        super().__init__(observation, action, rewards, start, endings, lanes)
        self.measures = Measures() if measures is None else measures
        self.line_up = line_up
        self.series = Series(games) if games > 1 else None

    @classmethod
    def configured(cls, config: RocketConfig) -> Task:
        lanes = config.lanes
        return cls(
            observation=_named("observation", config.observation),
            action=_named("action", config.action),
            rewards=Rewards.named(config.rewards, lanes={name: lane.rewards for name, lane in lanes.items()},
                                  mode=config.reward_mode, dense_scale=config.dense_scale, team_spirit=config.team_spirit,
                                  zero_sum=config.zero_sum),
            start=Mixture.named(config.starts, names.PARTS, {name: lane.starts for name, lane in lanes.items()}),
            endings=Endings.named(config.endings, names.PARTS, {name: lane.endings for name, lane in lanes.items()}),
            measures=Measures.named(config.measures, {name: lane.measures for name, lane in lanes.items()}),
            lanes=Lanes({name: Lane(lane.share, lane.room) for name, lane in lanes.items()}),
            games=config.games,
        )

    @property
    def played(self) -> list[Part | Endings]:
        """The parts that begin with every game."""
        return [*super().played, self.measures]

    def bind(self, state: Any, beginnings: Any) -> None:
        super().bind(state, beginnings)
        for part in (self.line_up, self.series):
            if part is not None:
                part.bind(state)
        self._use_kernels(state)
        if self.line_up is not None:
            refuse_overlap(self.lanes, self.line_up, state.shape[0])
            self.line_up.share_view(self.observation, self.action)

    def _use_kernels(self, state: GameState) -> None:
        """Rewards and endings that have a kernel are computed by it where Warp is installed."""
        with suppress(UserError):
            from wavedash.rocket.sim.parts import EndingKernels, RewardKernels

            self.rewards.use(RewardKernels(dict(self.rewards.parts.items()), state))
            self.endings.use(EndingKernels(dict(self.endings.items()), state))

    def begin(self, state: Any, mask: Tensor, first: Tensor | None = None) -> None:
        """Games begin in the arenas of `mask` [E]. `first` [E]: where they are the first of an episode; None: all of them
        are."""
        super().begin(state, mask)
        for part in (self.line_up, self.series):
            if part is not None:
                part.begin(state, mask if first is None else first)
        if self.line_up is not None and first is not None:
            self.line_up.next_game(state, mask & ~first)

    def bind_lanes(self, state: Any) -> None:
        super().bind_lanes(state)
        self.measures.follow(self.lanes)

    def lanes_changed(self) -> None:
        super().lanes_changed()
        self.measures.lanes_changed()

    def generators(self) -> list[torch.Generator]:
        """The random streams that a step draws from."""
        return self.action.generators() + ([] if self.line_up is None else self.line_up.generators())


def refuse_overlap(lanes: Lanes, line_up: LineUp, arenas: int) -> None:
    """Raises UserError if lanes and opponents need the same of so many arenas."""
    if lanes.taken > line_up.where.start:
        raise UserError(f"lanes have the first arenas and opponents the last, but of {arenas} arenas in a group the lanes need "
                        f"{lanes.taken} and the opponents {arenas - line_up.where.start}: lower `share` or `most` of "
                        f"env.rocket.lanes ({', '.join(lanes.names)}) or of opponents, or opponents.slots, each of which "
                        "needs an arena of every group, or raise env.count")


def _named(kind: str, value: Named) -> Any:
    if isinstance(value, str):
        return names.make(kind, value)
    if len(value) != 1:
        raise EnvError(f"env.rocket.{kind} takes one name, or one name with its options; got {', '.join(value) or 'none'}")
    ((name, options),) = value.items()
    return names.make(kind, name, options)
