"""A world that lets a MetricsLogger look at the game after every step. Runs in worker processes: no torch."""
from __future__ import annotations

from collections import deque
from typing import Any

from wavedash.envs.errors import EnvError
from wavedash.envs.host import HostEnv, HostObs, HostStep


class WatchedWorld:
    """Everything as in `world`; `notes` are what the logger collected since they were last asked for, the latest `keep`."""

    def __init__(self, world: HostEnv, logger: Any, keep: int) -> None:
        self._world, self._collect = world, logger.collect_metrics
        self._collected: deque[Any] = deque(maxlen=keep)
        self.num_rows, self.active = world.num_rows, world.active
        self.observation_space, self.action_space = world.observation_space, world.action_space

    def reset(self, seed: int) -> HostObs:
        obs = self._world.reset(seed)
        self.active = self._world.active
        return obs

    def step(self, action: Any) -> HostStep:
        result = self._world.step(action)
        try:
            state = result[4]["state"]
        except KeyError:
            raise EnvError("a metrics_logger looks at info['state'], which the environment's step() does not return") from None
        self._collected.append(self._collect(state))
        return result

    def notes(self) -> list[Any]:
        notes = list(self._collected)
        self._collected.clear()
        return notes

    def close(self) -> None:
        self._world.close()
