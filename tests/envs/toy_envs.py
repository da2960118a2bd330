"""Small environments whose every number is known, and faulty ones. Worker processes import this module."""
from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env):
    """Observes (start, steps, last action). `start` is drawn at reset; the episode ends after `start % 7 + 2` steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space: spaces.Space = spaces.Discrete(5)

    def __init__(self, truncates: bool = False) -> None:
        self.truncates = truncates
        self.start = self.steps = 0
        self.last: Any = -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.start, self.steps, self.last = int(self.np_random.integers(1000)), 0, -1
        return self.observe(), {}

    def observe(self) -> Any:
        return np.array([self.start, self.steps, self.last], np.float64)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.steps += 1
        self.last = action
        ended = self.steps == self.start % 7 + 2
        reward = float(self.start + self.steps + 0.5 * np.sum(action))
        return self.observe(), reward, ended and not self.truncates, ended and self.truncates, {}


class Succeeds(Counter):
    """An episode is a success if its start is even."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, {"is_success": self.start % 2 == 0} if terminated else {}


class DictObs(Counter):
    observation_space = spaces.Dict({
        "flat": spaces.Box(-np.inf, np.inf, (3,), np.float64),
        "image": spaces.Box(0, 255, (2, 2), np.uint8),
        "kind": spaces.Discrete(7, start=3),
        "action_mask": spaces.MultiBinary(5),
    })

    def observe(self) -> Any:
        return {"flat": super().observe(), "image": np.full((2, 2), self.steps, np.uint8), "kind": 3 + self.start % 7,
                "action_mask": np.ones(5, np.int8)}


class KeepsAction(Counter):
    """The reward is the change of the action since the last step, which it kept by reference."""

    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    kept: Any = None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.steps += 1
        change = 0.0 if self.steps == 1 else float(np.abs(action - self.kept).sum())
        self.kept = action
        return np.array([self.start, self.steps, 0.0]), change, self.steps == 20, False, {}


class Acts(Counter):
    """It has any action space, and observes the sum of the action."""

    def __init__(self, action_space: spaces.Space) -> None:
        super().__init__()
        self.action_space = action_space

    def observe(self) -> Any:
        return np.array([self.start, self.steps, np.sum(self.last)], np.float64)


class Endless(Counter):
    """It sums its actions into a random walk and never ends."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.steps += 1
        self.last = self.last * 0.9 + action + float(self.np_random.normal())
        return self.observe(), 0.0, False, False, {}


WRONG_VALUES: dict[str, Callable[..., tuple]] = {
    "shape": lambda obs, *rest: (obs[:2], *rest),
    "number instead of array": lambda obs, *rest: (1.0, *rest),
    "dtype": lambda obs, *rest: (obs.astype(np.complex64), *rest),
    "nan obs": lambda obs, *rest: (obs * [1, np.nan, 1], *rest),
    "inf reward": lambda obs, reward, *rest: (obs, np.inf, *rest),
    "huge reward": lambda obs, reward, *rest: (obs, 1e300, *rest),
    "array reward": lambda obs, reward, *rest: (obs, np.array([reward]), *rest),
    "no reward": lambda obs, reward, *rest: (obs, None, *rest),
    "four values": lambda obs, reward, terminated, truncated, info: (obs, reward, terminated, info),
}


class Fault(Counter):
    """It goes wrong as `kind` says at step `at` of each episode, `times` times in all processes together.

    Episodes have 8 steps. `folder` holds a file for each time that it happened.
    """

    def __init__(self, kind: str, at: int = 2, times: int = 1_000_000, folder: str | None = None) -> None:
        super().__init__()
        self.kind, self.at, self.times, self.folder = kind, at, times, folder
        if kind == "constructor raises in a worker" and multiprocessing.parent_process() is not None:
            raise OSError("no licence for this simulator")

    def due(self) -> bool:
        if self.folder is None:
            return True
        for i in range(self.times):
            try:
                Path(self.folder, str(i)).touch(exist_ok=False)  # atomic between processes
                return True
            except FileExistsError:
                continue
        return False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        self.start = 6
        if self.kind == "reset raises":
            raise ValueError("no such level")
        if self.kind == "reset returns obs":
            return obs
        return obs, info

    def step(self, action: Any) -> Any:
        result = super().step(action)
        if self.steps != self.at or not self.due():
            return result
        if self.kind == "raises":
            raise ValueError("wheel fell off")
        if self.kind == "sleeps":
            time.sleep(10_000)
        return WRONG_VALUES[self.kind](*result)


def dies_in(start: float, steps: float, action: Any) -> bool:
    """Whether `Dies` dies of this action in a state that `Counter` observes."""
    return start % 10 == 7 and steps == 2 and action > 1


class Dies(Counter):
    """It ends or stops its worker process in the given `way`, in a state that follows from its seed and actions."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def step(self, action: Any) -> Any:
        if dies_in(self.start, self.steps, action):
            ways: dict[str, Callable[[], Any]] = {
                "segfault": lambda: ctypes.string_at(0),
                "os._exit": lambda: os._exit(3),
                "sys.exit": lambda: sys.exit(3),
                "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
                "sleep": lambda: time.sleep(10_000),
                "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
            }
            ways[self.way]()
        return super().step(action)


class Walks(Endless):
    """It ends its process at step `at`, but only once if there is a `file`, which notes that it happened."""

    def __init__(self, at: int, file: str | None = None) -> None:
        super().__init__()
        self.at, self.file = at, file

    def step(self, action: Any) -> Any:
        if self.steps + 1 == self.at and not (self.file and os.path.exists(self.file)):
            if self.file:
                Path(self.file).touch()
            os._exit(3)
        return super().step(action)


class MissingKey(DictObs):
    def observe(self) -> Any:
        obs = super().observe()
        if self.steps == 2:
            del obs["image"]
        return obs


class Teams:
    """A HostEnv of two rows, of which the second is empty in every odd episode. Rewards differ by row."""

    num_rows = 2
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(5)

    def __init__(self) -> None:
        self.active: Any = True

    def reset(self, seed: int) -> Any:
        self.seed, self.steps = seed % 1000, 0
        self.active = np.array([True, seed % 2 == 0])
        return self.observe(np.zeros(2))

    def observe(self, action: Any) -> Any:
        return np.stack([np.full(2, self.seed), action], axis=1).astype(np.float32)

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observe(action), np.array([1.0, -1.0]) * self.steps, self.steps == 3, False, {}

    def close(self) -> None:
        pass


def mixed(count: list[int]) -> gymnasium.Env:
    """The second environment has another action space."""
    count.append(0)
    return Acts(spaces.Discrete(5 if len(count) == 1 else 6))


class TellsTorch(Counter):
    """Observes whether its process has imported torch, and how many threads it was told to use."""

    def observe(self) -> Any:
        return np.array([float("torch" in sys.modules), float(os.environ.get("OMP_NUM_THREADS", "0")), 0.0])


class Mortal(Counter):
    """It ends its process after so many steps of all environments in it."""

    lived = 0

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.most = steps

    def step(self, action: Any) -> Any:
        Mortal.lived += 1
        if Mortal.lived > self.most:
            os._exit(3)
        return super().step(action)
