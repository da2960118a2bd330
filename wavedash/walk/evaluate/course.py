"""The course that a policy is measured on: tracks of all kinds and levels of terrain, each with as many robots, which walk
straight ahead. Nothing of it depends on how the policy was trained but what it sees and how it acts."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wavedash.config import WalkConfig
from wavedash.errors import UserError
from wavedash.tasks.endings import LONGEST, Endings
from wavedash.walk.commands import Ahead, Commands
from wavedash.walk.endings import TimeOut
from wavedash.walk.env import ENOUGH, WalkEnv, make_ground, make_simulator
from wavedash.walk.levels import Levels
from wavedash.walk.names import PARTS
from wavedash.walk.parts import Ending, Events
from wavedash.walk.robot import STEP
from wavedash.walk.state import RobotState
from wavedash.walk.task import Task
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import RIM

SPEED = 0.5
"""m/s that robots are told to walk"""
SLOWEST, FASTEST = 0.01, 10.0
"""m/s between which they may be told to walk"""
SIDE = 0.4
"""m from the long sides of a track at which a robot has left it: its feet are on the edge"""
AHEAD = 2.0
"""m: robots are led to the point of the track's middle that is so far ahead of them"""
LEVELS = 10
"""Levels of a terrain that the run, which has one level, was not trained on"""
FIRST_SEED = 1_000_000
"""The seed of the first course's terrain. It is the same for all runs, and none is trained on it"""
EXACT = {"noise": 0.0, "drift": 0.0}
"""Options of observations whose sensors make no errors"""
REAL = {"noise": 1.0}


@dataclass(frozen=True)
class Course:
    """What robots walk on, and for how long."""

    walk: WalkConfig
    tiles: tuple[int, ...]
    """The tiles that are walked on, among those of the ground"""
    speed: float
    seconds: float | None

    @classmethod
    def of(cls, walk: WalkConfig, terrain: Sequence[str] | None = None, levels: Sequence[int] | None = None,
           noisy: bool = False, pushes: bool = False, speed: float = SPEED, seconds: float | None = None,
           seed: int = 1) -> Course:
        """The course for policies of a task. `terrain`: names of kinds, also of others than the task has; by default the
        task's. `levels`: by default all. `noisy`: sensors make the errors of real ones. `seconds`: how long robots walk; by
        default until 80 % of the speed would have led them to the end."""
        if not SLOWEST <= speed <= FASTEST:
            raise UserError(f"the speed that robots are told to walk is from {SLOWEST:g} to {FASTEST:g} m/s, not {speed!r}")
        if seconds is not None and not STEP <= seconds <= LONGEST:
            raise UserError(f"the seconds that robots walk are from {STEP:g}, a step, to {LONGEST:,}, not {seconds!r}")
        for name, given in (("terrain", terrain), ("levels", levels)):
            if given is not None and not given:
                raise UserError(f"--{name} names none: leave it out for all that the run has")
        kinds = {name: _alike(walk.terrain.get(name, 1.0)) for name in terrain or walk.terrain}
        count = LEVELS if walk.levels == 1 and (terrain or levels) else walk.levels
        if wrong := [level for level in levels or () if not 0 <= level < count]:
            raise UserError(f"there is no level {wrong[0]}: this terrain has levels 0 to {count - 1}")
        chosen = sorted(set(levels or range(count)))
        config = walk.model_copy(update={
            "terrain": kinds, "levels": count, "layout": "track", "terrain_seed": FIRST_SEED + seed, "curriculum": False,
            "observation": {name: _sensing(name, options, noisy) for name, options in walk.observation.items()},
            "starts": {"stand": {"turn": 0.0}}, "progressive": False,
            "randomize": {"pushes": walk.randomize.get("pushes") or {}} if pushes else {},
        })
        return cls(config, tuple(kind * count + level for kind in range(len(kinds)) for level in chosen), speed, seconds)

    def make_env(self, robots: int, device: torch.device) -> tuple[WalkEnv, Watch]:
        """`robots` on each tile, those of a tile one after another; and the one that watches how far they come."""
        ground = make_ground(self.walk)
        task = Task.configured(self.walk, ground.to(device))
        limit = self.limit(ground)
        watch, fallen = Watch(), PARTS.make("ending", "fallen", self.walk.endings.get("fallen"))
        task.endings = Endings({"fallen": fallen, "watch": watch, "time_out": TimeOut(limit)})
        task.commands = AlongTrack({"ahead": (Ahead(self.speed, turn=0.0), 1.0)}, seconds=2.0 * limit)
        task.levels = Fixed(ground, torch.tensor(self.tiles).repeat_interleave(robots))
        return WalkEnv(make_simulator(self.walk, ground, robots * len(self.tiles), device), task), watch

    def limit(self, ground: Ground) -> float:
        """s that an episode lasts at most."""
        return way(ground) / (ENOUGH * self.speed) if self.seconds is None else self.seconds

    def goal(self, ground: Ground) -> float:
        """m that a robot has to come, without a fall, for a success: to the end, or 80 % of what is commanded in the time."""
        return min(way(ground), ENOUGH * self.speed * self.limit(ground))


