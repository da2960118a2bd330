"""Collection: the policy acts, the world steps, the rollout remembers.

Each group of rows goes its own way through the T steps: while one group's environments step in their worker processes,
another group's actions are inferred, and nobody waits for the slowest. A world with one group (everything on one device)
is the same loop. Every group draws its actions from a random stream of its own, so results do not depend on who was faster.
"""
from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from wavedash.envs.obs import Obs, map_obs
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.memory import State
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.rollout import Rollout
from wavedash.ppo.stopwatch import stopwatch_for
from wavedash.seeding import stream_seed
from wavedash.threads import set_torch_threads


@dataclass
class Group:
    """Rows that step together, and where they stand."""

    rows: slice
    generator: torch.Generator
    memory: State
    obs: Obs
    """What the next action sees, as the environment gave it (often a view of its memory)"""
    noise: Tensor | None = None
    """gSDE: the noise matrices [n, F, A] of these rows; drawn at the beginning of each rollout, so no state of the run"""
    standardized: Obs | None = None
    """The same, standardised but not clipped: kept until the step tells which rows count for the statistics"""
    home: tuple[Obs, State] | None = None
    """Where observations and memory are kept between rollouts, so that a recording finds them in the same place"""
    t: int = 0
    out: list[Rollout] = field(default_factory=list)
    """Where each step of these rows is stored in the current rollout"""


    def settle(self) -> None:
        """Bring observations and memory home."""
        if self.home is not None:
            map_obs(Tensor.copy_, self.home[0], self.obs)
            for name, x in self.memory.items():
                self.home[1][name].copy_(x)
            self.obs, self.memory = self.home[0], dict(self.home[1])


