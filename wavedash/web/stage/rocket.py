"""RocketStage: games of Rocket League, one after the other, in one arena.

A game ends with the first goal, or without one when its time is over. Players keep the ticks and delay of their own tasks, and
frames are made at the steps of the arena, which are shorter.
"""
from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wavedash.errors import UserError
from wavedash.evaluate.matches import SECONDS, NoAction, Unobserved, arenas_of, nudged_kickoff
from wavedash.league.players import Entrant, find_entrant
from wavedash.league.teams import Team
from wavedash.rocket import names
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.endings import TimeOut
from wavedash.rocket.env import RocketEnv, check_simulator
from wavedash.rocket.parts import Player, Start
from wavedash.rocket.recording.events import Narrator, happened_in
from wavedash.rocket.recording.frames import TOP, Head, RocketFrames, players_of
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.state import GameState
from wavedash.web.stage.base import Out, Stage, cars_asked, whole_number
from wavedash.web.stage.head import SeenPolicy
from wavedash.web.stage.place import placed
from wavedash.web.stage.rewards import OwnRewards
from wavedash.web.stage.seats import Moment, Sides, StageStart, StageTask, pace_of
from wavedash.web.stage.tape import Tape

AFTER_GAME = 1.5
"""Seconds for which the end of a game is shown"""
HEADS_PER_SECOND = 15
SIZES = (1, 2, 3)


