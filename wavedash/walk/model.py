"""The MuJoCo model of one robot on one tile of the terrain: the same for both simulators."""
from __future__ import annotations

from typing import Any

import mujoco

from wavedash.walk.robot import MJCF
from wavedash.walk.terrain.ground import Ground

GROUND = "ground"
BELOW = 0.5
"""m: how far the ground reaches below its lowest point, so that nothing falls through"""


def robot_spec() -> mujoco.MjSpec:
    """The robot alone."""
    return mujoco.MjSpec.from_file(str(MJCF))


def make_model(ground: Ground) -> mujoco.MjModel:
    """The robot and a geom for the ground: a plane if all of it is flat, else a height field. All tiles are height fields of
    the model; which one a robot has is the `geom_dataid` of its simulation. All have the same extent, so bounding boxes hold
    for any of them."""
    spec = robot_spec()
    terrain: dict[str, Any] = {"name": GROUND, "contype": 0, "conaffinity": 1, "rgba": [0.55, 0.53, 0.48, 1.0]}
    if ground.is_flat:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], **terrain)
        return spec.compile()
    tiles, rows, columns = ground.heights.shape
    height = ground.high - ground.low
    for tile in range(tiles):
        spec.add_hfield(name=f"tile{tile}", nrow=rows, ncol=columns, size=[ground.length / 2, ground.width / 2, height, BELOW],
                        userdata=[0.0] * (rows * columns))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="tile0", pos=[0.0, 0.0, ground.low], **terrain)
    model = spec.compile()
    # The compiler scales every field to [0, 1] by itself; ours have one scale.
    model.hfield_data[:] = ((ground.heights - ground.low) / height).flatten().cpu().numpy()
    return model
