"""Options of a Rocket League task."""
from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from wavedash.config.section import Fraction, Named, NonNegative, Section


class LaneConfig(Section):
    """A lane: a share of the arenas that has a task of its own beside the main one. Its metrics are `lane/<name>/...`."""

    share: Fraction = 0.1
    """The share of the arenas, the first ones of every group of arenas; at least one of each if it is above 0. More: more
    practice of what the lane teaches, less of the main task. An arena changes its lane where an episode begins."""
    most: Fraction | None = None
    """The largest share that the lane may get while the run runs, by a phase, a ramp or `wavedash set`; `share` when not set.
    More: more room to change it; arenas that the lane does not use now play the main task."""
    starts: dict[str, float | dict[str, Any]]
    """How episodes of the lane begin, as `env.rocket.starts`."""
    rewards: dict[str, float | dict[str, Any]] | None = None
    """What is rewarded in the lane, as `env.rocket.rewards`; the same as in the main task when not set. A lane's own rewards
    are always paid in full: `reward_mode` and `dense_scale` are for those of the main task."""
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
            raise ValueError(f"a lane with share={self.share:g} needs most={self.share:g} or more, not {self.most:g}")
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
    """Team sizes side by side in one run, each with its weight among the arenas: `{1v1: 0.5, 2v2: 0.5}`. They count instead of
    blue and orange. One policy plays all of them, so the observation must have room for the largest (`team_size`)."""
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
    lanes: dict[str, LaneConfig] = {}
    """Shares of the arenas with a task of their own, by name: `{turtle: {share: 0.05, starts: {turtle: 1}}}`."""
    measures: list[Named] = []
    """Mechanics whose success is measured, by name or with options (`[turtle, {dribble: {seconds: 3}}]`): turtle, wall,
    air_dribble, flip_reset, jump_challenge, dribble, or your own. More: more metrics, and a little more time per step."""

    @model_validator(mode="after")
    def _somebody(self) -> RocketConfig:
        if self.blue + self.orange == 0:
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
