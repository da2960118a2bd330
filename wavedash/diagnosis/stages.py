"""The stages of an iteration are timed one by one; each is a call that does the work of one iteration and nothing else."""
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
    """Is the stage `env`: T steps of every row with random actions, sent and received by shard as the collector does.

    Actions are drawn beforehand. Only where the environment has action masks are they drawn on the way, within the time that is
    measured.
    """

    def __init__(self, learner: Learner):
        self.env, self.shards, self.steps = learner.env, learner.collector.shards, learner.config.ppo.rollout_steps
        self.generator = torch.Generator(self.env.device).manual_seed(learner.config.seed)
        # A head whose weights are all zero draws actions of the right kind, in bounds and allowed, with the most entropy.
        self.head = copy.deepcopy(learner.policy.head).requires_grad_(False)
        for p in self.head.parameters():
            p.zero_()
        self.features = learner.policy.trunks["actor"].outputs
        masked = any(action_mask(shard.obs) is not None for shard in self.shards)
        self.drawn = [] if masked else [[self._draw(index) for _ in range(self.steps)] for index in range(len(self.shards))]

    def __call__(self, observer: Callable[[int, Step], None] | None = None) -> None:
        """Plays one rollout. `observer` is called with every step of every shard."""
        taken = [0] * len(self.shards)
        for index in range(len(self.shards)):
            self.env.send(index, self._action(index, 0))
        while min(taken) < self.steps:
            index, step = self.env.recv()
            self.shards[index].obs = step.obs
            if observer is not None:
                observer(index, step)
            taken[index] += 1
            if taken[index] < self.steps:
                self.env.send(index, self._action(index, taken[index]))
        for shard in self.shards:  # the collector goes on from here, in the middle of these episodes
            shard.memory = {name: torch.zeros_like(x) for name, x in shard.memory.items()}
            shard.copy_to_static()

    def _action(self, index: int, t: int) -> Tensor:
        return self.drawn[index][t] if self.drawn else self._draw(index)

    def _draw(self, index: int) -> Tensor:
        shard = self.shards[index]
        features = torch.zeros(shard.rows.stop - shard.rows.start, self.features, device=self.env.device)
        return self.head.env_action(self.head(features, action_mask(shard.obs)).sample(self.generator))


class RecordedSteps(VecEnv):
    """An environment that costs nothing: it returns steps [shard][T] that were taken in another one."""

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
        raise EnvError("recorded steps are returned shard by shard: use send() and recv()")

    def send(self, group: int, action: Tensor) -> None:
        self._waiting.append(group)

    def recv(self) -> tuple[int, Step]:
        shard = self._waiting.popleft()
        t = self._taken[shard]
        self._taken[shard] = (t + 1) % len(self._steps[shard])
        return shard, self._steps[shard][t]


def inference(learner: Learner, play: RandomPlay, out: Rollout) -> Work:
    """Returns the stage `inference`: collection into `out` by the learner's policy in an environment that costs nothing."""
    steps: list[list[Step]] = [[] for _ in play.shards]
    play(lambda index, step: steps[index].append(_copied(step)))
    env = RecordedSteps(learner.env, steps)
    collector = Collector(env, learner.policy, learner.config.ppo.rollout_steps, learner.config.seed,
                          loss=learner.updater.loss)
    collector.start(env.reset())
    collector.stopwatch = Stopwatch()  # it is never read, and one for a GPU would accumulate events
    return captured_like_training(learner, lambda: collector.collect(out), [shard.generator for shard in collector.shards])


def advantages(learner: Learner, out: Rollout) -> Work:
    """Returns the stage `gae`: the episodes and advantages of `out`."""
    last_value = out.value[-1].clone()
    return captured_like_training(learner, lambda: learner.complete(out, last_value))


def update(learner: Learner) -> Work:
    """Returns the stage `update`: every epoch over the latest rollouts."""
    return lambda: learner.updater.update(learner.buffer)


def captured_like_training(learner: Learner, work: Work, generators: Sequence[torch.Generator] = ()) -> Work:
    """Captures a part of collection as a CUDA graph where training captures collection."""
    return CapturedCall(work, "a stage", generators) if learner.captures_collection else work


@contextmanager
def unchanged(learner: Learner) -> Iterator[None]:
    """Restores weights, optimiser, statistics and random streams at the end."""
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
