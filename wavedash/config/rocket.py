"""Options of a Rocket League task."""
from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from wavedash.config.section import Fraction, Named, NonNegative, Positive, Section


class TeamSize(NamedTuple):
    """How many cars each team has; `str()` is its name, such as 2v2."""

    blue: int
    orange: int
    share: float = 1.0
    """The share of the arenas that have teams of this size"""

    @classmethod
    def named(cls, name: str, share: float = 1.0) -> TeamSize:
        """The team size of this name, such as 2v2."""
        blue, orange = map(int, name.split("v"))
        return cls(blue, orange, share)

    @property
    def larger(self) -> int:
        """Cars of the larger team."""
        return max(self.blue, self.orange)

    @property
    def is_even(self) -> bool:
        return self.blue == self.orange

    def __str__(self) -> str:
        return f"{self.blue}v{self.orange}"


class LaneConfig(Section):
    """A lane: a share of the arenas that has a task of its own beside the main one. Its metrics are `lane/<name>/...`."""

    share: Fraction = 0.1
    """The share of the arenas, the first ones of every shard; at least one of each if it is above 0. More: more
    practice of what the lane teaches, less of the main task. An arena changes its lane where an episode begins."""
    most: Fraction | None = None
    """The largest share that the lane may get while the run runs, by a phase, a ramp or `wavedash set`; `share` when not set.
    More: more room to change it; arenas that the lane does not use now play the main task."""
    starts: dict[str, float | dict[str, Any]]
    """How episodes of the lane begin, as `env.rocket.starts`."""
    rewards: dict[str, float | dict[str, Any]] | None = None
    """What is rewarded in the lane, as `env.rocket.rewards`; the same as in the main task when not set. A lane's own rewards
    are always paid in full: `reward_mode`, `dense_scale` and `zero_sum` are for those of the main task. One of them may have a
    zero_sum of its own (`touch: {weight: 1, zero_sum: 1}`). `team_spirit` counts everywhere."""
    endings: dict[str, dict[str, Any] | None] | None = None
    """When episodes of the lane end, as `env.rocket.endings`; the same as in the main task when not set."""
    measures: list[Named] = []
    """Mechanics whose success is measured in the lane, as `env.rocket.measures`: `lane/<name>/attempt/...`."""

    @model_validator(mode="before")
    @classmethod
    def _most_is_recorded(cls, given: Any) -> Any:
        """`most` becomes `share` where it is not set, so that it stays when only the share is changed later."""
        if isinstance(given, dict) and given.get("most") is None:
            return {**given, "most": given.get("share", cls.model_fields["share"].default)}
        return given

    @model_validator(mode="after")
    def _has_room(self) -> LaneConfig:
        if self.most is not None and self.share > self.most:
            at = "env.rocket.lanes.NAME"
            raise ValueError(f"a lane with share={self.share:g} needs most={self.share:g} or more, not {self.most:g}: arenas "
                             "are set aside for it when a run starts. A run that runs already must be stopped and resumed for "
                             f"that: wavedash resume RUN {at}.most={self.share:g} {at}.share={self.share:g}")
        return self

    @property
    def room(self) -> float:
        """The share of the arenas that are set aside for the lane."""
        assert self.most is not None
        return self.most


