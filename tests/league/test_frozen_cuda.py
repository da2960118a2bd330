"""Frozen opponents on a GPU: captured in the graph of a step, they sample, remember, and change their weights in place."""
from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

from wavedash.assembly import make_policy, prepare_torch
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import Step
from wavedash.evaluate.against import play_against
from wavedash.league.frozen import FrozenPolicy
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.graphs import WARM_UP
from wavedash.ppo.learner import Learner
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import LineUp, Opponents
from wavedash.rocket.players import Random
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.training import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ARENAS = 64
QUICK = [f"env.count={ARENAS}", "env.groups=1", "env.rocket.endings={goal: {}, time_out: {seconds: 1.3}}", "device=cuda"]
"""Episodes have 20 steps, so that many begin."""
KINDS = {
    "gru": ["policy.hidden=[32]", "policy.memory={kind: gru, size: 16}", "env.rocket.action={multi_discrete: {sticky: 1}}",
            "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}"],
    "slow": ["policy.hidden=[32]", "policy.memory={kind: lstm, size: 16}",
             "env.rocket.action={lookup_table: {ticks: 16, delay: 9}}"],
    "gsde": ["policy.hidden=[32]", "env.rocket.action=continuous", "policy.std=gsde", "policy.gsde.sample_every=3"],
    "own": ["policy.hidden=[32]"],
}
"""Opponents of the kind `own` have the observation and the action parser of the arenas."""
STEPS = 50


def network(kind: str, seed: int) -> ActorCritic:
    config = load_config("rocket-1v1", [*QUICK, *KINDS[kind], f"seed={seed}"])
    env = make_env(config.env.model_copy(update={"count": 1}), "cuda")
    policy = make_policy(env, config)
    env.close()
    with torch.no_grad():  # all choices of a fresh policy are nearly as likely, whatever its weights
        for name, x in policy.head.state_dict().items():
            x.mul_(10_000.0 if name.endswith("weight") else 1.0)
    return policy


def frozen(kind: str, seed: int, deterministic: bool = False) -> FrozenPolicy:
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    return FrozenPolicy(network(kind, seed), rocket, f"{kind} {seed}", deterministic, seed)


def line_up_of(task: Task) -> LineUp:
    players = [frozen("gru", 1), frozen("slow", 2), frozen("gsde", 3), frozen("gru", 4, deterministic=True), Random(5)]
    return Opponents(task.action, players, 0.5)


def opposed() -> tuple[RocketEnv, LineUp]:
    config = load_config("rocket-1v1", QUICK).env
    assert config.rocket is not None
    task = Task.configured(config.rocket)
    line_up = task.line_up = line_up_of(task)
    return RocketEnv.configured(config, "cuda", lambda: task), line_up


def actions_of(env: RocketEnv) -> Tensor:
    return torch.randint(0, 90, (STEPS, env.num_rows), generator=torch.Generator().manual_seed(0)).to("cuda")


@pytest.fixture
def sync_forbidden() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def test_a_step_with_players_has_no_host_sync(request):
    env, line_up = opposed()
    actions, other = actions_of(env), network("gru", 9).to("cuda")
    env.reset(0)
    env.step(actions[0])
    request.getfixturevalue("sync_forbidden")
    env.prepare()
    for action in actions[:25]:
        env.step(action)
    player = line_up.players[0]
    assert isinstance(player, FrozenPolicy)
    player.play_as(other)
    for action in actions[25:]:
        step = env.step(action)
    torch.cuda.set_sync_debug_mode("default")
    assert bool(step.active.any()) and not bool(step.active.all())


