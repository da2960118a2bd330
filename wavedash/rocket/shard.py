"""Shard: arenas of one simulator that step together, their task, and the tensors between them.

In one step, actions become controls, the simulator runs its ticks, endings and rewards are computed, arenas whose game is
over begin another, and every car gets its observation. A game is an episode, or one of a series of them (`series.py`).
"""
from __future__ import annotations

import logging
import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.envs.obs import ACTION_MASK, map_obs
from wavedash.envs.vec_env import Obs, Step
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.recording.tape import Tape
from wavedash.rocket.rehearsal import observation_space
from wavedash.rocket.saved_records import check_records
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.state import Events, GameState
from wavedash.rocket.task import Task
from wavedash.rocket.watch import RewardWatch, explain_beginnings, impossible
from wavedash.saved import Saved

log = logging.getLogger(__name__)

BEGINNINGS = 1024
"""Beginnings that are written at once, or two for every arena if that is more: many cost little more than one"""
ROLLOUTS = 4
"""On a GPU, the number of rollouts for which beginnings are written at once, two for every arena and rollout. The starts of a
curriculum are thousands of small kernels, whose launches would hold up every rollout."""

TASK, SIMULATOR = "task.", "simulator."
"""Prefixes of the names of saved tensors"""
EVENTS: dict[str, Callable[[Events], Tensor]] = {
    "goals": lambda events: events.goal,
    "shots": lambda events: events.shot,
    "saves": lambda events: events.save,
    "touches": lambda events: events.touches > 0,
    "demos": lambda events: events.demolished >= 0,
}
"""What a car can do in a step, [E, C] bool. Each is counted per minute of game time, and shown in this order."""

RATES = [f"per_minute/{name}" for name in EVENTS]


