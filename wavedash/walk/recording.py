"""What is recorded of a walk: pose, command, reward and what the robot sees, every second step, and the ground below it.

A recording is of one episode on one tile. Geoms are where MuJoCo's kinematics puts them, so that whoever shows a recording
needs no model of the robot. docs/recordings.md has the format.
"""
from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import degrees
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.recordings.file import SUFFIX, Recording
from wavedash.recordings.header import Event, Header, event, make_header
from wavedash.recordings.layout import Field, Layout, Records
from wavedash.recordings.order import Order
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.walk.env import WalkEnv
from wavedash.walk.evaluate.course import Course, Watch
from wavedash.walk.observations import Depth
from wavedash.walk.render.film import SKIPPED, Poses
from wavedash.walk.render.scene import BOX, CAPSULE, CYLINDER, DRAWN, SPHERE
from wavedash.walk.robot import STEP
from wavedash.walk.rotation import wrapped
from wavedash.walk.sensors.depth import DepthImages
from wavedash.walk.sensors.tiles import Tiles

KIND = "walk"
KINDS = {SPHERE: "sphere", CAPSULE: "capsule", CYLINDER: "cylinder", BOX: "box"}
"""Names of MuJoCo's kinds of geoms"""
TURN = 1 / 32767
"""The scale of quaternions"""
SECONDS = 20.0
"""The longest walk that `wavedash eval --record` records"""
ANGLE = 0.0005
"""rad: the scale of joints' angles"""


