"""Both simulators, MuJoCo and MuJoCo Warp, on a CPU: they do what a simulator is to do, and they do the same.

The first run on a machine compiles MuJoCo Warp's kernels, which takes about a minute."""
from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
import torch

from tests.walk.dropped import all_kinds, clearance, everyone, flat, home, stand
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.saved import Saved, SavedError
from wavedash.walk import mujoco_warp
from wavedash.walk.contacts import field_contacts
from wavedash.walk.model import make_model
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.mujoco_warp import DROPPED, MujocoWarpSimulator, sizes
from wavedash.walk.robot import STANDING
from wavedash.walk.simulator import Simulator
from wavedash.walk.terrain.ground import Ground

pytestmark = pytest.mark.slow

Make = Callable[[Ground, int], Simulator]
GRAVITY, MASS = 9.81, 12.453


def of_mujoco(ground: Ground, robots: int) -> Simulator:
    return MujocoSimulator(ground, robots, 1)


def of_warp(ground: Ground, robots: int) -> Simulator:
    return MujocoWarpSimulator(ground, robots, "cpu")


both = pytest.mark.parametrize("make", [of_mujoco, of_warp], ids=["mujoco", "mujoco_warp"])


@pytest.fixture(scope="module")
def ground() -> Ground:
    return all_kinds()


def settle(simulator: Simulator, steps: int) -> None:
    target = home(*simulator.state.shape)
    for _ in range(steps):
        simulator.step(target)


def gap(a: Simulator, b: Simulator) -> torch.Tensor:
    return (a.state.position - b.state.position).norm(dim=-1)


def test_both_agree_from_the_drop_to_the_landing_and_after(ground):
    c, warp = of_mujoco(ground, 16), of_warp(ground, 16)
    for simulator in (c, warp):
        stand(simulator, above=0.05, reach=2.0)
    torch.testing.assert_close(warp.state.memory, c.state.memory, atol=1e-6, rtol=0.0)
    target = home(16)
    for step in range(50):
        c.step(target)
        warp.step(target)
        if not bool(c.state.touching.any()):
            torch.testing.assert_close(warp.state.memory, c.state.memory, atol=2e-5, rtol=1e-4)
        if step == 5:  # the first contacts, some of them of thighs on steep ground
            torch.testing.assert_close(warp.state.touching, c.state.touching)
            assert gap(c, warp).median() < 1e-5
    assert gap(c, warp).median() < 0.02
    assert not c.broken.any() and not warp.broken.any() and warp.health == {"dropped_contacts": 0}


@both
def test_placed_robots_have_the_state_that_was_written_and_others_keep_theirs(make, ground):
    simulator = make(ground, 3)
    stand(simulator)
    settle(simulator, 12)
    state = simulator.state
    assert (state.torque != 0).any(-1).all() and state.touching.any(-1).all()
    before = state.clone()
    written = state.clone()
    written.position[1] = torch.tensor([0.1, 0.2, 0.9])
    written.velocity[1] = torch.tensor([0.3, -0.2, 0.1])
    written.joint_position[1] += 0.1
    written.tile[1] = 5
    mask = torch.tensor([False, True, False])
    state.copy_(written, mask)
    simulator.place(mask)
    torch.testing.assert_close(state.memory[~mask], before.memory[~mask], atol=0.0, rtol=0.0)
    for name in ("position", "orientation", "joint_position", "velocity", "angular_velocity", "joint_velocity"):
        torch.testing.assert_close(getattr(state, name)[1], getattr(written, name)[1], atol=1e-6, rtol=0.0)
    for name in ("torque", "foot_force", "trunk_contact", "thigh_contact", "calf_contact"):
        assert not getattr(state, name)[1].any()
    # A foot is where the trunk is, and below it; it moves as the trunk does.
    assert (state.foot_position[1, :, 2] < 0.9).all()
    torch.testing.assert_close(state.foot_position[1].mean(0)[:2], written.position[1, :2], atol=0.1, rtol=0.0)
    torch.testing.assert_close(state.body_velocity[1], state.velocity[1], atol=0.1, rtol=0.0)


