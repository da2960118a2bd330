"""Motion: where a body is and how it moves, as packets say it."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rotation_of(pitch: float, yaw: float, roll: float) -> Array:
    """[3, 3]: the columns are forward, right and up."""
    (cp, cy, cr), (sp, sy, sr) = np.cos([pitch, yaw, roll]), np.sin([pitch, yaw, roll])
    return np.array([[cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy],
                     [cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy], [sp, -cp * sr, cp * cr]], np.float32)


class Motion(NamedTuple):
    """Position, rotation, velocity and spin of a body."""

    position: Array
    rotation: Array
    """[3, 3]: the columns are forward, right and up"""
    velocity: Array
    spin: Array

    def earlier(self, seconds: Any) -> Motion:
        """About where it was so long ago, if nothing changed its motion."""
        turned = self.rotation - np.cross(self.spin * seconds, self.rotation, axisb=0, axisc=0)
        return self._replace(position=self.position - self.velocity * seconds, rotation=turned)


def motion_of(physics: Any) -> Motion:
    at, v, w, r = physics.location, physics.velocity, physics.angular_velocity, physics.rotation
    return Motion(np.array([at.x, at.y, at.z], np.float32), rotation_of(r.pitch, r.yaw, r.roll),
                  np.array([v.x, v.y, v.z], np.float32), np.array([w.x, w.y, w.z], np.float32))
