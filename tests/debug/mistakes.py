"""Parts of a task with the mistakes that happen in practice, and environments with theirs."""
from __future__ import annotations

import random
from math import pi
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import Listener
from wavedash.rocket.actions import Continuous, LookupTable
from wavedash.rocket.geometry import rotation
from wavedash.rocket.parts import Reward, Start
from wavedash.rocket.state import BOOST, CONTROLS, JUMP, STEER, THROTTLE, Events, GameState


class ThrottleSteerSwapped(LookupTable):
    """The controls are in another order than the game's."""

    def rows(self) -> list[list[float]]:
        return [[steer, throttle, *rest] for throttle, steer, *rest in super().rows()]


class JumpBoostSwapped(LookupTable):
    def rows(self) -> list[list[float]]:
        return [[*row[:JUMP], row[BOOST], row[JUMP], row[-1]] for row in super().rows()]


class ContinuousSwapped(Continuous):
    def controls(self, action: Tensor) -> Tensor:
        order = [STEER, THROTTLE, *range(2, len(CONTROLS))]
        return super().controls(action)[..., order]


class NoJump(LookupTable):
    """No row of the table jumps."""

    def rows(self) -> list[list[float]]:
        return [row for row in super().rows() if not row[JUMP]]


class ForbidsJump(LookupTable):
    """The table has jumps, but the mask never allows one."""

    def mask(self, state: GameState) -> Tensor | None:
        mask = super().mask(state)
        assert mask is not None
        return mask & (self.table[:, JUMP] == 0)


class OneChoice(LookupTable):
    """Somebody took true for forbidden: all but one choice are forbidden."""

    def mask(self, state: GameState) -> Tensor | None:
        mask = super().mask(state)
        assert mask is not None
        return torch.zeros_like(mask).index_fill(-1, torch.tensor([17]), 1)


class UpsideDown(Start):
    """Roll is half a turn: somebody wrote the columns of the rotation in another order."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        cars = state.cars
        cars.rotation.copy_(rotation(torch.zeros_like(cars.boost), 0.0, pi))
        cars.position[..., 2] = 45.0
        cars.on_ground.fill_(False)
        cars.wheel_contact.fill_(False)


class NoseInTheFloor(Start):
    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.cars.rotation.copy_(rotation(torch.zeros_like(state.cars.boost), -0.5))


class OnTheBall(Start):
    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.position.copy_(state.cars.position[:, 0])
        state.ball.position[:, 2] = 93.0


class FliesOnTheGround(Start):
    """Cars high in the air of which the state says that they are on their wheels."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.cars.position[..., 2] = 800.0


class Flees(Reward):
    """Speed away from the ball: the difference of positions is the wrong way round."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        away = state.cars.position - state.ball.position.unsqueeze(1)
        return (state.cars.velocity * away).sum(-1) / away.norm(dim=-1).clamp(min=1) / 2300


class UpTheField(Reward):
    """Everybody is paid for a ball toward +Y, orange too."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return (state.ball.velocity[:, 1:2] / 6000).expand(state.shape)


class Alive(Reward):
    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        return torch.ones_like(state.cars.boost)


class OneStep(gymnasium.Env[Any, Any]):
    """Its episodes end in their first step, its observation never changes, and its reward is huge."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 1, scale: float = 1.0, reward: float = 1.0, seen: float = 1.0) -> None:
        self.length, self.scale, self.reward, self.seen, self.steps = length, scale, reward, seen, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self._obs(), self.reward * self.scale, self.steps >= self.length, False, {}

    def _obs(self) -> Any:
        return np.array([1.0, 2.0, 3.0], np.float32) * self.seen


class Grows(Listener):
    """Keeps more in every checkpoint."""

    def __init__(self) -> None:
        self.kept = torch.zeros(0)

    def on_iteration(self, learner: Learner, report: Any) -> None:
        self.kept = torch.zeros(len(self.kept) + 100_000)

    def state_dict(self) -> dict[str, Any]:
        return {"kept": self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.kept = state["kept"]


class PaysZero(OneStep):
    """Action 0 is paid, action 1 is not."""

    def step(self, action: Any) -> Any:
        obs, _, over, cut, info = super().step(action)
        return obs, float(action == 0), over, cut, info


class Global(OneStep):
    """Draws from the global random streams, which a report must not move."""

    def __init__(self, length: int = 5) -> None:
        super().__init__(length)

    def _obs(self) -> Any:
        return np.array([random.random(), np.random.rand(), float(torch.rand(()))], np.float32)
