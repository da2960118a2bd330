"""Environments as rlgym-ppo takes them, whose every number is known. Worker processes import this module."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import spaces

from wavedash.compat.rlgym_ppo import MetricsLogger


class Match:
    """`agents` is the number of players, or two bounds between which it is drawn at reset. Each observes (place where it began,
    steps, last action).

    The reward is that place plus the step. An episode ends after `length` steps, truncated if `truncates`, else terminated.
    """

    observation_space: Any = spaces.Box(-np.inf, np.inf, (3,))

    def __init__(self, *agents: int, length: int = 4, truncates: bool = False, five: bool = True,
                 action_space: Any = None, single: bool = False) -> None:
        self.agents, self.length, self.truncates, self.five, self.single = agents, length, truncates, five, single
        self.action_space = action_space or spaces.Discrete(5)
        self.received: list[Any] = []

    def reset(self) -> Any:
        count = self.agents[0] if len(self.agents) == 1 else np.random.randint(self.agents[0], self.agents[1] + 1)
        self.obs = np.stack([np.random.uniform(1, 9, count), np.zeros(count), -np.ones(count)], 1)
        self.steps = 0
        return self.look()

    def look(self) -> Any:
        return self.obs[0].copy() if self.single else list(self.obs.copy())

    def step(self, actions: Any) -> tuple:
        assert isinstance(actions, np.ndarray) and actions.dtype == np.float32 and len(actions) == len(self.obs)
        self.received.append(actions.copy())
        self.steps += 1
        self.obs[:, 1], self.obs[:, 2] = self.steps, actions.sum(1)
        reward = self.obs[:, 0] + self.steps
        over = self.steps == self.length
        info = {"state": SimpleNamespace(speed=self.obs[:, 0].copy(), step=self.steps)}
        rewards = float(reward[0]) if self.single else list(reward)
        if self.five:
            return self.look(), rewards, over and not self.truncates, over and self.truncates, info
        return self.look(), rewards, over, info

    def close(self) -> None:
        pass


class Looks(MetricsLogger):
    """Its metrics are the place where the first player began, and a matrix."""

    def _collect_metrics(self, game_state: Any) -> list[Any]:
        return [game_state.speed[0], np.full((2, 3), game_state.step), game_state.step]

    def _report_metrics(self, collected_metrics: Any, wandb_run: Any, cumulative_timesteps: int) -> None:
        wandb_run.log({"entries": len(collected_metrics), "mean step": np.mean([m[2][0] for m in collected_metrics]),
                       "shapes": str({tuple(x.shape for x in m) for m in collected_metrics}),
                       "type": str(collected_metrics[0][0].dtype), "at": cumulative_timesteps})


def two_players() -> Match:
    return Match(2)


def teams() -> Match:
    return Match(1, 3, truncates=True)
