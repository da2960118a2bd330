"""RocketEnv on a GPU: a step has no host sync, and its CUDA graph does what the step does."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import Step
from wavedash.ppo.graphs import WARM_UP
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.sim.simulator import WarpSimulator

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ARENAS = 256
SHORT = "env.rocket.endings={goal: {}, time_out: {seconds: 1.3}}"
"""Episodes have 20 steps, so that many begin."""
SIZES = ("env.rocket.sizes={1v1: 0.5, 2v2: 0.3, 3v3: 0.2}", "env.rocket.observation={advanced_obs_plus: {team_size: 3}}")


def env_of(*overrides: str) -> RocketEnv:
    env = make_env(load_config("rocket-1v1", [f"env.count={ARENAS}", SHORT, *overrides]).env, "cuda")
    assert isinstance(env, RocketEnv)
    return env


def actions_of(env: RocketEnv, steps: int) -> torch.Tensor:
    return torch.randint(0, 90, (steps, env.num_rows), generator=torch.Generator().manual_seed(0)).to("cuda")


@pytest.fixture
def syncs_forbidden() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("sizes", [(), SIZES], ids=["1v1", "several sizes"])
def test_fifty_steps_with_resets_have_no_host_sync(sizes, request):
    env = env_of(*sizes)
    env.reset(0)
    actions = actions_of(env, 50)
    ended = torch.zeros((), device="cuda")
    env.step(actions[0])
    request.getfixturevalue("syncs_forbidden")
    env.prepare()
    for action in actions:
        step = env.step(action)
        ended += step.truncated.sum() + step.terminated.sum()
    torch.cuda.set_sync_debug_mode("default")
    assert ended.item() >= 2 * env.num_rows and step.obs["obs"].isfinite().all()


def outcome(env: RocketEnv, step) -> list[torch.Tensor]:
    kept = (step.obs["obs"], step.obs["action_mask"], step.final_obs["obs"], step.reward, step.terminated, step.truncated)
    return [x.clone() for x in (*kept, *(x for shard in env._shards for x in (shard.state.memory, shard.used)))]


def captured_step(env: RocketEnv, actions: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, Step]:
    """The graph after the first two actions, the tensor it reads its action from, and the step that it writes."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    action = actions[0].clone()
    with torch.cuda.stream(stream):
        for t in range(2):
            env.step(action.copy_(actions[t]))
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = env.step(action)
    return graph, action, result


@pytest.mark.parametrize("sizes", [(), SIZES], ids=["1v1", "several sizes"])
def test_a_captured_step_is_the_step(sizes):
    plain, captured = env_of(*sizes), env_of(*sizes)
    actions = actions_of(plain, 60)
    for env in (plain, captured):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
    ended = 0
    for t in range(2, 60):
        if t % 20 == 0:  # beginnings are written outside of the graph, which goes on with the new ones
            plain.prepare()
            captured.prepare()
        expected = outcome(plain, plain.step(actions[t]))
        action.copy_(actions[t])
        graph.replay()
        for ours, theirs in zip(outcome(captured, result), expected, strict=True):
            assert torch.equal(ours, theirs)
        ended += int(result.truncated.sum())
    assert ended > plain.num_rows


def test_settings_that_change_count_in_a_captured_step(request):
    """They count as in steps that are not captured, and are changed without a host sync."""
    plain, captured, unchanged = env_of(), env_of(), env_of()
    actions = actions_of(plain, 40)
    for env in (plain, captured, unchanged):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
        unchanged.step(actions[t])
    request.getfixturevalue("syncs_forbidden")
    for env in (plain, captured):
        (task,) = env.tasks
        task.rewards.set(team_spirit=0.5, zero_sum=0.75, mode="hybrid", dense_scale=0.5)
        task.rewards.set_weights({"face_ball": 3.0})
        task.endings["time_out"].set(seconds=0.7)
        task.start.set_weights({"kickoff": 0.0})
        env.prepare()
    torch.cuda.set_sync_debug_mode("default")
    ended = 0
    for t in range(2, 40):
        expected = outcome(plain, plain.step(actions[t]))
        other = unchanged.step(actions[t])
        action.copy_(actions[t])
        graph.replay()
        for ours, theirs in zip(outcome(captured, result), expected, strict=True):
            assert torch.equal(ours, theirs)
        assert not torch.equal(result.reward, other.reward), "the control: they are not what they were"
        ended += int((result.truncated | result.terminated).sum())  # a goal puts off the time-out of its arena
    assert ended >= 3 * plain.num_rows, "episodes of 0.7 s, not of 1.3"


def test_a_simulator_steps_the_same_on_any_stream():
    first, second = WarpSimulator(64, 1, 1, device="cuda"), WarpSimulator(64, 1, 1, device="cuda")
    controls = torch.rand(30, 64, 2, 8, device="cuda") * 2 - 1
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for x in controls:
        first.step(x, 8, 1)
        with torch.cuda.stream(stream):
            second.step(x, 8, 1)
    torch.cuda.synchronize()
    assert torch.equal(first.state.memory, second.state.memory)


def test_training_with_cuda_graphs_equals_training_without():
    metrics, ends = [], []
    for graphs in (False, True):
        changes = [f"env.count={ARENAS}", SHORT, "ppo.rollout_steps=16", "ppo.minibatch_size=1024", "policy.hidden=[64, 64]",
                   f"graphs={str(graphs).lower()}", "device=cuda"]
        with assembled(load_config("rocket-1v1", changes)) as learner:
            assert learner.captures_collection == graphs
            learner.start()
            seen = [learner.iterate().metrics for _ in range(WARM_UP + 3)]
            if graphs:
                assert all(replay.graph is not None for replay in learner._graphs.values())
            metrics.append(seen)
            ends.append(learner.updater.optimizer.parameters.clone())
            assert seen[-1]["rollout/episodes"] > 0 and seen[-1]["optim/update_size"] > 0
    for plain, captured in zip(*metrics, strict=True):
        assert plain == pytest.approx(captured, rel=1e-2, abs=1e-2)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


def test_a_saved_environment_goes_on_exactly():
    env, other = env_of(), env_of()
    env.reset(2)
    actions = actions_of(env, 60)
    for action in actions[:25]:
        env.step(action)
    saved = {name: x.clone() for name, x in env.save_state().items()}
    other.load_state(saved)
    for action in actions[25:]:
        for ours, theirs in zip(outcome(other, other.step(action)), outcome(env, env.step(action)), strict=True):
            assert torch.equal(ours, theirs)
