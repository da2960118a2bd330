"""WalkEnv as a VecEnv: automatic resets, ends of episodes, robots whose physics breaks, threads."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.walk.robots import STILL, make_env
from wavedash.config import WalkConfig
from wavedash.envs.vec_env import Obs, Step
from wavedash.walk.env import HOPELESS, WalkEnv, make_ground, make_simulator
from wavedash.walk.mujoco_batch import MujocoSimulator
from wavedash.walk.robot import HOME, STEP
from wavedash.walk.sensors.scan import Scan
from wavedash.walk.sensors.tiles import Tiles
from wavedash.walk.task import Task

SHORT = {"fallen": {}, "time_out": {"seconds": 0.1}}
"""Episodes of five steps"""


def keys(obs: Obs) -> dict[str, Tensor]:
    assert isinstance(obs, dict)
    return obs


def copied(obs: Obs) -> dict[str, Tensor]:
    return {key: x.clone() for key, x in keys(obs).items()}


def rest(env: WalkEnv) -> Step:
    return env.step(torch.zeros(env.num_rows, 12))


def knock_over(env: WalkEnv, robots: list[int]) -> None:
    """Puts robots on their backs, close to the ground."""
    assert isinstance(env.simulator, MujocoSimulator)
    for robot in robots:
        env.simulator.qpos[robot, 2:7] = torch.tensor([0.06, 0.0, 1.0, 0.0, 0.0])


def test_observations_are_the_same_object_while_no_episode_ends() -> None:
    env = make_env(4, starts=STILL)
    env.reset(0)
    step = rest(env)
    assert step.final_obs is step.obs and not (step.terminated | step.truncated).any() and step.active.all()
    assert step.reward.dtype == torch.float32 and step.reward.shape == (4,)
    for key, space in env.observation_space.spaces.items():
        x = keys(step.obs)[key]
        assert x.shape == (4, *(space.shape or ())) and x.dtype == torch.float32


def test_the_last_observation_is_of_the_old_episode_and_the_next_of_the_new() -> None:
    env = make_env(6, observation={"proprioception": {}, "commands": {}, "privileged": {}})
    twin = make_env(6, observation={"proprioception": {}, "commands": {}, "privileged": {}})
    env.reset(3)
    twin.reset(3)
    generator = torch.Generator().manual_seed(0)
    for t in range(12):
        if t == 9:
            for each in (env, twin):
                knock_over(each, [1, 4])
        action = torch.rand(6, 12, generator=generator) - 0.5
        if t == 9:
            seen = _without_resets(twin, action)
        step = env.step(action)
        if t != 9:
            twin.step(action)
        ended = step.terminated | step.truncated
        for key, last in keys(step.final_obs).items():
            assert torch.equal(last[~ended], keys(step.obs)[key][~ended]), "elsewhere both are equal"
        if t == 9:
            assert step.terminated.tolist() == [False, True, False, False, True, False]
            for key, last in keys(step.final_obs).items():
                assert torch.equal(last, seen[key]), "what a robot sees that is not reset"
            upright = keys(step.obs)["proprioception"][:, 5]
            assert (upright[ended] == -1.0).all() and (keys(step.final_obs)["proprioception"][ended, 5] > 0.9).all()
            assert not keys(step.obs)["proprioception"][ended, 30:42].any(), "an episode begins without an action"
            break


def _without_resets(env: WalkEnv, action: Tensor) -> dict[str, Tensor]:
    """What robots see after a step of a task whose episodes do not end."""
    env.task.endings.set_counting([], {})
    step = env.step(action)
    assert step.final_obs is step.obs
    return copied(step.obs)


def test_scans_after_a_reset_are_of_the_new_pose() -> None:
    """The reference is a scan of the poses after the step. The control: those of the old poses are something else."""
    env = make_env(8, terrain={"stairs_up": 1}, levels=3, first_level=2, resolution=0.1, endings={"time_out": {"seconds": 0.5}},
                   observation={"scandots": {}, "depth": {"period": [5, 5], "latency": [1, 1]}}, curriculum=False)
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    scan = Scan(Tiles(env.ground.heights, env.ground.resolution), 8, env.task.observation.parts["scandots"].offsets)
    generator = torch.Generator().manual_seed(0)

    def expected() -> Tensor:
        state = env.state
        heights = scan(state.position, state.orientation, state.tile)
        return ((heights - (state.position[:, 2:] - 0.28)).clamp(-1, 1) * 4).clone()

    for _ in range(25):
        env.simulator.qpos[:, :2] += 0.08  # over the stairs within half a second
        env.simulator.qpos[:, 2] += 0.02
        before = keys(env.seen)["depth"].clone()
        step = env.step(torch.rand(8, 12, generator=generator) - 0.5)
        torch.testing.assert_close(keys(step.obs)["scandots"], expected(), rtol=0, atol=1e-5)
        if step.truncated.any():
            stale = keys(step.final_obs)["scandots"]
            assert (keys(step.obs)["scandots"] - stale).abs().max() > 0.1, "the control"
            assert (keys(step.obs)["depth"] != before).flatten(1).any(1).all(), "a new image at once"
            break
    else:
        pytest.fail("no episode ended")


def test_a_foot_scan_is_the_ground_around_each_foot_relative_to_its_sole() -> None:
    """The reference takes one foot and one point after another, also after resets. The control: the feet before the step."""
    env = make_env(6, terrain={"stones": 1, "stairs_up": 1}, levels=3, first_level=2, endings={"time_out": {"seconds": 0.2}},
                   observation={"foot_scan": {"reach": 0.2, "points": 3}}, curriculum=False)
    env.reset(0)
    generator = torch.Generator().manual_seed(0)

    def expected(feet: Tensor) -> Tensor:
        found = torch.zeros(6, 4, 3, 3)
        for robot in range(6):
            c, s = env.state.yaw[robot].cos(), env.state.yaw[robot].sin()
            for leg in range(4):
                x, y, z = feet[robot, leg]
                for i, ahead in enumerate((-0.2, 0.0, 0.2)):
                    for j, left in enumerate((-0.2, 0.0, 0.2)):
                        point = torch.stack((x + c * ahead - s * left, y + s * ahead + c * left))
                        ground = env.ground.height(env.state.tile[robot, None], point.view(1, 1, 2))
                        found[robot, leg, i, j] = (ground.squeeze() - (z - 0.02)).clamp(-0.25, 0.25) * 4
        return found.flatten(1)

    assert isinstance(env.simulator, MujocoSimulator)
    ended, uneven = False, 0.0
    for t in range(24):
        env.simulator.qpos[:, :2] += 0.15  # off the platform within an episode
        before = env.state.foot_position.clone()
        step = env.step(torch.rand(6, 12, generator=generator) - 0.5)
        seen = keys(step.obs)["foot_scan"]
        # A point on the brink of a pit of 1 m, over one cell of 5 cm, is 20 times as far off in height as in x.
        torch.testing.assert_close(seen, expected(env.state.foot_position), rtol=0, atol=4e-4)
        assert (seen - expected(before)).abs().max() > 0.01 or t == 0, "the control"
        ended |= bool(step.truncated.any())
        uneven = max(uneven, float(seen.std()))
    assert ended and uneven > 0.1


def test_time_outs_truncate_and_falls_terminate_only_those_who_fell() -> None:
    env = make_env(5, endings={"fallen": {}, "time_out": {"seconds": 0.2}}, starts=STILL)
    env.reset(0)
    for t in range(1, 40):
        if t == 5:
            knock_over(env, [3])
        step = rest(env)
        assert not (step.terminated & step.truncated).any()
        since = 5 if t > 5 else 0
        assert step.terminated.tolist() == [t == 5 and robot == 3 for robot in range(5)]
        assert step.truncated.tolist() == [(t - (since if robot == 3 else 0)) % 10 == 0 and t != since for robot in range(5)]


def test_who_falls_when_time_is_over_has_fallen() -> None:
    env = make_env(3, endings=SHORT, starts=STILL)
    env.reset(0)
    for _ in range(4):
        rest(env)
    knock_over(env, [0])
    step = rest(env)
    assert step.terminated.tolist() == [True, False, False] and step.truncated.tolist() == [False, True, True]
    assert step.metrics["episode/fell"].tolist() == [1.0, 0.0, 0.0]


def test_a_robot_that_leaves_its_tile_is_cut_off() -> None:
    env = make_env(3, terrain={"rough": 1}, levels=1, resolution=0.1, starts=STILL)
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    env.simulator.qpos[1, 0] = 3.7  # the tile ends at 4 m, and the margin is 0.4 m
    env.simulator.qpos[2, 0] = 3.5
    step = rest(env)
    assert step.truncated.tolist() == [False, True, False] and not step.terminated.any()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, 1e12, 1e5])
def test_a_robot_whose_physics_breaks_is_inactive_for_a_step_and_nobody_else_notices(
        wrong: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log
    options: dict[str, Any] = {"rewards": {"track_velocity": 1, "work": 1, "joint_acceleration": 1}, "starts": STILL,
                               "commands": {"ahead": {"turn": 0.0}}}
    env, sound = make_env(4, **options), make_env(4, **options)
    assert isinstance(env.simulator, MujocoSimulator)
    env.reset(0)
    sound.reset(0)
    others = torch.tensor([True, True, False, True])
    for t in range(20):
        if t == 4:
            env.simulator.qvel[2, 9] = wrong
        step, expected = rest(env), rest(sound)
        assert step.active.tolist() == [True, True, t != 4, True], f"step {t}"
        assert step.truncated.tolist() == [False, False, t == 4, False] and not step.terminated.any()
        assert step.reward.isfinite().all() and env.state.memory.isfinite().all()
        assert torch.equal(step.reward[others], expected.reward[others])
        for key, x in keys(step.obs).items():
            assert torch.equal(x[others], keys(expected.obs)[key][others]) and x.isfinite().all()
        if t == 4:
            assert step.reward[2] == 0.0
            torch.testing.assert_close(env.state.joint_position[2], torch.tensor(HOME))  # it stands at its start again


def test_velocities_that_no_robot_has_are_broken_physics_also_where_mujoco_accepts_them() -> None:
    env = make_env(3, starts=STILL, endings={"time_out": {"seconds": 20}})
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    env.simulator.qpos[1, 2], env.simulator.qvel[1, 0] = 500.0, 2_000.0
    step = rest(env)
    assert not env.simulator.batch.warning[..., 1].any(), "MuJoCo has found nothing wrong"
    assert step.active.tolist() == [True, False, True] and step.truncated.tolist() == [False, True, False]
    assert rest(env).active.all()


def test_where_the_physics_of_all_robots_goes_wrong_in_every_step_it_is_a_fault() -> None:
    """Steps of broken robots do not count: a run would go on for ever."""
    env = make_env(3, starts=STILL)
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    for broken in (range(3), range(2), range(3)):
        for step in range(HOPELESS if len(broken) == 2 else HOPELESS - 1):
            env.simulator.qvel[list(broken), 0] = 1e6
            assert rest(env).active.tolist() == [robot not in broken for robot in range(3)]
            assert not env.fault, (broken, step)
    env.simulator.qvel[:, 0] = 1e6
    assert not rest(env).active.any() and env.fault
    assert env.explain_fault().startswith("the physics of all robots has gone wrong in 50 steps in a row")
    assert not env.fault and env.explain_fault() is None
    env.close()


def test_the_same_seed_gives_the_same_episodes_also_from_an_environment_that_was_used() -> None:
    options: dict[str, Any] = {"randomize": {"payload": {}, "friction": {}, "latency": {}, "pushes": {"seconds": 0.1}},
                               "endings": SHORT, "levels": 1}
    one, other = make_env(4, **options), make_env(4, **options)
    other.reset(7)
    for _ in range(13):
        rest(other)
    assert _equal(one.reset(5), other.reset(5))
    for _ in range(20):
        mine, theirs = rest(one), rest(other)
        assert torch.equal(mine.reward, theirs.reward) and _equal(mine.obs, theirs.obs)
    assert not _equal(one.reset(6), other.reset(5)), "the control: another seed"


def _equal(one: Obs, other: Obs) -> bool:
    return all(torch.equal(x, keys(other)[key]) for key, x in keys(one).items())


def test_one_and_two_threads_compute_the_same_bits() -> None:
    config = WalkConfig(terrain={"stairs_up": 1, "stones": 1}, levels=2, resolution=0.1,
                        randomize={"friction": {}, "latency": {}, "pushes": {"seconds": 0.5}})
    ground = make_ground(config)
    envs = [WalkEnv(MujocoSimulator(ground, 12, threads), Task.configured(config, ground)) for threads in (1, 2)]
    generator = torch.Generator().manual_seed(0)
    for each in envs:
        each.reset(0)
    for _ in range(60):
        action = 2 * torch.rand(12, 12, generator=generator) - 1
        one, two = (each.step(action) for each in envs)
        assert torch.equal(one.reward, two.reward) and _equal(one.obs, two.obs)
        assert torch.equal(one.terminated, two.terminated)
    assert torch.equal(envs[0].state.memory, envs[1].state.memory)


def test_metrics_are_those_of_the_step_and_not_of_the_episode_that_begins() -> None:
    env = make_env(3, endings=SHORT, starts=STILL, commands={"ahead": {"speed": 0.5, "turn": 0.0}}, command_seconds=0.1)
    env.reset(0)
    for t in range(1, 11):
        assert isinstance(env.simulator, MujocoSimulator)
        env.simulator.qvel[:, 0] = 0.7
        step = rest(env)
        speed = step.metrics["walk/speed"]
        assert float((speed - 0.7).abs().max()) < 0.25, f"step {t}"
        assert step.metrics["walk/wanted"].tolist() == [0.5] * 3
        torch.testing.assert_close(step.metrics["walk/error"], (0.5 - speed).abs())
    assert step.truncated.all()
    assert env.state.velocity.abs().max() == 0.0, "the control: new episodes begin at rest"


def test_distance_that_is_demanded_grows_with_the_command() -> None:
    env = make_env(3, commands={"ahead": {"speed": 0.4}}, endings={"time_out": {"seconds": 5}})
    env.reset(0)
    for t in range(1, 20):
        rest(env)
        torch.testing.assert_close(env.state.demanded, torch.full((3,), t * 0.4 * STEP))


def test_feet_count_their_time_in_the_air() -> None:
    env = make_env(2, starts=STILL, endings={"time_out": {"seconds": 20}})
    env.reset(0)
    assert isinstance(env.simulator, MujocoSimulator)
    env.simulator.qpos[:, 2] = 0.6
    landed_after = None
    for t in range(1, 60):
        before = env.state.air_time.clone()
        rest(env)
        touching = env.state.touching
        torch.testing.assert_close(env.state.air_time, torch.where(touching, 0.0, before + STEP))
        if landed_after is None and touching.any():
            landed_after = t * STEP
    assert landed_after == pytest.approx((2 * 0.33 / 9.81) ** 0.5, abs=0.03), "the time of a fall by 33 cm"


def test_the_simulator_is_that_of_the_device() -> None:
    env = make_env(2)
    assert isinstance(env.simulator, MujocoSimulator) and not env.capturable
    named = make_simulator(WalkConfig(simulator="mujoco"), env.ground, 2, torch.device("cpu"))
    assert isinstance(named, MujocoSimulator)