class RocketStage(Stage):
    """`asked`: blue, orange (names as `wavedash match` takes them), size, simulator, start, deterministic, seconds, seed,
    folder, trust."""

    def __init__(self, asked: Mapping[str, Any], out: Out) -> None:
        self.out, self.folder = out, asked.get("folder", "recordings")
        size = asked.get("size", 1)
        if size not in SIZES:
            raise UserError(f"a team has {SIZES[0]} to {SIZES[-1]} cars")
        deterministic, seed = bool(asked.get("deterministic", True)), int(asked.get("seed") or secrets.randbelow(2**31))
        entrants = [find_entrant(str(asked[side]), bool(asked.get("trust", False)), size) for side in ("blue", "orange")]
        sides = [_seen(entrant, deterministic, seed + 7919 * team) for team, entrant in enumerate(entrants)]
        self.who = dict(zip(("blue", "orange"), (entrant.name for entrant in entrants), strict=True))
        self.start = str(asked.get("start", "kickoff"))
        self.simulator = _simulator(str(asked.get("simulator", "rocketsim")), out)
        self.pace = pace_of(sides)
        self.line_up, self.beginnings, self.ending = Sides(self.pace, *sides), StageStart(_start(self.start)), Moment()
        limit = float(asked.get("seconds", SECONDS))
        task = StageTask(Unobserved(), NoAction(self.pace), Rewards.named({"goal": 1.0}), self.beginnings,
                         {"goal": self.ending, "time_out": TimeOut(limit)}, self.line_up)
        config = arenas_of(size, self.simulator).model_copy(update={"count": 1, "workers": 0, "groups": 1})
        self.env = RocketEnv.configured(config, "cpu", task=lambda: task)
        self.state: GameState = self.env.state_of(0)
        self.cars = self.state.seats
        self.policies = dict(_policies(sides, size))
        """By car"""
        self.names = [name for entrant in entrants for name in _names(entrant, size)]
        self._make_rewards(entrants, sides)
        self.frames = RocketFrames.of(self.state, head=bool(self.policies), terms=len(self.terms))
        tables = [policy.table for policy in self.policies.values()]
        self.table = next((table for table in tables if table is not None), None)
        self.nothing = torch.zeros(self.env.num_rows, dtype=torch.int64)
        self.seed: int | None = seed
        self.score, self.over = [0, 0], False
        self.watched: list[int] = []
        """Cars whose heads somebody looks at"""
        self.with_observation, self.head_sent = False, 0.0

    def _make_rewards(self, entrants: list[Entrant], sides: list[Player]) -> None:
        """The own rewards of every run that plays; a run whose rewards cannot be made here has none."""
        self.rewards: dict[int, OwnRewards] = {}
        for entrant, side, team in zip(entrants, sides, (0, 1), strict=True):
            members = entrant.members or (entrant,) * (self.cars // 2)
            shared: dict[int, OwnRewards] = {}
            for number, member in enumerate(members):
                if member.run is not None and member.task is not None and side.ticks is not None:
                    every = side.ticks // self.pace.ticks
                    try:
                        own = shared.setdefault(id(member.run), OwnRewards(member.task, self.state, every))
                    except UserError:
                        continue
                    self.rewards[team * (self.cars // 2) + number] = own
        self.terms = list(dict.fromkeys(name for own in self.rewards.values() for name in own.names))

    def facts(self) -> dict[str, Any]:
        return {"who": self.who, "humans": sorted(self.line_up.taken), "simulator": self.simulator}

    def close(self) -> None:
        self.env.close()

    @torch.no_grad()
    def begin(self) -> None:
        self.env.reset(self.seed)
        self.seed, self.beginnings.placed = None, None  # further games go on with the same random numbers
        self._announce()

    @torch.no_grad()
    def step(self) -> float:
        if self.over:
            self._announce()
            return self.env.step_seconds
        done = self.env.step(self.nothing)
        ended, moment = bool((done.terminated | done.truncated)[0]), self.ending.moment
        paid = np.zeros((1, self.cars, len(self.terms)))
        for own in {id(own): own for own in self.rewards.values()}.values():
            own.step(moment, ended)
        for car, own in self.rewards.items():
            if not own.steps % own.every or ended:
                paid[0, car, [self.terms.index(name) for name in own.names]] = own.last[:, car].numpy()
        goal = int(moment.game.goal[0])
        if goal >= 0:
            self.score[goal] = min(255, self.score[goal] + 1)
        self._show(moment, paid)
        if ended:
            self.out.end({"score": list(self.score)})
            self.over = True
            return AFTER_GAME
        return self.env.step_seconds

    def obey(self, command: Mapping[str, Any]) -> None:
        what = command.get("do")
        if what == "place":
            self.beginnings.placed = placed(self.state, command)
            self.begin()
        elif what == "drive":
            self.line_up.take(whole_number(command, "car", self.cars))
        elif what == "leave":
            for car in [self._driven(command)] if "car" in command else sorted(self.line_up.taken):
                self.line_up.leave(car)
        elif what == "controls":
            self.line_up.human.hold(self._driven(command), command.get("controls"))
        elif what == "head":
            self.watched = cars_asked(command, self.cars)
            self.with_observation = command.get("observation") is True
            self.head_sent = 0.0
            self._think_aloud()
        else:
            raise UserError("there is no such command")

    def record(self) -> Path:
        return self.tape.write(self.folder)

    def _driven(self, command: Mapping[str, Any]) -> int:
        """The car that a human means: the one it names, or the only one that is driven."""
        if command.get("car") is None and len(self.line_up.taken) == 1:
            return next(iter(self.line_up.taken))
        car = whole_number(command, "car", self.cars)
        if car not in self.line_up.taken:
            raise UserError(f"nobody drives car {car}: take its seat first")
        return car

    def _announce(self) -> None:
        """Says that a game begins, and shows its first moment."""
        self.over = False
        for policy in self.policies.values():
            policy.thought = None
        for own in self.rewards.values():
            own.begin(self.state)
        humans = [car in self.line_up.taken for car in range(self.cars)]
        seats = players_of(self.state, 0, self.names, [car in self.policies for car in range(self.cars)], humans)
        size = self.cars // 2
        header = self.frames.header(f"{self.who['blue']} vs {self.who['orange']}", "stage", self.pace.ticks, seats,
                                    scene={"size": f"{size}v{size}", "simulator": self.simulator, "start": self.start},
                                    reward_terms=self.terms, actions=self.table)
        self.tape = Tape(header, self.frames.layout, TICK_RATE / self.pace.ticks)
        self.narrator = Narrator(seats, self.env.step_seconds)
        self.out.header(header)
        self._show(self.state.clone(), np.zeros((1, self.cars, len(self.terms))))

    def _show(self, moment: GameState, paid: Any) -> None:
        """Sends a frame and what happened in it. The score is that of all games."""
        moment.game.score.copy_(torch.tensor([self.score]))
        record = self.frames.record(moment, 0, self._thoughts(paid) if self.policies else None)
        for event in self.narrator.tell(happened_in(moment, self.frames), self.tape.frames):
            self.tape.events.append(event)
            self.out.event(event)
        self.tape.add(record)
        self.out.frame(record.tobytes())
        self._think_aloud()

    def _thoughts(self, paid: Any) -> Head:
        value, action = np.full((1, self.cars), np.nan), np.full((1, self.cars), -1)
        tops, probabilities = np.full((1, self.cars, TOP), -1), np.zeros((1, self.cars, TOP))
        for car, policy in self.policies.items():
            if policy.thought is not None and car not in self.line_up.taken:
                row = policy.row_of(car)
                value[0, car] = float(policy.thought.value[row])
                if policy.table == self.table:  # numbers of actions mean rows of the header's table
                    action[0, car] = policy.chosen(row)
                    for place, (number, probability) in enumerate(policy.top(row)):
                        tops[0, car, place], probabilities[0, car, place] = number, probability
        return Head(value, action, tops, probabilities, paid if self.terms else None)

    def _think_aloud(self) -> None:
        """Sends what the watched cars think, not too often."""
        now = time.monotonic()
        if not self.watched or now - self.head_sent < 1 / HEADS_PER_SECOND:
            return
        self.head_sent = now
        for car in self.watched:
            policy = self.policies.get(car)
            if policy is None or car in self.line_up.taken:
                self.out.head(car, None)
            elif (decision := policy.decision(car, self.cars, self.with_observation)) is not None:
                own = self.rewards.get(car)
                paid = {} if own is None else dict(zip(own.names, own.last[:, car].tolist(), strict=True))
                self.out.head(car, {**decision, "rewards": paid})


def _seen(entrant: Entrant, deterministic: bool, seed: int) -> Player:
    """A player whose policies can be watched."""
    if entrant.members:
        return Team([_seen(member, deterministic, seed + 1000 * i) for i, member in enumerate(entrant.members)])
    if entrant.run is None:
        return entrant.player()
    return SeenPolicy(entrant.run.policy.policy, entrant.run, deterministic, seed)


def _policies(sides: list[Player], size: int) -> Iterator[tuple[int, SeenPolicy]]:
    for team, side in enumerate(sides):
        for number in range(size):
            player = list(side.players)[number] if isinstance(side, Team) else side
            if isinstance(player, SeenPolicy):
                yield team * size + number, player


def _names(entrant: Entrant, size: int) -> list[str]:
    return [member.name for member in entrant.members] if entrant.members else [entrant.name] * size


def _start(name: str) -> Start:
    """The start of this name; kick-offs are a little different every time, so that games are too."""
    if name == "kickoff":
        return nudged_kickoff()
    if name not in names.shipped("start"):  # an import path would run code
        raise UserError(f"there is no start {name!r}: choose one of {', '.join(sorted(names.shipped('start')))}")
    start: Start = names.make("start", name)
    return start


def _simulator(name: str, out: Out) -> str:
    """The simulator to play in: the other one if RocketSim is not installed."""
    if name not in ("rocketsim", "warp"):
        raise UserError("the simulator is rocketsim or warp")
    try:
        check_simulator(arenas_of(1, name).rocket)  # type: ignore[arg-type]
    except UserError as error:
        if name == "warp":
            raise
        out.status("starting", f"{error}. Until then this game is simulated by warp")
        return "warp"
    if name == "warp":
        out.status("starting", "warp compiles its kernels at the first time, which takes a while")
    return name