def captured_step(env: RocketEnv, actions: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor, Step]:
    """The graph after the first two actions, the tensor it reads its action from, and the step that it writes."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    action = actions[0].clone()
    with torch.cuda.stream(stream):
        for t in range(2):
            env.step(action.copy_(actions[t]))
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    for generator in env.generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        result = env.step(action)
    return graph, action, result


def outcome(env: RocketEnv, step: Step) -> list[Tensor]:
    """The results of the arenas, and the memory of players."""
    of_players = [x for name, x in env.tasks[0].state_dict().items() if name.startswith("line_up.")]
    return [x.clone() for x in (step.active, env._shards[0].state.memory, *of_players)]


def agree(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    """Arenas and seats are equal bit for bit; the memory of networks may be rounded differently."""
    pairs = zip(ours, theirs, strict=True)
    return all(torch.allclose(x, y, 1e-4, 1e-5) if x.is_floating_point() else torch.equal(x, y) for x, y in pairs)


def test_a_captured_step_with_players_that_sample_and_remember_is_the_step():
    """It is, without a new capture, after one of them took over other weights too."""
    (plain, line_up), (captured, other) = opposed(), opposed()
    actions, swapped, unswapped = actions_of(plain), network("gru", 9).to("cuda"), opposed()[0]
    for env in (plain, captured, unswapped):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
        unswapped.step(actions[t])
    seats, differs = [], False
    for t in range(2, STEPS):
        if t % 20 == 0:
            for env in (plain, captured, unswapped):
                env.prepare()
        if t == 25:
            for changed in (line_up, other):
                player = changed.players[0]
                assert isinstance(player, FrozenPolicy)
                player.play_as(swapped)
        expected = outcome(plain, plain.step(actions[t]))
        control = outcome(unswapped, unswapped.step(actions[t]))
        action.copy_(actions[t])
        graph.replay()
        assert agree(outcome(captured, result), expected), f"at step {t}"
        same = agree(control, expected)
        assert same or t >= 25, "the control differs only once the weights have changed"
        differs |= not same
        seats.append(line_up.seats.clone())
    assert differs, "the control: the weights that were taken over count"
    assert set(torch.stack(seats).flatten().tolist()) == {0, 1, 2, 3, 4, 5}


def test_the_memory_of_players_is_reset_inside_the_graph_where_an_episode_ends():
    """A player remembers for the cars that it drives, which stay the same up to the end of an episode, and for no others."""
    env, line_up = opposed()
    actions = actions_of(env)
    env.reset(1)
    graph, action, result = captured_step(env, actions)
    memory = next(x for name, x in line_up.players[0].state_dict().items() if name.startswith("memory"))
    cleared = 0
    for t in range(2, STEPS):
        action.copy_(actions[t])
        graph.replay()
        ended = (result.terminated | result.truncated).view(ARENAS, 2)[line_up.where, 0]
        driven = torch.zeros(memory.shape[:2], dtype=torch.bool, device="cuda")
        driven.view(-1)[line_up.rows[0]] = True
        assert torch.equal(memory.flatten(2).any(-1), driven & ~ended.unsqueeze(-1)), f"at step {t}"
        cleared += int(ended.sum())
    assert cleared > len(memory)


def test_training_against_players_with_cuda_graphs_equals_training_without():
    """Rows of players are inactive in both."""
    config = load_config("rocket-1v1", [*QUICK, "ppo.rollout_steps=16", "ppo.minibatch_size=512", "policy.hidden=[32]"])
    ends, metrics = [], []
    for graphs in (False, True):
        chosen = config.model_copy(update={"graphs": graphs})
        prepare_torch(chosen)
        env, line_up = opposed()
        learner = Learner(env, make_policy(env, chosen), chosen)
        assert learner.captures_collection == graphs
        learner.start()
        seen = []
        for iteration in range(WARM_UP + 4):
            if iteration == WARM_UP + 2:
                player = line_up.players[0]
                assert isinstance(player, FrozenPolicy)
                player.play_as(network("gru", 9).to("cuda"))
            seen.append(learner.iterate().metrics)
        if graphs:
            assert all(replay.graph is not None for replay in learner._graphs.values()), "captured, and not again"
        metrics.append(seen)
        ends.append(learner.updater.optimizer.parameters.clone())
        env.close()
    for plain, captured in zip(*metrics, strict=True):
        assert plain == pytest.approx(captured, rel=1e-2, abs=1e-2)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


def test_games_are_played_on_the_device_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("rocket-1v1", "total_steps=2048", *QUICK, "ppo.rollout_steps=16", "ppo.minibatch_size=1024", *KINDS["gru"],
                 "report.console=off", "report.tensorboard=false") == 0
    devices = set()
    bind = FrozenPolicy.bind

    def noted(player: FrozenPolicy, state: GameState) -> None:
        bind(player, state)
        devices.add(next(player.actors.parameters()).device.type)

    monkeypatch.setattr(FrozenPolicy, "bind", noted)
    for simulator in ("warp", "rocketsim") if find_spec("RocketSim") else ("warp",):
        score = play_against(tmp_path, str(tmp_path), simulator, games=4, deterministic=False).scores[simulator]
        assert score.games == 4
    assert devices == {"cuda"}
