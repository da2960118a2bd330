"""How actions become angles that the motors pull to."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.walk.parts import Action
from wavedash.walk.robot import HOME
from wavedash.walk.state import RobotState


class JointTargets(Action):
    """Actions are angles relative to the standing pose: 0 stands, 1 is `scale` away from it.

    `scale`: rad, one for all joints, or one each for hip, thigh and calf. More: longer steps and higher knees are possible, and
    the same noise of a policy is more violent. Actions beyond 1 are clipped.
    """

    scale: Tensor
    home: Tensor

    def __init__(self, scale: float | Sequence[float] = (0.5, 0.75, 0.75)) -> None:
        each = [float(scale)] * 3 if isinstance(scale, (int, float)) else [float(x) for x in scale]
        if len(each) != 3 or not all(0.0 < x < inf for x in each):
            raise ValueError(f"scale is one number above 0, or three for hip, thigh and calf; got {scale!r}")
        self.space = gymnasium.spaces.Box(-1.0, 1.0, (len(HOME),), np.float32)
        self.register_buffer("scale", torch.tensor(each).repeat(4), persistent=False)
        self.register_buffer("home", torch.tensor(HOME), persistent=False)

    def parse(self, action: Tensor, state: RobotState) -> Tensor:
        return self.home + self.scale * action.clamp(-1.0, 1.0)

    def describe(self) -> dict[str, Any]:
        return {"shape": [len(HOME)], "target": "joint angle = home + scale * clipped action, rad", "clip": [-1.0, 1.0],
                "scale": [round(x, 6) for x in self.scale.tolist()]}
