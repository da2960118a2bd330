"""RocketEnv: a Rocket League task as a world of rows: a simulator, and parts that say what is seen, done and paid.

One step, from top to bottom: actions become controls, the simulator runs its ticks, endings and rewards look at what happened,
arenas whose episode is over begin another, and every car gets its observation. All of it is batched; on a GPU nothing waits,
and with the simulator `warp` the whole step can be recorded in a CUDA graph. What is drawn at random, the beginnings of
episodes, is therefore drawn before a rollout.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavedash.config import EnvConfig, Named, RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.headline import Headline
from wavedash.envs.obs import ACTION_MASK, named_tensors
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.rocket import names
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.part_state import tensors_of
from wavedash.rocket.parts import Action, Ending, Observation, Part, Start
from wavedash.rocket.rehearsal import observation_space, rehearse
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.saved_records import check_records
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff, Mixture
from wavedash.rocket.state import Events, GameState
from wavedash.rocket.watch import TEAMS, RewardWatch, explain_beginnings, impossible
from wavedash.saved import Saved
from wavedash.seeding import stream_seed
from wavedash.threads import cores

BEGINNINGS = 1024
"""That are written at once, or two for every arena where there are more arenas: many cost little more than one."""


EVENTS: dict[str, Callable[[Events], Tensor]] = {
    "goals": lambda events: events.goal,
    "shots": lambda events: events.shot,
    "saves": lambda events: events.save,
    "touches": lambda events: events.touches > 0,
    "demos": lambda events: events.demolished >= 0,
}
"""What a car can do in a step, [E, C] bool: counted per minute of its game, and shown in this order."""


@dataclass
class Task:
    """The parts of a task. Every group of arenas has its own: parts remember."""

    observation: Observation
    action: Action
    rewards: Rewards
    start: Start
    endings: Sequence[Ending]

    @classmethod
    def configured(cls, config: RocketConfig) -> Task:
        """As a YAML file describes it."""
        rewards = Rewards.named(config.rewards, mode=config.reward_mode, dense_scale=config.dense_scale,
                                team_spirit=config.team_spirit, zero_sum=config.zero_sum)
        starts = [_weighted_start(name, value) for name, value in config.starts.items()]
        return cls(
            observation=_named("observation", config.observation),
            action=_named("action", config.action),
            rewards=rewards,
            start=starts[0][0] if len(starts) == 1 else Mixture(starts),
            endings=[names.make("ending", name, options) for name, options in config.endings.items()],
        )

    @property
    def parts(self) -> list[Part]:
        return [self.observation, self.action, self.rewards, self.start, *self.endings]


class RocketEnv(VecEnv):
    """Cars of all arenas are the rows, arena by arena, seat by seat: row = arena * seats + seat."""

    def __init__(self, simulators: Sequence[Simulator], task: Callable[[], Task]):
        """One group of arenas per simulator, which steps while another is thought about; `task` makes a group's parts."""
        self._arenas: list[Arenas] = []
        for simulator in simulators:
            self._arenas.append(Arenas(simulator, task(), sum(arenas.state.arenas for arenas in self._arenas)))
        first = self._arenas[0]
        self.device = first.simulator.device
        self.capturable = all(arenas.simulator.capturable for arenas in self._arenas)
        self.num_rows = sum(arenas.rows for arenas in self._arenas)
        self.observation_space, self.action_space = first.observation_space, first.task.action.space
        ends = np.cumsum([arenas.rows for arenas in self._arenas]).tolist()
        self._groups = tuple(slice(end - arenas.rows, end) for arenas, end in zip(self._arenas, ends, strict=True))
        self._stepping: list[int] = []  # groups that are stepping, oldest first

    @classmethod
    def configured(cls, config: EnvConfig, device: torch.device | str = "cpu",
                   task: Callable[[], Task] | None = None) -> RocketEnv:
        """`task`: another one in the arenas of this configuration."""
        rocket = config.rocket
        assert rocket is not None
        rehearse(Task.configured(rocket), rocket)  # a mistake in it is found before kernels are compiled or processes started
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
    def health(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for arenas in self._arenas:
            for name, count in arenas.simulator.health.items():
                total[name] = total.get(name, 0) + count
        return total

    @property
    def headlines(self) -> Sequence[Headline]:
        rewards = self._arenas[0].task.rewards.names
        return (
            Headline("per car and minute", {f"per_minute/{name}": name for name in EVENTS}),
            Headline("share of each reward", {f"reward/{name}": name.replace("_", " ") for name in rewards}, shares=True),
        )

    @property
    def fault(self) -> Tensor:
        return torch.stack([arenas.watch.seen for arenas in self._arenas]).any()

    def explain_fault(self) -> str | None:
        words = [arenas.explain_fault() for arenas in self._arenas]
        return next((told for told in words if told), None)

    def name_row(self, row: int) -> str:
        arena, seat = divmod(row, self._arenas[0].state.seats)
        team = int(self.state_of(arena).cars.team[0, seat])
        return f"the car in seat {seat} ({TEAMS[team]}) of arena {arena}"

    @property
    def step_seconds(self) -> float:
        """How much time of the game a step takes."""
        return self._arenas[0].task.action.ticks / TICK_RATE

    def state_of(self, arena: int) -> GameState:
        """One arena [1, ...], counted over all groups, for viewers. It is a view that changes with the steps of its group: look
        at it between them, not during one."""
        place = arena
        for arenas in self._arenas:
            if 0 <= place < arenas.state.arenas:
                return arenas.state.part(slice(place, place + 1))
            place -= arenas.state.arenas
        raise IndexError(f"there is no arena {arena}: this world has {arena - place}, counted from 0")

    def prepare(self) -> None:
        for arenas in self._arenas:
            arenas.prepare()

    def reset(self, seed: int | None = None) -> Obs:
        return _join([arenas.reset(None if seed is None else stream_seed(seed, f"arenas {index}"))
                      for index, arenas in enumerate(self._arenas)])

    def step(self, action: Tensor) -> Step:
        for index, rows in enumerate(self._groups):
            self.send(index, action[rows])
        steps = dict(self.recv() for _ in self._groups)
        if len(steps) == 1:
            return steps[0]
        parts = [steps[index] for index in range(len(steps))]
        obs = _join([part.obs for part in parts])
        ended = any(part.final_obs is not part.obs for part in parts)
        metrics = {name: torch.cat([part.metrics[name] for part in parts]) for name in parts[0].metrics}
        return Step(
            obs=obs,
            reward=torch.cat([part.reward for part in parts]),
            terminated=torch.cat([part.terminated for part in parts]),
            truncated=torch.cat([part.truncated for part in parts]),
            final_obs=_join([part.final_obs for part in parts]) if ended else obs,
            active=torch.cat([part.active for part in parts]),
            metrics=metrics,
        )

    def send(self, group: int, action: Tensor) -> None:
        if group in self._stepping:
            raise EnvError(f"group {group} is still stepping: recv() it before the next send()")
        self._arenas[group].send(action)
        self._stepping.append(group)

    def recv(self) -> tuple[int, Step]:
        if not self._stepping:
            raise EnvError("recv() without send(): no group is stepping")
        ready = next((group for group in self._stepping if self._arenas[group].simulator.ready), self._stepping[0])
        self._stepping.remove(ready)
        return ready, self._arenas[ready].recv()

    def save_state(self) -> dict[str, Tensor]:
        return self.keep_state()()

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        if self._stepping:
            raise EnvError("save_state() in the middle of a step: recv() every group first")
        kept = [arenas.keep() for arenas in self._arenas]
        return lambda: {f"{index}.{name}": x for index, saved in enumerate(kept) for name, x in saved().items()}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        groups = [{name.partition(".")[2]: x for name, x in state.items() if name.partition(".")[0] == str(index)}
                  for index in range(len(self._arenas))]
        return _join([arenas.load(Saved("env", saved, f"{index}."))
                      for index, (arenas, saved) in enumerate(zip(self._arenas, groups, strict=True))])

    def close(self) -> None:
        for arenas in self._arenas:
            arenas.simulator.close()


class Arenas:
    """One group: its simulator, its task, and the tensors between them."""

    def __init__(self, simulator: Simulator, task: Task, first: int = 0):
        """`first`: number of its first arena among those of all groups."""
        self.simulator, self.task, self.first = simulator, task, first
        self.state = simulator.state
        self.previous = self.state.clone()
        device = self.state.memory.device
        self.looks = device.type == "cpu"
        """Looking at the data costs nothing in host memory. On a GPU nobody looks, and what may be needed is done."""
        self.shape = self.state.arenas, self.state.seats
        self.rows = self.state.arenas * self.state.seats
        self.controls = torch.zeros(*self.shape, 8, device=device)
        self.kickoff = Kickoff()
        self.generator = torch.Generator(device)
        self.everywhere = torch.ones(self.state.arenas, dtype=torch.bool, device=device)
        self.depth = max(2, -(-BEGINNINGS // self.state.arenas))
        self.fresh = self.state.repeated(self.depth)
        """Beginnings: those of arena e are its arenas e, e + E, e + 2 E, ..."""
        self.chosen = torch.empty_like(self.state.memory)
        """The next of them for every arena, once one begins"""
        self.numbers = torch.arange(self.state.arenas, device=device)
        self.used = torch.zeros_like(self.numbers)
        """How many of its beginnings each arena has used"""
        for part in task.parts:
            part.bind(self.fresh if part is task.start else self.state)
        self.kickoff.bind(self.fresh)
        self.active = self.state.cars.present.flatten().clone()
        self.masked = task.action.mask(self.state) is not None
        self.observation_space = observation_space(task, self.state)
        self.minutes_per_step = task.action.ticks / TICK_RATE / 60
        self.watch = RewardWatch(self.state, task.rewards)

    def prepare(self) -> None:
        """Beginnings are written anew before every rollout where nobody looks whether they are used up."""
        if not self.looks:
            self._write_beginnings()
            self.watch.seen.logical_or_(impossible(self.fresh))

    def reset(self, seed: int | None) -> Obs:
        if seed is not None:
            self.generator.manual_seed(seed)
        self._write_beginnings()
        self._refuse_impossible()
        self._begin(self.everywhere)
        return self._observe(stepped=False)

    def send(self, action: Tensor) -> None:
        """Actions of all rows [N, ...] to controls, and on to the simulator."""
        task = self.task
        self.controls.copy_(task.action.parse(action.view(*self.shape, *action.shape[1:]), self.state))
        self.previous.copy_(self.state)
        self.simulator.send(self.controls, task.action.ticks, task.action.delay)

    def recv(self) -> Step:
        """What the step led to."""
        self.simulator.recv()
        state, previous, events, task = self.state, self.previous, self.state.events, self.task
        terminated, truncated = self._endings()
        reward = task.rewards(state, previous, events).flatten()
        self.watch.look(reward)
        metrics = self._metrics()
        obs = final_obs = self._observe(stepped=True)
        ended = terminated | truncated
        if not self.looks or bool(ended.any()):
            final_obs = _copy(obs)
            self._begin(ended)
            obs = self._observe(stepped=False)
        seats = self.state.seats
        return Step(
            obs=obs,
            reward=reward,
            terminated=terminated.repeat_interleave(seats),
            truncated=(truncated & ~terminated).repeat_interleave(seats),
            final_obs=final_obs,
            active=self.active,
            metrics=metrics,
        )

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """Everything that the next step depends on."""
        simulator = self.simulator.keep()
        own = {name: x.clone() for name, x in self._remembered()}
        own["generator"] = self.generator.get_state()
        return lambda: {**{f"simulator.{name}": x for name, x in simulator().items()}, **own}

    def load(self, saved: Saved) -> Obs:
        """Go on from what was kept; returns the current observations."""
        remembered = dict(self._remembered())
        tensors = saved.tensors
        differ = [name for name, x in remembered.items() if name not in tensors or tensors[name].shape != x.shape]
        if differ:
            raise EnvError(f"the saved state of the arenas does not fit this task (it differs in {', '.join(differ[:3])}): set "
                           "env.count, env.groups and the task to what they were, or go on without the arenas' saved state")
        for name, x in remembered.items():
            saved.is_like(name, x, finite=not name.startswith("part."))  # parts may remember what they like
        saved.is_between("used", 0, self.depth)
        check_records(saved, "fresh", self.fresh)
        generator = saved.is_like("generator", self.generator.get_state())
        simulator = {name.removeprefix("simulator."): x for name, x in tensors.items() if name.startswith("simulator.")}
        self.simulator.load(simulator)
        for name, x in remembered.items():
            x.copy_(tensors[name])
        self.generator.set_state(generator)
        return self._observe(stepped=False)

    def _remembered(self) -> Iterator[tuple[str, Tensor]]:
        yield "controls", self.controls
        yield "used", self.used
        yield "fresh", self.fresh.memory
        for index, part in enumerate(self.task.parts):
            yield from tensors_of(part, f"part.{index}")

    def _endings(self) -> tuple[Tensor, Tensor]:
        """[E] terminated, [E] truncated."""
        over = {False: ~self.everywhere, True: ~self.everywhere}
        for ending in self.task.endings:
            over[ending.truncates] = over[ending.truncates] | ending(self.state, self.previous, self.state.events)
        return over[False], over[True]

    def _write_beginnings(self) -> None:
        self.kickoff.write(self.fresh, self.generator)
        self.task.start.write(self.fresh, self.generator)
        self.used.zero_()

    def _refuse_impossible(self) -> None:
        """Where a host sync costs nothing or does not matter."""
        if bool(impossible(self.fresh)):
            raise EnvError(self.explain_fault() or "")

    def explain_fault(self) -> str | None:
        return (explain_beginnings(self.fresh, self.task.start, self.first, self.state.arenas)
                or self.watch.explain(self.first, self.task.action.ticks))

    def _begin(self, arenas: Tensor) -> None:
        """Episodes in these arenas [E], each from the next of its own beginnings; after the last comes the first again."""
        if self.looks and bool(((self.used >= self.depth) & arenas).any()):
            self._write_beginnings()
            self._refuse_impossible()
        which = (self.used % self.depth) * self.state.arenas + self.numbers
        torch.index_select(self.fresh.memory, 0, which, out=self.chosen)
        torch.where(arenas.unsqueeze(-1), self.chosen, self.state.memory, out=self.state.memory)
        self.used += arenas
        self.simulator.place(arenas)
        self.controls.masked_fill_(arenas.view(-1, 1, 1), 0.0)
        for part in self.task.parts:
            if part is not self.task.start:
                part.begin(self.state, arenas)

    def _observe(self, stepped: bool) -> Obs:
        seen = self.task.observation.build(self.state, self.controls, stepped).flatten(0, 1)
        if not self.masked:
            return seen
        mask = self.task.action.mask(self.state)
        assert mask is not None
        return {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}

    def _metrics(self) -> dict[str, Tensor]:
        """By row: what each reward paid, and what happened."""
        metrics = {f"reward/{name}": share.flatten() for name, share in self.task.rewards.shares().items()}
        happened = torch.stack([found(self.state.events) for found in EVENTS.values()])
        rates = happened.flatten(1) / self.minutes_per_step
        metrics |= {f"per_minute/{name}": rate for name, rate in zip(EVENTS, rates.unbind(0), strict=True)}
        return metrics


def _named(kind: str, value: Named) -> Any:
    if isinstance(value, str):
        return names.make(kind, value)
    if len(value) != 1:
        raise EnvError(f"env.rocket.{kind} takes one name, or one name with its options; got {', '.join(value) or 'none'}")
    ((name, options),) = value.items()
    return names.make(kind, name, options)


def _weighted_start(name: str, value: float | Mapping[str, Any]) -> tuple[Start, float]:
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = options.pop("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < np.inf:
        raise EnvError(f"start {name!r} needs a weight of 0 or more, not {weight!r}")
    return names.make("start", name, options), float(weight)


def check_simulator(rocket: RocketConfig) -> None:
    """Raises UserError if the package that it needs is not installed."""
    if rocket.simulator == "warp":
        from wavedash.rocket.sim.package import start_warp

        start_warp()
    else:
        from wavedash.rocket.rocketsim.package import rocketsim

        rocketsim()


def _simulators(config: EnvConfig, device: torch.device | str) -> list[Callable[[], Simulator]]:
    """What makes the simulator of each group. Warp steps all arenas at once on a GPU; on a CPU one core is left to those who
    think about another group."""
    rocket = config.rocket
    assert rocket is not None
    if rocket.simulator == "warp":
        from wavedash.rocket.sim.simulator import WarpSimulator

        # Groups do not depend on the machine: each has a random stream of its own, and a run goes on exactly anywhere.
        groups = min(config.groups, config.count) if torch.device(device).type == "cpu" else 1
        threads = max(1, cores() - 1) if groups > 1 else cores()
        return [partial(WarpSimulator, count, rocket.blue, rocket.orange, hitboxes=rocket.hitbox, device=device,
                        threads=threads) for count in _shares(config.count, groups)]
    from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

    groups = config.groups if config.workers else 1
    counts = _shares(config.count, groups)
    return [partial(RocketSimSimulator, count, rocket.blue, rocket.orange, hitboxes=rocket.hitbox, workers=workers,
                    device=device, timeout=max(60.0, config.worker_timeout), first=sum(counts[:index]))
            for index, (count, workers) in enumerate(zip(counts, _shares(config.workers, groups), strict=True))]


def _shares(total: int, parts: int) -> list[int]:
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def _join(obs: Sequence[Obs]) -> Obs:
    if len(obs) == 1:
        return obs[0]
    joined = {name: torch.cat([named_tensors(part)[name] for part in obs]) for name in named_tensors(obs[0])}
    return joined["obs"] if isinstance(obs[0], Tensor) else {name.removeprefix("obs."): x for name, x in joined.items()}


def _copy(obs: Obs) -> Obs:
    return {name: x.clone() for name, x in obs.items()} if isinstance(obs, dict) else obs.clone()
