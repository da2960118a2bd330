"""MujocoWarpSimulator: robots on a GPU, by MuJoCo Warp, with the model that MujocoSimulator has on a CPU."""
from __future__ import annotations

import logging
from dataclasses import replace

import mujoco
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.saved import Saved
from wavedash.walk.model import GROUND, make_model
from wavedash.walk.physics import Physics
from wavedash.walk.robot import LEGS, SUBSTEPS
from wavedash.walk.simulator import Simulator
from wavedash.walk.state import FASTEST, SENSED, RobotState, place_of
from wavedash.walk.terrain.ground import Ground
from wavedash.warp_package import log_if_compiling, start_warp

try:
    import mujoco_warp as mjw
    import warp as wp

    from wavedash.walk.contacts import field_contacts
    from wavedash.walk.on_torch import on_torch
except ImportError as error:
    raise UserError(f"MuJoCo Warp 4.0.0, which simulates robots on a GPU, is not installed ({error}). Install it with: "
                    "pip install \"wavedash[walk]\"") from error

log = logging.getLogger(__name__)
field_contacts.patch()

POSE, MOTION, TORQUE = place_of("position", "joint_position"), place_of("velocity", "joint_velocity"), place_of("torque")
"""Columns of the state that are MuJoCo's qpos, qvel and actuator_force"""
SENSORS = place_of(SENSED[0], SENSED[-1])
FORCES = place_of("foot_force")
WHERE_FEET_ARE, TOUCHES = place_of("foot_position", "foot_velocity"), place_of("trunk_contact", "calf_contact")
"""Columns of sensors: all, those of forces, and those that follow from positions and velocities alone"""
TRUNK = 1
"""The number of the trunk among the bodies; 0 is the world"""
PLANE_CONTACTS = {mujoco.mjtGeom.mjGEOM_SPHERE: 1, mujoco.mjtGeom.mjGEOM_CAPSULE: 2, mujoco.mjtGeom.mjGEOM_BOX: 4}
FIELD_CONTACTS = 4
"""The most contacts of a geom with a plane and with a height field. MuJoCo has one for every triangle of a height field, up
to 50; MuJoCo Warp keeps 4 of them. A robot in random falls has up to 188 contacts in MuJoCo and 45 in MuJoCo Warp (measured
with cells of 5 cm)"""
ROWS = 4
"""Rows of the constraint solver for a contact: the sides of its friction pyramid"""
DROPPED = (mjw.OverflowType.NEFC | mjw.OverflowType.NJMAX_NNZ | mjw.OverflowType.BROADPHASE | mjw.OverflowType.NARROWPHASE
           | mjw.OverflowType.CCD | mjw.OverflowType.CONTACT_MATCH)
"""Marks of MuJoCo Warp for a lack of memory. It also marks a geom that touches more than 50 triangles of a height field, as the
trunk of a fallen robot may: like MuJoCo, it then considers the first 50"""


