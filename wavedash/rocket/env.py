"""RocketEnv: a Rocket League task as a VecEnv, made of simulators and the parts of a task.

Arenas are divided into shards: one steps while the policy acts for another. Every team size has shards of its own
(`team_sizes.py`). What happens in a step is in `shard.py`. All of it is batched; on a GPU there is no host sync, and with the
simulator `warp` the whole step can be captured in a CUDA graph. The beginnings of episodes, which are random, are therefore
drawn before a rollout.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from wavedash.config import EnvConfig, RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.headline import Headline
from wavedash.envs.obs import named_tensors
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.recording.tape import Tape
from wavedash.rocket.shard import EVENTS, Shard
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.rocket.team_sizes import rehearse_sizes, shard_plans, team_size_of
from wavedash.rocket.watch import TEAMS
from wavedash.saved import Saved
from wavedash.seeding import stream_seed
from wavedash.threads import cores

OF_SIZES = ("per_minute/goals", "per_minute/touches")
"""Metrics that are also told for each team size, where there are several: `size/2v2/per_minute/goals`"""

class RocketEnv(VecEnv):
    """The cars of all arenas are the rows, shard by shard, arena by arena and seat by seat. Where all arenas have equally many
    seats, row = arena * seats + seat."""

    def __init__(self, simulators: Sequence[Simulator], task: Callable[[], Task]):
        """Each simulator becomes a shard; `task` makes the parts of one shard."""
        self._shards: list[Shard] = []
        for simulator in simulators:
            self._shards.append(Shard(simulator, task(), sum(shard.state.arenas for shard in self._shards)))
        first = self._shards[0]
        self.device = first.simulator.device
        self.capturable = all(shard.simulator.capturable for shard in self._shards)
        self.num_rows = sum(shard.rows for shard in self._shards)
        self.observation_space, self.action_space = first.observation_space, first.task.action.space
        ends = np.cumsum([shard.rows for shard in self._shards]).tolist()
        self._groups = tuple(slice(end - shard.rows, end) for shard, end in zip(self._shards, ends, strict=True))
        self._stepping: list[int] = []  # shards that are stepping, oldest first
        self._sizes = [team_size_of(shard.state) for shard in self._shards]

    @classmethod
    def configured(cls, config: EnvConfig, device: torch.device | str = "cpu",
                   task: Callable[[], Task] | None = None) -> RocketEnv:
        """The environment of a configuration. `task`: makes another task to play in its arenas."""
        rocket = config.rocket
        assert rocket is not None
        rehearse_sizes(rocket, rocket.team_sizes)  # finds mistakes before kernels are compiled or processes started
        simulators: list[Simulator] = []
        try:
            for make in _simulators(config, device):
                simulators.append(make())  # noqa: PERF401 (if one fails, those that were made are closed)
            return cls(simulators, task or (lambda: Task.configured(rocket)))
        except BaseException:
            for simulator in simulators:
                simulator.close()
            raise

    @property
    def groups(self) -> tuple[slice, ...]:
        return self._groups

    @property
    def lanes(self) -> Sequence[str]:
        return self._shards[0].task.lanes.names

    @property
    def health(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for shard in self._shards:
            for name, count in shard.simulator.health.items():
                total[name] = total.get(name, 0) + count
        return total

    @property
    def tasks(self) -> Sequence[Task]:
        return [shard.task for shard in self._shards]

    @property
    def generators(self) -> Sequence[torch.Generator]:
        return [stream for shard in self._shards for stream in shard.task.generators()]

    @property
    def headlines(self) -> Sequence[Headline]:
        task = self._shards[0].task
        rewards = list(task.rewards.weights)
        measured = [Headline("success of attempts", shown) for shown in [task.measures.shown()] if shown]
        measured += [Headline(f"success in lane {lane}", shown)
                     for lane in self.lanes if (shown := task.measures.shown_in(lane))]
        return (
            Headline("per car and minute", {f"per_minute/{name}": name for name in EVENTS}),
            *measured,
            Headline("share of each reward", {f"reward/{name}": name.replace("_", " ") for name in rewards}, shares=True),
        )

    @property
    def fault(self) -> Tensor:
        return torch.stack([shard.watch.seen for shard in self._shards]).any()

    def explain_fault(self) -> str | None:
        messages = [shard.explain_fault() for shard in self._shards]
        return next((message for message in messages if message), None)

    def name_row(self, row: int) -> str:
        rows, shard = next((rows, shard) for rows, shard in zip(self._groups, self._shards, strict=True) if row < rows.stop)
        arena, seat = divmod(row - rows.start, shard.state.seats)
        team, arena = int(shard.state.cars.team[arena, seat]), shard.first + arena
        return f"the car in seat {seat} ({TEAMS[team]}) of arena {arena}"

    @property
    def step_seconds(self) -> float:
        """Seconds of game time per step."""
        return self._shards[0].task.action.ticks / TICK_RATE

    def state_of(self, arena: int) -> GameState:
        """The state of one arena [1, ...], counted over all shards, for viewers. It is a view that every step changes: read it
        between steps, not during one."""
        index = arena
        for shard in self._shards:
            if 0 <= index < shard.state.arenas:
                return shard.state.part(slice(index, index + 1))
            index -= shard.state.arenas
        raise IndexError(f"there is no arena {arena}: this environment has {arena - index}, counted from 0")

    @property
    def states(self) -> Sequence[GameState]:
        """The state of each shard, which every step changes: read it between steps, not during one."""
        return [shard.state for shard in self._shards]

    @property
    def controls(self) -> Sequence[Tensor]:
        """[E, C, 8] of each shard: the controls that its last step gave the cars; zeros where an episode has just begun."""
        return [shard.controls for shard in self._shards]

    def attach(self, tapes: Sequence[Tape | None]) -> None:
        """Every shard keeps its steps on its tape from now on, or on none. CUDA graphs that were captured before know nothing
        of it."""
        for shard, tape in zip(self._shards, tapes, strict=True):
            shard.tape = tape

    def prepare(self) -> None:
        for shard in self._shards:
            shard.prepare()

    def rest(self, arenas: Tensor) -> None:
        """The games in these arenas [E] do not matter until it is called again, see `Simulator.rest`. This is a host sync."""
        for shard in self._shards:
            shard.simulator.rest(arenas[shard.first:shard.first + shard.state.arenas])

    def reset(self, seed: int | None = None) -> Obs:
        return _join([shard.reset(None if seed is None else stream_seed(seed, f"arenas {index}"))
                      for index, shard in enumerate(self._shards)])

    def step(self, action: Tensor) -> Step:
        for index, rows in enumerate(self._groups):
            self.send(index, action[rows])
        steps = dict(self.recv() for _ in self._groups)
        if len(steps) == 1:
            return steps[0]
        parts = [steps[index] for index in range(len(steps))]
        obs = _join([part.obs for part in parts])
        ended = any(part.final_obs is not part.obs for part in parts)
        metrics = {name: torch.cat([part.metrics[name] for part in parts]) for name in parts[0].metrics
                   if all(name in part.metrics for part in parts)}
        return Step(
            obs=obs,
            reward=torch.cat([part.reward for part in parts]),
            terminated=torch.cat([part.terminated for part in parts]),
            truncated=torch.cat([part.truncated for part in parts]),
            final_obs=_join([part.final_obs for part in parts]) if ended else obs,
            active=torch.cat([part.active for part in parts]),
            metrics=metrics,
            lane=None if parts[0].lane is None else torch.cat([part.lane for part in parts if part.lane is not None]),
        )

    def send(self, group: int, action: Tensor) -> None:
        if group in self._stepping:
            raise EnvError(f"group {group} is still stepping: recv() it before the next send()")
        self._shards[group].send(action)
        self._stepping.append(group)

    def recv(self) -> tuple[int, Step]:
        if not self._stepping:
            raise EnvError("recv() without send(): no group is stepping")
        ready = next((group for group in self._stepping if self._shards[group].simulator.ready), self._stepping[0])
        self._stepping.remove(ready)
        step, size = self._shards[ready].recv(), self._sizes[ready]
        if len(set(self._sizes)) > 1:
            step.metrics.update({f"size/{size}/{name}": step.metrics[name] for name in OF_SIZES})
        return ready, step

    def save_state(self) -> dict[str, Tensor]:
        return self.keep_state()()

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        if self._stepping:
            raise EnvError("save_state() in the middle of a step: recv() every group first")
        kept = [shard.keep() for shard in self._shards]
        return lambda: {f"{index}.{name}": x for index, saved in enumerate(kept) for name, x in saved().items()}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        shards = [{name.partition(".")[2]: x for name, x in state.items() if name.partition(".")[0] == str(index)}
                  for index in range(len(self._shards))]
        return _join([shard.load(Saved("env", saved, f"{index}."))
                      for index, (shard, saved) in enumerate(zip(self._shards, shards, strict=True))])

    def close(self) -> None:
        for shard in self._shards:
            shard.simulator.close()


def check_simulator(rocket: RocketConfig) -> None:
    """Raises UserError if the package that the simulator needs is not installed."""
    if rocket.simulator == "warp":
        from wavedash.rocket.sim.package import start_warp

        start_warp()
    else:
        from wavedash.rocket.rocketsim.package import rocketsim

        rocketsim()


def _simulators(config: EnvConfig, device: torch.device | str) -> list[Callable[[], Simulator]]:
    """A function for each shard that makes its simulator. On a CPU with several shards, one core is left to the policy, which
    acts for another shard."""
    rocket, plans = config.rocket, shard_plans(config, device)
    assert rocket is not None
    if rocket.simulator == "warp":
        from wavedash.rocket.sim.simulator import WarpSimulator

        threads = max(1, cores() - 1) if len(plans) > 1 else cores()
        return [partial(WarpSimulator, plan.arenas, plan.size.blue, plan.size.orange, hitboxes=rocket.hitbox, device=device,
                        threads=threads) for plan in plans]
    from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

    return [partial(RocketSimSimulator, plan.arenas, plan.size.blue, plan.size.orange, hitboxes=rocket.hitbox,
                    workers=plan.workers, device=device, timeout=max(60.0, config.worker_timeout),
                    first=sum(before.arenas for before in plans[:index]))
            for index, plan in enumerate(plans)]


def _join(obs: Sequence[Obs]) -> Obs:
    if len(obs) == 1:
        return obs[0]
    joined = {name: torch.cat([named_tensors(part)[name] for part in obs]) for name in named_tensors(obs[0])}
    return joined["obs"] if isinstance(obs[0], Tensor) else {name.removeprefix("obs."): x for name, x in joined.items()}
