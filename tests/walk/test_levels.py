"""Levels: who is promoted, who is demoted, and which tile a robot walks on."""
from __future__ import annotations

import pytest
import torch

from tests.walk.robots import STILL, make_env, make_ground
from wavedash.walk.levels import FAR, FEEBLE, Levels
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.state import RobotState

FELL = torch.zeros(6, dtype=torch.bool)


def bound(levels: Levels, robots: int) -> RobotState:
    state = RobotState.zeros(robots)
    levels.bind(state)
    return state


def test_robots_are_dealt_out_to_kinds_by_weight() -> None:
    ground = make_ground({"flat": 2, "rough": 0, "slope": 1, "stairs_up": 5}, levels=3)
    for robots in (8, 80, 800):
        levels = Levels(ground)
        bound(levels, robots)
        counts = torch.bincount(levels.kind, minlength=4)
        assert counts.tolist() == [robots // 4, 0, robots // 8, robots * 5 // 8]
        assert torch.equal(levels.tile, levels.kind * 3)


def test_first_levels_are_spread_up_to_the_one_that_is_asked_for() -> None:
    levels = Levels(make_ground({"rough": 1}, levels=8), first=2)
    bound(levels, 3000)
    levels.scatter(torch.Generator().manual_seed(0))
    counts = torch.bincount(levels.level, minlength=8)
    assert (counts[:3] > 900).all() and counts[3:].sum() == 0
    few = Levels(make_ground({"rough": 1}, levels=2), first=9)
    bound(few, 100)
    few.scatter(torch.Generator().manual_seed(0))
    assert set(few.level.tolist()) == {0, 1}, "there is no level beyond the last"


def test_up_after_walking_far_down_after_too_little_or_a_fall_and_only_where_an_episode_ended() -> None:
    levels = Levels(make_ground({"rough": 1}, levels=5))
    state = bound(levels, 6)
    assert levels.far == pytest.approx(FAR * 4.0), "from the middle of a tile of 8 m"
    levels.level.fill_(2)
    state.origin.copy_(torch.tensor([[0.1, -0.2]] * 6))
    walked = torch.tensor([levels.far + 0.01, levels.far - 0.01, 1.0, 1.0, 1.0, levels.far + 1.0])
    state.position[:, 0] = 0.1
    state.position[:, 1] = -0.2 + walked
    state.demanded.copy_(torch.tensor([9.0, 3.0, 1.0 / FEEBLE + 0.1, 1.0 / FEEBLE - 0.1, 1.0, 9.0]))
    ended = torch.tensor([True, True, True, True, True, False])
    fell = torch.tensor([True, False, False, False, True, False])
    levels.move(state, ended, fell, torch.Generator())
    assert levels.level.tolist() == [3, 2, 1, 2, 1, 2]


def test_robots_that_master_everything_have_a_mean_level_of_six() -> None:
    """From a random level up to the last one, and again: (0 + 1 * 2 + ... + 9 * 10) / (1 + 2 + ... + 10)."""
    levels = Levels(make_ground({"rough": 1}, levels=10))
    state = bound(levels, 2000)
    state.position[:, 0] = levels.far + 0.1
    generator, nobody = torch.Generator().manual_seed(0), torch.zeros(2000, dtype=torch.bool)
    means = []
    for episode in range(120):
        levels.move(state, ~nobody, nobody, generator)
        means += [levels.level.float().mean().item()] if episode >= 40 else []
    assert sum(k * (k + 1) for k in range(10)) / sum(range(1, 11)) == 6.0
    assert sum(means) / len(means) == pytest.approx(6.0, abs=0.1)


def test_the_first_level_has_none_below_and_the_last_leads_anywhere() -> None:
    robots = 2000
    levels = Levels(make_ground({"rough": 1}, levels=4))
    state = bound(levels, robots)
    ended, never = torch.ones(robots, dtype=torch.bool), torch.zeros(robots, dtype=torch.bool)
    state.demanded.fill_(5.0)
    levels.move(state, ended, never, torch.Generator())
    assert not levels.level.any()
    levels.level.fill_(3)
    state.position[:, 0] = 3.5
    levels.move(state, ended, never, torch.Generator().manual_seed(0))
    counts = torch.bincount(levels.level, minlength=4)
    assert (counts - robots / 4).abs().max() < 5 * (robots * 0.25 * 0.75) ** 0.5, "each level as often as any other"


@pytest.mark.parametrize(("levels", "moves"), [(4, False), (1, True)])
def test_nobody_moves_without_a_curriculum_or_levels(levels: int, moves: bool) -> None:
    part = Levels(make_ground({"rough": 1}, levels=levels), first=0, moves=moves)
    state = bound(part, 6)
    state.position[:, 0] = 4.0
    part.move(state, ~FELL, FELL, torch.Generator())
    assert not part.level.any()


def test_on_a_track_far_is_a_share_of_its_length() -> None:
    levels = Levels(make_ground({"rough": 1}, levels=2, layout="track"))
    bound(levels, 2)
    assert levels.far == pytest.approx(FAR * 19.0), "from 1 m behind the beginning of 20 m to the end"


def test_the_curriculum_is_really_called_and_robots_are_put_on_their_tiles() -> None:
    """Robots are carried to where they deserve another level; the next episodes are on the tiles of these."""
    env = make_env(4, terrain={"stairs_up": 1, "stairs_down": 1}, levels=3, first_level=0, resolution=0.1, starts=STILL,
                   endings={"time_out": {"seconds": 0.1}}, commands={"ahead": {"speed": 0.5}})
    env.reset(0)
    simulator = env.simulator
    assert isinstance(simulator, MujocoSimulator) and simulator.tiles is not None
    assert env.state.tile.tolist() == [0, 0, 3, 3]
    for expected in ([1, 1, 3, 3], [2, 2, 3, 3]):
        for step in range(5):
            if step == 4:
                simulator.qpos[:2, 0] = 3.4
                simulator.qpos[:2, 2] = 2.0
                assert env.state.tile.tolist() != expected, "not before the episode ends"
            taken = env.step(torch.zeros(4, 12))
        assert taken.truncated.all()
        assert env.state.tile.tolist() == expected and simulator.tiles.tolist() == expected
    assert float(taken.metrics["level/stairs_up"]) == 1.0 and float(taken.metrics["level/stairs_down"]) == 0.0


def test_a_robot_stands_on_the_ground_of_its_own_tile() -> None:
    """All tiles have another height 2.5 m from the start. Robots that are dropped there come to rest on it."""
    env = make_env(3, terrain={"stairs_up": {"tread": 0.5}}, levels=3, first_level=2, curriculum=False, resolution=0.05,
                   starts=STILL, endings={"time_out": {"seconds": 20}})
    env.reset(0)
    simulator = env.simulator
    assert isinstance(simulator, MujocoSimulator)
    env.task.levels.level.copy_(torch.tensor([0, 1, 2]))
    env._begin(torch.ones(3, dtype=torch.bool))
    place = torch.tensor([2.6, 0.0])
    height = env.ground.height(env.state.tile, place.expand(3, 1, 2))[:, 0]
    assert height.diff().min() > 0.1
    simulator.qpos[:, 0], simulator.qpos[:, 2] = float(place[0]), height.double() + 0.28
    for _ in range(60):
        env.step(torch.zeros(3, 12))
    feet = env.state.foot_position
    lowest = (feet[..., 2] - env.ground.height(env.state.tile, feet[..., :2])).amin(1)
    assert ((lowest > 0.01) & (lowest < 0.025)).all(), "feet of 2 cm stand on the ground, at most 1 cm in it"
