"""Trained: the policy as the trainer has it, deciding for all cars of an arena, and the folder of its bot."""
from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.obs import ACTION_MASK, Obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.trained_policy import TrainedPolicy


class Trained:
    """What it saw, was offered and chose stays in `seen` [C, n], `mask` and `action`."""

    def __init__(self, policy: ActorCritic, task: RocketConfig, folder: Path) -> None:
        """`folder`: that of the bot of the same policy."""
        self.task, self.folder = task, folder
        made = Task.configured(RocketConfig(observation=task.observation, action=task.action))
        self.observation, self.action_parser = made.observation, made.action
        self.ticks, self.delay = made.action.ticks, made.action.delay
        self.player = TrainedPolicy(policy)

    def bind(self, state: GameState) -> None:
        for part in (self.observation, self.action_parser):
            part.bind(state)

    def begin(self, state: GameState) -> None:
        for part in (self.observation, self.action_parser):
            part.begin(state, torch.ones(1, dtype=torch.bool))
        self.player.reset()

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        """Controls [1, C, 8]; `chosen` are those of before."""
        self.seen = self.observation.build(state, chosen).flatten(0, 1).clone()
        mask = self.action_parser.mask(state)
        self.mask = None if mask is None else mask.flatten(0, 1)
        obs: Obs = self.seen if self.mask is None else {"obs": self.seen, ACTION_MASK: self.mask.to(torch.int8)}
        self.action = self.player.step(obs)
        return self.action_parser.parse(self.action.view(1, -1, *self.action.shape[1:]), state)
