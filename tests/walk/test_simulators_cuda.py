"""MuJoCo Warp on a GPU: no host sync, CUDA graphs that do what steps do, and the same robots as MuJoCo on a CPU."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.walk.dropped import all_kinds, clearance, home, stand
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.ppo.graphs import WARM_UP, CapturedCall

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROBOTS = 256


@pytest.fixture
def syncs_forbidden() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def of_warp(robots: int = ROBOTS):
    from wavedash.walk.mujoco_warp import MujocoWarpSimulator

    return MujocoWarpSimulator(all_kinds(), robots, "cuda")


def targets(steps: int, robots: int = ROBOTS) -> torch.Tensor:
    noise = torch.rand(steps, robots, 12, generator=torch.Generator().manual_seed(0)) - 0.5
    return home(robots, "cuda") + 0.4 * noise.to("cuda")


def test_it_agrees_with_mujoco():
    from wavedash.walk.mujoco_batch import MujocoSimulator

    c, warp = MujocoSimulator(all_kinds(), 64, 2), of_warp(64)
    for simulator in (c, warp):
        simulator.physics.payload.copy_(torch.linspace(-1, 2, 64))
        simulator.physics.friction.copy_(torch.linspace(0.4, 1.2, 64))
        simulator.physics.delay.copy_(torch.arange(64) % 5)
        simulator.set_bodies()
        stand(simulator, above=0.05, reach=2.0)
    torch.testing.assert_close(warp.state.memory.cpu(), c.state.memory, atol=1e-6, rtol=0.0)
    for step in range(50):
        c.step(home(64))
        warp.step(home(64, "cuda"))
        if step == 5:
            assert (warp.state.position.cpu() - c.state.position).norm(dim=-1).median() < 1e-4
    assert (warp.state.position.cpu() - c.state.position).norm(dim=-1).median() < 0.03


def test_steps_and_placements_have_no_host_sync(request):
    simulator, target = of_warp(), targets(20)
    simulator.set_bodies()
    stand(simulator, reach=2.0)
    some = torch.arange(ROBOTS, device="cuda") % 3 == 0
    push = torch.full((ROBOTS, 3), 0.1, device="cuda")
    simulator.step(target[0])
    request.getfixturevalue("syncs_forbidden")
    for x in target:
        simulator.step(x)
        simulator.push(push)
        simulator.place(some)
    torch.cuda.set_sync_debug_mode("default")
    assert simulator.state.memory.isfinite().all() and not simulator.broken.any()


def test_a_captured_graph_does_what_steps_and_placements_do():
    """Additions on a GPU have no fixed order, so the last bits differ, and differences grow with time."""
    eager, captured = of_warp(), of_warp()
    assert captured.capturable
    target, some = targets(8), torch.arange(ROBOTS, device="cuda") % 3 == 0
    now = torch.empty_like(target[0])
    begin = {}

    def body(simulator) -> torch.Tensor:
        simulator.step(now)
        simulator.state.position[:, 2] += some * 0.05
        simulator.place(some)
        simulator.step(now)
        return simulator.state.memory

    call = CapturedCall(lambda: body(captured), "robots")
    for simulator in (eager, captured):
        simulator.set_bodies()
        stand(simulator, above=0.02, reach=2.0)
        begin[simulator] = simulator.state.memory.clone()
    for i, x in enumerate(target):
        now.copy_(x)
        body(eager)
        call()
        assert (call.graph is not None) == (i >= WARM_UP)
        gap = (eager.state.position - captured.state.position).norm(dim=-1)
        assert gap.median() < 1e-3
        if i < WARM_UP + 1:
            assert gap.median() < 1e-5
    assert (begin[captured] - captured.state.memory).abs().max() > 0.1
    assert captured.health == {"dropped_contacts": 0}


def test_no_robot_sinks_on_a_gpu():
    simulator = of_warp(1024)
    stand(simulator, above=0.1, reach=3.0, seed=2)
    state, target = simulator.state, home(1024, "cuda")
    for _ in range(50):
        simulator.step(target)
    within = (state.position[:, :2].abs() < 3.5).all(-1).cpu()
    assert (clearance(simulator, state.foot_position, 0.03)[within] > -0.01).float().mean() > 0.995
    assert clearance(simulator, state.position.unsqueeze(1), 0.06)[within].min() > 0.0
    torch.cuda.synchronize()
    assert simulator.health == {"dropped_contacts": 0}


def test_the_steps_of_an_evaluation_are_captured_and_robots_come_as_far(caplog):
    """Robots lean forward and slide or fall. The last bits of a GPU differ, and with them single robots: means are compared."""
    from wavedash.config import WalkConfig
    from wavedash.walk.evaluate.course import Course
    from wavedash.walk.evaluate.walking import _walk, stepping

    walk = WalkConfig(terrain={"flat": 1, "stones": 1}, levels=2, observation={"proprioception": {}, "depth": {"noise": 1}})
    lean = 0.4 * torch.sin(torch.arange(12.0)).to("cuda")

    class Leaning:
        def step(self, obs, deterministic):
            assert obs["depth"].isfinite().all()
            return lean.expand(len(obs["proprioception"]), 12)

        def reset(self, rows=None):
            pass

    found = []
    for captured in (False, True):
        env, watch = Course.of(walk, seconds=2.0).make_env(robots=32, device=torch.device("cuda"))
        assert env.capturable
        advance = stepping(env) if captured else env.step
        for _ in range(2):  # another round begins with a reset
            env.reset(0)
            found.append(_walk(env, watch, Leaning(), True, 100, None, advance))
        env.close()
    assert "cannot be captured" not in caplog.text
    for one in found[1:]:
        for name, bound in (("distance", 0.03), ("seconds", 0.1), ("fell", 0.1)):
            assert (one[name].float().mean() - found[0][name].float().mean()).abs() < bound, name


def test_a_whole_rollout_of_the_environment_is_captured():
    overrides = [f"env.count={ROBOTS}", "env.walk.endings={fallen: {}, time_out: {seconds: 0.2}}",
                 "env.walk.randomize={payload: {}, friction: {}, latency: {}, pushes: {}}"]
    env = make_env(load_config("walk-flat", overrides).env, "cuda")
    assert env.capturable
    env.reset(0)
    action, ended = torch.zeros(ROBOTS, 12, device="cuda"), torch.zeros((), device="cuda")

    def rollout() -> torch.Tensor:
        for _ in range(12):
            step = env.step(action)
            ended.add_(step.truncated.sum() + step.terminated.sum())
        return step.obs["proprioception"]

    call = CapturedCall(rollout, "rollout", env.generators)
    for _ in range(WARM_UP + 3):
        seen = call()
    assert call.graph is not None and seen.isfinite().all()
    assert ended.item() >= 5 * ROBOTS
    saved = env.save_state()
    env.load_state(saved)
    env.close()
