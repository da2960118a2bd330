"""The state of robots against MuJoCo: what is measured, and what follows from it."""
from __future__ import annotations

import mujoco
import numpy as np
import torch

from tests.walk.robots import home, made_up, make_ground, standing
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.robot import LEGS
from wavedash.walk.state import FIELDS, RobotState, place_of


def tossed(steps: int = 15) -> tuple[MujocoSimulator, RobotState]:
    """Robots that tumble, with a simulation of MuJoCo's for each."""
    generator = torch.Generator().manual_seed(1)
    simulator = standing(4)
    state = simulator.state
    state.velocity.copy_(torch.randn(4, 3, generator=generator))
    state.angular_velocity.copy_(3.0 * torch.randn(4, 3, generator=generator))
    simulator.place(torch.ones(4, dtype=torch.bool))
    for _ in range(steps):
        simulator.step(home(4) + torch.randn(4, 12, generator=generator))
    return simulator, state


def test_fields_are_views_of_one_memory_side_by_side() -> None:
    state = RobotState.zeros(3)
    for number, name in enumerate(FIELDS):
        getattr(state, name).fill_(number + 1.0)
    assert not (state.memory == 0).any(), "they cover all of it"
    for number, (name, shape) in enumerate(FIELDS.items()):
        assert getattr(state, name).shape == (3, *shape)
        assert (state.memory[:, place_of(name)] == number + 1.0).all(), "and do not overlap"


def test_gravity_velocity_and_yaw_in_the_frame_of_the_trunk() -> None:
    _, state = tossed()
    for i in range(4):
        back, q = np.zeros(4), state.orientation[i].double().numpy()
        mujoco.mju_negQuat(back, q)
        for field, vector in (("gravity", [0.0, 0.0, -1.0]), ("body_velocity", state.velocity[i].double().numpy())):
            expected = np.zeros(3)
            mujoco.mju_rotVecQuat(expected, np.array(vector), back)
            np.testing.assert_allclose(getattr(state, field)[i].numpy(), expected, rtol=1e-5, atol=1e-5)
        front = np.zeros(3)
        mujoco.mju_rotVecQuat(front, np.array([1.0, 0.0, 0.0]), q)
        np.testing.assert_allclose(state.yaw[i].numpy(), np.arctan2(front[1], front[0]), rtol=1e-4, atol=1e-5)
    assert float(state.gravity[:, 2].max()) > -0.95, "one of them is tilted"


def test_feet_are_where_kinematics_puts_them_and_move_as_positions_change() -> None:
    simulator, state = tossed()
    data = mujoco.MjData(simulator.model)
    for i in range(4):
        data.qpos[:], data.qvel[:] = simulator.qpos[i].numpy(), simulator.qvel[i].numpy()
        mujoco.mj_kinematics(simulator.model, data)
        before = np.array([data.site(f"{leg}_foot").xpos for leg in LEGS])
        np.testing.assert_allclose(state.foot_position[i].numpy(), before, atol=1e-6)
        mujoco.mj_integratePos(simulator.model, data.qpos, data.qvel, 1e-6)
        mujoco.mj_kinematics(simulator.model, data)
        moved = np.array([data.site(f"{leg}_foot").xpos for leg in LEGS])
        np.testing.assert_allclose(state.foot_velocity[i].numpy(), (moved - before) / 1e-6, rtol=1e-4, atol=1e-3)


def test_the_angular_velocity_is_that_of_a_gyroscope() -> None:
    """In the trunk's own frame: a robot that lies on its side and turns about the vertical feels it about its y axis."""
    simulator = standing()
    state = simulator.state
    state.orientation.copy_(torch.tensor([[0.5**0.5, 0.5**0.5, 0.0, 0.0]]))  # rolled by 90 degrees: its y axis points up
    state.position[:, 2], state.angular_velocity[0, 1] = 5.0, 2.0
    simulator.place(torch.ones(1, dtype=torch.bool))
    before = simulator.batch.get_data(0)
    mujoco.mj_forward(simulator.model, before)
    spatial = np.zeros(6)
    mujoco.mj_objectVelocity(simulator.model, before, mujoco.mjtObj.mjOBJ_XBODY, 1, spatial, 0)
    np.testing.assert_allclose(spatial[:3], [0.0, 0.0, 2.0], atol=1e-6)


def test_forces_are_those_of_the_ground_on_the_feet() -> None:
    """A robot that stands is pushed up; one in the air feels nothing; a foot that slides to +x is held back."""
    simulator = standing(2)
    simulator.state.position[1, 2] = 3.0
    simulator.place(torch.ones(2, dtype=torch.bool))
    state = simulator.state
    assert not state.foot_force.any(), "unknown before the first tick"
    for _ in range(10):
        simulator.step(home(2))
    assert (state.foot_force[0, :, 2] > 5.0).all() and state.touching[0].all()
    assert not state.foot_force[1].any() and not state.touching[1].any()
    simulator.push(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    simulator.step(home(2))
    assert float(state.foot_force[0, :, 0].sum()) < -10.0


def test_a_foot_touches_with_more_than_a_newton() -> None:
    state = made_up(1)
    state.foot_force.zero_()
    state.foot_force[0, :, 2] = torch.tensor([0.0, 1.0, 1.1, 50.0])
    state.foot_force[0, 0, 0] = 9.0
    assert state.touching.tolist() == [[False, False, True, True]]


def test_what_touches_the_ground_is_told_apart() -> None:
    simulator = standing(2, make_ground({"flat": 1.0}))
    simulator.state.orientation[1] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # on its back
    simulator.state.position[1, 2] = 0.08
    simulator.place(torch.ones(2, dtype=torch.bool))
    for _ in range(40):
        simulator.step(home(2))
    state = simulator.state
    assert (state.trunk_contact > 0).tolist() == [False, True]
    assert not state.thigh_contact[0].any() and not state.calf_contact[0].any()
    state.orientation[0] = torch.tensor([0.5**0.5, 0.5**0.5, 0.0, 0.0])  # on its right side
    state.position[0, 2] = 0.16
    simulator.place(torch.tensor([True, False]))
    for _ in range(10):
        simulator.step(home(2))
    assert (state.thigh_contact[0] + state.calf_contact[0] > 0).tolist() == [True, False, True, False], "right legs touch it"


def test_a_masked_copy_takes_over_whole_robots() -> None:
    one, other = made_up(3, 0), made_up(3, 1)
    other.clock.fill_(7)
    other.tile.fill_(2)
    kept = one.memory.clone()
    one.copy_(other, torch.tensor([False, True, False]))
    assert torch.equal(one.memory[1], other.memory[1]) and torch.equal(one.memory[[0, 2]], kept[[0, 2]])
    assert one.clock.tolist() == [0, 7, 0] and one.tile.tolist() == [0, 2, 0]


def test_impossible_velocities() -> None:
    state = made_up(4)
    state.joint_velocity[1, 3] = 1e5
    state.velocity[2, 0] = torch.nan
    state.angular_velocity[3, 2] = -torch.inf
    assert state.is_impossible.tolist() == [False, True, True, True]