class Frames:
    """The records of the only robot of an environment."""

    def __init__(self, env: WalkEnv, depth: bool | None = None) -> None:
        """`depth`: whether depth images are recorded; by default where the policy has a camera. An image takes 5 kB a frame."""
        self.env, self.poses = env, Poses(env)
        model = self.poses.model
        drawn = np.isin(model.geom_type, DRAWN) & (model.geom_rgba[:, 3] > 0)
        self.drawn = np.flatnonzero(drawn)  # [G]
        camera = next((part for part in env.task.observation.parts.values() if isinstance(part, Depth)), None)
        self.camera = camera if depth is not False else None
        self.images = DepthImages(Tiles(env.ground.heights, env.ground.resolution), 1) if depth and camera is None else None
        seen = self.camera or self.images
        self.optics = None if seen is None else seen.optics
        self.terms = list(env.task.rewards.names)
        self.layout = Layout(self._fields())

    def header(self, title: str, source: str, name: str, run: str | None = None, step: int | None = None) -> Header:
        """The header of an episode on the tile that the robot is on now. `name`: who walks."""
        player = {"name": name, "team": 0, "hitbox": "", "policy": True, "human": False}
        return make_header(KIND, title, source, SKIPPED, STEP, self.layout, players=[player], scene=self.scene(),
                           reward_terms=self.terms, run=run, step=step)

    def scene(self) -> dict[str, Any]:
        """The ground of the robot's tile, in millimetres, and the robot's geoms."""
        ground, model = self.env.ground, self.poses.model
        tile = int(self.env.state.tile[0])
        heights = ground.heights[tile].cpu().numpy()  # [Y, X]
        rows, columns = heights.shape
        millimetres = np.clip(np.rint(heights * 1000), -32768, 32767).astype("<i2")
        return {
            "terrain": ground.kinds[tile // ground.levels].rpartition(":")[2], "level": tile % ground.levels,
            "resolution": ground.resolution, "rows": rows, "columns": columns,
            "heights": base64.b64encode(millimetres.tobytes()).decode("ascii"),
            "origin": [-ground.length / 2, -ground.width / 2],
            "geoms": [{"kind": KINDS[int(model.geom_type[geom])], "size": [round(float(x), 6) for x in model.geom_size[geom]],
                       "colour": [round(float(x), 4) for x in model.geom_rgba[geom, :3]]} for geom in self.drawn],
            "far": 2.0 if self.optics is None else self.optics.far, "dt": SKIPPED * STEP,
        }

    def record(self, tick: int, value: float, rewards: Tensor | None = None) -> Records:
        """[1]: the robot as it is now. `value`: of its state. `rewards` [K]: what it was paid in the last step; None: it has
        not made one."""
        state = self.env.state
        self.poses.move(state)
        data = self.poses.data
        rotation = np.empty((len(self.drawn), 4))
        for quaternion, geom in zip(rotation, self.drawn, strict=True):
            mujoco.mju_mat2Quat(quaternion, data.geom_xmat[geom])
        values: dict[str, Any] = {
            "tick": tick, "position": _host(state.position), "orientation": _host(state.orientation),
            "joints": _host(state.joint_position), "command": _host(state.command), "velocity": _host(state.velocity),
            "geoms.position": data.geom_xpos[self.drawn], "geoms.rotation": rotation, "value": value,
            "reward": np.zeros(len(self.terms)) if rewards is None else rewards.cpu().numpy(),
        }
        if self.optics is not None:
            values["depth"] = self._depth() / self.optics.far
        if self.poses.dots is not None:
            values["scandots"] = self.poses.ground_points(state)
        return self.layout.encode({name: np.asarray(x)[None] for name, x in values.items()})

    def _depth(self) -> np.ndarray:
        """[rows, columns] m: what the policy has, or what a camera would see."""
        state = self.env.state
        if self.images is not None:
            return self.images(state.position, state.orientation, state.tile)[0].cpu().numpy()
        assert self.camera is not None
        return self.camera.camera.images[0].cpu().numpy()

    def _fields(self) -> tuple[Field, ...]:
        shapes = len(self.drawn)
        fields = [Field("tick", "i32"), Field("position", "f32", (3,)), Field("orientation", "i16", (4,), TURN),
                  Field("joints", "i16", (12,), ANGLE), Field("command", "f32", (3,)), Field("velocity", "f32", (3,)),
                  Field("geoms.position", "f32", (shapes, 3)), Field("geoms.rotation", "i16", (shapes, 4), TURN),
                  Field("reward", "f32", (len(self.terms),)), Field("value", "f32")]
        if self.optics is not None:
            fields.append(Field("depth", "u8", (self.optics.rows, self.optics.columns), 1 / 255))
        if self.poses.dots is not None:
            fields.append(Field("scandots", "f32", (len(self.poses.dots.offsets), 3)))
        return tuple(fields)


class Walk:
    """A policy lets one robot walk, step by step, episode after episode; frames of it are recorded."""

    def __init__(self, run: LoadedRun, env: WalkEnv, seed: int = 0, depth: bool | None = None,
                 deterministic: bool = True) -> None:
        """The environment has one robot, and the spaces of the policy."""
        self.run, self.env, self.deterministic = run, env, deterministic
        self.frames = Frames(env, depth)
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begins an episode anew."""
        self.obs: Any = self.env.reset(seed)
        self.run.policy.reset()  # it may remember the robots of an evaluation
        self.tick = 0
        """Steps of this episode"""
        self._rewards: Tensor | None = None

    @property
    def frame(self) -> int:
        """The number of the frame that shows now, or that the last step led to."""
        return self.tick // SKIPPED

    @property
    def value(self) -> float:
        """Returns what the critic expects of the state that is now."""
        policy = self.run.policy
        memory = policy.memory if policy.memory is not None else policy.policy.initial_memory(1)
        with torch.no_grad():
            return float(policy.policy.value(policy.policy.normalize(self.obs), memory)[0])

    @property
    def rewards(self) -> dict[str, float]:
        """Returns what each term paid in the last step, by name."""
        paid = torch.zeros(len(self.frames.terms)) if self._rewards is None else self._rewards
        return dict(zip(self.frames.terms, paid.tolist(), strict=True))

    @torch.no_grad()
    def step(self) -> tuple[list[Event], bool]:
        """Makes a step. Returns what happened in it, and whether the episode is over; then the robot stands at the beginning of
        another one, and `tick` is 0."""
        env, commands = self.env, self.env.task.commands
        level, left = int(env.task.levels.level[0]), int(commands.left[0])
        step = env.step(self.run.policy.step(self.obs, self.deterministic))
        self.obs = step.obs
        done = step.terminated | step.truncated
        if bool(done[0]):
            happened = [*self._ended(bool(step.terminated[0]), bool(step.active[0])), *self._moved(level)]
            self.run.policy.reset(done)
            self.tick, self._rewards = 0, None
            return happened, True
        self.tick += 1
        self._rewards = env.task.rewards.table[:, 0].clone()
        return ([self._commanded()] if int(commands.left[0]) > left else []), False

    def record(self) -> Records | None:
        """[1]: the frame of this moment; None between two frames."""
        return None if self.tick % SKIPPED else self.frames.record(self.tick, self.value, self._rewards)

    def _ended(self, fell: bool, intact: bool) -> list[Event]:
        watch = next((ending for ending in self.env.task.endings.values() if isinstance(ending, Watch)), None)
        if not intact:
            return [event(self.frame, "end", 0, "the physics went wrong")]
        if fell:
            return [event(self.frame, "fall", 0, "the robot fell")]
        if watch is not None and bool(watch.finished[0]):
            return [event(self.frame, "end", 0, "the end of the track")]
        if watch is not None and bool(watch.left[0]):
            return [event(self.frame, "end", 0, "the robot left the track")]
        return [event(self.frame, "end", 0, "the end of the episode")]

    def _moved(self, before: int) -> list[Event]:
        """The robot goes to another level."""
        level = int(self.env.task.levels.level[0])
        if level == before:
            return []
        kind = "promoted" if level > before else "demoted"
        return [event(self.frame, kind, 0, f"{kind} to level {level}")]

    def _commanded(self) -> Event:
        state = self.env.state
        turn = round(degrees(float(wrapped(state.heading - state.yaw)[0])))
        direction = "ahead" if not turn else f"{abs(turn)}° to the {'left' if turn > 0 else 'right'}"
        return event(self.frame, "command", 0, f"walk {float(state.command[0, 0]):.2f} m/s, {direction}")


def make_course_env(run: LoadedRun, terrain: str | None = None, level: int | None = None, seconds: float | None = None,
                    seed: int = 0) -> WalkEnv:
    """One robot on a track as `wavedash eval` has them. `terrain`: by default the first of the run; `level`: by default the
    hardest."""
    task = run.config.env.walk
    assert task is not None
    kinds, levels = [terrain or next(iter(task.terrain))], None if level is None else [level]
    course = Course.of(task, kinds, levels, seconds=seconds, seed=seed)
    env, _ = replace(course, tiles=course.tiles[-1:]).make_env(1, run.policy.device)
    try:
        run.check_spaces(env)
    except BaseException:
        env.close()
        raise
    return env


def record_walk(run: LoadedRun, terrain: str | None = None, level: int | None = None, seconds: float = 10.0, seed: int = 0,
                depth: bool | None = None, source: str = "eval", **told: Any) -> Recording:
    """The recording of a walk on the course that policies are measured on, until the robot falls, reaches the end, or the time
    is over. `told`: `run` and `title` of the header, if they are known."""
    env = make_course_env(run, terrain, level, seconds, seed)
    try:
        walk = Walk(run, env, seed, depth)
        header = describe(walk, source, **told)
        records, events = [], []
        for _ in range(round(seconds / STEP) + 1):
            record = walk.record()
            if record is not None:
                records.append(record)
            happened, over = walk.step()
            events += happened
            if over:
                break
        return finish(header, walk.frames.layout, records, events)
    finally:
        env.close()


def describe(walk: Walk, source: str, title: str | None = None, run: str | None = None) -> Header:
    """The header of the episode that begins now."""
    origin = walk.run.source
    name = origin.name if isinstance(origin, PolicyFolder) else f"{walk.run.config.name}@{origin.step}"
    where = walk.env.name_row(0).partition(" on ")[2]
    return walk.frames.header(title or f"{name} on {where}", source, name, run, origin.step)


def finish(header: Mapping[str, Any], layout: Layout, records: list[Records], events: list[Event]) -> Recording:
    """The recording of an episode. What happened after the last frame is shown in it."""
    last = len(records) - 1
    shown = [{**happened, "frame": min(happened["frame"], last)} for happened in events]
    return Recording({**header, "events": shown}, layout, np.concatenate(records))


def record_to_file(run: LoadedRun, file: Path, **options: Any) -> str:
    """Writes the recording of a walk. Returns a line about it."""
    if file.suffix.lower() != SUFFIX:
        raise UserError(f"{file.name}: a recording must end in {SUFFIX}")
    recording = record_walk(run, **options)
    recording.write(file)
    first, last = recording["position"][0], recording["position"][-1]
    ended = recording.header["events"][-1]["text"] if recording.header["events"] else "still walking"
    return (f"wrote {file}: {recording.seconds:.1f} s, {np.linalg.norm((last - first)[:2]):.1f} m on "
            f"{recording.header['scene']['terrain']}, level {recording.header['scene']['level']}; {ended}")


def record_walks(run: LoadedRun, order: Order, tracks: Sequence[tuple[str, int]], seconds: float | None = None,
                 seed: int = 0) -> None:
    """Records one walk on each of these tracks, (kind, level), as far as they are ordered: the hardest level of every kind
    first."""
    tracks = sorted(tracks, key=lambda track: -track[1])
    for kind, level in tracks[:order.games]:
        recording = record_walk(run, kind, level, seconds or SECONDS, seed)
        order.write(recording, str(recording.header["title"]))


def _host(x: Tensor) -> np.ndarray:
    return x[0].cpu().numpy()
