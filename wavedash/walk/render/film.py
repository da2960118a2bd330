"""A film of a policy: one robot walks, and a camera follows it, with what it sees beside it."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.walk.env import WalkEnv
from wavedash.walk.evaluate.course import Course
from wavedash.walk.model import GROUND, make_model
from wavedash.walk.observations import Depth, Scandots
from wavedash.walk.render.camera import Follow, FollowCamera
from wavedash.walk.render.picture import frame
from wavedash.walk.render.scene import SPHERE, Shapes
from wavedash.walk.render.video import beside, check_video, write_video
from wavedash.walk.robot import STEP
from wavedash.walk.sensors.depth import DepthImages
from wavedash.walk.sensors.tiles import Tiles
from wavedash.walk.state import RobotState, place_of

SKIPPED = 2
"""A film has every second step: 25 pictures a second"""
DOT = 0.012
"""m: the radius of the dots that show where a robot samples the ground"""


def film(run: LoadedRun, video: Path | None, terrain: str | None = None, level: int | None = None, seconds: float = 10.0,
         seed: int = 0) -> str:
    """Lets the policy of a run walk on the course that it is measured on, and writes a video of it; without a file, it is shown
    in MuJoCo's viewer. `terrain`: by default the first of the run; `level`: by default the hardest. Returns a line about it."""
    if video is not None:
        check_video(video)
    task = run.config.env.walk
    assert task is not None
    kinds, levels = [terrain or next(iter(task.terrain))], None if level is None else [level]
    course = Course.of(task, kinds, levels, seconds=seconds, seed=seed)
    env, _ = replace(course, tiles=course.tiles[-1:]).make_env(1, run.policy.device)
    try:
        run.check_spaces(env)
        steps = walk(run, env, round(seconds / STEP), seed)
        if video is None:
            watch(env, steps)
            return "closed"
        write_video(video, pictures(env, steps), 1 / (SKIPPED * STEP))
        return f"wrote {video}: {env.state.walked[0]:.1f} m on {env.name_row(0).partition(' on ')[2]}"
    finally:
        env.close()


@torch.no_grad()
def walk(run: LoadedRun, env: WalkEnv, steps: int, seed: int) -> Iterator[Tensor]:
    """Lets the robot walk until its episode ends, and yields the end [1] of every step."""
    obs, policy = env.reset(seed), run.policy
    policy.reset()
    for _ in range(steps):
        before = env.state.clone()
        step = env.step(policy.step(obs, deterministic=True))
        obs = step.obs
        if bool((step.terminated | step.truncated).any()):
            env.state.copy_(before)  # what is told of the walk is that of its last moment, not of the next one's first
            return
        yield step.reward


def pictures(env: WalkEnv, steps: Iterator[Tensor]) -> Iterator[Tensor]:
    """[rows, columns, 3] uint8: a picture of every other step, with the depth image beside it."""
    tiles = Tiles(env.ground.heights, env.ground.resolution)
    camera = FollowCamera(tiles, SKIPPED * STEP, Follow())
    poses = Poses(env)
    sees = next((part for part in env.task.observation.parts.values() if isinstance(part, Depth)), None)
    images = DepthImages(tiles, 1) if sees is None else None
    for number, _ in enumerate(steps):
        if number % SKIPPED:
            continue
        state = env.state
        picture = frame(tiles, int(state.tile[0]), camera.view(state.position[0], state.orientation[0], int(state.tile[0])),
                        poses.shapes(state))
        if images is not None:
            depth, far = images(state.position, state.orientation, state.tile)[0], images.optics.far
        else:
            assert sees is not None
            depth, far = sees.camera.images[0], sees.optics.far
        yield beside(picture, depth, far)


class Poses:
    """Shapes of the robot, and dots where it samples the ground if it does."""

    def __init__(self, env: WalkEnv) -> None:
        self.env = env
        self.model = make_model(env.ground)
        self.data = mujoco.MjData(self.model)
        self.dots = next((part for part in env.task.observation.parts.values() if isinstance(part, Scandots)), None)

    def move(self, state: RobotState) -> None:
        """Sets MuJoCo's data to the pose of the robot, on its tile."""
        self.data.qpos[:] = state.memory[0, place_of("position", "joint_position")].cpu().numpy()
        if not self.env.ground.is_flat:
            self.model.geom_dataid[self.model.geom(GROUND).id] = int(state.tile[0])
        mujoco.mj_kinematics(self.model, self.data)

    def shapes(self, state: RobotState) -> Shapes:
        self.move(state)
        model, data = self.model, self.data
        robot: list[Any] = [model.geom_type, data.geom_xpos, data.geom_xmat.reshape(-1, 3, 3), model.geom_size, model.geom_rgba]
        if self.dots is not None:
            points = self.ground_points(state)
            count = len(points)
            dots = [np.full(count, SPHERE), points, np.tile(np.eye(3), (count, 1, 1)), np.full((count, 3), DOT),
                    np.tile([0.95, 0.25, 0.2, 1.0], (count, 1))]
            robot = [np.concatenate(both) for both in zip(robot, dots, strict=True)]
        return Shapes(*robot)

    def ground_points(self, state: RobotState) -> np.ndarray:
        """[P, 3] m: where the robot samples the ground."""
        assert self.dots is not None
        heights = self.dots.scan(state.position, state.orientation, state.tile)[0]
        yaw, offsets = state.yaw[0], self.dots.offsets.to(state.device)
        turn = torch.stack((torch.stack((yaw.cos(), -yaw.sin())), torch.stack((yaw.sin(), yaw.cos()))))
        return torch.cat((state.position[:1, :2] + offsets @ turn.T, heights[:, None]), -1).cpu().numpy()


def watch(env: WalkEnv, steps: Iterator[Tensor]) -> None:
    """Shows the robot in MuJoCo's viewer, at the speed of real time, until the window is closed."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise UserError("there is no display for MuJoCo's viewer here: write a video instead with --video walk.mp4")
    import mujoco.viewer

    poses = Poses(env)
    window = mujoco.viewer.launch_passive(poses.model, poses.data)
    with window:
        for _ in steps:
            began = perf_counter()
            if not window.is_running():
                return
            poses.move(env.state)
            window.sync()
            sleep(max(0.0, STEP - (perf_counter() - began)))
