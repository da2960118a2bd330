"""A walking policy in MuJoCo, without the library that trained it. This file needs numpy, mujoco and onnxruntime, and the files
that were exported with it: robot.json, which says what the policy sees and does, robot.xml and the policy.

    python run_in_mujoco.py --speed 0.5 --seconds 20
    python run_in_mujoco.py --ground terrain/stairs_up.npy --view

The loop of a real robot is the same, with sensors in place of `Robot.reading` and motors in place of `Robot.step`.
"""
from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import onnxruntime

BELOW = 0.5
"""m: how far the ground reaches below its lowest point"""
GROUND_GROUP = 1
"""The group of the ground's geom, which alone cameras see"""


class Ground:
    """A height map, or level ground at height 0. Corner (row, column) of a map is at x = (column - (X - 1) / 2) * resolution,
    y = (row - (Y - 1) / 2) * resolution."""

    def __init__(self, heights: np.ndarray | None = None, resolution: float = 0.05) -> None:
        """`heights`: [Y, X] m."""
        self.heights, self.resolution = None if heights is None else heights.astype(np.float32), resolution

    def add_to(self, spec: mujoco.MjSpec) -> mujoco.MjModel:
        """The model of a robot on this ground."""
        geom = {"name": "ground", "contype": 0, "conaffinity": 1, "group": GROUND_GROUP, "rgba": [0.55, 0.53, 0.48, 1.0]}
        if self.heights is None:
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], **geom)
            return spec.compile()
        rows, columns = self.heights.shape
        low, high = float(self.heights.min()), float(self.heights.max())
        rise = max(high - low, 1e-3)
        extent = [(columns - 1) * self.resolution / 2, (rows - 1) * self.resolution / 2]
        spec.add_hfield(name="ground", nrow=rows, ncol=columns, size=[*extent, rise, BELOW], userdata=[0.0] * (rows * columns))
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="ground", pos=[0.0, 0.0, low], **geom)
        model = spec.compile()
        # Written now, because the compiler would scale it.
        model.hfield_data[:] = ((self.heights - np.float32(low)) / np.float32(rise)).ravel()
        return model

    def height(self, points: np.ndarray) -> np.ndarray:
        """[P] m: the ground under points [P, 2], on the triangles that MuJoCo has; beyond the border its nearest point."""
        if self.heights is None:
            return np.zeros(len(points), np.float32)
        rows, columns = self.heights.shape
        u = (points[:, 0] / self.resolution + (columns - 1) / 2).clip(0, columns - 1)
        v = (points[:, 1] / self.resolution + (rows - 1) / 2).clip(0, rows - 1)
        column, row = np.minimum(u.astype(int), columns - 2), np.minimum(v.astype(int), rows - 2)
        u, v = u - column, v - row
        near, far = self.heights[row, column], self.heights[row + 1, column + 1]
        middle = np.where(u >= v, self.heights[row, column + 1], self.heights[row + 1, column])
        return near + (middle - near) * np.maximum(u, v) + (far - middle) * np.minimum(u, v)


class Policy:
    """The exported policy. It remembers what it has to, from `begin` on."""

    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.empty = {x.name: np.zeros((1, *x.shape[1:]), np.float32) for x in self.session.get_inputs()
                      if x.name.startswith("memory_")}
        self.begin()

    def begin(self) -> None:
        self.memory = dict(self.empty)

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """[12]: the action for one observation."""
        given = dict(zip(self.outputs, self.session.run(None, {**{name: x[None] for name, x in inputs.items()}, **self.memory}),
                         strict=True))
        self.memory = {name: given[f"next_{name}"] for name in self.memory}
        action: np.ndarray = given["action"][0]
        return action


