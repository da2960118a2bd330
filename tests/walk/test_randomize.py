"""What differs between robots: that it is drawn, grows with the level, and changes what physics does."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import mujoco
import pytest
import torch
from torch import Tensor

from tests.walk.robots import STILL, home, make_env, standing
from wavedash.errors import UserError
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.names import PARTS
from wavedash.walk.physics import Physics
from wavedash.walk.robot import KD, KP, SUBSTEPS

RANGES: dict[str, tuple[str, float, float, float]] = {
    "payload": ("payload", -1.0, 3.0, 0.0), "centre_of_mass": ("offset", -0.05, 0.05, 0.0),
    "friction": ("friction", 0.3, 1.25, 0.8), "motor_strength": ("strength", 0.9, 1.1, 1.0), "latency": ("delay", 0, 4, 0),
}
"""By part: the field of physics, its range, and its value in the robot as modelled"""
ALL = {"payload": {}, "centre_of_mass": {}, "friction": {}, "motor_strength": {}, "gains": {}, "latency": {}, "pushes": {}}


def drawn(name: str, breadth: float, robots: int = 5000) -> Physics:
    physics = Physics(robots)
    PARTS.make("randomization", name).draw(physics, torch.full((robots,), breadth), torch.Generator().manual_seed(0))
    return physics


@pytest.mark.parametrize("part", RANGES)
def test_a_part_draws_from_its_range_which_shrinks_to_the_modelled_value(part: str) -> None:
    field, low, high, middle = RANGES[part]

    def values(breadth: float) -> Tensor:
        return drawn(part, breadth).tensors()[field].double()

    x = values(1.0)
    width = high - low
    assert low - 1e-6 <= float(x.min()) <= low + 0.01 * width and high - 0.01 * width <= float(x.max()) <= high + 1e-6
    assert float(x.mean()) == pytest.approx((low + high) / 2, abs=0.03 * width)
    assert (values(0.0) == Physics(1).tensors()[field].double().flatten()[0]).all(), "nothing on the first level"
    half = values(0.5)
    assert float(half.min()) >= (low + middle) / 2 - 1e-6 and float(half.max()) <= (high + middle) / 2 + 1e-6
    if part != "latency":
        assert float(half.max() - half.min()) > 0.45 * width
    others = [name for name in Physics(1).tensors() if name != field]
    assert all(torch.equal(drawn(part, 1.0).tensors()[name], Physics(5000).tensors()[name]) for name in others)


def test_gains_are_drawn_around_the_middle() -> None:
    physics = drawn("gains", 1.0)
    assert KP - 5 <= float(physics.kp.min()) < KP - 4.9 and KP + 4.9 < float(physics.kp.max()) <= KP + 5
    assert float((physics.kd - KD).abs().max()) == pytest.approx(0.1, rel=0.01)


def test_latencies_are_whole_ticks_each_as_often() -> None:
    counts = torch.bincount(drawn("latency", 1.0).delay)
    assert len(counts) == SUBSTEPS + 1 and (counts - 1000).abs().max() < 150


@pytest.mark.parametrize(("part", "options"), [
    ("latency", {"ticks": 5}), ("latency", {"ticks": 2.7}), ("payload", {"low": -4.5}), ("payload", {"low": 4.0}),
    ("centre_of_mass", {"most": -0.1}), ("friction", {"low": -0.1}), ("friction", {"low": 2.0}),
    ("friction", {"high": float("nan")}), ("motor_strength", {"low": -1.0}), ("motor_strength", {"high": float("inf")}),
    ("gains", {"kp": 50.0}), ("gains", {"kd": 0.6}), ("pushes", {"seconds": 0.0}), ("pushes", {"seconds": -1.0}),
    ("pushes", {"speed": -0.3})])
def test_what_a_robot_cannot_be_is_refused(part: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="cannot be made with"):
        PARTS.make("randomization", part, options)


# --- the environment really calls them -------------------------------------------------------------------------------


def test_bodies_are_drawn_once_and_everything_else_with_every_episode() -> None:
    env = make_env(6, randomize=ALL, levels=1, endings={"time_out": {"seconds": 0.1}})
    plain = Physics(6).tensors()
    env.reset(0)
    first = {name: x.clone() for name, x in env.simulator.physics.tensors().items()}
    assert all(not torch.equal(x, plain[name]) for name, x in first.items()), "each part has changed something"
    for _ in range(4):
        env.step(torch.zeros(6, 12))
    assert all(torch.equal(x, first[name]) for name, x in env.simulator.physics.tensors().items())
    assert env.step(torch.zeros(6, 12)).truncated.all()
    same = {name for name, x in env.simulator.physics.tensors().items() if torch.equal(x, first[name])}
    assert same == {"payload", "offset"}


def test_only_robots_whose_episode_begins_are_drawn_anew() -> None:
    env = make_env(6, randomize=ALL, levels=1, starts=STILL)
    env.reset(0)
    before = {name: x.clone() for name, x in env.simulator.physics.tensors().items()}
    assert isinstance(env.simulator, MujocoSimulator)
    env.simulator.qpos[2, 2:7] = torch.tensor([0.06, 0.0, 1.0, 0.0, 0.0])
    assert env.step(torch.zeros(6, 12)).terminated.tolist() == [False, False, True, False, False, False]
    others = torch.arange(6) != 2
    for name, x in env.simulator.physics.tensors().items():
        assert torch.equal(x[others], before[name][others])
    assert env.simulator.physics.friction[2] != before["friction"][2]


def test_ranges_grow_with_the_level_of_a_robot_if_they_are_progressive() -> None:
    def deviations(**options: Any) -> list[float]:
        env = make_env(900, randomize={"friction": {}, "motor_strength": {}}, terrain={"rough": 1}, levels=3, first_level=2,
                       resolution=0.1, **options)
        env.reset(0)
        strength, level = env.simulator.physics.strength, env.task.levels.level
        return [float(strength[level == number].std()) for number in range(3)]

    whole = 0.2 / 12**0.5
    assert deviations() == pytest.approx([0.0, whole / 2, whole], rel=0.05, abs=1e-9)
    assert deviations(progressive=False) == pytest.approx([whole] * 3, rel=0.05)


def test_pushes_come_as_often_and_as_strong_as_they_say() -> None:
    env = make_env(200, randomize={"pushes": {"speed": 0.4, "seconds": 0.5}}, starts=STILL, levels=1,
                   endings={"time_out": {"seconds": 9}})
    calm = make_env(200, starts=STILL, levels=1, endings={"time_out": {"seconds": 9}})
    for each in (env, calm):
        each.reset(0)
    changes = []
    for _ in range(40):
        for each in (env, calm):
            each.step(torch.zeros(200, 12))
        changes.append(env.state.velocity - calm.state.velocity)
        assert isinstance(env.simulator, MujocoSimulator) and isinstance(calm.simulator, MujocoSimulator)
        for mine, its in zip(env.simulator.fields.values(), calm.simulator.fields.values(), strict=True):
            mine.copy_(its)  # so that the next difference is that of one push
    change = torch.stack(changes)
    assert not change[..., 2].any(), "along the ground only"
    size = change.norm(dim=-1)
    assert float((size > 0).float().mean()) == pytest.approx(0.02 / 0.5, rel=0.15)
    assert 0.38 < float(size.max()) <= 0.4 + 1e-6
    mean = change[size > 0].mean(0)
    assert float(mean.norm()) < 0.05, "in all directions"


def test_a_push_moves_the_robot_on() -> None:
    """The velocity is that of physics, not of a state that the next step overwrites."""
    simulator = standing(2)
    for _ in range(50):
        simulator.step(home(2))
    simulator.push(torch.tensor([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]))
    at_rest = simulator.state.position[:, 0].clone()
    simulator.step(home(2))
    moved = simulator.state.position[:, 0] - at_rest
    assert abs(float(moved[0])) < 1e-3 and float(moved[1]) > 0.005


# --- and physics obeys them ------------------------------------------------------------------------------------------


def test_a_payload_presses_on_the_feet_with_its_weight() -> None:
    simulator = standing(3)
    simulator.physics.payload.copy_(torch.tensor([0.0, 3.0, -1.0]))
    simulator.set_bodies()
    simulator.place(torch.ones(3, dtype=torch.bool))
    for _ in range(500):
        simulator.step(home(3))
    weight = simulator.state.foot_force[..., 2].sum(-1)
    torch.testing.assert_close(weight - weight[0], 9.81 * simulator.physics.payload, rtol=0, atol=0.3)
    subtree = simulator.batch.expanded("body_subtreemass")
    assert subtree is not None
    torch.testing.assert_close(torch.from_numpy(subtree[:, 0].copy()), 12.453 + simulator.physics.payload.double(),
                               rtol=0, atol=1e-6, msg="MuJoCo's derived constants follow")


def test_a_moved_centre_of_mass_loads_the_legs_on_that_side() -> None:
    simulator = standing(3)
    simulator.physics.offset.copy_(torch.tensor([[0.0, 0.0, 0.0], [0.05, 0.0, 0.0], [0.0, -0.05, 0.0]]))
    simulator.set_bodies()
    simulator.place(torch.ones(3, dtype=torch.bool))
    for _ in range(500):
        simulator.step(home(3))
    right_front, left_front, right_rear, _ = simulator.state.foot_force[..., 2].unbind(-1)
    front, right = right_front + left_front, right_front + right_rear
    assert front[1] > front[0] + 5.0 and right[2] > right[0] + 5.0
    assert right[1] == pytest.approx(float(right[0]), abs=0.5) and front[2] == pytest.approx(float(front[0]), abs=0.5)


def test_feet_hold_up_to_the_coefficient_of_friction_times_the_load() -> None:
    """Robots slide along: the forces along the ground are the coefficient times that onto it, and never more. MuJoCo's cone is
    a pyramid: the sum of both directions counts."""
    expected = torch.tensor([0.3, 0.8, 1.25])
    simulator = standing(3)
    simulator.physics.friction.copy_(expected)
    simulator.place(torch.ones(3, dtype=torch.bool))
    most = torch.zeros(3)
    for step in range(40):
        if step % 10 == 9:
            simulator.push(torch.tensor([[0.0, 2.0, 0.0]]).expand(3, 3))
        simulator.step(home(3))
        force, loaded = simulator.state.foot_force, simulator.state.foot_force[..., 2] > 5.0
        ratio = force[..., :2].abs().sum(-1) / force[..., 2]
        most = torch.maximum(most, torch.where(loaded, ratio, 0.0).amax(-1))
    torch.testing.assert_close(most, expected, rtol=0.01, atol=0.0)


def test_with_a_delay_of_four_ticks_a_target_acts_exactly_one_step_later() -> None:
    generator = torch.Generator().manual_seed(0)
    targets = home(1) + 0.6 * (2 * torch.rand(20, 12, generator=generator) - 1)
    prompt, late = standing(), standing()
    late.physics.delay.fill_(SUBSTEPS)
    before = late.target.clone()
    prompt.step(before.float())
    late.step(targets[0][None])
    assert torch.equal(prompt.qpos, late.qpos), "the first target is not there yet"
    for now, following in pairwise(targets):
        prompt.step(now[None])
        late.step(following[None])
        assert torch.equal(prompt.qpos, late.qpos) and torch.equal(prompt.qvel, late.qvel)
    assert (late.state.joint_position - home()).abs().max() > 0.2, "it has really moved"


@pytest.mark.parametrize("delay", range(SUBSTEPS + 1))
def test_a_delay_is_counted_in_ticks(delay: int) -> None:
    """The reference is a simulation of MuJoCo's, stepped tick by tick with the target that is in force."""
    simulator = standing(2)
    simulator.physics.delay[1] = delay  # beside a robot without delay
    model, data = simulator.batch.get_model(1), simulator.batch.get_data(1)
    generator, last = torch.Generator().manual_seed(1), simulator.target[1].clone()
    for _ in range(5):
        target = home(2) + 0.5 * torch.randn(2, 12, generator=generator)
        simulator.step(target)
        for tick in range(SUBSTEPS):
            data.ctrl[:] = (last if tick < delay else target[1]).numpy()
            mujoco.mj_step(model, data)
        assert data.qpos.tolist() == simulator.qpos[1].tolist()
        last = target[1].double()


def test_weak_motors_bear_less() -> None:
    simulator = standing(2)
    simulator.physics.strength[1] = 0.8
    simulator.place(torch.ones(2, dtype=torch.bool))
    for _ in range(400):
        simulator.step(home(2))
    height = simulator.state.position[:, 2]
    assert height[1] < height[0] - 0.003