class RocketConfig(Section):
    """A Rocket League task: cars, observation, actions, rewards, and how episodes begin and end."""

    simulator: Literal["warp", "rocketsim"] = "warp"
    """The physics. warp: ours, on all cores of a CPU, or on a GPU, where thousands of arenas (`env.count`) cost little more
    than hundreds. rocketsim: the community's C++ simulator, which ours follows, on as many cores as `env.workers`."""
    blue: Annotated[int, Field(ge=0, le=4)] = 1
    """Cars of team blue. All cars learn; each is a row."""
    orange: Annotated[int, Field(ge=0, le=4)] = 1
    """Cars of team orange."""
    sizes: dict[str, NonNegative] | None = None
    """Team sizes side by side in one run, each with its weight among the arenas (`env.count`): `{1v1: 0.5, 2v2: 0.5}`. They
    count instead of blue and orange. One policy plays all of them, so the observation must have room for the largest
    (`team_size`). A higher weight: more arenas of that size, at least one; 0: none."""
    hitbox: Literal["octane", "dominus", "plank", "breakout", "hybrid", "merc"] = "octane"
    """The body of all cars."""
    observation: Named = "advanced_obs_plus"
    """What a car sees: advanced_obs_plus, default_obs (RLGym's), or your own."""
    action: Named = "lookup_table"
    """How a car acts: lookup_table (90 choices), multi_discrete, continuous, or your own."""
    rewards: dict[str, float | dict[str, Any]] = {"goal": 10.0, "touch": 1.0}
    """What is rewarded, by name with a weight (`goal: 10`) or with options (`boost_pickup: {weight: 0.5, small: 0.2}`)."""
    reward_mode: Literal["dense", "sparse", "hybrid"] = "dense"
    """dense pays everything, sparse events only, hybrid events in full and the rest times `dense_scale`."""
    dense_scale: NonNegative = 0.1
    """hybrid: the factor of rewards that are not events."""
    team_spirit: Fraction = 0.0
    """0 pays each car what it earned, 1 the mean of its team. Raise it as team play begins to matter."""
    zero_sum: bool | Fraction = False
    """Subtract what the opponents earned on average. A number from 0 (false) to 1 (true) subtracts that share of it. A reward
    may have its own: `goal: {weight: 10, zero_sum: 1}`, which is best for goals, demos and boost; what cars earn for their
    approach to the ball would cancel out."""
    starts: dict[str, float | dict[str, Any]] = {"kickoff": 1.0}
    """How episodes begin, by name with a weight, or with options (`random: {weight: 2, ...}`)."""
    endings: dict[str, dict[str, Any] | None] = {"goal": {}, "no_touch": {"seconds": 30}, "time_out": {"seconds": 300}}
    """When episodes end, by name with options (`{}`: none). `no_touch: null` is an ending that is switched off."""
    games: Positive = 1
    """Games in a row that are one episode, a series: opponent, sides and the memory of policies stay, so that one with
    `policy.memory` can learn to adapt to whom it plays. Every game begins and ends as the task says, but only the last one ends
    the episode. More: more games to profit from what the first ones showed, and episodes that are longer."""
    lanes: dict[str, LaneConfig] = {}
    """Shares of the arenas with a task of their own, by name: `{turtle: {share: 0.05, starts: {turtle: 1}}}`."""
    measures: list[Named] = []
    """Mechanics whose success is measured, by name or with options (`[turtle, {dribble: {seconds: 3}}]`): turtle, wall,
    air_dribble, flip_reset, jump_challenge, dribble, or your own. More: more metrics, and a little more time per step."""

    @field_validator("sizes")
    @classmethod
    def _are_sizes(cls, sizes: dict[str, float] | None) -> dict[str, float] | None:
        if sizes is None:
            return None
        if wrong := [name for name in sizes if not re.fullmatch("[0-4]v[0-4]", name) or name == "0v0"]:
            raise ValueError(f"{wrong[0]!r} is no team size: write 1v1, 2v2, 3v3, 1v0 and so on, up to four cars per team")
        if not any(sizes.values()):
            raise ValueError("at least one team size needs a weight above 0, such as {1v1: 0.5, 2v2: 0.5}")
        return sizes

    @model_validator(mode="after")
    def _somebody(self) -> RocketConfig:
        if self.sizes is None and self.blue + self.orange == 0:
            raise ValueError("env.rocket needs at least one car: set blue or orange")
        return self

    @model_validator(mode="after")
    def _lanes_fit(self) -> RocketConfig:
        for name in self.lanes:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"env.rocket.lanes: a name has letters, digits, _ and -, not {name!r}")
        rooms = sum(lane.room for lane in self.lanes.values())
        if rooms > 1.0 + 1e-9:
            raise ValueError(f"the lanes {', '.join(self.lanes)} may need {rooms:.0%} of the arenas: lower their `most` or "
                             "`share`")
        return self

    @property
    def team_sizes(self) -> list[TeamSize]:
        """All team sizes that are played, the smallest first, in whatever order they were written."""
        if self.sizes is None:
            return [TeamSize(self.blue, self.orange)]
        total = sum(self.sizes.values())
        named = [TeamSize.named(name, weight / total) for name, weight in self.sizes.items() if weight]
        return sorted(named, key=lambda size: (size.blue + size.orange, size.larger, size.blue))

    @property
    def largest(self) -> TeamSize:
        """The team size with the most cars."""
        return self.team_sizes[-1]

    def of_size(self, size: TeamSize) -> RocketConfig:
        """Returns the same task with teams of one size."""
        return self.model_copy(update={"blue": size.blue, "orange": size.orange, "sizes": None})