class Collector:
    """Fills rollouts. Holds what lives on between them: current observations, memory, random streams."""

    def __init__(self, env: VecEnv, policy: ActorCritic, steps: int, seed: int, ranks: Ranks = ALONE):
        """`ranks`: each with equally many groups, whose random streams are numbered through all of them."""
        self.env, self.policy, self.steps, self.seed, self.ranks = env, policy, steps, seed, ranks
        self.groups: list[Group] = []
        self.looks = env.device.type == "cpu"
        """Whether it may look at which episodes ended: that costs nothing in host memory. On a GPU nobody looks."""
        self.stopwatch = stopwatch_for(env.device)
        self._metric_sums: dict[tuple[str, ...], Tensor] = {}  # [2, K] of the K metrics with these names
        self.success: Tensor | None = None

    def start(self, obs: Obs) -> None:
        """Begin with these observations (raw, of all rows), fresh memory and fresh random streams."""
        if self.policy.normalizer is not None and not self.policy.normalizer.started:
            self.policy.normalizer.centre_on(map_obs(lambda x: self.ranks.joined_rows(x) if x.is_floating_point() else x, obs))
        groups = []
        first_stream = self.ranks.rank * len(self.env.groups)
        for index, rows in enumerate(self.env.groups):
            generator = torch.Generator(self.env.device).manual_seed(stream_seed(self.seed, "actions", first_stream + index))
            memory = self.policy.initial_memory(rows.stop - rows.start)
            group = Group(rows, generator, memory, map_obs(lambda x, rows=rows: x[rows].clone(), obs))
            if self.env.capturable:
                group.home = group.obs, dict(memory)
            groups.append(group)
        self.groups = groups

    @torch.no_grad()
    def collect(self, out: Rollout) -> Tensor:
        """T steps of every row into `out`; returns V of the observations after the last step, [N]."""
        set_torch_threads(max(rows.stop - rows.start for rows in self.env.groups), self.policy.config)
        self._metric_sums = {}
        self.success = None
        out.final_value.zero_()
        for index, group in enumerate(self.groups):
            group.t, group.out = 0, out.each_step(group.rows)
            self._act(index, group, out)
        unfinished = len(self.groups)
        while unfinished:
            index, step = self.env.recv()
            self.stopwatch.lap("env")
            group = self.groups[index]
            self._record(group, step, out)
            group.t += 1
            if group.t < self.steps:
                self._act(index, group, out)
            else:
                unfinished -= 1
        for group in self.groups:
            group.settle()
        out.blank_inactive()
        last_value = [self.policy.value(self.policy.normalize(group.obs), group.memory) for group in self.groups]
        self.stopwatch.lap("inference")
        return torch.cat(last_value)

    def _act(self, index: int, group: Group, rollout: Rollout) -> None:
        length = self.policy.sequence_length
        if length is not None and group.t % length == 0:
            for name, x in group.memory.items():
                rollout.memory[name][group.t // length, group.rows] = x
        obs = group.obs
        if self.policy.normalizer is not None:
            group.standardized = self.policy.normalizer.standardize(obs)
            # What is not finite stays so: clipped, infinity would look like any other number, and nobody would be told.
            obs = self.policy.normalizer.clipped(map_obs(_infinite_as_nan, group.standardized))
        group.noise = self.policy.draw_noise(group.t, group.rows.stop - group.rows.start, group.noise, group.generator)
        decision = self.policy.act(obs, group.memory, group.generator, noise=group.noise)
        out = group.out[group.t]
        map_obs(Tensor.copy_, out.obs, obs)
        out.action.copy_(decision.action)
        out.log_prob.copy_(decision.log_prob)
        out.value.copy_(decision.value)
        group.memory = decision.memory
        action = self.policy.head.env_action(decision.action)
        self.stopwatch.lap("inference")
        self.env.send(index, action)
        self.stopwatch.lap("env")

    def _record(self, group: Group, step: Step, rollout: Rollout) -> None:
        out = group.out[group.t]
        out.reward.copy_(step.reward)
        out.terminated.copy_(step.terminated)
        out.truncated.copy_(step.truncated)
        out.active.copy_(step.active)
        if self.policy.normalizer is not None and group.standardized is not None:
            self.policy.normalizer.gather(group.standardized, step.active.float())
        if step.final_obs is not step.obs:
            self._value_truncated(group, step, out.final_value)
        if group.memory:
            over = (~step.active | step.terminated | step.truncated).view(-1, 1, 1)
            group.memory = {name: x.masked_fill(over, 0.0) for name, x in group.memory.items()}
        group.obs = step.obs
        if step.metrics:
            self._count_metrics(group, step, rollout)

    def _value_truncated(self, group: Group, step: Step, out: Tensor) -> None:
        """V of the last observation of episodes that were cut, with the memory after their last step, before it is cleared."""
        if not self.looks:
            out.copy_(self.policy.value(self.policy.normalize(step.final_obs), group.memory))
            return
        cut = step.active & step.truncated
        if bool(cut.any()):
            rows = cut.nonzero().squeeze(-1)
            memory = {name: x[rows] for name, x in group.memory.items()}
            out[rows] = self.policy.value(self.policy.normalize(map_obs(lambda x: x[rows], step.final_obs)), memory)

    def _count_metrics(self, group: Group, step: Step, rollout: Rollout) -> None:
        """All of them at once: a world may have dozens, and on a CPU small operations cost by their number."""
        names, active = tuple(step.metrics), step.active
        ended = active & (step.terminated | step.truncated)
        values = torch.stack([x.expand(active.shape) if x.dim() == 0 else x for x in step.metrics.values()])  # [K, N]
        counted = torch.stack([ended if name.startswith("episode/") else active for name in names])
        sums = torch.stack([torch.where(counted, values, 0), counted]).sum(-1, dtype=torch.float32)  # [2, K]
        self._metric_sums[names] = self._metric_sums[names] + sums if names in self._metric_sums else sums
        if "episode/success" in step.metrics:
            if self.success is None:
                self.success = torch.full_like(rollout.reward, torch.nan)
            self.success[group.t, group.rows] = step.metrics["episode/success"]

    @property
    def metric_sums(self) -> dict[str, Tensor]:
        """The sum of every metric of the last rollout, and over how many steps of rows: [2]."""
        total: dict[str, Tensor] = {}
        for names, sums in self._metric_sums.items():
            for name, x in zip(names, sums.unbind(-1), strict=True):
                total[name] = total[name] + x if name in total else x
        return total

    def state_dict(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = {}
        for index, group in enumerate(self.groups):
            state[f"actions.{index}"] = group.generator.get_state()
            state |= {f"memory.{index}.{name}": x for name, x in group.memory.items()}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Groups may have changed since the state was saved; those that are new keep their fresh streams."""
        for index, group in enumerate(self.groups):
            if f"actions.{index}" in state:
                group.generator.set_state(state[f"actions.{index}"])
                group.memory = {name: x.copy_(state[f"memory.{index}.{name}"]) for name, x in group.memory.items()}


def _infinite_as_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(torch.nan, torch.nan, torch.nan) if x.is_floating_point() else x
