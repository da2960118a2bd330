"""Players that take over other weights during a run: it counts in the next step, and the learner's rows stay exact."""
from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from tests.rocket.test_line_up import Filled, config, environment, same
from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.league.frozen import FrozenPolicies, FrozenPolicy
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors
from wavedash.rocket.line_up import LineUp, Opponents
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

GRU = ("env.rocket.observation={advanced_obs_plus: {team_size: 1}}", "policy.hidden=[8]", "policy.memory={kind: gru, size: 8}",
       "ppo.normalize_obs=true")


def network(seed: int, *overrides: str) -> ActorCritic:
    """A policy with clear preferences: a fresh one finds all actions nearly equally likely, whatever its weights."""
    chosen = load_config("rocket-1v1", [*GRU, *overrides, f"seed={seed}"])
    env = make_env(chosen.env.model_copy(update={"count": 1}))
    policy = make_policy(env, chosen)
    env.close()
    with torch.no_grad():
        for p in policy.head.parameters():
            p.mul_(10_000.0)
        assert policy.normalizer is not None
        policy.normalizer.centre_on({"obs": torch.full((1, *policy.observation_space["obs"].shape), 0.01 * seed)})
    return policy


def player(seed: int) -> FrozenPolicy:
    rocket = load_config("rocket-1v1", GRU).env.rocket
    assert rocket is not None
    return FrozenPolicy(network(seed), rocket, f"player {seed}", deterministic=False, seed=seed)


def line_up(task: Task, stacked: bool) -> LineUp:
    """Two opponents, as players of their own or in the slots of one."""
    rocket = load_config("rocket-1v1", GRU).env.rocket
    assert rocket is not None
    apart = [player(1), player(2)]
    return Opponents(task.action, [FrozenPolicies.of([network(1), network(2)], rocket)] if stacked else apart, share=0.5)


def learned(stacked: bool, filling: float | None = None, swap: int | None = 9) -> dict[str, Tensor]:
    """The weights after three iterations, if the first player takes over the weights of network `swap` after the second. Rows
    of players hold `filling`."""
    env, (seated,) = environment(config("warp", count=8), lambda task: line_up(task, stacked))
    ppo = {"rollout_steps": 12, "epochs": 2, "minibatch_size": 48, "learning_rate": 0.01}
    learner = learner_over(Filled(env, seated, filling), run_config(ppo, {"hidden": [8]}))
    for iteration in range(3):
        if iteration == 2 and swap is not None:
            assert isinstance(seated, Opponents)
            seated.exchange(0, network(swap))
        learner.iterate()
    env.close()
    tensors, _ = learner.state()
    return {**tensors["policy"], **tensors["optimizer"]}


@pytest.mark.slow
@pytest.mark.parametrize("stacked", [False, True])
def test_weights_taken_over_between_iterations_count_and_the_rows_of_players_still_do_not(stacked):
    clean = learned(stacked)
    assert same(clean, learned(stacked, filling=math.nan)), "no bit depends on the rows of players"
    assert not same(clean, learned(stacked, swap=None)), "the learner plays against the new weights"


def driven(first: FrozenPolicy, steps: int, state: GameState) -> list[Tensor]:
    return [first.drive(state, torch.zeros(4, 2, 8)).clone() for _ in range(steps)]


def test_a_player_that_took_over_weights_plays_as_one_that_was_made_with_them():
    """Its tensors stay the same ones, so that captured graphs read the new weights."""
    env, (seated,) = environment(config("warp", count=8), lambda task: Opponents(task.action, [player(1)], share=0.5))
    env.reset(0)
    first, state = seated.players[0], seated.shared
    assert isinstance(first, FrozenPolicy)
    before = driven(first, 3, state)
    places = {name: x.data_ptr() for name, x in first.actors.state_dict().items()}
    first.play_as(network(2))
    assert {name: x.data_ptr() for name, x in first.actors.state_dict().items()} == places
    made = player(2)
    made.bind(state)
    made.take_slots(first.rows)
    first.generator.set_state(made.generator.get_state())
    after = driven(first, 3, state)
    assert all(torch.equal(x, y) for x, y in zip(after, driven(made, 3, state), strict=True))
    assert not all(torch.equal(x, y) for x, y in zip(before, after, strict=True))
    env.close()


def test_players_of_one_policy_have_weights_of_their_own():
    source = network(1)
    rocket = load_config("rocket-1v1", GRU).env.rocket
    assert rocket is not None
    players = [FrozenPolicy(source, rocket, "a player") for _ in range(2)]
    players[0].play_as(network(2))
    for policy, one in ((source, players[1]), (network(2), players[0])):
        assert same(dict(StackedActors(policy, 1).state_dict()), dict(one.actors.state_dict()))
    assert same(dict(source.state_dict()), dict(network(1).state_dict()))
    assert not any(p.requires_grad for p in players[0].actors.parameters())
    assert not any("weight" in name for name in players[0].state_dict()), "weights are not saved with the arenas"


def test_weights_of_other_networks_are_refused():
    first = player(1)
    before = {name: x.clone() for name, x in first.actors.state_dict().items()}
    with pytest.raises(UserError, match="a policy with another signature"):
        first.play_as(network(2, "policy.hidden=[16]"))
    with pytest.raises(UserError, match=r"not those of a policy of this signature: .* has another shape"):
        first.play_as(network(2, "policy.hidden=[16]").state_dict())
    assert same(before, dict(first.actors.state_dict()))
