"""The referee: phases, clock and score of a match, tick by tick. It knows neither the simulator nor the bots.

A kick-off has a countdown, in which nobody moves, then the phase Kickoff until the ball is hit, then Active. A goal is followed
by a moment of celebration, in which the field stands still, and by the next kick-off.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import NamedTuple

from wavedash.rocket.constants import TICK_RATE

KICKOFF_SECONDS = 2.0
"""A kick-off becomes active after so many seconds, also if nobody has hit the ball"""


class Phase(IntEnum):
    """The phases of a match, with the numbers of RLBot's `MatchPhase`."""

    COUNTDOWN = 1
    KICKOFF = 2
    ACTIVE = 3
    GOAL_SCORED = 4
    ENDED = 7


PLAYING = (Phase.KICKOFF, Phase.ACTIVE)
"""Phases in which cars and ball move"""


class Seen(NamedTuple):
    """What the referee sees of a tick."""

    goal: int = -1
    """The team that scored, or -1"""
    ball_hit: bool = False
    ball_on_ground: bool = False


class Round(NamedTuple):
    """A result: a whole match, or one game up to its first goal."""

    goals: tuple[int, int]
    """Of blue and orange"""
    seconds: float
    """How long was played, countdowns left out"""


class Referee(ABC):
    """What all matches have in common. `kickoff_due` says that cars and ball must be put on their places before the next tick,
    and `results` what has been decided so far."""

    def __init__(self, countdown: float = 3.0, celebration: float = 1.0) -> None:
        """`countdown` and `celebration`: seconds before a kick-off and after a goal."""
        self.countdown, self.celebration = _ticks(countdown), _ticks(celebration)
        self.score = [0, 0]
        self.results: list[Round] = []
        self.overtime = False
        self.left = 0.0
        """What the clock shows, in seconds"""
        self.played = 0
        """Ticks played since the last result"""
        self._kick_off()

    @property
    def playing(self) -> bool:
        """Whether cars and ball move in the coming tick."""
        return self.phase in PLAYING

    @property
    def over(self) -> bool:
        return self.phase is Phase.ENDED

    def tick(self, seen: Seen) -> None:
        """A tick has passed. `seen` is of this tick, if it was played."""
        self.kickoff_due = False
        self.in_phase += 1
        if self.phase is Phase.COUNTDOWN:
            if self.in_phase >= self.countdown:
                self._enter(Phase.KICKOFF)
        elif self.phase is Phase.GOAL_SCORED:
            if self.in_phase >= self.celebration:
                self._after_goal()
        elif self.playing:
            self.played += 1
            self._play(seen)

    def _play(self, seen: Seen) -> None:
        if self.phase is Phase.KICKOFF and (seen.ball_hit or self.in_phase >= _ticks(KICKOFF_SECONDS)):
            self._enter(Phase.ACTIVE)
        self._run_clock()
        if seen.goal >= 0:
            self.score[seen.goal] += 1
            self._enter(Phase.GOAL_SCORED)
        elif self._time_is_up(seen):
            self._after_time()

    def _kick_off(self) -> None:
        self._enter(Phase.COUNTDOWN)
        self.kickoff_due = True

    def _enter(self, phase: Phase) -> None:
        self.phase, self.in_phase = phase, 0

    def _decide(self) -> None:
        """Adds the result of what has been played since the last one."""
        before = [sum(result.goals[team] for result in self.results) for team in (0, 1)]
        goals = (self.score[0] - before[0], self.score[1] - before[1])
        self.results.append(Round(goals, self.played / TICK_RATE))
        self.played = 0

    @abstractmethod
    def _run_clock(self) -> None:
        """A tick was played in this phase."""

    @abstractmethod
    def _time_is_up(self, seen: Seen) -> bool:
        """Whether play ends with this tick for lack of time."""

    @abstractmethod
    def _after_goal(self) -> None:
        """The celebration is over."""

    @abstractmethod
    def _after_time(self) -> None:
        """Play has ended for lack of time."""


class WholeMatch(Referee):
    """A match as in the game: the clock stands during kick-offs; when it is at zero, play goes on until the ball touches the
    ground. A draw is followed by overtime, which ends with the first goal, or as a draw after `longest_overtime` seconds."""

    def __init__(self, seconds: float = 300.0, longest_overtime: float = 300.0, countdown: float = 3.0,
                 celebration: float = 1.0) -> None:
        super().__init__(countdown, celebration)
        self.length, self.longest_overtime = _ticks(seconds), _ticks(longest_overtime)
        self.left = seconds
        self.clock = 0
        """Ticks of regular time or of overtime"""

    def _run_clock(self) -> None:
        if self.phase is not Phase.ACTIVE:
            return
        self.clock += 1
        self.left = self.clock / TICK_RATE if self.overtime else max(0, self.length - self.clock) / TICK_RATE

    def _time_is_up(self, seen: Seen) -> bool:
        if self.overtime:
            return self.clock >= self.longest_overtime
        return self.clock >= self.length and seen.ball_on_ground

    def _after_goal(self) -> None:
        if self.overtime or self.clock >= self.length:
            self._after_time()
        else:
            self._kick_off()

    def _after_time(self) -> None:
        if self.score[0] != self.score[1] or self.overtime or not self.longest_overtime:
            self._decide()
            self._enter(Phase.ENDED)
        else:
            self.overtime, self.clock, self.left = True, 0, 0.0
            self._kick_off()


class FirstGoals(Referee):
    """Several games, each from a kick-off to its first goal, or for `seconds` without one: those of `wavedash match`, where
    time begins with the kick-off. The score is that of all games together."""

    def __init__(self, games: int, seconds: float = 60.0, countdown: float = 0.1, celebration: float = 0.1) -> None:
        super().__init__(countdown, celebration)
        self.games, self.length = games, _ticks(seconds)
        self.left = seconds

    def _run_clock(self) -> None:
        self.left = max(0, self.length - self.played) / TICK_RATE

    def _time_is_up(self, seen: Seen) -> bool:
        return self.played >= self.length

    def _after_goal(self) -> None:
        self._after_time()

    def _after_time(self) -> None:
        self._decide()
        if len(self.results) >= self.games:
            self._enter(Phase.ENDED)
        else:
            self.left = self.length / TICK_RATE
            self._kick_off()


def _ticks(seconds: float) -> int:
    return round(seconds * TICK_RATE)
