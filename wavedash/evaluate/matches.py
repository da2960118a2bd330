"""Games of a policy against a scripted player, in either simulator: many arenas at once, in half of them as orange.

A game ends with the first goal, or without one when its time is over. So every game tells at most one goal, games are
independent of each other, and the share of the goals has an honest interval.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.envs.vec_env import Obs
from wavedash.evaluate.shares import Share
from wavedash.rocket.constants import BOOST_START, TICK_RATE
from wavedash.rocket.endings import Goal, TimeOut
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.parts import Action, ScriptedPlayer
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.starts import FuzzedKickoff
from wavedash.rocket.state import Events, GameState
from wavedash.rocket.task import Task

MOST_ARENAS = 64
SECONDS = 60.0
"""Without a goal until then a game is over"""


@dataclass(frozen=True)
class Score:
    """Of all games of a match."""

    games: int
    scored: int
    conceded: int
    touches: float
    """Of the policy, per minute (a step with contact is one touch); of all its cars together"""
    opponent_touches: float
    minutes: float
    """Of play, all games together"""

    @property
    def goal_share(self) -> Share:
        """Of the goals that fell, those of the policy."""
        return Share(self.scored, self.scored + self.conceded)

    @property
    def goalless(self) -> int:
        return self.games - self.scored - self.conceded


class Match:
    """Arenas of `config` in which a policy plays its task's observations and actions against `opponent`. Arenas come in pairs:
    in the first it has the blue cars, in the second the orange ones."""

    def __init__(self, config: EnvConfig, opponent: ScriptedPlayer, games: int = 100, own_starts: bool = False) -> None:
        """`games`: at least so many. `own_starts`: those of the task instead of kick-offs."""
        rocket = config.rocket
        assert rocket is not None
        pairs = -(-games // 2)
        self.rounds = -(-2 * pairs // MOST_ARENAS)
        self.arenas = 2 * -(-pairs // self.rounds)
        self.watch = Watch()
        task = Task.configured(rocket)
        task = Task(
            observation=task.observation,
            action=Opposed(task.action, opponent),
            rewards=Rewards.named({"goal": 1.0}),
            start=task.start if own_starts else nudged_kickoff(),
            endings={"goal": self.watch, "time_out": TimeOut(SECONDS)},
        )
        here = {"count": self.arenas, "workers": 0, "groups": 1}
        self.env = RocketEnv.configured(config.model_copy(update=here), task=lambda: task)

    @torch.no_grad()
    def play(self, act: Callable[[Obs], Tensor], seed: int, forget: Callable[[Tensor], None] = lambda rows: None) -> Score:
        """Every arena plays equally many games, so that short ones are not favoured. `act` is asked for all rows; what it would
        do with the opponent's cars is not used."""
        env, watch, side = self.env, self.watch, policy_side(self.arenas)
        played, scored, conceded, touched, opponent_touched, ticks = torch.zeros(6, self.arenas, dtype=torch.int64).unbind(0)
        obs = env.reset(seed)
        forget(torch.ones(env.num_rows, dtype=torch.bool))
        while bool((counts := played < self.rounds).any()):
            step = env.step(act(obs))
            obs, done = step.obs, step.terminated | step.truncated
            forget(done)
            own = watch.touches.gather(1, side.unsqueeze(-1)).squeeze(-1)
            scored += counts & (watch.goal == side)
            conceded += counts & (watch.goal == 1 - side)
            touched += counts * own
            opponent_touched += counts * (watch.touches.sum(-1) - own)
            ticks += counts * watch.ticks
            played += counts & done.view(self.arenas, -1)[:, 0]
        minutes = float(ticks.sum()) / TICK_RATE / 60
        return Score(int(played.sum()), int(scored.sum()), int(conceded.sum()), float(touched.sum()) / minutes,
                     float(opponent_touched.sum()) / minutes, minutes)

    def close(self) -> None:
        self.env.close()


def policy_side(arenas: int) -> Tensor:
    """[E]: the team of the policy."""
    return torch.arange(arenas) % 2


def nudged_kickoff() -> FuzzedKickoff:
    """So little off the spots that it is a kick-off still, and that no game is a copy of another: from exactly the same start,
    players without dice play the same game again."""
    return FuzzedKickoff(distance=30.0, angle=0.05, speed=0.0, boost=(BOOST_START, BOOST_START))


class Opposed(Action):
    """A task's actions for the cars of the policy; those of the other team are steered by a scripted player, as often and with
    the same delay."""

    def __init__(self, action: Action, opponent: ScriptedPlayer) -> None:
        self.action, self.opponent = action, opponent
        self.space, self.ticks, self.delay = action.space, action.ticks, action.delay

    def bind(self, state: GameState) -> None:
        self.action.bind(state)
        self.opponent.bind(state)
        self.scripted = (state.cars.team != policy_side(state.arenas).unsqueeze(-1)).unsqueeze(-1)

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.action.begin(state, arenas)
        self.opponent.begin(state, arenas)

    def mask(self, state: GameState) -> Tensor | None:
        return self.action.mask(state)

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        return torch.where(self.scripted, self.opponent.controls(state), self.action.parse(action, state))


class Watch(Goal):
    """A goal ends the game. What happened in the last step is kept here: the arena itself has begun another game already."""

    goal: Tensor
    ticks: Tensor
    touches: Tensor
    """[E, 2]: cars of each team that touched the ball"""

    def bind(self, state: GameState) -> None:
        self.register_buffer("goal", state.game.goal.clone())
        self.register_buffer("ticks", state.game.tick.clone())
        self.register_buffer("touches", torch.zeros_like(state.game.score))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        self.goal.copy_(state.game.goal)
        self.ticks.copy_(state.game.tick - previous.game.tick)
        for team in (0, 1):
            self.touches[:, team] = ((events.touches > 0) & (state.cars.team == team)).sum(-1)
        return super().__call__(state, previous, events)
