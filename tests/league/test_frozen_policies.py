"""Frozen policies that play side by side: each slot acts and remembers as the whole policy with its weights."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from gymnasium.spaces import MultiDiscrete
from torch import Tensor

from tests.league.whole_policy import WholePolicy
from tests.rocket.no_host_sync import NoHostSync
from wavedash.assembly import make_policy
from wavedash.config import RocketConfig
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.league.frozen import FrozenPolicies, signature
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.driver import Pace
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.players import Chaser
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

ARENAS, SLOTS = 12, 3
PLUS = "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}"
KINDS = {
    "plain": ("policy.hidden=[8]",),
    "gru": ("policy.hidden=[8]", "policy.memory={kind: gru, size: 8}", "ppo.normalize_obs=true", PLUS,
            "env.rocket.action={multi_discrete: {sticky: 1}}"),
    "slow": ("policy.hidden=[8]", "policy.memory={kind: lstm, size: 4}", PLUS,
             "env.rocket.action={lookup_table: {ticks: 16, delay: 9, sticky: 1}}"),
    "sticks": ("policy.hidden=[8]", "env.rocket.action=continuous", "env.rocket.observation=default_obs"),
    "gsde": ("policy.hidden=[8]", "env.rocket.action=continuous", "policy.std=gsde", "policy.gsde.sample_every=3"),
    "threes": ("policy.hidden=[8]", "policy.memory={kind: gru, size: 4}", "env.rocket.blue=3", "env.rocket.orange=3",
               "env.rocket.observation={advanced_obs_plus: {team_size: 3}}"),
}
"""They remember in four places: the memory of the network, frames, buttons that stay pressed, and the noise of gSDE."""


def task_of(kind: str) -> RocketConfig:
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    return rocket


@cache
def own_arena(kind: str) -> VecEnv:
    return make_env(load_config("rocket-1v1", [*KINDS[kind], "env.count=1", "env.groups=1"]).env)


def network(kind: str, seed: int, *overrides: str) -> ActorCritic:
    """A policy with clear preferences: a fresh one finds all actions nearly equally likely, whatever its weights."""
    policy = make_policy(own_arena(kind), load_config("rocket-1v1", [*KINDS[kind], *overrides, f"seed={seed}"]))
    with torch.no_grad():
        for name, x in policy.head.state_dict().items():
            x.mul_(1000.0 if name.endswith("weight") else 1.0)
    return policy


def members(kind: str) -> list[ActorCritic]:
    return [network(kind, seed) for seed in range(SLOTS)]


def environment(*line_ups: Opponents, overrides: Sequence[str] = (PLUS,)) -> RocketEnv:
    """Each line-up is that of a shard."""
    config = load_config("rocket-1v1", [f"env.count={ARENAS * len(line_ups)}", f"env.groups={len(line_ups)}", *overrides,
                                        "env.rocket.endings={no_touch: {seconds: 0.9}, time_out: {seconds: 1.4}}",
                                        "env.rocket.starts={kickoff: 1.0, random: 1.0}"]).env
    assert config.rocket is not None
    rocket, left = config.rocket, list(line_ups)

    def task() -> Task:
        made = Task.configured(rocket)
        made.line_up = left.pop(0)
        return made

    return RocketEnv.configured(config, task=task)


PACE = Pace(8, 1)


def together(kind: str, share: float = 0.5, deterministic: bool = True, seed: int = 0) -> Opponents:
    return Opponents(PACE, [FrozenPolicies.of(members(kind), task_of(kind), deterministic=deterministic, seed=seed)], share)


class Compared(Opponents):
    """Beside the opponents in slots of one player, a player for each of them sees the same games: the reference."""

    def __init__(self, kind: str) -> None:
        super().__init__(PACE, [FrozenPolicies.of(members(kind), task_of(kind), deterministic=True)], 0.5)
        self.reference = (Opponents(PACE, [WholePolicy(one, task_of(kind)) for one in members(kind)], 0.5),)
        self.noted: list[tuple[Tensor, Tensor]] = []

    def bind(self, state: GameState) -> None:
        super().bind(state)
        self.reference[0].bind(state)

    def begin(self, state: GameState, mask: Tensor) -> None:
        super().begin(state, mask)
        self.reference[0].begin(state, mask)

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        controls = super().drive(parsed, chosen)
        self.noted.append((controls[self.where].clone(), self.reference[0].drive(parsed, chosen)[self.where]))
        return controls


def played(env: RocketEnv, steps: int, seed: int = 1) -> list[Tensor]:
    """The states of all arenas, step by step."""
    space, generator = env.action_space, torch.Generator().manual_seed(seed)
    sizes = torch.tensor(space.nvec) if isinstance(space, MultiDiscrete) else torch.tensor(90)
    actions = torch.randint(0, 1000, (steps, env.num_rows, *sizes.shape), generator=generator) % sizes
    states = []
    for action in actions:
        env.step(action)
        states.append(torch.cat([shard.state.memory.clone() for shard in env._shards]))
    return states


@pytest.mark.parametrize("kind", ["plain", "gru", "slow", "sticks", "threes"])
def test_each_slot_plays_as_the_whole_policy_alone(kind):
    """It observes, acts, remembers and keeps its pace so, in episodes that begin at different times."""
    line_up = Compared(kind)
    env = environment(line_up, overrides=KINDS[kind] if kind == "threes" else (PLUS,))
    env.reset(3)
    played(env, 60)
    ours, theirs = (torch.stack(x) for x in zip(*line_up.noted, strict=True))
    assert torch.equal(line_up.seats, line_up.reference[0].seats)
    if kind == "sticks":  # the last digits of a network with two layers
        torch.testing.assert_close(ours, theirs)
    else:
        assert torch.equal(ours, theirs), "choices are the same"
    assert len(ours.flatten(0, 2).unique(dim=0)) > 3 and int(line_up.games.min()) > 2
    env.close()


@pytest.mark.parametrize("kind", ["gru", "slow"])
def test_an_exchanged_slot_plays_as_the_new_policy_with_a_fresh_memory(kind):
    """In the middle of episodes; the other slots go on as they were. The reference takes over the weights too, one step later
    in the control."""
    for late in (False, True):
        line_up, other = Compared(kind), network(kind, 9)
        env, player = environment(line_up), line_up.players[0]
        env.reset(3)
        played(env, 30)
        memory, rows = player._memory(), line_up.rows[1]
        line_up.exchange(1, other.state_dict())
        for x in memory.values():
            cleared = x.flatten(0, 1).flatten(1).eq(0).all(-1)
            driven = torch.zeros(len(cleared), dtype=torch.bool).index_fill_(0, line_up.rows.flatten(), True)
            assert cleared[rows].all() and (~cleared & driven).any(), "the others remember"
        if not late:
            line_up.reference[0].exchange(1, other)
        line_up.noted.clear()
        played(env, 30, seed=2)
        ours, theirs = (torch.stack(x) for x in zip(*line_up.noted, strict=True))
        assert torch.equal(ours, theirs) != late
        assert line_up.results[1].sum() < line_up.results[[0, 2]].sum(-1).min() + 3
        env.close()


def test_a_player_with_the_view_of_the_policy_sees_what_it_would_see_by_itself(monkeypatch):
    """The same task as the learner's: it is shown its observations. Bit for bit, with frames and masks."""
    ends = []
    for shared in (True, False):
        if not shared:
            monkeypatch.setattr(FrozenPolicies, "shares_view", lambda *parts: False)
        line_up = together("gru", deterministic=False)
        env = environment(line_up, overrides=KINDS["gru"])
        assert line_up.viewers == (line_up.players if shared else [])
        env.reset(3)
        played(env, 25)
        kept = env.save_state()
        resumed = environment(together("gru", deterministic=False, seed=5), overrides=KINDS["gru"])
        resumed.load_state(kept)
        ends.append(played(env, 25, seed=2))
        assert all(torch.equal(x, y) for x, y in zip(ends[-1], played(resumed, 25, seed=2), strict=True)), "also when resumed"
        env.close()
        resumed.close()
    assert all(torch.equal(x, y) for x, y in zip(*ends, strict=True))
    assert not Opponents(PACE, [FrozenPolicies.of(members("slow"), task_of("slow"))]).viewers


