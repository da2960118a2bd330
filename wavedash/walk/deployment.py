"""What goes beside an exported walking policy: all that a robot needs to know (robot.json), its model (robot.xml), a loop that
runs both in MuJoCo alone (run_in_mujoco.py), and ground to walk on (terrain/). docs/walking.md describes robot.json."""
from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wavedash.config import WalkConfig
from wavedash.walk.env import make_ground
from wavedash.walk.robot import HOME, JOINTS, KD, KP, LEGS, MAX_TORQUE, MJCF, STANDING, STEP, SUBSTEP, TOUCH
from wavedash.walk.task import Task
from wavedash.walk.terrain.ground import Ground

LOOP = Path(__file__).with_name("run_in_mujoco.py")


def files(walk: WalkConfig, description: Mapping[str, Any], policies: Mapping[str, str]) -> dict[str, bytes]:
    """Files by name. `description`: of the exported model. `policies`: the names of its files by format."""
    ground = make_ground(walk.model_copy(update={"layout": "track"}))
    about = robot_description(walk, ground, description) | {"policy": policies.get("onnx", "policy.onnx")}
    tiles = dict(_tiles(ground))
    if tiles:
        about["terrain"] = {"resolution": ground.resolution, "start": list(ground.start), "files": list(tiles)}
    return {"robot.json": _lines(about).encode(), "robot.xml": MJCF.read_bytes(),
            LOOP.name: LOOP.read_bytes(), **tiles}


def robot_description(walk: WalkConfig, ground: Ground, description: Mapping[str, Any]) -> dict[str, Any]:
    """The content of robot.json, as plain values."""
    task = Task.configured(walk, ground)
    seen = [x["observation"] for x in description["inputs"] if "observation" in x]
    return {
        **{key: description[key] for key in ("wavedash", "checkpoint", "steps", "inputs", "outputs", "memory")},
        "model": "robot.xml", "rate": round(1 / STEP), "joints": list(JOINTS), "legs": list(LEGS), "home": list(HOME),
        "standing_height": STANDING, "touch_force": TOUCH,
        "pd": {"rate": round(1 / SUBSTEP), "kp": KP, "kd": KD, "max_torque": MAX_TORQUE,
               "torque": "kp * (target - angle) - kd * velocity, N m, within +-max_torque; targets are held between decisions"},
        "action": task.action.describe(),
        "heading": {"stiffness": task.commands.stiffness, "fastest": task.commands.fastest,
                    "turning": "stiffness * (wanted yaw - yaw), within +-fastest, rad/s"},
        "observations": {key: task.observation.parts[key].describe() for key in seen},
        "observation": "the parts one after another; each is scale * clip(reading - subtract)",
    }


def _lines(about: Mapping[str, Any]) -> str:
    """JSON with a line for each key, because lists of numbers are easier to read in a line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in about.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _tiles(ground: Ground) -> Iterator[tuple[str, bytes]]:
    """A track of the middle level of each kind of terrain; none if all of it is flat."""
    if ground.is_flat:
        return
    for kind in ground.kinds:
        buffer = io.BytesIO()
        np.save(buffer, ground.heights[ground.tile(kind, ground.levels // 2)].cpu().numpy())
        yield f"terrain/{kind.rpartition(':')[2]}.npy", buffer.getvalue()
