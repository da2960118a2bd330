"""Policies for the bench: those of players by name, and small random ones of every kind, each exported as a bot."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wavedash.bench.rlbot.trained import Trained
from wavedash.config import PolicyConfig, RocketConfig
from wavedash.loading import load_run
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rlbot.bot.player import Player as BotPlayer
from wavedash.rlbot.export.texts import Bot
from wavedash.rlbot.export.write import write_bot
from wavedash.rlbot.packets import field_info
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.rehearsal import empty_arenas, observation_space
from wavedash.rocket.task import Task

DECISIVE = 300.0
"""Times by which the last layer of a random policy is larger than usual: so its likeliest action changes with what it sees"""


@dataclass(frozen=True)
class Exported:
    """A policy and the folder of its bot."""

    policy: ActorCritic
    task: RocketConfig
    folder: Path

    def trained(self) -> Trained:
        return Trained(self.policy, self.task, self.folder)

    def bot(self) -> BotPlayer:
        return BotPlayer(self.folder, field_info().boost_pads)


@dataclass(frozen=True)
class Kind:
    """What a random policy is made of."""

    size: int
    """Cars per team"""
    network: dict[str, Any]
    observation: Any = "advanced_obs_plus"
    action: Any = "lookup_table"
    hitbox: str = "octane"
    normalized: bool = False
    seed: int = 0


KINDS = {
    "gru-2v2": Kind(2, {"memory": {"kind": "gru", "size": 48}, "hidden": [64]}, {"advanced_obs_plus": {"team_size": 2}},
                    hitbox="dominus", normalized=True),
    "lstm-3v3": Kind(3, {"memory": {"kind": "lstm", "size": 48, "layers": 2}, "hidden": [64, 64], "layer_norm": True},
                     "default_obs", {"multi_discrete": {"bins": 5, "shared_yaw": False}}, "merc"),
    "frames-2v2": Kind(2, {"hidden": [64], "activation": "gelu"}, {"advanced_obs_plus": {"frames": 3, "pads": 2}},
                       {"lookup_table": {"ticks": 6, "delay": 2, "sticky": 1}}, "plank"),
    "beta-1v1": Kind(1, {"hidden": [64], "distribution": "beta", "activation": "silu", "encoders": {"obs": {"hidden": [32]}}},
                     {"default_obs": {"zero_padding": None}}, "continuous", "breakout", normalized=True),
}
"""Small random policies by name: every memory, every parser and both observations are among them"""


def random_policy(kind: Kind) -> tuple[ActorCritic, RocketConfig]:
    """An untrained policy that acts at random, always the same one."""
    task = RocketConfig.model_validate({"blue": kind.size, "orange": kind.size, "observation": kind.observation,
                                        "action": kind.action, "hitbox": kind.hitbox})
    made, state = Task.configured(RocketConfig(observation=task.observation, action=task.action)), empty_arenas(1, task)
    made.observation.bind(state)
    made.action.bind(state)
    torch.manual_seed(kind.seed)
    policy = ActorCritic(observation_space(made, state), made.action.space, PolicyConfig(**kind.network),
                         normalize_obs=5.0 if kind.normalized else None)
    for name, x in policy.state_dict().items():
        if name.endswith(("shift", "bias")) and x.is_floating_point():
            x.uniform_(-0.2, 0.2)
        elif name.endswith("scale"):
            x.uniform_(0.8, 1.2)
    for layer in policy.head.children():
        layer.weight.data.mul_(DECISIVE)
    return policy, task


def exported(name: str, folder: Path) -> Exported:
    """Exports a policy of KINDS, or of a run or champion, into a folder."""
    if name in KINDS:
        policy, task = random_policy(KINDS[name])
    else:
        run = load_run(name)
        policy, task = run.policy.policy, rocket_task(run.config.env, run.path)
    write_bot(policy, task, Bot(name, "Wavedash", "A bot of the bench", task.hitbox, ()), folder, name)
    return Exported(policy, task, folder)