@pytest.mark.parametrize("kind", ["gru", "slow", "gsde"])
def test_saved_arenas_go_on_with_the_same_opponents_bit_for_bit(kind):
    """Sampled actions, memory, slots, results and void games come back, in two shards that share their actors."""
    def opposed(seed: int) -> tuple[RocketEnv, list[Opponents]]:
        actors = FrozenPolicies.of(members(kind), task_of(kind)).actors
        line_ups = [Opponents(PACE, [Chaser(), FrozenPolicies(actors, task_of(kind), "they", seed=seed)], 0.7, seed=shard)
                    for shard in range(2)]
        return environment(*line_ups), line_ups

    (first, ours), (second, theirs), (third, _) = (opposed(seed) for seed in (1, 2, 3))
    first.reset(5)
    second.reset(6)
    third.reset(5)
    played(first, 30)
    for line_up in ours:
        line_up.exchange(2, network(kind, 9))
    for line_up in theirs:  # the league that resumes knows who sat there
        line_up.exchange(2, network(kind, 9))
    second.load_state(first.save_state())
    third.load_state(first.save_state())
    go_on = [played(env, 40, seed=3) for env in (first, second, third)]
    assert all(torch.equal(x, y) for x, y in zip(*go_on[:2], strict=True))
    assert not all(torch.equal(x, y) for x, y in zip(go_on[0], go_on[2], strict=True)), "the control: other weights in slot 2"
    for line_up, other in zip(ours, theirs, strict=True):
        assert torch.equal(line_up.seats, other.seats) and torch.equal(line_up.results, other.results)
        assert line_up.results.sum() > 8
    for env in (first, second, third):
        env.close()


