"""Frozen policies that play side by side: each slot acts and remembers as the single frozen policy with its weights."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.league.frozen import FrozenPolicies, FrozenPolicy
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.driver import Pace
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.training import make_policy

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
}
"""They remember in four places: the memory of the network, frames, buttons that stay pressed, and the noise of gSDE."""


def task_of(kind: str) -> RocketConfig:
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    return rocket


def network(kind: str, seed: int, *overrides: str) -> ActorCritic:
    """A policy with clear preferences: a fresh one finds all actions nearly equally likely, whatever its weights."""
    chosen = load_config("rocket-1v1", [*KINDS[kind], *overrides, f"seed={seed}"])
    env = make_env(chosen.env.model_copy(update={"count": 1}))
    policy = make_policy(env, chosen)
    env.close()
    with torch.no_grad():
        for name, x in policy.head.state_dict().items():
            x.mul_(1000.0 if name.endswith("weight") else 1.0)
    return policy


def members(kind: str) -> list[ActorCritic]:
    return [network(kind, seed) for seed in range(SLOTS)]


def environment(line_up: Opponents, groups: int = 1) -> RocketEnv:
    config = load_config("rocket-1v1", [f"env.count={ARENAS}", f"env.groups={groups}", PLUS,
                                        "env.rocket.endings={no_touch: {seconds: 0.9}, time_out: {seconds: 1.4}}",
                                        "env.rocket.starts={kickoff: 1.0, random: 1.0}"]).env
    assert config.rocket is not None
    task = Task.configured(config.rocket)
    task.line_up = line_up
    return RocketEnv.configured(config, task=lambda: task)


PACE = Pace(8, 1)


def together(kind: str, share: float = 0.5, deterministic: bool = True, seed: int = 0) -> Opponents:
    return Opponents(PACE, [FrozenPolicies.of(members(kind), task_of(kind), deterministic=deterministic, seed=seed)], share)


class Compared(Opponents):
    """Beside the opponents in slots of one player, a player for each of them sees the same games: the reference."""

    def __init__(self, kind: str) -> None:
        super().__init__(PACE, [FrozenPolicies.of(members(kind), task_of(kind), deterministic=True)], 0.5)
        self.reference = (Opponents(PACE, [FrozenPolicy(one, task_of(kind), "one") for one in members(kind)], 0.5),)
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
    actions = torch.randint(0, 90, (steps, env.num_rows), generator=torch.Generator().manual_seed(seed))
    states = []
    for action in actions:
        env.step(action)
        states.append(torch.cat([shard.state.memory.clone() for shard in env._shards]))
    return states


@pytest.mark.parametrize("kind", ["plain", "gru", "slow", "sticks"])
def test_each_slot_plays_as_the_frozen_policy_alone(kind):
    """It observes, acts, remembers and keeps its pace so, in episodes that begin at different times."""
    line_up = Compared(kind)
    env = environment(line_up)
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
