"""The stages of an iteration, each as a call that does one iteration's worth of it and nothing else."""
from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.envs.obs import Obs, action_mask, map_obs
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.ppo.collector import Collector
from wavedash.ppo.graphs import CapturedCall
from wavedash.ppo.learner import Learner
from wavedash.ppo.rollout import Rollout
from wavedash.ppo.stopwatch import Stopwatch

Work = Callable[[], object]


class RandomPlay:
    """`env`: T steps of every row with random actions, sent and received by group as the collector does it.

    Actions are drawn beforehand. Only where the world says which ones are allowed they are drawn on the way, and counted.
    """

    def __init__(self, learner: Learner):
        self.env, self.groups, self.steps = learner.env, learner.collector.shards, learner.config.ppo.rollout_steps
        self.generator = torch.Generator(self.env.device).manual_seed(learner.config.seed)
        # A head whose weights are all zero: its actions are of the right kind, in bounds, allowed, and as random as can be.
        self.head = copy.deepcopy(learner.policy.head).requires_grad_(False)
        for p in self.head.parameters():
            p.zero_()
        self.features = learner.policy.trunks["actor"].outputs
        masked = any(action_mask(group.obs) is not None for group in self.groups)
        self.drawn = [] if masked else [[self._draw(index) for _ in range(self.steps)] for index in range(len(self.groups))]

    def __call__(self, seen: Callable[[int, Step], None] | None = None) -> None:
        """`seen` is shown every step of every group."""
        taken = [0] * len(self.groups)
        for index in range(len(self.groups)):
            self.env.send(index, self._action(index, 0))
        while min(taken) < self.steps:
            index, step = self.env.recv()
            self.groups[index].obs = step.obs
            if seen is not None:
                seen(index, step)
            taken[index] += 1
            if taken[index] < self.steps:
                self.env.send(index, self._action(index, taken[index]))
        for group in self.groups:  # the collector goes on from here, with the episodes that it finds
            group.memory = {name: torch.zeros_like(x) for name, x in group.memory.items()}
            group.copy_to_static()

    def _action(self, index: int, t: int) -> Tensor:
        return self.drawn[index][t] if self.drawn else self._draw(index)

    def _draw(self, index: int) -> Tensor:
        group = self.groups[index]
        features = torch.zeros(group.rows.stop - group.rows.start, self.features, device=self.env.device)
        return self.head.env_action(self.head(features, action_mask(group.obs)).sample(self.generator))


class Playback(VecEnv):
    """A world that costs nothing: gives back the steps [group][T] that were seen in another one."""

    def __init__(self, env: VecEnv, steps: Sequence[Sequence[Step]]):
        self.num_rows, self.device, self.capturable = env.num_rows, env.device, env.capturable
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._groups, self._steps, self._taken = env.groups, steps, [0] * len(steps)
        self._waiting: deque[int] = deque()

    @property
    def groups(self) -> tuple[slice, ...]:
        return self._groups

    def reset(self, seed: int | None = None) -> Obs:
        first, *others = (steps[-1].obs for steps in self._steps)
        return map_obs(lambda *parts: torch.cat(parts), first, *others)

    def step(self, action: Tensor) -> Step:
        raise EnvError("a playback is stepped by groups: send() and recv()")

    def send(self, group: int, action: Tensor) -> None:
        self._waiting.append(group)

    def recv(self) -> tuple[int, Step]:
        group = self._waiting.popleft()
        t = self._taken[group]
        self._taken[group] = (t + 1) % len(self._steps[group])
        return group, self._steps[group][t]


def inference(learner: Learner, play: RandomPlay, out: Rollout) -> Work:
    """Collection into `out` by the learner's policy in a world that costs nothing: everything but the world."""
    steps: list[list[Step]] = [[] for _ in play.groups]
    play(lambda index, step: steps[index].append(_copied(step)))
    world = Playback(learner.env, steps)
    collector = Collector(world, learner.policy, learner.config.ppo.rollout_steps, learner.config.seed)
    collector.start(world.reset())
    collector.stopwatch = Stopwatch()  # nobody reads it, and one for a GPU would go on collecting marks
    return as_trained(learner, lambda: collector.collect(out), [group.generator for group in collector.shards])


def advantages(learner: Learner, out: Rollout) -> Work:
    """`gae`: the episodes and advantages of `out`."""
    last_value = out.value[-1].clone()
    return as_trained(learner, lambda: learner.complete(out, last_value))


def update(learner: Learner) -> Work:
    """Every epoch over what was gathered last."""
    return lambda: learner.updater.update(learner.buffer)


def as_trained(learner: Learner, work: Work, generators: Sequence[torch.Generator] = ()) -> Work:
    """A part of collection is captured as a CUDA graph where collection is."""
    return CapturedCall(work, "a stage", generators) if learner.captures_collection else work


@contextmanager
def unchanged(learner: Learner) -> Iterator[None]:
    """Weights, optimiser, statistics and random streams are afterwards what they were before."""
    moments = () if learner.return_moments is None else learner.return_moments.buffers()
    tensors = [*learner.policy.parameters(), *learner.policy.buffers(), *moments, learner.tracker.running]
    kept = [x.detach().clone() for x in tensors]
    updater = {name: x.clone() for name, x in learner.updater.state_dict().items()}
    try:
        yield
    finally:
        with torch.no_grad():
            for x, before in zip(tensors, kept, strict=True):
                x.copy_(before)
            learner.updater.load_state_dict(updater)


def copy_of(rollout: Rollout) -> Rollout:
    parts: Any = {field.name: map_obs(torch.clone, getattr(rollout, field.name)) for field in fields(rollout)}
    return Rollout(**parts)


def _copied(step: Step) -> Step:
    obs = map_obs(torch.clone, step.obs)
    final_obs = obs if step.final_obs is step.obs else map_obs(torch.clone, step.final_obs)
    metrics = {name: x.clone() for name, x in step.metrics.items()}
    reward, terminated, truncated, active = (x.clone() for x in (step.reward, step.terminated, step.truncated, step.active))
    return Step(obs, reward, terminated, truncated, final_obs, active, metrics)
