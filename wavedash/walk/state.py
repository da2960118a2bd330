"""RobotState: everything about E robots that tasks see, as views of one tensor. Simulators of both kinds fill it."""
from __future__ import annotations

from math import prod
from typing import Self

import torch
from torch import Tensor

from wavedash.walk.robot import SUBSTEP, TOUCH
from wavedash.walk.rotation import down_of, rotate_back, yaw_of

FIELDS: dict[str, tuple[int, ...]] = {
    "position": (3,), "orientation": (4,), "joint_position": (12,),
    "velocity": (3,), "angular_velocity": (3,), "joint_velocity": (12,),
    "torque": (12,),
    "foot_position": (4, 3), "foot_velocity": (4, 3), "foot_force": (4, 3), "trunk_contact": (), "thigh_contact": (4,),
    "calf_contact": (4,),
    "gravity": (3,), "body_velocity": (3,), "yaw": (),
    "action": (12,), "command": (3,), "heading": (), "origin": (2,), "demanded": (), "air_time": (4,),
}
"""The fields in the order of memory, and their shapes: MuJoCo's positions, velocities, torques and sensors first, then what
follows from them, then what the task writes"""
FASTEST = 1_000.0
"""m/s, rad/s: velocities above this are those of broken physics; robots that fall reach some tens"""
SENSED = "foot_position", "foot_velocity", "foot_force", "trunk_contact", "thigh_contact", "calf_contact"
"""Fields that MuJoCo's sensors fill, in the order of a1.xml"""


def place_of(first: str, last: str | None = None) -> slice:
    """The columns of a field in memory, or of all fields from the first to the last."""
    sizes, names = [prod(shape) for shape in FIELDS.values()], list(FIELDS)
    begin, end = names.index(first), names.index(last or first)
    return slice(sum(sizes[:begin]), sum(sizes[:end + 1]))


class RobotState:
    """The state of E robots. The frame of a robot's world is that of its tile of the terrain: its centre, x along the length.

    Lengths are in m, angles in rad. Feet are in the order of `robot.LEGS`, joints in that of `robot.JOINTS`."""

    position: Tensor
    """[E, 3]: the trunk's centre"""
    orientation: Tensor
    """[E, 4]: the trunk's quaternion w, x, y, z"""
    joint_position: Tensor
    """[E, 12]"""
    velocity: Tensor
    """[E, 3]: of the trunk, in the world's frame"""
    angular_velocity: Tensor
    """[E, 3]: of the trunk, in its own frame, as a gyroscope measures it"""
    joint_velocity: Tensor
    """[E, 12]"""
    torque: Tensor
    """[E, 12]: of the motors, in the last step of physics"""
    foot_position: Tensor
    """[E, 4, 3]: centres of the feet, in the world's frame"""
    foot_velocity: Tensor
    """[E, 4, 3]"""
    foot_force: Tensor
    """[E, 4, 3]: N, of the ground on each foot, in the last step of physics"""
    trunk_contact: Tensor
    """[E]: above 0 where the trunk touches the ground"""
    thigh_contact: Tensor
    """[E, 4]"""
    calf_contact: Tensor
    """[E, 4]"""
    gravity: Tensor
    """[E, 3]: the direction of gravity in the trunk's frame: 0, 0, -1 if it is upright"""
    body_velocity: Tensor
    """[E, 3]: of the trunk, in its own frame"""
    yaw: Tensor
    """[E]: the direction in which the trunk faces"""
    action: Tensor
    """[E, 12]: the last action, as the environment got it; zeros when an episode begins"""
    command: Tensor
    """[E, 3]: wanted velocity forward and to the left (m/s), and about the vertical axis (rad/s)"""
    heading: Tensor
    """[E]: the direction that the command leads to"""
    origin: Tensor
    """[E, 2]: where the episode began"""
    demanded: Tensor
    """[E]: m, how far the commands of this episode have asked the robot to walk"""
    air_time: Tensor
    """[E, 4]: s, how long each foot has been in the air; 0 on the ground"""

    tick_rate = 1.0 / SUBSTEP

    def __init__(self, memory: Tensor, clock: Tensor, tile: Tensor) -> None:
        self.memory, self.clock, self.tile = memory, clock, tile
        """[E, F] float32; [E] int64: ticks of physics, which count on and on; [E] int64: the tile of the terrain"""
        for name, shape in FIELDS.items():
            setattr(self, name, memory[:, place_of(name)].view(len(memory), *shape))

    @classmethod
    def zeros(cls, robots: int, device: torch.device | str = "cpu") -> Self:
        memory = torch.zeros(robots, sum(map(prod, FIELDS.values())), device=device)
        whole = torch.zeros(2, robots, dtype=torch.int64, device=device)
        return cls(memory, whole[0], whole[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """E: every environment has one robot."""
        return (len(self.memory),)

    @property
    def device(self) -> torch.device:
        return self.memory.device

    @property
    def touching(self) -> Tensor:
        """[E, 4] bool: the foot is on the ground, with a force of more than `TOUCH`."""
        return self.foot_force[..., 2] > TOUCH

    @property
    def is_impossible(self) -> Tensor:
        """[E] bool: velocities that no robot has, or that are not finite: physics went wrong."""
        return ~(self.memory[:, place_of("velocity", "joint_velocity")].abs() < FASTEST).all(-1)

    @property
    def walked(self) -> Tensor:
        """[E]: m, how far the robot is from where its episode began."""
        return (self.position[:, :2] - self.origin).norm(dim=-1)

    def derive(self) -> None:
        """Computes what follows from positions and velocities."""
        self.gravity.copy_(down_of(self.orientation))
        self.body_velocity.copy_(rotate_back(self.orientation, self.velocity))
        self.yaw.copy_(yaw_of(self.orientation))

    def clone(self) -> RobotState:
        return RobotState(self.memory.clone(), self.clock.clone(), self.tile.clone())

    def copy_(self, other: RobotState, mask: Tensor | None = None) -> None:
        """Takes over the other's robots, those of `mask` [E] if there is one."""
        for mine, its in ((self.memory, other.memory), (self.clock, other.clock), (self.tile, other.tile)):
            if mask is None:
                mine.copy_(its)
            else:
                torch.where(mask if mine.dim() == 1 else mask.unsqueeze(-1), its, mine, out=mine)