class MujocoWarpSimulator(Simulator):
    """A world of MuJoCo Warp for every robot. Between steps, everything that follows from positions and velocities is computed
    already (MuJoCo's `step1`: contacts, inertia, sensors), so a tick is the other half (`step2`: forces, acceleration,
    integration), then the first half at its end. Nothing is computed twice, and the state after a step is that of the end.

    - There is no host sync, and steps and placements can be captured in a CUDA graph. For this the constraint solver always
      launches all its iterations; robots whose solution has converged skip them.
    - Contacts are never dropped for want of memory: there is room for the most that are possible. `health` would tell.
    - On a CPU it serves tests: results are reproduced exactly there, and it is many times slower than MujocoSimulator. On a GPU
      the order of additions varies, and with it the last bits."""

    def __init__(self, ground: Ground, robots: int, device: torch.device | str) -> None:
        start_warp("MuJoCo Warp", "pip install \"wavedash[walk]\"")
        device = torch.empty(0, device=device).device  # with an index: "cuda:0", not "cuda"
        self.capturable = device.type == "cuda"
        self.ground = ground.to(device)
        self.state, self.physics = RobotState.zeros(robots, device), Physics(robots, device)
        self.state.orientation[:, 0] = 1.0
        self.broken, self.wrong = torch.zeros(2, robots, dtype=torch.bool, device=device)
        """[E], [E]: robots that were broken when the last step ended, and robots that have been since they were placed"""
        self.host = make_model(ground)
        self.feet = [self.host.geom(f"{leg}_foot").id for leg in LEGS]
        with log_if_compiling("MuJoCo Warp", f"{device}"), on_torch(device):
            self._make_worlds(robots)
            self._load_kernels()

    def _make_worlds(self, robots: int) -> None:
        contacts, rows, convex = sizes(self.host)
        self.model, self.data = mjw.put_model(self.host), mjw.make_data(self.host, robots, contacts, convex, rows)
        options = self.model.opt
        options.graph_conditional = False  # else Warp would wait for the solver, or would need a capture of its own
        options.warn_overflow = 0  # it prints, from the GPU
        self.tiles = None if self.ground.is_flat else self._own("geom_dataid")[:, self.host.geom(GROUND).id]
        self.friction = self._own("geom_friction")
        self.gain, self.bias = self._own("actuator_gainprm"), self._own("actuator_biasprm")
        bodies = ("body_mass", "body_ipos", "body_inertia")
        self.mass, self.centre, self.inertia = (self._own(name)[:, TRUNK] for name in bodies)
        self.trunk = self.mass[0].clone(), self.centre[0].clone(), self.inertia[0].clone()
        """Mass, centre of mass and inertia of the trunk without a payload"""
        for derived in ("body_subtreemass", "body_invweight0", "dof_invweight0"):
            self._own(derived)  # by set_const, from the masses
        self.silent = replace(self.model, opt=replace(options, disableflags=options.disableflags | mjw.DisableBit.SENSOR))
        """The model without sensors, for ticks whose sensors are not read"""
        views = (self.data.qpos, self.data.qvel, self.data.ctrl, self.data.qacc_warmstart, self.data.actuator_force,
                 self.data.sensordata, self.data.overflow)
        self.qpos, self.qvel, self.target, self.warmstart, self.torque, self.sensors, self.overflow = map(wp.to_torch, views)
        self.rest = self.qpos[:1].clone()
        self.dropped = torch.zeros(1, dtype=torch.int64, pin_memory=self.capturable)
        self._dropped, self._warned = self.dropped.numpy(), 0  # the same memory, read without a host sync

    def _own(self, name: str) -> Tensor:
        """Gives every robot its own numbers of a field of the model; returns them, [E, ...]."""
        shared = getattr(self.model, name)
        own = wp.to_torch(shared)[:1].repeat_interleave(self.data.nworld, 0)
        setattr(self.model, name, wp.from_torch(own, dtype=shared.dtype))
        return own

    def _load_kernels(self) -> None:
        """Runs a tick, because a kernel cannot be loaded during the capture of a CUDA graph, and undoes it."""
        mjw.step1(self.model, self.data)
        mjw.step2(self.model, self.data)
        self._rest(torch.ones_like(self.broken))
        self.overflow.zero_()
        mjw.step1(self.model, self.data)

    def step(self, target: Tensor) -> None:
        before, delay = self.target.clone(), self.physics.delay.unsqueeze(-1)
        with on_torch(self.device):
            for tick in range(SUBSTEPS):
                torch.where(delay > tick, before, target, out=self.target)
                last = tick == SUBSTEPS - 1
                model = self.model if last else self.silent
                mjw.step2(model, self.data)
                if last:
                    self._end_tick()
                mjw.step1(model, self.data)
        self.target.copy_(target)  # a delay of a whole step hands it to the next one
        memory = self.state.memory
        memory[:, POSE], memory[:, MOTION] = self.qpos, self.qvel
        for columns in (WHERE_FEET_ARE, TOUCHES):
            memory[:, columns] = self._sensed(columns)
        self.state.derive()
        self.state.clock += SUBSTEPS

    def _end_tick(self) -> None:
        """Keeps torques and forces of the tick, and puts broken robots at rest, as MuJoCo does by itself."""
        state = self.state
        state.memory[:, TORQUE], state.memory[:, FORCES] = self.torque, self._sensed(FORCES)
        sound = self.qpos.isfinite().all(-1) & (self.qvel.abs() < FASTEST).all(-1)
        self.wrong |= ~sound
        self.broken.copy_(self.wrong)
        self._rest(~sound)
        self._clear_forces(~sound)

    def plain_step(self, target: Tensor) -> None:
        self.target.copy_(target)
        with on_torch(self.device):
            for _ in range(SUBSTEPS):
                mjw.step(self.silent, self.data)

    def place(self, robots: Tensor) -> None:
        mask, memory = robots.unsqueeze(-1), self.state.memory
        self._write_physics(robots)
        given = memory[:, POSE], memory[:, MOTION], self.state.joint_position
        for own, x in zip((self.qpos, self.qvel, self.target), given, strict=True):
            torch.where(mask, x, own, out=own)
        self.warmstart.masked_fill_(mask, 0.0)
        self.wrong &= ~robots
        self._derive()
        for columns in (WHERE_FEET_ARE, TOUCHES):
            memory[:, columns] = torch.where(mask, self._sensed(columns), memory[:, columns])
        self._clear_forces(robots)
        self.state.derive()

    def push(self, velocity: Tensor) -> None:
        self.qvel[:, :3] += velocity
        with on_torch(self.device):  # what of step1 follows from velocities
            mjw.make_constraint(self.model, self.data)
            mjw.fwd_velocity(self.model, self.data)
        self.state.velocity.copy_(self.qvel[:, :3])
        self.state.derive()

    def set_bodies(self) -> None:
        mass, centre, inertia = self.trunk
        self.mass.copy_(mass + self.physics.payload)
        self.centre.copy_(centre + self.physics.offset)
        self.inertia.copy_(inertia * (self.mass / mass).unsqueeze(-1))
        with on_torch(self.device):
            mjw.set_const(self.model, self.data)
        self._derive()

    def save(self) -> dict[str, Tensor]:
        return {name: x.clone() for name, x in self._integrated().items()}

    def load(self, saved: Saved) -> None:
        given = {name: saved.is_like(name, x) for name, x in self._integrated().items()}
        self._write_physics(torch.ones_like(self.broken))
        for name, x in self._integrated().items():
            x.copy_(given[name])
        self._derive()

    @property
    def health(self) -> dict[str, int]:
        """`dropped_contacts`: robots that had contacts for which there was no memory, since the start. There is no host
        sync: on a GPU the count may be that of the previous call."""
        self.dropped.copy_((self.overflow & int(DROPPED)).ne(0).sum(0, keepdim=True), non_blocking=True)
        count = int(self._dropped[0])
        if count > self._warned:
            log.warning("contacts of %d robot(s) with the ground were dropped because MuJoCo Warp had no memory for them: such "
                        "a robot may sink into the ground. Please report it with your terrain.", count)
            self._warned = count
        return {"dropped_contacts": count}

    def _integrated(self) -> dict[str, Tensor]:
        """Returns what a step depends on, by MuJoCo's names."""
        return {"qpos": self.qpos, "qvel": self.qvel, "ctrl": self.target, "qacc_warmstart": self.warmstart}

    def _derive(self) -> None:
        """Computes what follows from positions and velocities, of all robots: of those that did not move it stays the same."""
        with on_torch(self.device):
            mjw.step1(self.model, self.data)

    def _sensed(self, columns: slice) -> Tensor:
        """The sensors that are these columns of the state."""
        return self.sensors[:, columns.start - SENSORS.start:columns.stop - SENSORS.start]

    def _rest(self, robots: Tensor) -> None:
        """Puts these robots [E] at rest at the origin."""
        mask = robots.unsqueeze(-1)
        torch.where(mask, self.rest, self.qpos, out=self.qpos)
        self.qvel.masked_fill_(mask, 0.0)
        self.warmstart.masked_fill_(mask, 0.0)

    def _clear_forces(self, robots: Tensor) -> None:
        """There are no torques and forces of these robots [E] until the first tick."""
        self.state.torque.masked_fill_(robots.view(-1, 1), 0.0)
        self.state.foot_force.masked_fill_(robots.view(-1, 1, 1), 0.0)

    def _write_physics(self, robots: Tensor) -> None:
        """Writes tiles and the numbers of contacts and motors of these robots [E] into the model."""
        physics, mask = self.physics, robots.unsqueeze(-1)
        if self.tiles is not None:
            self.tiles.copy_(torch.where(robots, self.state.tile, self.tiles))
        for foot in self.feet:
            sliding = self.friction[:, foot, 0]
            torch.where(robots, physics.friction, sliding, out=sliding)
        kp, kd = (physics.strength * x.unsqueeze(-1) for x in (physics.kp, physics.kd))
        for own, given in ((self.gain[..., 0], kp), (self.bias[..., 1], -kp), (self.bias[..., 2], -kd)):
            torch.where(mask, given, own, out=own)


def sizes(model: mujoco.MjModel) -> tuple[int, int, int]:
    """How much memory a world needs at most: contacts, rows of the constraint solver, and geoms of one type that touch a height
    field. Only the ground touches the robot."""
    kinds = [mujoco.mjtGeom(kind) for kind, meets in zip(model.geom_type, model.geom_contype, strict=True) if meets]
    contacts = sum(FIELD_CONTACTS if model.nhfield else PLANE_CONTACTS[kind] for kind in kinds)
    return contacts, ROWS * contacts + int(model.jnt_limited.sum()), max(map(kinds.count, kinds))
