"""An environment whose metrics a MetricsLogger collects after every step. It runs in worker processes, without torch."""
from __future__ import annotations

from collections import deque
from typing import Any

from wavedash.envs.errors import EnvError
from wavedash.envs.host import HostEnv, HostObs, HostStep


class LoggedEnv:
    """Wraps `env`; `notes` returns what the logger has collected since the last call, at most the latest `keep`."""

    def __init__(self, env: HostEnv, logger: Any, keep: int) -> None:
        self._env, self._collect = env, logger.collect_metrics
        self._collected: deque[Any] = deque(maxlen=keep)
        self.num_rows, self.active = env.num_rows, env.active
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, seed: int) -> HostObs:
        obs = self._env.reset(seed)
        self.active = self._env.active
        return obs

    def step(self, action: Any) -> HostStep:
        result = self._env.step(action)
        try:
            state = result[4]["state"]
        except KeyError:
            raise EnvError("a metrics_logger reads info['state'], which the environment's step() does not return") from None
        self._collected.append(self._collect(state))
        return result

    def notes(self) -> list[Any]:
        notes = list(self._collected)
        self._collected.clear()
        return notes

    def close(self) -> None:
        self._env.close()
