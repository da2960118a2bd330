"""Collection: the policy acts, the environments step, the rollout stores both.

Shards of the environments go through the T steps independently: while one shard steps in its worker processes, the actions of
another are inferred, and no shard waits for the slowest. Environments with one shard (everything on one device) run through the
same loop. Every shard draws its actions from a random stream of its own, so results do not depend on which was faster.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.envs.obs import Obs, map_obs
from wavedash.envs.vec_env import EnvError, Step, VecEnv
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.memory import State
from wavedash.ppo.loss import Loss
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.rollout import Rollout
from wavedash.ppo.stopwatch import stopwatch_for
from wavedash.seeding import stream_seed
from wavedash.threads import set_torch_threads

MOST_LANES = 255
"""The lane of a step is stored in one byte, in which 0 is the main task"""


@dataclass
class Shard:
    """Rows whose environments step together, and what they carry from step to step."""

    rows: slice
    generator: torch.Generator
    memory: State
    obs: Obs
    """What the next action sees, as the environment gave it (often a view of the environment's memory)"""
    label_memory: State = field(default_factory=dict)
    """What a labeller of the loss remembers of these rows"""
    noise: Tensor | None = None
    """gSDE: the noise matrices [n, F, A] of these rows. Each rollout begins with new ones, so they are not saved."""
    standardized: Obs | None = None
    """`obs`, standardised but not clipped: kept until the step tells which rows count for the statistics"""
    static: tuple[Obs, State, State] | None = None
    """Tensors that hold observations, memory and the labeller's memory between rollouts: a captured CUDA graph always reads the
    same addresses"""
    t: int = 0
    out: list[Rollout] = field(default_factory=list)
    """Where each step of these rows is stored in the current rollout"""
    lane: Sequence[Tensor] = ()
    """Where the lane of each step is stored, if the environment has lanes"""

    def copy_to_static(self) -> None:
        """Copies observations and memory to the tensors that hold them between rollouts."""
        if self.static is not None:
            obs, *states = self.static
            map_obs(Tensor.copy_, obs, self.obs)
            for state, now in zip(states, (self.memory, self.label_memory), strict=True):
                for name, x in now.items():
                    state[name].copy_(x)
            self.obs, self.memory, self.label_memory = obs, *map(dict, states)


@dataclass
class Counted:
    """What was counted in one rollout, besides what the rollout stores. A captured CUDA graph writes to the tensors that its
    capture made: those of another graph are others."""

    sums: dict[tuple[str, ...], Tensor] = field(default_factory=dict)
    """[2, 1 + L, K] of the K metrics with these names: sums, and how many agent steps they are of"""
    success: Tensor | None = None
    """[T, N]: what the environment says of episodes that end, if it does"""


class Known(NamedTuple):
    """Which of K metrics count only in some steps, [K, 1] bool each; None: none of them."""

    attempts: Tensor | None
    """They count where an attempt was decided"""
    at_ends: Tensor | None
    """They count where an episode ends"""


class Collector:
    """Fills rollouts, and holds what lasts from one to the next: current observations, memory, random streams."""

    def __init__(self, env: VecEnv, policy: ActorCritic, steps: int, seed: int, ranks: Ranks = ALONE, loss: Loss | None = None):
        """All `ranks` have equally many shards, and the random streams of shards are numbered over all ranks. `loss` says what
        rollouts must hold; None: what those of PPO hold."""
        self.env, self.policy, self.steps, self.seed, self.ranks = env, policy, steps, seed, ranks
        self.loss = Loss() if loss is None else loss
        self.shards: list[Shard] = []
        self.may_sync = env.device.type == "cpu"
        """Whether it may read on the host which episodes ended. On a GPU that would be a host sync."""
        self.stopwatch = stopwatch_for(env.device)
        self.counted = Counted()
        """What was counted in the last rollout. Whoever replays a graph of `collect` puts back what its capture made."""
        self._names: dict[tuple[str, ...], Known] = {}
        if len(env.lanes) > MOST_LANES:
            raise EnvError(f"the environment has {len(env.lanes)} lanes, and {MOST_LANES} is the most that can be told apart: "
                           "configure fewer")
        self.lane = torch.zeros(steps, env.num_rows, dtype=torch.uint8, device=env.device) if env.lanes else None
        """[T, N]: the lane of every step of the last rollout, where the environment has lanes"""
        self._lanes = torch.arange(1 + len(env.lanes), device=env.device).view(-1, 1, 1)

    def start(self, obs: Obs) -> None:
        """Begins with these observations (raw, of all rows), fresh memory and fresh random streams."""
        if self.policy.normalizer is not None and not self.policy.normalizer.started:
            self.policy.normalizer.centre_on(map_obs(lambda x: self.ranks.gather_rows(x) if x.is_floating_point() else x, obs))
        shards = []
        first_stream = self.ranks.rank * len(self.env.groups)
        for index, rows in enumerate(self.env.groups):
            generator = torch.Generator(self.env.device).manual_seed(stream_seed(self.seed, "actions", first_stream + index))
            memory = self.policy.initial_memory(rows.stop - rows.start)
            shard = Shard(rows, generator, memory, map_obs(lambda x, rows=rows: x[rows].clone(), obs))
            if self.loss.labeller is not None:
                shard.label_memory = self.loss.labeller.initial_memory(rows.stop - rows.start)
            if self.env.capturable:
                shard.static = shard.obs, dict(memory), dict(shard.label_memory)
            shards.append(shard)
        self.shards = shards

    @torch.no_grad()
    def collect(self, out: Rollout) -> Tensor:
        """Collects T steps of every row into `out` and returns V of the observations after the last step, [N]; zeros where the
        loss needs no values."""
        set_torch_threads(max(rows.stop - rows.start for rows in self.env.groups), self.policy.config)
        self.counted = Counted()
        out.final_value.zero_()
        for index, shard in enumerate(self.shards):
            shard.t, shard.out = 0, out.each_step(shard.rows)
            shard.lane = () if self.lane is None else self.lane[:, shard.rows].unbind(0)
            self._act(index, shard, out)
        unfinished = len(self.shards)
        while unfinished:
            index, step = self.env.recv()
            self.stopwatch.lap("env")
            shard = self.shards[index]
            self._store(shard, step, out)
            shard.t += 1
            if shard.t < self.steps:
                self._act(index, shard, out)
            else:
                unfinished -= 1
        for shard in self.shards:
            shard.copy_to_static()
        out.blank_inactive()
        if not self.loss.values:
            return torch.zeros_like(out.value[0])
        last_value = [self.policy.value(self.policy.normalize(shard.obs), shard.memory) for shard in self.shards]
        self.stopwatch.lap("inference")
        return torch.cat(last_value)

    def _act(self, index: int, shard: Shard, rollout: Rollout) -> None:
        length = self.policy.sequence_length
        if length is not None and shard.t % length == 0:
            for name, x in shard.memory.items():
                rollout.memory[name][shard.t // length, shard.rows] = x
        obs = shard.obs
        if self.policy.normalizer is not None:
            shard.standardized = self.policy.normalizer.standardize(obs)
            # Infinity becomes NaN, which clipping keeps: a clipped infinity would look like any other number, and hide a fault.
            obs = self.policy.normalizer.clipped(map_obs(_infinite_as_nan, shard.standardized))
        shard.noise = self.policy.draw_noise(shard.t, shard.rows.stop - shard.rows.start, shard.noise, shard.generator)
        decision = self.policy.act(obs, shard.memory, shard.generator, deterministic=not self.loss.explores, noise=shard.noise,
                                   critic=self.loss.values)
        out = shard.out[shard.t]
        map_obs(Tensor.copy_, out.obs, obs)
        out.action.copy_(decision.action)
        out.log_prob.copy_(decision.log_prob)
        out.value.copy_(decision.value)
        shard.memory = decision.memory
        if self.loss.labeller is not None:
            labels, shard.label_memory = self.loss.labeller.label(shard.obs, shard.label_memory)
            for name, x in out.labels.items():
                x.copy_(labels[name])
        action = self.policy.head.env_action(decision.action)
        self.stopwatch.lap("inference")
        self.env.send(index, action)
        self.stopwatch.lap("env")

    def _store(self, shard: Shard, step: Step, rollout: Rollout) -> None:
        out = shard.out[shard.t]
        out.reward.copy_(step.reward)
        out.terminated.copy_(step.terminated)
        out.truncated.copy_(step.truncated)
        out.active.copy_(step.active)
        if self.policy.normalizer is not None and shard.standardized is not None:
            self.policy.normalizer.accumulate(shard.standardized, step.active.float())
        if step.final_obs is not step.obs and self.loss.values:
            self._value_truncated(shard, step, out.final_value)
        if shard.memory or shard.label_memory:
            over = (~step.active | step.terminated | step.truncated).view(-1, 1, 1)
            shard.memory, shard.label_memory = ({name: x.masked_fill(over, 0.0) for name, x in memory.items()}
                                                for memory in (shard.memory, shard.label_memory))
        shard.obs = step.obs
        if self.lane is not None and step.lane is not None:
            shard.lane[shard.t].copy_(step.lane)
        if step.metrics:
            self._count_metrics(shard, step, rollout)

    def _value_truncated(self, shard: Shard, step: Step, out: Tensor) -> None:
        """Writes V of the last observation of episodes that were truncated. It needs the memory after their last step, before
        that is cleared."""
        if not self.may_sync:
            out.copy_(self.policy.value(self.policy.normalize(step.final_obs), shard.memory))
            return
        cut = step.active & step.truncated
        if bool(cut.any()):
            rows = cut.nonzero().squeeze(-1)
            memory = {name: x[rows] for name, x in shard.memory.items()}
            out[rows] = self.policy.value(self.policy.normalize(map_obs(lambda x: x[rows], step.final_obs)), memory)

    def _count_metrics(self, shard: Shard, step: Step, rollout: Rollout) -> None:
        """Adds up all metrics at once: an environment may have dozens, and many small operations are slow on a CPU."""
        names, active = tuple(step.metrics), step.active
        values = torch.stack([x.expand(active.shape) if x.dim() == 0 else x for x in step.metrics.values()])  # [K, N]
        known, counted = self._known(names), active
        if known.at_ends is not None:
            counted = active & (step.terminated | step.truncated | ~known.at_ends)  # [K, N]
        if step.lane is not None:
            counted = counted & (step.lane == self._lanes)  # [1 + L, K or 1, N]
            counted = counted > values.isnan()  # and not NaN, in one operation
        elif known.attempts is not None:
            counted = counted > (values.isnan() & known.attempts)
        counted = counted.expand(*counted.shape[:-2], *values.shape)
        sums = torch.stack([torch.where(counted, values, 0).sum(-1, dtype=torch.float32), counted.sum(-1, dtype=torch.float32)])
        counts = self.counted
        counts.sums[names] = counts.sums[names] + sums if names in counts.sums else sums
        if "episode/success" in step.metrics:
            if counts.success is None:
                counts.success = torch.full_like(rollout.reward, torch.nan)
            counts.success[shard.t, shard.rows] = step.metrics["episode/success"]

    def _known(self, names: tuple[str, ...]) -> Known:
        """Works out what follows from the names of metrics."""
        if names not in self._names:
            self._names[names] = Known(*(self._mask([name.startswith(prefix) for name in names])
                                         for prefix in ("attempt/", "episode/")))
        return self._names[names]

    def _mask(self, flags: list[bool]) -> Tensor | None:
        """[K, 1] bool; None: all of them are false."""
        mask = torch.zeros(len(flags), 1, dtype=torch.bool, device=self.env.device)
        for place, flag in zip(mask.unbind(0), flags, strict=True):
            place.fill_(flag)
        return mask if any(flags) else None

    @property
    def metric_sums(self) -> dict[str, Tensor]:
        """Return, for every metric of the last rollout, [2]: its sum, and the number of agent steps in that sum. Those of the
        main task are named `env/...`, those of a lane `lane/<name>/...`."""
        total: dict[str, Tensor] = {}
        prefixes = ["env/", *(f"lane/{lane}/" for lane in self.env.lanes)]
        for names, sums in self.counted.sums.items():
            for prefix, own in zip(prefixes, sums.view(2, len(prefixes), -1).unbind(1), strict=True):
                for name, x in zip(names, own.unbind(-1), strict=True):
                    key = prefix + name
                    total[key] = total[key] + x if key in total else x
        return total

    def state_dict(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = {}
        for index, shard in enumerate(self.shards):
            state[f"actions.{index}"] = shard.generator.get_state()
            state |= {f"memory.{index}.{name}": x for name, x in shard.memory.items()}
            state |= {f"labels.{index}.{name}": x for name, x in shard.label_memory.items()}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restores random streams and memory. Shards that the saved state does not have keep their fresh ones."""
        for index, shard in enumerate(self.shards):
            if f"actions.{index}" in state:
                shard.generator.set_state(state[f"actions.{index}"])
                for saved, memory in (("memory", shard.memory), ("labels", shard.label_memory)):
                    for name, x in memory.items():
                        x.copy_(state[f"{saved}.{index}.{name}"])


def _infinite_as_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(torch.nan, torch.nan, torch.nan) if x.is_floating_point() else x
