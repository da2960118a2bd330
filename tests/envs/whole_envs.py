"""Whole VecEnvs, factories of them, and a kind of environments, for the tests of the registry."""
from __future__ import annotations

from typing import ClassVar

import gymnasium
import numpy as np
import torch

from wavedash.config import Section
from wavedash.envs.kinds import Evaluation, Kind
from wavedash.envs.vec_env import Step, VecEnv


class Rows(VecEnv):
    """A row observes how many of five steps it has taken; action 1 is rewarded. `told` is what it was made with."""

    observation_space = gymnasium.spaces.Box(0.0, 10.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, count, device, pay=1.0, **told):
        self.num_rows, self.device, self.pay = count, device, pay
        self.told = {"count": count, "device": device, "pay": pay, **told}
        self.taken = torch.zeros(count, 1, device=device)

    def reset(self, seed=None):
        self.taken.zero_()
        return self.taken.clone()

    def step(self, action):
        assert action.device == self.device
        self.taken += 1
        over, last = self.taken[:, 0] == 5, self.taken.clone()
        never, always = torch.zeros_like(over), torch.ones_like(over)
        self.taken[over] = 0
        return Step(self.taken.clone(), self.pay * action.float(), over, never, last, always, {})

    def save_state(self):
        return {"taken": self.taken.clone()}

    def load_state(self, state):
        self.taken.copy_(state["taken"])
        return self.taken.clone()


def with_groups(count, device, groups, workers=0):
    return Rows(count, device, groups=groups, workers=workers)


def without_being_told():
    return Rows(3, torch.device("cpu"))


def not_whole(count, device):
    return gymnasium.make("CartPole-v1")


def means_something_else(count, device):
    """One environment with options of its own that are called `count` and `device`."""
    assert (count, device) == (7, "screen")
    return gymnasium.make("CartPole-v1")


def fails(count, device):
    raise RuntimeError("no licence for this simulator")


class RowsKind(Kind):
    """Configurations choose it by `env.rows`, which is the reward of an action."""

    about = "a reward"

    def describe(self, config):
        return f"rows that pay {config.rows}"

    def check(self, config):
        if config.frame_stack > 1:
            raise ValueError("env.frame_stack is not for env.rows")

    def make(self, config, device):
        return Rows(config.count, device, pay=config.rows)

    def takes_workers(self, config):
        return False


class PayOptions(Section):
    """Options of `PayKind`."""

    pay: float = 1.0
    """The reward of action 1."""


class PayKind(Kind):
    """A user's own kind, which `env.factory` names. `made`: the counts that it was asked to make."""

    Options = PayOptions
    made: ClassVar[list[int]] = []

    def describe(self, config):
        return f"rows that pay {self.options(config).pay}"

    def check(self, config):
        super().check(config)
        if self.options(config).pay < 0:
            raise ValueError("env.kwargs.pay below 0 would teach to do nothing")

    def make(self, config, device):
        self.made.append(config.count)
        return Rows(config.count, device, pay=self.options(config).pay)

    def evaluation(self, config):
        return Evaluation(episodes=7, environments=3)


class PlainKind(Kind):
    """It takes no options, and makes what the configuration's count says: 13 is not a VecEnv, 14 fails."""

    def describe(self, config):
        return "plain"

    def make(self, config, device):
        if config.count == 14:
            raise RuntimeError("no licence for this simulator")
        return "thirteen" if config.count == 13 else Rows(config.count, device)


class UnfinishedKind(Kind):
    """It lacks a method that makes environments."""

    def describe(self, config):
        return "unfinished"