@pytest.mark.parametrize("kind", ["plain", "gru", "slow", "sticks", "gsde"])
def test_nothing_of_it_is_a_host_sync(kind):
    line_up = together(kind, deterministic=False)
    env, other = environment(line_up), network(kind, 9)
    env.reset(0)
    assert len(env.generators) == 1
    nothing = torch.zeros(ARENAS, 2, 8)
    with NoHostSync():
        line_up.begin(env._shards[0].state, torch.arange(ARENAS) % 2 == 0)
        for _ in range(3):
            line_up.drive(nothing, nothing)
        line_up.exchange(0, other)
        line_up.drive(nothing, nothing)
    env.close()


def test_signatures_tell_who_can_be_stacked():
    one = signature(network("gru", 1), task_of("gru"))
    assert one == signature(network("gru", 2, "policy.critic_hidden=[4]", "ppo.learning_rate=1e-5"), task_of("gru"))
    others = [(network("gru", 1, "policy.activation=tanh"), "gru"), (network("plain", 1), "plain"), (network("gru", 1), "slow")]
    assert one not in [signature(policy, task_of(kind)) for policy, kind in others]
    with pytest.raises(UserError, match="another signature"):
        together("gru").players[0].actors.load(0, others[0][0])
    wide = load_config("rocket-1v1", ["env.rocket.observation={advanced_obs_plus: {team_size: 3}}"]).env.rocket
    line_up = Opponents(PACE, [FrozenPolicies.of(members("plain"), wide, "they")], 0.5)
    with pytest.raises(UserError, match="they cannot play Rocket League 1v1"):
        environment(line_up)
