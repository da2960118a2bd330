"""The robot: its mass, limits and motors, and that it stands, settles and mirrors itself."""
from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from tests.walk.robots import home, mirrored_joints, mirrored_motion, mirrored_pose, standing
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.robot import HOME, JOINT_RANGES, JOINTS, KD, KP, MAX_TORQUE, STEP, SUBSTEP, SUBSTEPS

MASS, GRAVITY = 12.453, 9.81


def test_mass_joints_and_limits_are_those_of_the_file() -> None:
    model = standing().model
    assert sum(model.body_mass) == pytest.approx(MASS) and round(MASS, 2) == 12.45
    assert tuple(model.joint(i + 1).name for i in range(12)) == JOINTS
    np.testing.assert_array_equal(model.jnt_range[1:], np.array(JOINT_RANGES))
    assert tuple(model.actuator(i).name for i in range(12)) == JOINTS
    assert (model.actuator_forcerange == [[-MAX_TORQUE, MAX_TORQUE]] * 12).all()
    assert (model.actuator_gainprm[:, 0] == KP).all() and (model.actuator_biasprm[:, 1:3] == [-KP, -KD]).all()
    assert model.opt.timestep == SUBSTEP and SUBSTEPS * SUBSTEP == STEP == 0.02
    assert all(low < angle < high for angle, (low, high) in zip(HOME, JOINT_RANGES, strict=True))


def test_a_standing_robot_comes_to_rest_on_feet_that_carry_its_weight() -> None:
    simulator = standing()
    state = simulator.state

    def power() -> float:
        return float((state.torque * state.joint_velocity).abs().sum())

    for _ in range(10):
        simulator.step(home())
    moving = power()
    for _ in range(600):
        simulator.step(home())
    assert state.touching.all() and not state.trunk_contact.any() and not state.calf_contact.any()
    assert float(simulator.qvel.abs().max()) < 1e-3 and power() < 0.01 < moving
    assert float(state.foot_force[..., 2].sum()) == pytest.approx(MASS * GRAVITY, rel=1e-3)
    assert float(state.foot_force[..., :2].sum(1).abs().max()) < 1e-2 * MASS, "forces along the ground cancel"
    assert 0.2 < float(state.position[0, 2]) < 0.28


def test_mirrored_actions_move_a_mirrored_robot_in_the_mirror() -> None:
    """Over three seconds of violent motion, with falls and contacts of the trunk."""
    generator = torch.Generator().manual_seed(3)
    simulator = standing(2)
    state = simulator.state
    joints = state.joint_position[0] + 0.2 * (torch.rand(12, generator=generator) - 0.5)
    state.joint_position.copy_(torch.stack((joints, mirrored_joints(joints))))
    state.velocity.copy_(torch.tensor([[0.2, 0.3, -0.1], [0.2, -0.3, -0.1]]))
    state.angular_velocity.copy_(torch.tensor([[0.3, -0.2, 0.4], [-0.3, -0.2, -0.4]]))
    simulator.place(torch.ones(2, dtype=torch.bool))
    fell = False
    for _ in range(150):
        target = home()[0] + 0.5 * (2 * torch.rand(12, generator=generator) - 1)
        simulator.step(torch.stack((target, mirrored_joints(target))))
        torch.testing.assert_close(mirrored_pose(simulator.qpos[0]), simulator.qpos[1], rtol=0, atol=1e-9)
        torch.testing.assert_close(mirrored_motion(simulator.qvel[0]), simulator.qvel[1], rtol=0, atol=1e-7)
        fell |= bool(state.trunk_contact[0] > 0)
    assert fell and float(state.position[0, :2].norm()) > 0.05, "it has really moved"
    assert not torch.allclose(simulator.qpos[0], simulator.qpos[1]), "the control: it is no copy"


def test_joints_stop_at_their_limits_and_motors_at_theirs() -> None:
    low, high = torch.tensor(JOINT_RANGES).unbind(-1)
    simulator = standing(2)
    simulator.state.position[:, 2] = 20.0
    simulator.place(torch.ones(2, dtype=torch.bool))
    strongest = 0.0
    for _ in range(50):
        simulator.step(torch.stack((low - 2.0, high + 2.0)))
        strongest = max(strongest, float(simulator.state.torque.abs().max()))
    assert strongest == MAX_TORQUE, "the motors are at their limits"
    q = simulator.state.joint_position
    assert ((q > low - 0.07) & (q < high + 0.07)).all(), "a limit is a spring, which 33.5 N m press in by 0.05 rad"
    torch.testing.assert_close(q[0], low, rtol=0, atol=0.07)
    torch.testing.assert_close(q[1], high, rtol=0, atol=0.07)


def tick_by_tick(simulator: MujocoSimulator, robot: int, target: torch.Tensor) -> np.ndarray:
    """The torques of the last tick of a step, by the law of PD control, from a simulation of MuJoCo's that goes its own way."""
    model, data = simulator.batch.get_model(robot), simulator.batch.get_data(robot)
    data.ctrl[:] = target.numpy()
    for _ in range(SUBSTEPS - 1):
        mujoco.mj_step(model, data)
    physics = simulator.physics
    kp, kd, strength = (float(physics.kp[robot]), float(physics.kd[robot]), physics.strength[robot].double().numpy())
    wanted = strength * (kp * (target.double().numpy() - data.qpos[7:]) - kd * data.qvel[6:])
    torque: np.ndarray = np.clip(wanted, -MAX_TORQUE, MAX_TORQUE)
    return torque


def test_torques_are_those_of_pd_control_with_the_gains_and_strengths_of_each_robot() -> None:
    generator = torch.Generator().manual_seed(0)
    simulator = standing(3)
    physics = simulator.physics
    physics.kp.copy_(torch.tensor([40.0, 35.0, 45.0]))
    physics.kd.copy_(torch.tensor([0.5, 0.4, 0.6]))
    physics.strength.copy_(0.9 + 0.2 * torch.rand(3, 12, generator=generator))
    simulator.place(torch.ones(3, dtype=torch.bool))
    limited = False
    for _ in range(20):
        target = home(3) + 1.0 * (2 * torch.rand(3, 12, generator=generator) - 1)
        expected = np.stack([tick_by_tick(simulator, robot, target[robot]) for robot in range(3)])
        simulator.step(target)
        np.testing.assert_allclose(simulator.state.torque.numpy(), expected, rtol=1e-5, atol=1e-4)
        limited |= bool((np.abs(expected) == MAX_TORQUE).any())
    assert limited, "some of them are at the limit"
