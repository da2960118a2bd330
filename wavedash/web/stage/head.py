"""What a policy thinks: a player that keeps what it saw and chose, and what its actor and critic said about that."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from wavedash.envs.obs import Obs, map_obs
from wavedash.league.frozen import FrozenPolicies
from wavedash.loading import LoadedRun
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Categorical
from wavedash.policy.memory import State
from wavedash.policy.stacked import StackedActors
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.recording.frames import TOP
from wavedash.rocket.state import GameState

MOST_MEMORY = 512
"""Numbers of a memory that are shown"""


class Thought(NamedTuple):
    """One decision of a policy for its R cars."""

    obs: Obs
    action: Tensor
    """[R, ...]: what the player did"""
    probabilities: Tensor | None
    """[R, n] of all actions; None where actions are not one choice among n"""
    value: Tensor
    """[R]: what the critic expects"""


class WatchedActors(StackedActors):
    """An actor that keeps what it was given and what it answered."""

    acted: tuple[Obs, Tensor] | None = None

    def act(self, obs: Obs, memory: State, generator: torch.Generator | None = None, deterministic: bool = False,
            noise: Tensor | None = None) -> tuple[Tensor, State]:
        action, after = super().act(obs, memory, generator, deterministic, noise)
        self.acted = obs, action
        return action, after


class SeenPolicy(FrozenPolicies):
    """A frozen policy in one arena whose thoughts can be seen. Its critic sees what its actor sees, and has a memory of its
    own."""

    def __init__(self, policy: ActorCritic, run: LoadedRun, deterministic: bool = True, seed: int = 0) -> None:
        actors = WatchedActors(policy, 1)
        actors.load(0, policy)
        super().__init__(actors, rocket_task(run.config.env, run.path), f"the policy of {run.path}", deterministic, seed)
        self._networks = (policy,)  # in a tuple, so that it is no module of this part
        self._full: State | None = None
        self.thought: Thought | None = None

    def begin(self, state: GameState, mask: Tensor) -> None:
        super().begin(state, mask)
        self._full = None  # the thought stays: the last one of a game is shown after it

    @torch.no_grad()
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        controls = super().drive(state, chosen)
        actors = self.actors
        assert isinstance(actors, WatchedActors) and actors.acted is not None
        seen, action = actors.acted
        obs = map_obs(lambda x: x[0], seen)
        policy = self._networks[0]
        memory = policy.initial_memory(action.shape[1]) if self._full is None else self._full
        distribution, value, self._full = policy.step_both(policy.normalize(obs), memory)
        probabilities = distribution.probs if isinstance(distribution, Categorical) else None
        self.thought = Thought(obs, action[0], probabilities, value)
        return controls

    @property
    def table(self) -> list[list[float]] | None:
        """The controls of each action, where actions are rows of a table."""
        return self.action.rows() if isinstance(self.action, LookupTable) else None

    def row_of(self, car: int) -> int:
        """The row of a car in its thoughts."""
        return self.rows.flatten().tolist().index(car)

    def top(self, row: int) -> list[tuple[int, float]]:
        """The likeliest actions and their probabilities, those without any left out."""
        if self.thought is None or self.thought.probabilities is None:
            return []
        probability, action = self.thought.probabilities[row].topk(min(TOP, self.thought.probabilities.shape[-1]))
        return [(int(i), float(p)) for i, p in zip(action, probability, strict=True) if p > 0]

    def chosen(self, row: int) -> int:
        """The number of the chosen action; -1: actions have no numbers."""
        if self.thought is None or self.thought.probabilities is None:
            return -1
        return int(self.thought.action[row])

    def decision(self, car: int, seats: int, observation: bool) -> dict[str, Any] | None:
        """Returns what is told of its last decision for a car; None: it has not decided yet. `observation`: with all it saw."""
        if self.thought is None:
            return None
        row, table = self.row_of(car), self.table
        action = self.chosen(row)
        return {
            "action": action,
            "controls": table[action] if table is not None and action >= 0 else None,
            "top": [list(pair) for pair in self.top(row)],
            "value": float(self.thought.value[row]),
            "observation": self.observed(row, seats) if observation else [],
            "memory": {name: x[0, car].flatten()[:MOST_MEMORY].tolist() for name, x in self._memory().items()} or None,
        }

    def observed(self, row: int, seats: int) -> list[list[Any]]:
        """The numbers that it saw, each with its name; observations without names have numbers for them."""
        assert self.thought is not None
        obs = self.thought.obs
        numbers = (obs["obs"] if isinstance(obs, dict) else obs)[row].tolist()
        named = getattr(self.observation, "names", None)
        names = named(seats) if named is not None else [str(i) for i in range(len(numbers))]
        return [list(pair) for pair in zip(names, numbers, strict=True)]
