"""Courses: what a robot on the stage can walk on, and the environment of what was chosen.

There are two layouts. A `track` is what `wavedash eval` measures on: straight ahead, with exact sensors. `training` is the task
as the policy was trained: tiles, commands, noise and pushes, and without a level also its curriculum.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from wavedash.config import WalkConfig
from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.walk.env import WalkEnv, make_ground, make_simulator
from wavedash.walk.evaluate.course import LEVELS, Course, Fixed
from wavedash.walk.task import Task
from wavedash.walk.terrain.ground import TERRAINS
from wavedash.web.stage.base import whole_number

TRACK, TRAINING = "track", "training"
LAYOUTS = (TRACK, TRAINING)


@dataclass(frozen=True)
class Chosen:
    """What a robot walks on."""

    terrain: str
    """A name of `Courses.terrains`"""
    level: int | None
    """None: that of the curriculum, in training"""
    layout: str = TRACK


class Courses:
    """All courses of the policy of a run. It walks on terrain of other kinds than its own, too."""

    def __init__(self, run: LoadedRun) -> None:
        walk = run.config.env.walk
        if walk is None:
            raise UserError(f"{run.path} was trained in {run.config.env.title}, and not in a walking task: a game of Rocket "
                            "League needs two players, and a walk one")
        self.run = run
        self.walk: WalkConfig = walk.model_copy(update={"simulator": "mujoco"})  # one robot is fastest there
        own = {name.rpartition(":")[2]: name for name in walk.terrain}
        self.terrains = own | {name: name for name in sorted(TERRAINS.shipped("terrain")) if name not in own}
        """The names that the configuration has, by those that are shown"""
        self.levels = LEVELS if walk.levels == 1 else walk.levels

    def first(self) -> Chosen:
        """The first terrain of the run, not too hard."""
        return Chosen(next(iter(self.terrains)), self.levels // 2)

    def choose(self, command: Mapping[str, Any], now: Chosen) -> Chosen:
        """Chooses what a command asks for; what it does not name stays. UserError: there is no such course."""
        terrain, layout = command.get("terrain", now.terrain), command.get("layout", now.layout)
        if not isinstance(terrain, str) or terrain not in self.terrains:  # an import path would run code
            raise UserError(f"there is no such terrain: choose one of {', '.join(self.terrains)}")
        if layout not in LAYOUTS:
            raise UserError(f"the layout is {' or '.join(LAYOUTS)}")
        level = now.level
        if "level" in command:
            level = None if command["level"] is None else whole_number(command, "level", self.levels)
        if layout == TRACK and level is None:
            level = self.levels // 2
        return Chosen(terrain, level, layout)

    def make(self, chosen: Chosen) -> WalkEnv:
        """An environment with one robot."""
        env = self._track(chosen) if chosen.layout == TRACK else self._training(chosen)
        try:
            self.run.check_spaces(env)
        except BaseException:
            env.close()
            raise
        return env

    def _track(self, chosen: Chosen) -> WalkEnv:
        assert chosen.level is not None
        course = Course.of(self.walk, [self.terrains[chosen.terrain]], [chosen.level])
        env, _ = replace(course, tiles=course.tiles[-1:]).make_env(1, torch.device("cpu"))
        return env

    def _training(self, chosen: Chosen) -> WalkEnv:
        name = self.terrains[chosen.terrain]
        options = self.walk.terrain.get(name)
        alone = {**(options if isinstance(options, Mapping) else {}), "weight": 1.0}
        count = self.walk.levels if chosen.level is None else self.levels
        endings = {**self.walk.endings, "off_tile": self.walk.endings.get("off_tile") or {}}  # else it walks off the edge
        walk = self.walk.model_copy(update={"terrain": {name: alone}, "levels": count, "endings": endings})
        ground = make_ground(walk)
        task = Task.configured(walk, ground)
        if chosen.level is not None:
            task.levels = Fixed(ground, torch.tensor([chosen.level]))
        return WalkEnv(make_simulator(walk, ground, 1, torch.device("cpu")), task)