@both
def test_placing_some_robots_changes_nothing_for_the_others(make, ground):
    alone, with_another = make(ground, 2), make(ground, 2)
    for simulator in (alone, with_another):
        stand(simulator)
        settle(simulator, 8)
    for _ in range(3):
        with_another.state.position[1] = torch.tensor([0.0, 0.0, 0.6])
        with_another.place(torch.tensor([False, True]))
        settle(alone, 2)
        settle(with_another, 2)
    assert torch.equal(alone.state.memory[0], with_another.state.memory[0])
    assert not torch.equal(alone.state.memory[1], with_another.state.memory[1])


@both
def test_a_target_comes_after_the_delay_of_its_robot(make):
    simulator = make(flat(), 6)
    stand(simulator, above=0.5)
    simulator.physics.delay.copy_(torch.tensor([0, 1, 2, 3, 4, 0]))
    old, new = home(6), home(6) + 0.2
    simulator.step(old)
    new[5] = old[5]
    simulator.step(new)
    moved = (simulator.state.joint_position - simulator.state.joint_position[5]).abs().sum(-1)
    assert moved[4] == moved[5] == 0.0, "after a whole step: as one that was told nothing new"
    assert (moved[:4].diff() < 0.0).all(), "the later, the less"
    simulator.step(new)
    moved = (simulator.state.joint_position - simulator.state.joint_position[5]).abs().sum(-1)
    assert (moved[:5] > 0.1).all()


@both
def test_friction_is_that_of_the_robot(make):
    simulator = make(flat(), 2)
    simulator.physics.friction.copy_(torch.tensor([0.1, 1.2]))
    stand(simulator)
    settle(simulator, 20)
    begin = simulator.state.position.clone()
    simulator.push(torch.tensor([[0.6, 0.0, 0.0]] * 2))
    settle(simulator, 15)
    slid = (simulator.state.foot_position[..., 0].mean(-1) - begin[:, 0])
    assert slid[0] > slid[1] + 0.03


def test_gains_and_motor_strength_are_those_of_the_robot():
    c, warp = of_mujoco(flat(), 4), of_warp(flat(), 4)
    for simulator in (c, warp):
        physics = simulator.physics
        physics.kp.copy_(torch.tensor([40.0, 20.0, 40.0, 0.0]))
        physics.kd.copy_(torch.tensor([0.5, 0.5, 1.0, 0.0]))
        physics.strength[2] = 0.5
        stand(simulator, above=0.5)
        simulator.step(home(4) + 0.2)
    torch.testing.assert_close(warp.state.torque, c.state.torque, atol=1e-4, rtol=1e-4)
    size = warp.state.torque.abs().sum(-1)
    assert size[3] == 0.0 and size[:3].min() > 0.5 and (size[0] - size[1:3]).abs().min() > 0.5


def test_robots_with_other_masses_agree_and_press_with_their_weight():
    payload, offset = torch.tensor([0.0, 3.0, -1.0]), torch.tensor([[0.0, 0.0, 0.0], [0.03, 0.0, 0.0], [0.0, -0.02, 0.01]])
    c, warp = of_mujoco(flat(), 3), of_warp(flat(), 3)
    for simulator in (c, warp):
        simulator.physics.payload.copy_(payload)
        simulator.physics.offset.copy_(offset)
        simulator.set_bodies()
        stand(simulator)
        settle(simulator, 12)
    assert gap(c, warp).max() < 1e-3
    for simulator in (c, warp):
        settle(simulator, 60)
        weight = torch.zeros(3)
        for _ in range(50):  # it sways a little
            settle(simulator, 1)
            weight += simulator.state.foot_force[..., 2].sum(-1) / 50
        torch.testing.assert_close(weight, GRAVITY * (MASS + payload), atol=1.0, rtol=0.0)


