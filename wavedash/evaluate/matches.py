"""Matches between any two players, in either simulator: many arenas at once, and in half of them the first player is orange.

A game ends with the first goal, or without one when its time is over. So every game has at most one goal, games are independent
of each other, and the interval of the goal share is valid.
"""
from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import torch
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.evaluate.shares import Share
from wavedash.rocket.constants import BOOST_START, TICK_RATE
from wavedash.rocket.driver import Pace, common_pace
from wavedash.rocket.endings import Goal, TimeOut
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Duel
from wavedash.rocket.parts import Action, Observation, Player
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.starts import FuzzedKickoff
from wavedash.rocket.state import CONTROLS, Events, GameState
from wavedash.rocket.task import Task

MAX_ARENAS = 64
SECONDS = 60.0
"""A game without a goal ends after so many seconds"""


@dataclass(frozen=True)
class Score:
    """The result of all games of a match, from the first player's side."""

    games: int
    scored: int
    conceded: int
    touches: float
    """Touches per minute of all cars of the first player (a step with contact is one touch)"""
    opponent_touches: float
    minutes: float
    """Minutes of play, all games together"""

    @property
    def goal_share(self) -> Share:
        """The share of all goals that the first player scored."""
        return Share(self.scored, self.scored + self.conceded)

    @property
    def goalless(self) -> int:
        return self.games - self.scored - self.conceded


class Match:
    """Arenas of `config` in which `first` plays against `second`. Arenas come in pairs: in one the first player is blue, in the
    other orange."""

    def __init__(self, config: EnvConfig, first: Player, second: Player, games: int = 100, own_starts: bool = False,
                 device: torch.device | str = "cpu") -> None:
        """`games`: at least so many are played. `own_starts`: those of the configured task instead of kick-offs. Each
        player has the ticks and delay of its own task; a script has those of its opponent, or of `config` against a script."""
        rocket = config.rocket
        assert rocket is not None
        pairs = -(-games // 2)
        self.rounds = -(-2 * pairs // MAX_ARENAS)
        self.arenas = 2 * -(-pairs // self.rounds)
        task = Task.configured(rocket)
        configured = Pace(task.action.ticks, task.action.delay)
        pace = common_pace([configured.of(player) for player in (first, second) if player.ticks is not None] or [configured])
        self.line_up = Duel(pace, first, second)
        self.watch = Watch(max(pace.of(player).ticks for player in (first, second)) // pace.ticks)
        task = Task(
            observation=Unobserved(),
            action=NoAction(pace),
            rewards=Rewards.named({"goal": 1.0}),
            start=task.start if own_starts else nudged_kickoff(),
            endings={"goal": self.watch, "time_out": TimeOut(SECONDS)},
            line_up=self.line_up,
        )
        here = {"count": self.arenas, "workers": 0, "groups": 1}
        self.env = RocketEnv.configured(config.model_copy(update=here), device, task=lambda: task)

    @torch.no_grad()
    def play(self, seed: int) -> Score:
        """Every arena plays equally many games, so that short ones are not favoured."""
        env, watch, side = self.env, self.watch, self.line_up.sides()
        counters = torch.zeros(6, self.arenas, dtype=torch.int64, device=env.device)
        played, scored, conceded, touched, opponent_touched, ticks = counters.unbind(0)
        env.reset(seed)
        nothing = torch.zeros(env.num_rows, dtype=torch.int64, device=env.device)
        while bool((counts := played < self.rounds).any()):
            step = env.step(nothing)
            own = watch.touches.gather(1, side.unsqueeze(-1)).squeeze(-1)
            scored += counts & (watch.goal == side)
            conceded += counts & (watch.goal == 1 - side)
            touched += counts * own
            opponent_touched += counts * (watch.touches.sum(-1) - own)
            ticks += counts * watch.ticks
            played += counts & (step.terminated | step.truncated).view(self.arenas, -1)[:, 0]
            env.prepare()
        minutes = float(ticks.sum()) / TICK_RATE / 60
        return Score(int(played.sum()), int(scored.sum()), int(conceded.sum()), float(touched.sum()) / minutes,
                     float(opponent_touched.sum()) / minutes, minutes)

    def close(self) -> None:
        self.env.close()


def nudged_kickoff() -> FuzzedKickoff:
    """Kick-offs with small random changes, so that no game is a copy of another: from exactly the same start, deterministic
    players would play the same game again."""
    return FuzzedKickoff(distance=30.0, angle=0.05, speed=0.0, boost=(BOOST_START, BOOST_START))


class Unobserved(Observation):
    """An observation without content: players observe the state themselves."""

    def size(self, seats: int) -> int:
        return 1

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        return torch.zeros(state.arenas, state.seats, 1, device=state.device)


class NoAction(Action):
    """The action parser of arenas in which players drive all cars: it has one action, which does nothing."""

    space = gymnasium.spaces.Discrete(1)

    def __init__(self, pace: Pace) -> None:
        self.ticks, self.delay = pace

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        return torch.zeros(*state.shape, len(CONTROLS), device=state.device)


class Watch(Goal):
    """A goal ends the game. What happened in the last step is kept here, because the arena itself has begun another game
    already. `interval`: contacts of a car with the ball in so many steps, those between decisions, are one touch."""

    goal: Tensor
    ticks: Tensor
    touches: Tensor
    """[E, 2]: cars of each team that touched the ball"""
    steps: Tensor
    touching: Tensor
    """[E, C]: cars whose touch in this interval was counted"""

    def __init__(self, interval: int) -> None:
        self.interval = interval

    def bind(self, state: GameState) -> None:
        self.register_buffer("steps", torch.zeros_like(state.game.tick))
        self.register_buffer("touching", torch.zeros_like(state.cars.present))
        self.register_buffer("goal", state.game.goal.clone())
        self.register_buffer("ticks", state.game.tick.clone())
        self.register_buffer("touches", torch.zeros_like(state.game.score))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        self.goal.copy_(state.game.goal)
        self.ticks.copy_(state.game.tick - previous.game.tick)
        touching = events.touches > 0
        for team in (0, 1):
            self.touches[:, team] = (touching & ~self.touching & (state.cars.team == team)).sum(-1)
        self.steps += 1
        over = self.steps % self.interval == 0
        self.touching.logical_or_(touching).masked_fill_(over.unsqueeze(-1), False)
        return super().__call__(state, previous, events)

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.steps.masked_fill_(mask, 0)
        self.touching.masked_fill_(mask.unsqueeze(-1), False)
