"""OwnRewards: what the rewards of a run pay for a game on the stage, term by term, as its own task would pay."""
from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.state import Events, GameState

SUMMED = ("touches", "small_pads", "big_pads")


class OwnRewards:
    """The rewards of a task whose steps are `every` steps of the stage: what happens in these is merged. A lane's rewards are
    left out."""

    def __init__(self, task: RocketConfig, state: GameState, every: int) -> None:
        self.rewards = Rewards.named(task.rewards, mode=task.reward_mode, dense_scale=task.dense_scale,
                                     team_spirit=task.team_spirit, zero_sum=task.zero_sum)
        self.names, self.every = self.rewards.names, every
        self.state, self.previous, self.merged = state.clone(), state.clone(), state.clone()
        self.everywhere = torch.ones(1, dtype=torch.bool, device=state.device)
        self.rewards.bind(self.state)
        self.last: Tensor = torch.zeros(len(self.names), state.seats)
        """[K, C]: what the last decision of each car was paid"""

    def begin(self, state: GameState) -> None:
        self.steps = 0
        for mine in (self.state, self.previous, self.merged):
            mine.copy_(state)
        self.merged.clear_events()
        with self.state.cars.keeping():
            self.rewards.begin(self.state, self.everywhere)
        self.last = torch.zeros_like(self.last)

    def step(self, state: GameState, ended: bool) -> Tensor | None:
        """[K, C]: what was paid, weighted and spread between cars, if a decision is over with this step, or the game."""
        self.steps += 1
        _merge(self.merged, state)
        if self.steps % self.every and not ended:
            return None
        self.state.copy_(state)
        for name in (field.name for field in fields(Events)):
            getattr(self.state.events, name).copy_(getattr(self.merged.events, name))
        self.state.game.goal.copy_(self.merged.game.goal)
        with self.state.cars.keeping():
            self.rewards(self.state, self.previous, self.state.events)
            self.last = self.rewards.spread_table(self.state)[:, 0].clone()
        self.previous.copy_(self.state)
        self.merged.clear_events()
        return self.last


def _merge(merged: GameState, state: GameState) -> None:
    """Adds the events of a step to those of the steps before."""
    for name in (field.name for field in fields(Events)):
        so_far, new = getattr(merged.events, name), getattr(state.events, name)
        if new.dtype == torch.bool:
            so_far.logical_or_(new)
        elif name in SUMMED:
            so_far.add_(new)
        else:
            so_far.copy_(torch.where(new >= 0, new, so_far))
    merged.game.goal.copy_(torch.where(state.game.goal >= 0, state.game.goal, merged.game.goal))