def test_masses_change_the_constants_that_follow_from_them(monkeypatch):
    def made(payload: float) -> MujocoWarpSimulator:
        simulator = MujocoWarpSimulator(flat(), 2, "cpu")
        simulator.physics.payload[1] = payload
        simulator.set_bodies()
        return simulator

    def differs(simulator: MujocoWarpSimulator, name: str) -> bool:
        heavier = simulator.host
        found, expected = getattr(simulator.model, name).numpy()[1], getattr(heavier, name)
        return not np.allclose(found, expected, rtol=1e-3)

    right = made(3.0)
    right.host.body_mass[1] += 3.0
    right.host.body_inertia[1] *= right.host.body_mass[1] / (right.host.body_mass[1] - 3.0)
    mujoco.mj_setConst(right.host, mujoco.MjData(right.host))
    names = "body_subtreemass", "body_invweight0", "dof_invweight0"
    assert not any(differs(right, name) for name in names)
    monkeypatch.setattr("mujoco_warp.set_const", lambda *_: None)
    wrong = made(3.0)
    wrong.host = right.host
    assert all(differs(wrong, name) for name in names)


@both
def test_robots_rest_at_the_height_of_their_own_tile(make):
    heights = torch.zeros(2, 81, 81)
    heights[1] = 0.3
    simulator = make(Ground(heights, 0.1, ("low", "high"), 1, (0.0, 0.0), (1.0, 1.0)), 4)
    stand(simulator)
    settle(simulator, 40)
    height = simulator.state.position[:, 2]
    torch.testing.assert_close(height[0::2] + 0.3, height[1::2], atol=2e-3, rtol=0.0)
    assert STANDING - 0.05 < height[0] < STANDING
    # A robot that is placed on another tile is there at once.
    simulator.state.tile.copy_(torch.tensor([1, 1, 0, 1]))
    simulator.state.position[0, 2] += 0.3
    simulator.place(torch.tensor([True, False, False, False]))
    settle(simulator, 20)
    torch.testing.assert_close(simulator.state.position[:2, 2], height[1].expand(2), atol=5e-3, rtol=0.0)
    torch.testing.assert_close(simulator.state.position[2, 2], height[2], atol=2e-3, rtol=0.0)  # it was not placed


@both
def test_a_saved_simulation_goes_on_exactly(make, ground):
    simulator = make(ground, 4)
    simulator.physics.payload.copy_(torch.tensor([0.0, 1.0, 2.0, 0.5]))
    simulator.physics.friction.copy_(torch.tensor([0.4, 0.8, 1.0, 1.2]))
    simulator.physics.delay.copy_(torch.tensor([0, 1, 4, 2]))
    simulator.set_bodies()
    stand(simulator, reach=2.0)
    settle(simulator, 10)
    simulator.push(torch.full((4, 3), 0.2))
    saved, state, physics = simulator.save(), simulator.state.clone(), simulator.physics
    target = home(4) + 0.1
    for _ in range(5):
        simulator.step(target)
    other = make(ground, 4)
    stand(other)
    other.state.copy_(state)
    other.physics.copy_(physics)
    other.set_bodies()
    other.load(Saved("env", saved, "simulator."))
    for _ in range(5):
        other.step(target)
    assert torch.equal(other.state.memory, simulator.state.memory)
    assert torch.equal(other.state.clock, simulator.state.clock)
    with pytest.raises(SavedError, match=r"simulator\.qvel"):
        other.load(Saved("env", {**saved, "qvel": saved["qvel"][:2]}, "simulator."))


