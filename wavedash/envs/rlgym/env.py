"""RLGymEnv: an RLGym v2 environment as a `HostEnv`, with as many rows as there are ever agents at once.

    reset       agents take the seats in order; the seats that are left are inactive and see zeros
    agent ends  its row is inactive until all agents have ended; it goes on acting if the engine keeps it
    all ended   the next episode begins

RLGym has no seed: mutators draw from numpy's and Python's global generators, which are therefore seeded before every reset.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from wavedash.envs.encoding import encoded_space, encoders_of
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array, HostObs, HostStep
from wavedash.envs.rlgym.foreign_spaces import action_space_of, is_index, observation_space_of
from wavedash.envs.rlgym.own_randomness import OwnRandomness

TRIES = 20
"""Episodes that are begun to find out how many agents there can be, where `max_agents` is not given."""

Spaces = tuple[gymnasium.Space[Any], gymnasium.Space[Any], bool]
"""One agent's observation space, its action space, and whether the latter is RLGym's ("discrete", n)."""


class RLGymEnv:
    """An RLGym environment whose rows are seats of agents. `max_agents` is the number of rows; without it, a few episodes are
    begun to find it."""

    def __init__(self, env: Any, max_agents: int | None = None) -> None:
        self._env = env
        self._randomness = OwnRandomness()
        found: list[Spaces] = []
        most = 0
        for seed in range(TRIES if max_agents is None else 1):
            obs = self._restart(seed)
            most = max(most, len(obs))
            found += self._spaces_of(obs)
        self.num_rows = max_agents or most
        seen, self.action_space, plain_index = self._one_for_all(found)
        self.action_shape = (1,) if plain_index else self.action_space.shape or ()
        """The shape of one agent's action, as the environment gets it."""
        self.source_space, self._encoders = seen, encoders_of(seen)
        self.observation_space = encoded_space(seen)
        space = self.observation_space
        parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}
        self._obs = {key: np.zeros((self.num_rows, *(part.shape or ())), part.dtype) for key, part in parts.items()}
        self._seats: dict[Hashable, int] = {}
        self._present: set[Hashable] = set()
        self._playing: set[Hashable] = set()
        self.active: bool | Array = True

    def reset(self, seed: int) -> HostObs:
        obs = self._restart(seed)
        if len(obs) > self.num_rows:
            raise EnvError(f"this episode has {len(obs)} agents, but there are seats for {self.num_rows}: let the factory "
                           f"return wavedash.envs.rlgym.RLGymEnv(env, max_agents={len(obs)}), or more if there can be more")
        self._seats = {agent: seat for seat, agent in enumerate(obs)}
        self._playing = set(obs)
        self.active = True if self.num_rows == 1 else np.arange(self.num_rows) < len(obs)
        for array in self._obs.values():
            array[len(obs) :] = 0
        self._see(obs)
        return self._rows(self._obs)

    def step(self, action: Any) -> HostStep:
        by_seat = np.reshape(action, (self.num_rows, *self.action_shape))
        with self._randomness:
            obs, rewards, terminations, truncations = self._env.step(
                {agent: by_seat[seat] for agent, seat in self._seats.items() if agent in self._present})
        self._see(obs)
        reward = np.zeros(self.num_rows, np.float32)
        terminated, truncated = np.zeros((2, self.num_rows), np.bool_)
        for agent in tuple(self._playing):
            seat = self._seats[agent]
            if agent in obs:
                reward[seat] = rewards[agent]
                terminated[seat], truncated[seat] = terminations[agent], truncations[agent]
            else:  # it left, which is how an engine says that it ended
                terminated[seat] = True
            if terminated[seat] or truncated[seat]:
                self._playing.remove(agent)
        if not self._playing:
            truncated[len(self._seats) :] = True  # an empty seat's episode is that of the environment
        info = {"state": self._env.state}
        return self._rows(self._obs), self._rows(reward), self._rows(terminated), self._rows(truncated), info

    def close(self) -> None:
        self._env.close()

    def _restart(self, seed: int) -> dict[Hashable, Any]:
        self._randomness.seed(seed)
        with self._randomness:
            obs = self._env.reset()
        if not obs:
            raise EnvError("reset() returned no observation of any agent: the state mutator must put one into the game")
        return obs

    def _see(self, obs: dict[Hashable, Any]) -> None:
        """Write observations into the seats. The seats of agents that are gone show zeros."""
        for agent, seen in obs.items():
            if agent not in self._seats:
                raise EnvError(f"agent {agent!r} joined in the middle of an episode: agents may join at a reset only")
            seat = self._seats[agent]
            for key, array in self._obs.items():
                part = seen[key] if key else seen
                part = self._encoders[key](part) if key in self._encoders else np.asarray(part)
                if part.shape != array.shape[1:]:
                    raise EnvError(f"the observation of agent {agent!r} has the shape {part.shape} but its space says "
                                   f"{array.shape[1:]}: {_PAD}")
                array[seat] = part
        if len(obs) < len(self._seats):
            for agent in self._seats.keys() - obs.keys():
                for array in self._obs.values():
                    array[self._seats[agent]] = 0
        self._present = set(obs)

    def _rows(self, values: Any) -> Any:
        """The values of all rows, without the leading axis where there is one row."""
        if isinstance(values, dict):
            rows = {key: self._rows(array) for key, array in values.items()}
            return rows.get("", rows)
        return values if self.num_rows > 1 else values[0]

    def _spaces_of(self, obs: dict[Hashable, Any]) -> Iterator[Spaces]:
        for agent, seen in obs.items():
            does = self._env.action_space(agent)
            yield observation_space_of(self._env.observation_space(agent), seen), action_space_of(does), is_index(does)

    def _one_for_all(self, found: list[Spaces]) -> Spaces:
        for other in found:
            if other != found[0]:
                raise EnvError(f"agents differ in what they see or do ({found[0][:2]} and {other[:2]}), but one policy plays "
                               f"them all: {_PAD}")
        return found[0]


_PAD = "give all the same spaces; where the number of players makes the difference, pad: DefaultObs(zero_padding=3)"