class Shard:
    """One simulator and its task."""

    def __init__(self, simulator: Simulator, task: Task, first: int = 0):
        """`first`: the number of its first arena among those of all shards."""
        self.simulator, self.task, self.first = simulator, task, first
        self.state = simulator.state
        self.previous = self.state.clone()
        device = self.state.memory.device
        self.on_host = device.type == "cpu"
        """On the host a step reads tensors and skips work that no arena needs. On a GPU it does all work, without a host
        sync."""
        self.shape = self.state.arenas, self.state.seats
        self.rows = self.state.arenas * self.state.seats
        self.controls = torch.zeros(*self.shape, 8, device=device)
        self.kickoff = Kickoff()
        self.generator = torch.Generator(device)
        self.everywhere = torch.ones(self.state.arenas, dtype=torch.bool, device=device)
        self.depth = depth(self.state.arenas, device)
        self.fresh = self.state.repeated(self.depth)
        """The store of beginnings: those of arena e are its entries e, e + E, e + 2 E, ..."""
        self.chosen = torch.empty_like(self.state.memory)
        """Work memory of `_begin`: the next beginning of every arena"""
        self.numbers = torch.arange(self.state.arenas, device=device)
        self.used = torch.zeros_like(self.numbers)
        """How many of its beginnings each arena has used"""
        self.written_by = 0
        """Identifies the start that wrote the beginnings, see `_start_number`"""
        self.rollouts = 0
        """How many rollouts have begun since the beginnings were written"""
        task.bind(self.state, self.fresh)
        self.kickoff.bind(self.fresh)
        self.active = self.state.cars.present.flatten().clone()
        self.masked = task.action.mask(self.state) is not None
        self.observation_space = observation_space(task, self.state)
        self.minutes_per_step = task.action.ticks / TICK_RATE / 60
        self.paid = [f"reward/{name}" for name in task.rewards.shown]
        """The names of metrics about what each reward paid"""
        self.lane_of_rows: Tensor | None = None
        """What `_lane` has returned last; None: lanes may have changed since"""
        self.watch = RewardWatch(self.state, task.rewards)
        self.tape: Tape | None = None
        """Where steps of some arenas are kept to record them. It must be there before a step is captured."""

    def prepare(self) -> None:
        """Beginnings are written anew if the starts have changed: their weights during a run, any setting on resume. On a GPU
        also every few rollouts, because a step cannot tell whether they are used up."""
        changed = self.written_by != self._start_number()
        if changed or (not self.on_host and self.rollouts >= ROLLOUTS):
            self._write_beginnings()
            if self.on_host:
                self._refuse_impossible()
            else:
                self.watch.seen.logical_or_(impossible(self.fresh))
        self.rollouts += 1

    def reset(self, seed: int | None) -> Obs:
        if seed is not None:
            self.generator.manual_seed(seed)
        self._write_beginnings()
        self._refuse_impossible()
        self._begin(self.everywhere)
        return self._observe(stepped=False)

    def send(self, action: Tensor) -> None:
        """Parses the actions of all rows [N, ...] and starts the simulator's step."""
        task = self.task
        controls = task.action.parse(action.view(*self.shape, *action.shape[1:]), self.state)
        if task.line_up is not None:
            controls = task.line_up.drive(controls, self.controls)
        self.controls.copy_(controls)
        self.previous.copy_(self.state)
        self.simulator.send(self.controls, task.action.ticks, task.action.delay)

    def recv(self) -> Step:
        """Waits for the simulator, and returns the result of the step."""
        self.simulator.recv()
        state, previous, events, task = self.state, self.previous, self.state.events, self.task
        with state.cars.keeping():
            terminated, truncated = task.ended(state, previous, events)
            reward = task.rewards(state, previous, events).flatten()
            self.watch.check(reward)
            metrics, active, lane = self._metrics(), self._active(), self._lane()
        obs = final_obs = self._observe(stepped=True)
        over, first, seats = terminated | truncated, None, self.state.seats
        if self.tape is not None:
            self.tape.write(state, previous, over, active, metrics)
        if task.series is not None:
            first = task.series.ended(over)
            terminated, truncated = terminated & first, truncated & first
        if not self.on_host or bool(over.any()):
            final_obs = _copy(obs)
            if task.line_up is not None:
                task.line_up.count(over)
            self._begin(over, first)
            obs = self._observe(stepped=False)
            if first is not None:
                final_obs = _where(first.repeat_interleave(seats), final_obs, obs)
        return Step(
            obs=obs,
            reward=reward,
            terminated=terminated.repeat_interleave(seats),
            truncated=(truncated & ~terminated).repeat_interleave(seats),
            final_obs=final_obs,
            active=active,
            metrics=metrics,
            lane=lane,
        )

    def _active(self) -> Tensor:
        """[N]: the rows of the policy in the current episodes. Rows of other players are inactive."""
        line_up = self.task.line_up
        return self.active if line_up is None else self.active & line_up.of_policy().flatten()

    def _lane(self) -> Tensor | None:
        """[N]: the lane of each row in the current episodes, if there are lanes; a new tensor if it may have changed."""
        lanes = self.task.lanes
        if lanes.lane is not None and not (lanes.settled and self.lane_of_rows is not None):
            self.lane_of_rows = lanes.lane.repeat_interleave(self.state.seats)
        return self.lane_of_rows

    def keep(self) -> Callable[[], dict[str, Tensor]]:
        """A function that returns everything that the next step depends on, as it is now."""
        simulator = self.simulator.keep()
        own = {name: x.clone() for name, x in {**self._own(), **self._of_task()}.items()}
        own |= {"generator": self.generator.get_state(), "written_by": torch.tensor(self.written_by),
                "rollouts": torch.tensor(self.rollouts)}
        own |= {name: stream.get_state() for name, stream in self._streams().items()}
        return lambda: {**{f"simulator.{name}": x for name, x in simulator().items()}, **own}

    def load(self, saved: Saved) -> Obs:
        """Goes on from saved arenas, and returns the current observations."""
        own, tensors = self._own(), saved.tensors
        if any(name.startswith("part.") for name in tensors):
            raise EnvError("the arenas were saved by an earlier version of Wavedash, in another form")
        differ = [name for name, x in own.items() if name not in tensors or tensors[name].shape != x.shape]
        if differ:
            raise EnvError(f"the saved state of the arenas does not fit this task (it differs in {', '.join(differ[:3])}): set "
                           "env.count, env.groups and the cars to what they were, or go on without the arenas' saved state")
        for name, x in own.items():
            saved.is_like(name, x)
        saved.is_between("used", 0, self.depth)
        check_records(saved, "fresh", self.fresh)
        self._refuse_other_cars(tensors["fresh"])
        of_task = Saved("env", {name.removeprefix(TASK): x for name, x in tensors.items() if name.startswith(TASK)},
                        f"{saved.prefix}{TASK}")
        remembered = self.task.compare(of_task)
        generator = saved.is_like("generator", self.generator.get_state())
        streams = {name: saved.is_like(name, stream.get_state()) for name, stream in self._streams().items() if name in tensors}
        written_by = int(saved.has("written_by", torch.int64, ()))
        rollouts = int(saved.has("rollouts", torch.int64, ())) if "rollouts" in tensors else ROLLOUTS
        self.simulator.load({name.removeprefix(SIMULATOR): x for name, x in tensors.items() if name.startswith(SIMULATOR)})
        for name, x in own.items():
            x.copy_(tensors[name])
        self.generator.set_state(generator)
        for name, state in streams.items():
            self._streams()[name].set_state(state)
        self.written_by, self.rollouts = written_by, rollouts
        self.task.restore(remembered, of_task, self.state)
        if self.first == 0 and (changes := str(remembered)):
            log.info("the task has other parts than the one that was saved: %s", changes)
        return self._observe(stepped=False)

    def _refuse_other_cars(self, records: Tensor) -> None:
        """Raises EnvError if other cars play in the saved arenas: a simulator cannot exchange them."""
        then, now = GameState.over(records.contiguous(), self.state.seats).cars, self.fresh.cars
        for field in ("team", "hitbox", "present"):
            if not torch.equal(getattr(then, field).to(self.state.device), getattr(now, field)):
                raise EnvError(f"other cars played in the saved arenas (they differ in cars.{field})")

    def _streams(self) -> dict[str, torch.Generator]:
        """The random streams that steps draw from, such as those of players, by the names that checkpoints have."""
        return {f"stream.{index}": stream for index, stream in enumerate(self.task.generators())}

    def _own(self) -> dict[str, Tensor]:
        return {"controls": self.controls, "used": self.used, "fresh": self.fresh.memory}

    def _of_task(self) -> dict[str, Tensor]:
        return {f"{TASK}{name}": x for name, x in self.task.state_dict().items()}

    def _start_number(self) -> int:
        """A number that changes with everything that beginnings depend on: the starts, their options and weights, and lanes."""
        return zlib.crc32(self.task.description.encode())

    def _write_beginnings(self) -> None:
        self.kickoff.write(self.fresh, self.generator)
        self.task.start.write(self.fresh, self.generator)
        self.used.zero_()
        self.written_by, self.rollouts = self._start_number(), 0

    def _refuse_impossible(self) -> None:
        """Raises EnvError if a beginning breaks a rule of the game. This is a host sync, so it is not for steps on a GPU."""
        if bool(impossible(self.fresh)):
            raise EnvError(self.explain_fault() or "")

    def explain_fault(self) -> str | None:
        return (explain_beginnings(self.fresh, self.task.start, self.first, self.state.arenas)
                or self.watch.explain(self.first, self.task.action.ticks))

    def _begin(self, arenas: Tensor, first: Tensor | None = None) -> None:
        """Begins games in these arenas [E], each from the next of its own beginnings; after the last, the first is used
        again. `first` [E]: where an episode begins; None: in all of them."""
        if not self.on_host:
            self.used.remainder_(self.depth)
        elif bool(((self.used >= self.depth) & arenas).any()):
            self._write_beginnings()
            self._refuse_impossible()
        which = (self.used % self.depth) * self.state.arenas + self.numbers
        torch.index_select(self.fresh.memory, 0, which, out=self.chosen)
        torch.where(arenas.unsqueeze(-1), self.chosen, self.state.memory, out=self.state.memory)
        self.used += arenas
        self.simulator.place(arenas)
        self.controls.masked_fill_(arenas.view(-1, 1, 1), 0.0)
        if not self.task.lanes.settled:
            self.lane_of_rows = None
            if self.on_host:
                self.task.lanes.settle()
        with self.state.cars.keeping():
            self.task.begin(self.state, arenas, first)

    def _observe(self, stepped: bool) -> Obs:
        seen: Obs = self.task.observation.build(self.state, self.controls, stepped).flatten(0, 1)
        if self.masked:
            mask = self.task.action.mask(self.state)
            assert mask is not None
            seen = {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}  # type: ignore[dict-item]
        if self.task.line_up is not None:
            self.task.line_up.see(seen)
        return seen

    def _metrics(self) -> dict[str, Tensor]:
        """Metrics per row: what each reward paid, rates of events, and outcomes of attempts."""
        metrics = dict(zip(self.paid, self.task.rewards.rows().unbind(0), strict=True))
        happened = torch.stack([found(self.state.events) for found in EVENTS.values()])
        rates = happened.flatten(1) / self.minutes_per_step
        metrics |= zip(RATES, rates.unbind(0), strict=True)
        return metrics | self.task.measures(self.state, self.previous, self.state.events, self.task.action.ticks)


def depth(arenas: int, device: torch.device) -> int:
    """The number of beginnings that the store has for every arena."""
    return max(2 if device.type == "cpu" else 2 * ROLLOUTS, -(-BEGINNINGS // arenas))


def _copy(obs: Obs) -> Obs:
    return {name: x.clone() for name, x in obs.items()} if isinstance(obs, dict) else obs.clone()


def _where(rows: Tensor, obs: Obs, otherwise: Obs) -> Obs:
    """`obs` in these rows [N], in others `otherwise`."""
    return map_obs(lambda x, y: torch.where(rows.view(-1, *(1,) * (x.dim() - 1)), x, y), obs, otherwise)