@both
def test_no_robot_sinks_into_any_terrain(make, ground):
    simulator = make(ground, 48)
    stand(simulator, above=0.1, reach=3.0, seed=2)
    state = simulator.state
    for _ in range(40):
        settle(simulator, 1)
        within = (state.position[:, :2].abs() < 3.5).all(-1)  # others may have fallen over the edge
        assert clearance(simulator, state.foot_position, 0.03)[within].min() > -0.01
        assert clearance(simulator, state.position.unsqueeze(1), 0.06)[within].min() > 0.03
        assert state.velocity[within, 2].max() < 1.5, "nothing throws a robot up"
    assert int(within.sum()) > 40


class Touching(NamedTuple):
    """Contacts of the geoms of a robot with the ground: [contacts], [contacts, 3], and how deep, negative, [contacts]."""

    geom: np.ndarray
    position: np.ndarray
    depth: np.ndarray


def while_falling_among_stones(ground: Ground) -> Iterator[tuple[Touching, Touching]]:
    """What a robot touches according to MuJoCo Warp and to MuJoCo, for 16 robots and 25 moments."""
    simulator = MujocoWarpSimulator(ground, 16, "cpu")
    stand(simulator, above=0.1, reach=3.0)
    simulator.state.tile.fill_(ground.tile("stones", 1))
    simulator.place(everyone(simulator))
    model, data = simulator.host, mujoco.MjData(simulator.host)
    model.geom_dataid[model.geom("ground").id] = ground.tile("stones", 1)
    for _ in range(25):
        settle(simulator, 2)
        count = int(simulator.data.nacon.numpy()[0])
        contact = simulator.data.contact
        robot, geoms, position, depth = (x.numpy()[:count] for x in (contact.worldid, contact.geom, contact.pos, contact.dist))
        for e in range(16):
            data.qpos[:] = simulator.qpos[e].double().numpy()
            mujoco.mj_forward(model, data)
            mine = robot == e
            yield (Touching(geoms[mine].max(-1, initial=0), position[mine], depth[mine]),
                   Touching(data.contact.geom.max(-1, initial=0), data.contact.pos.copy(), data.contact.dist.copy()))


def test_contacts_with_steep_ground_are_those_of_mujoco(ground):
    """Without `field_contacts.patch` a third of the geoms that touch something differ. Trunks that are centimetres deep in a
    stone have several ways out of about the same length, and the two searches end at either."""
    trunk = make_model(ground).geom("trunk").id
    compared, different = Counter[bool](), Counter[bool]()
    for found, expected in while_falling_among_stones(ground):
        for geom in {*found.geom.tolist(), *expected.geom.tolist()}:
            one, other = (x.depth[x.geom == geom].min(initial=0.0) for x in (found, expected))
            compared[geom == trunk] += 1
            different[geom == trunk] += abs(one - other) > 1e-3
    assert compared[False] > 500 and different[False] <= 0.002 * compared[False], "feet and legs"
    assert compared[True] > 50 and different[True] <= 0.3 * compared[True], "trunks"


@pytest.mark.parametrize("threads", [1, 8], ids=["as on a CPU", "as on a GPU"])
def test_of_its_contacts_a_foot_or_leg_keeps_the_deepest_and_those_farthest_away(ground, threads, monkeypatch):
    """Of up to 50 contacts with triangles, four are kept: each is one of MuJoCo's, the second the farthest from the first."""
    monkeypatch.setattr(field_contacts, "threads_per_geom", lambda device: threads)
    trunk = make_model(ground).geom("trunk").id
    several, kept, strange, nearer = 0, 0, 0, 0
    for found, expected in while_falling_among_stones(ground):
        for geom in {*found.geom.tolist()} - {trunk}:
            mine, all_ = found.position[found.geom == geom], expected.position[expected.geom == geom]
            assert len(mine) <= min(4, len(all_))
            apart = np.linalg.norm(mine[:, None] - all_[None], axis=-1)
            kept, strange = kept + len(mine), strange + int((apart.min(1) > 2e-4).sum())
            if len(mine) > 1:
                # Contacts are in the order in which threads finish, but those of a geom in that in which they are chosen.
                several += 1
                nearer += np.linalg.norm(mine[1] - mine[0]) < np.linalg.norm(all_ - mine[0], axis=-1).max() - 2e-4
    assert several > 200 and kept > 700
    assert strange <= 0.02 * kept and nearer <= 0.02 * several


