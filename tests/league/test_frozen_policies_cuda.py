"""Stacked opponents on a GPU: captured in the graph of a step or of a collection, and exchanged between replays."""
from __future__ import annotations

from functools import cache

import pytest
import torch

from tests.league.test_frozen_cuda import ARENAS, KINDS, QUICK, STEPS, actions_of, agree, captured_step, network, outcome
from tests.league.whole_policy import WholePolicy
from wavedash.assembly import make_policy, prepare_torch
from wavedash.config_file import load_config
from wavedash.league.frozen import FrozenPolicies
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors
from wavedash.ppo.graphs import WARM_UP
from wavedash.ppo.learner import Learner
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.players import Chaser
from wavedash.rocket.task import Task

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SLOTS = 8


@cache
def member(kind: str, seed: int) -> ActorCritic:
    return network(kind, seed).to("cuda")


def stacked(kind: str, slots: int, seed: int) -> FrozenPolicies:
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    policies = [member(kind, slot) for slot in range(slots)]
    return FrozenPolicies.of(policies, rocket, f"{kind} {seed}", deterministic=False, seed=seed)


def opposed(*kinds: str) -> tuple[RocketEnv, Opponents]:
    """Eight stacked opponents of each kind, and a script."""
    config = load_config("rocket-1v1", QUICK).env
    assert config.rocket is not None
    task = Task.configured(config.rocket)
    line_up = task.line_up = Opponents(task.action, [*(stacked(kind, SLOTS, 1) for kind in kinds), Chaser()], 0.5)
    return RocketEnv.configured(config, "cuda", lambda: task), line_up


@pytest.mark.parametrize("kinds", [("own",), ("own", "gru"), ("slow",), ("gsde",)], ids=str)
def test_a_captured_step_with_stacked_opponents_is_the_step_also_after_an_exchange(kinds):
    """Arenas, slots, results and memory are those of steps without a graph. Nothing is captured anew."""
    (plain, line_up), (captured, other), (control, _) = (opposed(*kinds) for _ in range(3))
    actions, new = actions_of(plain), member(kinds[0], 9)
    for env in (plain, captured, control):
        env.reset(1)
    graph, action, result = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
        control.step(actions[t])
    differs = False
    for t in range(2, STEPS):
        if t % 20 == 0:
            for env in (plain, captured, control):
                env.prepare()
        if t == 25:
            for changed in (line_up, other):
                changed.exchange(3, new.state_dict())
        expected = outcome(plain, plain.step(actions[t]))
        differs |= not agree(outcome(control, control.step(actions[t])), expected)
        assert not differs or t >= 25, "the control differs only once the weights have changed"
        action.copy_(actions[t])
        graph.replay()
        assert agree(outcome(captured, result), expected), f"at step {t}"
    assert differs, "the control: the weights that were exchanged count"
    assert int(line_up.results.sum()) > ARENAS // 2 and torch.equal(line_up.results, other.results)


def test_steps_and_exchanges_have_no_host_sync():
    env, line_up = opposed("own", "gru")
    actions, new = actions_of(env), member("gru", 9)
    env.reset(0)
    env.step(actions[0])
    env.prepare()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for action in actions[:25]:
            env.step(action)
        line_up.exchange(SLOTS + 2, new)
        line_up.clear_results()
        for action in actions[25:]:
            env.step(action)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert bool(line_up.results.sum() > 0)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_captured_collection_with_stacked_opponents_equals_uncaptured(precision):
    """Whole iterations of a learner; the members' networks compute in the learner's precision. Slots are exchanged between
    replays, and no graph is captured anew."""
    config = load_config("rocket-1v1", [*QUICK, "ppo.rollout_steps=16", "ppo.minibatch_size=512", *KINDS["own"]])
    ends, metrics, results = [], [], []
    for graphs in (False, True):
        chosen = config.model_copy(update={"graphs": graphs})
        prepare_torch(chosen)
        env, line_up = opposed("own")
        if precision == "bf16":
            lower(line_up)
        learner = Learner(env, make_policy(env, chosen), chosen)
        assert learner.captures_collection == graphs
        learner.start()
        seen, played = [], []
        for iteration in range(WARM_UP + 4):
            if iteration == WARM_UP + 2:
                line_up.exchange(2, member("own", 9).state_dict())
            seen.append(learner.iterate().metrics)
            played.append(line_up.results.clone())
            line_up.clear_results()
        if graphs:
            assert all(replay.graph is not None for replay in learner._graphs.values()), "captured, and not again"
        metrics.append(seen)
        results.append(torch.stack(played))
        ends.append(learner.updater.optimizer.parameters.clone())
        env.close()
    for plain, captured in zip(*metrics, strict=True):
        assert plain == pytest.approx(captured, rel=1e-2, abs=1e-2)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)
    # Rounding may decide single actions, and so how single games end; their number is that of episodes.
    assert (results[0] - results[1]).abs().sum() <= 0.05 * results[0].sum()
    assert int(results[0].sum()) > ARENAS


def lower(line_up: Opponents) -> None:
    """Gives the opponents networks in bf16."""
    player = line_up.players[0]
    assert isinstance(player, FrozenPolicies)
    policies = []
    for slot in range(SLOTS):
        policy = network("own", slot).to("cuda")
        policy.precision = torch.bfloat16
        policies.append(policy)
    actors = StackedActors(policies[0], SLOTS)
    for slot, policy in enumerate(policies):
        actors.load(slot, policy)
    player._actors = (actors,)


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.parametrize("kind", ["gsde", "gru"])
def test_each_slot_acts_as_the_single_policy_on_the_gpu(kind, precision):
    """The most likely action. Choices among discrete actions may be decided by rounding where two are nearly as likely."""
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    env, line_up = opposed("own")
    env.reset(3)
    state = line_up.shared
    policies = [network(kind, seed).to("cuda") for seed in range(3)]
    for policy in policies:
        policy.precision = precision
    together = FrozenPolicies.of(policies, rocket, "they", deterministic=True)
    together.bind(state)
    together.take_slots(torch.arange(state.arenas * 2, device="cuda")[:state.arenas * 2 // 3 * 3].view(3, -1))
    chosen = torch.zeros(*state.shape, 8, device="cuda")
    controls = together.drive(state, chosen).flatten(0, 1)
    for policy, rows in zip(policies, together.rows, strict=True):
        single = WholePolicy(policy, rocket)
        single.bind(state)
        expected = single.drive(state, chosen).flatten(0, 1)
        near = (controls[rows] - expected[rows]).abs().amax(-1) < (0.05 if precision else 1e-3)
        assert near.float().mean() > 0.9
    env.close()
