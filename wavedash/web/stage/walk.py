"""WalkStage: a robot walks in real time, episode after episode, on the terrain that viewers choose."""
from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from wavedash.errors import UserError
from wavedash.loading import load_run
from wavedash.recordings.header import Event
from wavedash.walk.recording import Walk, describe
from wavedash.walk.render.film import SKIPPED
from wavedash.walk.robot import STEP
from wavedash.web.stage.base import Out, Stage, cars_asked
from wavedash.web.stage.tape import Tape
from wavedash.web.stage.walk_course import LAYOUTS, Chosen, Courses
from wavedash.web.stage.walk_head import decision

AFTER_WALK = 1.5
"""Seconds for which the end of an episode is shown"""
HEADS_PER_SECOND = 15


class WalkStage(Stage):
    """`asked`: blue (the policy, as `wavedash eval` takes it), deterministic, seed, folder, trust; terrain, level and layout as
    in the command `course`, by default the first terrain of the run. A walk needs no second player.

    Commands: {do: course, terrain, level, layout} begins anew on another course; {do: head, car: 0, observation}."""

    def __init__(self, asked: Mapping[str, Any], out: Out) -> None:
        self.out, self.folder = out, asked.get("folder", "recordings")
        self.run = load_run(str(asked["blue"]), trust=bool(asked.get("trust", False)))
        self.courses = Courses(self.run)
        self.deterministic = bool(asked.get("deterministic", True))
        self.seed = int(asked.get("seed") or secrets.randbelow(2**31))
        self.chosen = self.courses.choose(
            {key: asked[key] for key in ("terrain", "level", "layout") if asked.get(key) is not None}, self.courses.first())
        self._open(self.chosen)
        self.name = str(describe(self.walk, "stage")["players"][0]["name"])
        self.over, self.begun = False, False
        self.looked_at = self.with_observation = False
        """Whether somebody looks into the robot's head, and at what it sees"""
        self.head_sent = 0.0

    def _open(self, chosen: Chosen) -> None:
        """Makes the environment of a course. Where that fails, the old one goes on."""
        env = self.courses.make(chosen)
        self.chosen, self.walk = chosen, Walk(self.run, env, self.seed, deterministic=self.deterministic)

    def facts(self) -> dict[str, Any]:
        return {"who": {"blue": self.name, "orange": None}, "kind": "walk", "terrain": self.chosen.terrain,
                "level": self.chosen.level, "layout": self.chosen.layout, "terrains": list(self.courses.terrains),
                "levels": self.courses.levels, "layouts": list(LAYOUTS)}

    def close(self) -> None:
        self.walk.env.close()

    def begin(self) -> None:
        if self.begun:
            self.seed += 1  # another episode, not the same again
            self.walk.restart(self.seed)
        self._announce()

    @torch.no_grad()
    def step(self) -> float:
        """Plays from one frame to the next."""
        if self.over:
            self._announce()
            return SKIPPED * STEP
        for _ in range(SKIPPED):
            walked = float(self.walk.env.state.walked[0])
            happened, self.over = self.walk.step()
            for event in happened:
                self._tell(event)
            if self.over:
                self.out.end({"text": happened[0]["text"] if happened else "", "walked": walked,
                              "seconds": self.tape.frames * SKIPPED * STEP})
                return AFTER_WALK
        self._show()
        return SKIPPED * STEP

    def obey(self, command: Mapping[str, Any]) -> None:
        what = command.get("do")
        if what == "course":
            before, chosen = self.walk.env, self.courses.choose(command, self.chosen)
            self._open(chosen)
            before.close()
            self._announce()
        elif what == "head":
            self.looked_at = bool(cars_asked(command, 1))
            self.with_observation = command.get("observation") is True
            self.head_sent = 0.0
            self._think_aloud()
        elif what in ("drive", "leave", "controls", "place"):
            raise UserError("robots walk by themselves: nobody can drive or place one here")
        else:
            raise UserError("there is no such command")

    def record(self) -> Path:
        return self.tape.write(self.folder)

    def _announce(self) -> None:
        """Says that an episode begins, and shows its first moment."""
        self.over, self.begun = False, True
        header = describe(self.walk, "stage")
        header["scene"]["layout"] = self.chosen.layout
        self.tape = Tape(header, self.walk.frames.layout, 1 / (SKIPPED * STEP))
        self.out.header(header)
        self._show()

    def _show(self) -> None:
        record = self.walk.record()
        assert record is not None  # steps are made from frame to frame
        self.tape.add(record)
        self.out.frame(record.tobytes())
        self._think_aloud()

    def _tell(self, event: Event) -> None:
        """Passes on what happened. What happened after the last frame is shown in it."""
        shown = {**event, "frame": min(event["frame"], self.tape.frames - 1)}
        self.tape.events.append(shown)
        self.out.event(shown)

    def _think_aloud(self) -> None:
        """Sends what the policy thinks, not too often."""
        now = time.monotonic()
        if self.looked_at and now - self.head_sent >= 1 / HEADS_PER_SECOND:
            self.head_sent = now
            self.out.head(0, decision(self.walk, self.with_observation))