def test_there_is_memory_for_all_contacts_and_a_lack_of_it_is_reported(ground, monkeypatch, caplog):
    assert sizes(make_model(flat())) == (24, 4 * 24 + 12, 8)
    whole = MujocoWarpSimulator(ground, 2, "cpu")
    assert sizes(make_model(ground)) == (52, 4 * 52 + 12, 8)
    monkeypatch.setattr(mujoco_warp, "sizes", lambda model: (2, 220, 2))
    scarce = MujocoWarpSimulator(ground, 2, "cpu")
    for simulator in (whole, scarce):
        stand(simulator)
        settle(simulator, 10)
    assert whole.health == {"dropped_contacts": 0} and caplog.text == ""
    assert scarce.health == {"dropped_contacts": 2} and "may sink into the ground" in caplog.text
    assert scarce.health == {"dropped_contacts": 2} and len(caplog.messages) == 1
    assert (scarce.overflow & int(DROPPED)).ne(0).all()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, 1e6])
def test_a_broken_robot_is_reported_put_at_rest_and_healed_by_placing_it(wrong):
    simulator, sound = MujocoWarpSimulator(flat(), 3, "cpu"), MujocoWarpSimulator(flat(), 3, "cpu")
    for x in (simulator, sound):
        stand(x)
        settle(x, 3)
    simulator.qvel[1, 7] = wrong
    simulator.place(torch.zeros(3, dtype=torch.bool))
    settle(simulator, 1)
    settle(sound, 1)
    assert simulator.broken.tolist() == [False, True, False] and not sound.broken.any()
    assert simulator.state.memory.isfinite().all()
    others = torch.tensor([0, 2])
    assert torch.equal(simulator.state.memory[others], sound.state.memory[others])
    settle(simulator, 1)
    assert simulator.broken.tolist() == [False, True, False], "until it is placed"
    for x in (simulator, sound):
        stand(x)
        settle(x, 5)
    assert not simulator.broken.any() and torch.equal(simulator.state.memory, sound.state.memory)


@both
def test_a_push_changes_the_velocity_and_what_follows_from_it(make):
    simulator, other = make(flat(), 2), make(flat(), 2)
    velocity = torch.tensor([[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for x in (simulator, other):
        stand(x)
        settle(x, 20)
        before = x.state.velocity.clone()
        x.push(velocity)
        torch.testing.assert_close(x.state.velocity - before, velocity)
        torch.testing.assert_close(x.state.body_velocity[0, 0], x.state.velocity[0, 0], atol=0.05, rtol=0.0)
    other.load(Saved("env", other.save()))  # computes everything anew
    settle(simulator, 3)
    settle(other, 3)
    assert torch.equal(simulator.state.memory, other.state.memory)
    assert simulator.state.position[0, 0] > simulator.state.position[1, 0] + 0.01


def test_an_environment_can_have_it_on_a_cpu():
    overrides = ["env.count=3", "env.walk.simulator=mujoco_warp", "env.walk.endings={time_out: {seconds: 0.1}}",
                 "env.walk.randomize={payload: {}, friction: {}, latency: {}, pushes: {}}"]
    env = make_env(load_config("walk-flat", overrides).env, "cpu")
    env.reset(0)
    ended = 0
    for _ in range(7):
        step = env.step(torch.zeros(3, 12))
        ended += int(step.truncated.sum())
    assert ended == 3 and env.health == {"dropped_contacts": 0} and not env.capturable
    env.load_state(env.save_state())
    env.close()


def test_without_mujoco_warp_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "wavedash.walk.mujoco_warp")
    with pytest.raises(UserError, match=r'pip install "wavedash\[walk\]"'):
        import wavedash.walk.mujoco_warp  # noqa: F401
