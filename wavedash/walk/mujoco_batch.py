"""MujocoSimulator: robots on the cores of a CPU, by MuJoCo's own batch of simulations."""
from __future__ import annotations

import warnings

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from wavedash.saved import Saved
from wavedash.walk.model import GROUND, make_model
from wavedash.walk.physics import Physics
from wavedash.walk.robot import LEGS, SUBSTEPS
from wavedash.walk.simulator import Simulator
from wavedash.walk.state import SENSED, RobotState, place_of
from wavedash.walk.terrain.ground import Ground

WRONG = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{field}")) for field in ("QPOS", "QVEL", "QACC")]
"""Warnings after which MuJoCo resets a simulation"""
INTEGRATED = "time", "qpos", "qvel", "ctrl", "qacc_warmstart"
"""The fields that a step depends on"""
POSE, MOTION = place_of("position", "joint_position"), place_of("velocity", "joint_velocity")
"""Columns of the state that are MuJoCo's qpos and qvel"""
TRUNK = 1
"""The number of the trunk among the bodies; 0 is the world"""


class MujocoSimulator(Simulator):
    """Robots are stepped by a pool of threads; results do not depend on how many. Every simulation keeps its `MjData`, so that
    the state after a step (feet, contacts) costs nothing extra: the next step goes on from it."""

    def __init__(self, ground: Ground, robots: int, threads: int) -> None:
        self.ground = ground
        self.state, self.physics = RobotState.zeros(robots), Physics(robots)
        self.state.orientation[:, 0] = 1.0
        self.broken = torch.zeros(robots, dtype=torch.bool)
        self.model = make_model(ground)
        self.batch = Batch(self.model, robots, nthread=min(threads, robots), persistent=True)
        self.fields = {name: self._bound(name) for name in INTEGRATED}
        self.qpos, self.qvel, self.target = (self.fields[name] for name in ("qpos", "qvel", "ctrl"))
        self.filled = [(POSE, self.qpos), (MOTION, self.qvel), (place_of("torque"), self._bound("actuator_force")),
                       (place_of(SENSED[0], SENSED[-1]), self._bound("sensordata"))]
        """Columns of the state, and MuJoCo's fields that they are copies of"""
        self.feet = [self.model.geom(f"{leg}_foot").id for leg in LEGS]
        self.tiles = None if ground.is_flat else self.batch.expand("geom_dataid")[:, self.model.geom(GROUND).id]
        self.friction = self.batch.expand("geom_friction")
        self.gain, self.bias = self.batch.expand("actuator_gainprm"), self.batch.expand("actuator_biasprm")

    def step(self, target: Tensor) -> None:
        if bool((self.physics.delay > 0).any()):
            before = self.target.clone()
            for tick in range(SUBSTEPS):
                self.target.copy_(torch.where((self.physics.delay > tick).unsqueeze(-1), before, target.double()))
                last = tick == SUBSTEPS - 1
                self.batch.step(stage=mujoco.mjtStage.mjSTAGE_VEL if last else mujoco.mjtStage.mjSTAGE_NONE)
            self.target.copy_(target)  # a delay of a whole step hands it to the next one
        else:
            self.target.copy_(target)
            self.batch.step(nstep=SUBSTEPS, stage=mujoco.mjtStage.mjSTAGE_VEL)
        for columns, field in self.filled:
            self.state.memory[:, columns] = field
        self.state.derive()
        self.state.clock += SUBSTEPS
        was_reset = torch.from_numpy(self.batch.warning[:, WRONG, 1].any(-1))  # since it was placed, which clears warnings
        torch.logical_or(was_reset, self.state.is_impossible, out=self.broken)

    def plain_step(self, target: Tensor) -> None:
        self.target.copy_(target)
        self.batch.step(nstep=SUBSTEPS)

    def place(self, robots: Tensor) -> None:
        ids = robots.nonzero().flatten()
        if not len(ids):
            return
        numbers = ids.numpy()
        self._write_physics(numbers)
        self.batch.reset(numbers, stage=mujoco.mjtStage.mjSTAGE_NONE)
        self.qpos[ids] = self.state.memory[ids, POSE].double()
        self.qvel[ids] = self.state.memory[ids, MOTION].double()
        self.target[ids] = self.state.joint_position[ids].double()
        self.batch.forward(numbers, stage=mujoco.mjtStage.mjSTAGE_VEL)
        for columns, field in self.filled:
            self.state.memory[ids, columns] = field[ids].float()
        for unknown in (self.state.torque, self.state.foot_force):
            unknown[ids] = 0.0  # until the first tick
        self.state.derive()

    def push(self, velocity: Tensor) -> None:
        self.qvel[:, :3] += velocity
        self.state.velocity.copy_(self.qvel[:, :3])
        self.state.derive()

    def set_bodies(self) -> None:
        mass, centre, inertia = (self.batch.expand(name) for name in ("body_mass", "body_ipos", "body_inertia"))
        before = self.model.body_mass[TRUNK]
        mass[:, TRUNK] = before + self.physics.payload.double().numpy()
        centre[:, TRUNK] = self.model.body_ipos[TRUNK] + self.physics.offset.double().numpy()
        inertia[:, TRUNK] = self.model.body_inertia[TRUNK] * (mass[:, TRUNK, None] / before)
        self.batch.set_const()

    def save(self) -> dict[str, Tensor]:
        return {name: x.clone() for name, x in self.fields.items()}

    def load(self, saved: Saved) -> None:
        given = {name: saved.is_like(name, x) for name, x in self.fields.items()}
        self._write_physics(np.arange(len(self.broken)))
        self.batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE)
        for name, x in given.items():
            self.fields[name].copy_(x)
        self.batch.forward(stage=mujoco.mjtStage.mjSTAGE_VEL)

    def _bound(self, name: str) -> Tensor:
        """A field of all simulations, as a view."""
        with warnings.catch_warnings():  # of torch, about arrays that it must not write
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(self.batch.bind(name))

    def _write_physics(self, robots: np.ndarray) -> None:
        """Writes tiles and the numbers of contacts and motors of these robots into their models."""
        physics = self.physics
        if self.tiles is not None:
            self.tiles[robots] = self.state.tile.numpy()[robots]
        # Rounded, because 0.8 as a float32 is not the model's 0.8: a robot that is not randomised is exactly that of a1.xml.
        self.friction[robots[:, None], self.feet, 0] = physics.friction.double().numpy().round(6)[robots, None]
        strength = physics.strength.numpy()[robots]
        kp, kd = (strength * x.numpy()[robots, None] for x in (physics.kp, physics.kd))
        self.gain[robots, :, 0] = kp
        self.bias[robots, :, 1], self.bias[robots, :, 2] = -kp, -kd