class Robot:
    """The robot in MuJoCo, and what it senses, as robot.json describes it."""

    def __init__(self, folder: Path, ground: Ground | None = None, seed: int = 0) -> None:
        self.about: dict[str, Any] = json.loads((folder / "robot.json").read_text())
        self.ground = ground or Ground()
        self.model = self.ground.add_to(mujoco.MjSpec.from_file(str(folder / self.about["model"])))
        self.data = mujoco.MjData(self.model)
        self.ticks = round(self.about["pd"]["rate"] / self.about["rate"])
        self.home, self.scale = (np.array(x, np.float32) for x in (self.about["home"], self.about["action"]["scale"]))
        self.forces = [self.model.sensor(f"{leg}_force").adr[0] + 2 for leg in self.about["legs"]]
        self.trunk_contact = self.model.sensor("trunk_contact").adr[0]
        self.random = np.random.default_rng(seed)
        self.begin()

    def begin(self, x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> None:
        """Stands at a place of the ground."""
        mujoco.mj_resetData(self.model, self.data)
        height = float(self.ground.height(np.array([[x, y]]))[0])
        self.data.qpos[:3] = x, y, height + self.about["standing_height"]
        self.data.qpos[3:7] = np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)
        self.data.qpos[7:] = self.data.ctrl[:] = self.home
        self.begin_here()

    def begin_here(self) -> None:
        """Begins an episode in the pose that the robot has."""
        mujoco.mj_kinematics(self.model, self.data)  # rays need to know where the ground is
        self.last_action = np.zeros(len(self.home), np.float32)
        self.stepped = False
        self.image: np.ndarray | None = None
        self.speed, self.heading = 0.0, self.yaw

    def step(self, action: np.ndarray) -> None:
        """Moves on to the next decision. PD control is in robot.xml: torque = kp (target - angle) - kd velocity."""
        self.last_action = action.astype(np.float32)
        self.data.ctrl[:] = self.home + self.scale * self.last_action.clip(*self.about["action"]["clip"])
        for _ in range(self.ticks):
            mujoco.mj_step(self.model, self.data)
        self.stepped = True

    @property
    def yaw(self) -> float:
        w, x, y, z = self.data.qpos[3:7]
        return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))

    @property
    def gravity(self) -> np.ndarray:
        """[3]: its direction in the trunk's frame."""
        orientation, down = self.data.qpos[3:7].astype(np.float32), np.array([0.0, 0.0, -1.0], np.float32)
        w, u = orientation[0], orientation[1:]
        t = np.float32(2.0) * np.cross(u, down)
        return down - w * t + np.cross(u, t)

    @property
    def fallen(self) -> bool:
        """Whether the trunk touches the ground or is tilted by more than 60 degrees."""
        return bool(self.stepped and self.data.sensordata[self.trunk_contact] > 0) or bool(self.gravity[2] > -0.5)

    def observe(self) -> dict[str, np.ndarray]:
        """The inputs of the policy by name."""
        observed = {}
        for source in self.about["inputs"]:
            if "observation" in source:
                shape, parts = (self.about["observations"][source["observation"]][key] for key in ("shape", "parts"))
                values = [self._scaled(part) for part in parts]
                if sum(map(len, values)) != np.prod(shape):
                    raise SystemExit(f"robot.json does not say what observation {source['observation']!r} consists of: give "
                                     "its class a method `describe`, and `Robot.reading` here what it reads")
                observed[source["name"]] = np.concatenate(values).reshape(shape).astype(np.float32)
        return observed

    def _scaled(self, part: dict[str, Any]) -> np.ndarray:
        x = self.reading(part).astype(np.float32) - np.float32(part.get("subtract", 0.0))
        return x.clip(*part.get("clip", (-np.inf, np.inf))) * np.float32(part["scale"])

    def reading(self, part: dict[str, Any]) -> np.ndarray:
        """Returns what one sensor reads, or what the robot is told."""
        name, data = part["reading"], self.data
        if name == "angular_velocity":
            return data.qvel[3:6]
        if name == "gravity":
            return self.gravity
        if name == "joint_position":
            return data.qpos[7:]
        if name == "joint_velocity":
            return data.qvel[6:]
        if name == "last_action":
            return self.last_action
        if name == "touching":
            return (data.sensordata[self.forces] > self.about["touch_force"]) & self.stepped
        if name == "speed":
            return np.array([self.speed])
        if name == "turning":
            return np.array([self._turning()])
        if name == "heights":
            return self._heights(np.array(part["points"]), self.data.qpos[:3])
        if name == "heights_at_feet":
            mujoco.mj_kinematics(self.model, self.data)  # a step leaves the feet where they were before its last tick
            feet = (self.data.site(f"{leg}_foot").xpos for leg in self.about["legs"])
            return np.concatenate([self._heights(np.array(part["points"]), foot) for foot in feet])
        if name == "depth":
            return self._latest_image(part).ravel()
        raise SystemExit(f"robot.json names a reading {name!r}, which this file does not know: add it to Robot.reading")

    def _turning(self) -> float:
        """The rate of turning that leads to the heading."""
        stiffness, fastest = self.about["heading"]["stiffness"], self.about["heading"]["fastest"]
        off = (self.heading - self.yaw + np.pi) % (2.0 * np.pi) - np.pi
        return float(np.clip(stiffness * off, -fastest, fastest))

    def _heights(self, points: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """[P]: of the ground below points [P, 2] around a centre [3], which turn with the robot, relative to the centre."""
        c, s = np.cos(self.yaw), np.sin(self.yaw)
        return self.ground.height(points @ np.array([[c, s], [-s, c]]) + centre[:2]) - centre[2]

    def _latest_image(self, camera: dict[str, Any]) -> np.ndarray:
        """[rows, columns] m: images come every now and then, and late. It is called once for each step."""
        if self.image is None:
            self.image = self.take_image(camera)
            self.coming, self.until_shown, self.until_taken = self.image, 0, self._drawn((1, camera["steps_between_images"][1]))
            return self.image
        self.until_taken -= 1
        self.until_shown -= 1
        if self.until_taken <= 0:
            self.coming, self.until_shown = self.take_image(camera), self._drawn(camera["steps_of_latency"])
            self.until_taken = self._drawn(camera["steps_between_images"])
        if self.until_shown == 0:
            self.image = self.coming
        return self.image

    def _drawn(self, between: tuple[int, int]) -> int:
        return int(self.random.integers(between[0], between[1] + 1))

    def take_image(self, camera: dict[str, Any]) -> np.ndarray:
        """[rows, columns] m: depth along the optical axis, by a ray for each pixel."""
        rows, columns, far = camera["rows"], camera["columns"], camera["far"]
        pixel = 2.0 * np.tan(np.radians(camera["field_of_view"]) / 2) / columns
        pitch = np.radians(camera["pitch"])
        trunk = np.zeros(9)
        mujoco.mju_quat2Mat(trunk, self.data.qpos[3:7])
        axes = trunk.reshape(3, 3) @ np.array([[np.cos(pitch), 0.0, -np.sin(pitch)], [-np.sin(pitch), 0.0, -np.cos(pitch)],
                                               [0.0, -1.0, 0.0]]).T  # columns: forward, down, right
        down, right = ((np.arange(count) + 0.5 - count / 2) * pixel for count in (rows, columns))
        grid = np.stack(np.broadcast_arrays(1.0, down[:, None], right[None, :]), -1).reshape(-1, 3)
        directions = grid @ axes.T
        lengths = np.linalg.norm(directions, axis=1)
        eye = self.data.qpos[:3] + trunk.reshape(3, 3) @ camera["position"]
        mask = np.array([group == GROUND_GROUP for group in range(6)], np.uint8)
        geom, found = np.zeros(1, np.int32), np.full(len(grid), far)
        for i, direction in enumerate(directions / lengths[:, None]):
            distance = mujoco.mj_ray(self.model, self.data, eye, direction, mask, 1, -1, geom)
            if geom[0] >= 0:
                found[i] = min(far, distance / lengths[i])
        return found.reshape(rows, columns)


def main() -> None:
    options = argparse.ArgumentParser(description="Runs an exported walking policy in MuJoCo.")
    options.add_argument("--speed", type=float, default=0.5, help="m/s forward")
    options.add_argument("--heading", type=float, default=0.0, help="degrees to the left: the direction to walk in")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--ground", type=Path, help="heights of the ground in m, [Y, X] as .npy; else it is level")
    options.add_argument("--resolution", type=float, help="m between the points of --ground")
    options.add_argument("--start", type=float, nargs=2, metavar=("X", "Y"), help="m: where to begin on --ground")
    options.add_argument("--view", action="store_true", help="show it, in real time")
    given = options.parse_args()
    folder = Path(__file__).resolve().parent
    about = json.loads((folder / "robot.json").read_text())
    ground = Ground()
    # A policy that was trained on level ground has no terrain beside it.
    trained_on = about.get("terrain", {"resolution": ground.resolution, "start": (0.0, 0.0)})
    if given.ground is not None:
        ground = Ground(np.load(given.ground), given.resolution or trained_on["resolution"])
    robot, policy = Robot(folder, ground), Policy(folder / about["policy"])
    robot.begin(*(given.start or (trained_on["start"] if given.ground is not None else (0.0, 0.0))))
    robot.speed, robot.heading = given.speed, np.radians(given.heading)
    viewer = None
    if given.view:
        from mujoco import viewer as viewers

        viewer = viewers.launch_passive(robot.model, robot.data)
    begin = robot.data.qpos[:2].copy()
    for _ in range(round(given.seconds * about["rate"])):
        started = time.monotonic()
        robot.step(policy(robot.observe()))
        if viewer is not None:
            viewer.sync()
            time.sleep(max(0.0, 1.0 / about["rate"] - (time.monotonic() - started)))
        if robot.fallen:
            break
    forward, left = robot.data.qpos[:2] - begin
    end = "; it fell" if robot.fallen else ""
    print(f"{forward:.3f} m forward and {left:.3f} m to the left in {robot.data.time:.2f} s{end}")


if __name__ == "__main__":
    main()