def way(ground: Ground) -> float:
    """m from the start of a track to its end, which is the beginning of the level rim behind the terrain."""
    return ground.length / 2 - RIM - ground.start[0]


def platform(ground: Ground) -> float:
    """m from the start of a track to where its terrain begins: robots begin in the middle of the platform."""
    return ground.start[0] + ground.length / 2


class Fixed(Levels):
    """Every robot stays on the tile that it is given."""

    def __init__(self, ground: Ground, tiles: Tensor) -> None:
        super().__init__(ground, moves=False)
        self.tiles = tiles

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        self.kind.copy_(self.tiles // self.ground.levels)

    def scatter(self, generator: torch.Generator) -> None:
        self.level.copy_(self.tiles % self.ground.levels)


class AlongTrack(Commands):
    """The direction leads along the track and back to its middle, so that a robot which drifts to one side comes as far as
    its gait carries it."""

    def follow(self, state: RobotState) -> None:
        state.heading.copy_(torch.atan2(-state.position[:, 1], torch.full_like(state.heading, AHEAD)))
        super().follow(state)


class Watch(Ending):
    """The robot is at the end of the track, or has left it. Truncates. How far it came is kept here, because the robot itself
    has begun another episode already."""

    truncates = True
    distance: Tensor
    """[E] m forward from where the episode began; the length of the way for those that are at the end"""
    finished: Tensor
    """[E] bool: at the end"""
    left: Tensor
    """[E] bool: beside the track, or behind it"""

    def bind(self, state: RobotState) -> None:
        super().bind(state)
        ground = self.context.ground
        self.way, self.end, self.side = way(ground), ground.length / 2 - RIM, ground.width / 2 - SIDE
        self.begin_of_track = SIDE - ground.length / 2
        nobody = torch.zeros(state.shape, dtype=torch.bool, device=state.device)
        self.register_buffer("distance", torch.zeros(state.shape, device=state.device), persistent=False)
        self.register_buffer("finished", nobody, persistent=False)
        self.register_buffer("left", nobody.clone(), persistent=False)

    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        x, y = state.position[:, 0], state.position[:, 1]
        self.finished.copy_(x >= self.end)
        self.left.copy_(~self.finished & ((y.abs() > self.side) | (x < self.begin_of_track)))
        forward = (x - state.origin[:, 0]).clamp(0.0, self.way)
        self.distance.copy_(torch.where(self.finished, self.way, forward))
        return self.finished | self.left


def _alike(kind: float | Mapping[str, Any]) -> dict[str, Any]:
    """The options of a kind of terrain, with the weight that all have."""
    return {**(kind if isinstance(kind, Mapping) else {}), "weight": 1.0}


def _sensing(name: str, options: Mapping[str, Any] | None, noisy: bool) -> dict[str, Any]:
    """The options of an observation, with the errors of real sensors or with none."""
    known = PARTS.options("observation", name)
    return {**(options or {}), **{option: x for option, x in (REAL if noisy else EXACT).items() if option in known}}
