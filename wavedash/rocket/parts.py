"""The parts of a Rocket League task, and players: small batched classes. To have one of your own, copy one, change it, and name
it by its import path.

What every part can rely on is in `wavedash/tasks/part.py`. Environments are arenas here, and agents are cars: tensors are
[E, ...] for E arenas, [E, C, ...] where each of C cars has a value of its own.
"""
from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.vec_env import Obs
from wavedash.errors import UserError
from wavedash.rocket.state import CONTROLS, Events, GameState
from wavedash.tasks.endings import Ending
from wavedash.tasks.part import Part
from wavedash.tasks.rewards import Reward
from wavedash.tasks.starts import Start

__all__ = ["Action", "Ending", "Measure", "Observation", "Outcome", "Part", "Player", "Reward", "ScriptedPlayer", "Start"]


class Observation(Part):
    """What a policy sees, in the perspective of its own team: an orange car sees the field rotated by half a turn, so that
    every car attacks toward +Y."""

    @abstractmethod
    def size(self, seats: int) -> int:
        """How many numbers a car observes in an arena with so many seats."""

    @abstractmethod
    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        """[E, C, size]; `controls` [E, C, 8] are the last ones of each car. It is called once after a step, and again with
        `stepped` false after episodes began: an observation that remembers frames then leaves those of other arenas alone."""


class Action(Part):
    """Turns what a policy chooses into controls."""

    space: gymnasium.Space[Any]
    """The action space of one car"""
    ticks: int
    """Ticks of physics per action"""
    delay: int
    """Ticks before an action takes effect"""

    def mask(self, state: GameState) -> Tensor | None:
        """[E, C, n]: the choices that make sense now; None where all of them always do. It must depend on the state alone, not
        on what was parsed before."""
        return None

    def nearest(self, controls: Tensor, state: GameState) -> Tensor:
        """Actions [E, C, ...] of `space` whose controls come nearest to these [E, C, 8], of those that `mask` offers: what
        somebody who did this would have chosen. It is for learning from game states."""
        raise UserError(f"{type(self).__name__} cannot say which of its actions comes nearest to demonstrated controls: give "
                        "it a method `nearest`, or use lookup_table, multi_discrete or continuous")

    def generators(self) -> list[torch.Generator]:
        """The random streams that `parse` draws from: they are saved with the arenas, and CUDA graphs must know them."""
        return []

    @abstractmethod
    def parse(self, action: Tensor, state: GameState) -> Tensor:
        """Turns actions [E, C, ...] of `space` into controls [E, C, 8], in the order of CONTROLS. A parser may remember, for
        example which buttons are held."""


class Outcome(NamedTuple):
    """What a measure says about a step."""

    over: Tensor
    """[E, C] bool: an attempt of this car was decided in this step"""
    success: Tensor
    """[E, C] bool: it succeeded; false where none was decided"""
    ticks: Tensor | None = None
    """[E, C]: ticks from the beginning of the attempt to its success, if the measure is timed; anything where none succeeded"""


class Measure(Part):
    """Says how often attempts at something succeed, such as a dribble or a recovery. It changes nothing in the game; its rates
    are metrics."""

    timed: bool = False
    """Whether its outcomes have `ticks`"""

    @abstractmethod
    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        """Which attempts the step from `previous` to `state` has decided, and how. `events` are those of that step."""


class Player(Part):
    """A driver of cars other than the environment's own policy: a script, a frozen policy, later a human. `begin` clears what
    it remembers about the arenas in which an episode begins. It is bound to the arenas in which it may play, perhaps not all
    arenas of the environment; buffers in which it remembers something are [E, ...] of these."""

    ticks: int | None = None
    """Ticks of physics per decision; None: it decides at every step of the arenas"""
    delay: int | None = None
    """Ticks before a decision takes effect; None: that of the arenas"""
    view: tuple[Observation, Action] | None = None
    """The parts through which it sees the arenas and acts, if others can see what they show, see `observe`"""
    slots: int = 1
    """How many different opponents it is at the same time, see `take_slots`"""
    forgets: bool = False
    """It begins every game of a series as if it were the first"""

    def generators(self) -> list[torch.Generator]:
        """The random streams that it draws from, once it is bound."""
        return []

    def next_game(self, state: GameState, mask: Tensor) -> None:
        """Is called instead of `begin` where the next game of a series begins, against the same opponent. A player that
        remembers its opponent clears here only what it remembers about the game."""
        self.begin(state, mask)

    def take_slots(self, rows: Tensor) -> None:
        """Is called after `bind`. `rows` [slots, n] tells which cars each of its slots drives, as arena * C + seat: cars of a
        team are neighbours, in the order of their seats. The line-up may change this tensor in place where episodes begin, and
        give another one between steps. A player of one slot may ignore it and answer for every car."""

    def shares_view(self, observation: Observation, action: Action) -> bool:
        """Whether it sees what the policy of the arenas or another player sees, who has these parts. If so, it is shown that by
        `see` and need not observe by itself."""
        return False

    def see(self, seen: Obs) -> None:
        """Is called before `drive` with what all cars see, [E * C, ...], if it shares the view of somebody."""

    def observe(self, state: GameState, chosen: Tensor) -> Obs:
        """Returns what every car sees, [E * C, ...], by the parts of `view`. `chosen`: as in `drive`."""
        raise NotImplementedError

    def exchange(self, slot: int, policy: Any) -> None:
        """Another policy, or a `state_dict` of one, plays in a slot from the next decision on. It must be of the same
        signature. What the slot remembers of its games is cleared."""
        raise UserError(f"the player of this slot, {self}, is no frozen policy: another cannot take its place")

    @abstractmethod
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        """[E, C, 8]: controls until the next decision, in the order of CONTROLS. It answers for every car, as if it drove all
        of them, or at least for those of its slots; those that it does drive are picked out. `chosen` [E, C, 8]: the last
        controls of each car, no matter who drives it."""


class ScriptedPlayer(Player):
    """A player that follows fixed rules, without a policy."""

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        controls = self.controls(state)
        expected = (*state.shape, len(CONTROLS))
        if not isinstance(controls, Tensor) or controls.shape != expected:
            found = list(controls.shape) if isinstance(controls, Tensor) else type(controls).__name__
            raise UserError(f"player {type(self).__module__}:{type(self).__qualname__} returned {found} as controls, and "
                            f"they are a tensor [arenas, cars, {len(CONTROLS)}], here {list(expected)}: correct its method "
                            "`controls`")
        return controls

    @abstractmethod
    def controls(self, state: GameState) -> Tensor:
        """[E, C, 8]: controls for the next step, in the order of CONTROLS. It answers for every car, as if it drove all of
        them; those that it does drive are picked out. The state is not mirrored for orange: where a direction matters, use
        `state.cars.team`."""
