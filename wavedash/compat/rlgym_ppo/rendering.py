"""`render=True` shows the first environment while it trains. This runs in its worker process; torch is imported only there.

An environment that can render itself does so, as in rlgym-ppo. Any other game of RLGym or rlgym-sim is shown through
RocketSimVis, which may be started before or after, or not at all. No failure of a renderer ends the training.
"""
from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavedash.envs.errors import EnvError
from wavedash.envs.host import HostEnv, HostObs, HostStep

log = logging.getLogger(__name__)

Show = Callable[[Any], None]
"""A function that shows a state of the game"""


@dataclass(frozen=True)
class Rendering:
    """How an environment is shown."""

    delay: float
    """Seconds from one step to the next"""

    def of(self, env: HostEnv, built: Any) -> HostEnv:
        """Returns `env` with rendering. `built` is what the script's function returned."""
        return RenderedEnv(env, own_renderer(built), self.delay)


class RenderedEnv:
    """Wraps `env` and shows it after every step: the state in info["state"], or what its own renderer shows."""

    def __init__(self, env: HostEnv, own: Show | None, delay: float) -> None:
        self._env, self._show, self._delay = env, own or bridge(), delay
        self._is_bridge, self._silent, self._due = own is None, False, time.monotonic()
        self.num_rows, self.active = env.num_rows, env.active
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, seed: int) -> HostObs:
        obs = self._env.reset(seed)
        self.active = self._env.active
        return obs

    def step(self, action: Any) -> HostStep:
        result = self._env.step(action)
        if not self._silent:
            self._draw(result[4].get("state"))
        if self._delay > 0:
            now = time.monotonic()
            self._due = max(now, self._due + self._delay / _speed())
            time.sleep(self._due - now)
        return result

    def _draw(self, state: Any) -> None:
        try:
            self._show(state)
        except Exception as error:
            if self._is_bridge:
                self._silent = True
                print(f"render=True: this environment cannot be shown ({error}); the training goes on", file=sys.stderr)
            else:
                self._show, self._is_bridge = bridge(), True
                print(f"render=True: the environment's own render() failed ({type(error).__name__}: {error}); it is shown "
                      "through RocketSimVis instead", file=sys.stderr)

    def close(self) -> None:
        self._env.close()


def own_renderer(env: Any) -> Show | None:
    """Returns the environment's own renderer, if it has one: without one, RLGym v2 still has a `render()`, which fails."""
    inner = getattr(env, "rlgym_env", env)
    if hasattr(inner, "renderer") and inner.renderer is None:
        return None
    return (lambda state: env.render()) if callable(getattr(env, "render", None)) else None


def bridge() -> Show:
    """Returns a function that shows states through RocketSimVis."""
    from wavedash.rocket.bridges import RocketSimVis
    from wavedash.rocket.bridges.rlgym_renderer import from_rlgym, from_rlgym_sim

    window = RocketSimVis()

    def show(state: Any) -> None:
        if hasattr(state, "cars"):
            window.show(from_rlgym(state))
        elif hasattr(state, "players"):
            window.show(from_rlgym_sim(state))
        else:
            raise EnvError(f"info['state'] is {type(state).__name__}, not a state of a Rocket League game, and the environment "
                           "has no render() of its own")

    return show


def _speed() -> float:
    """Returns the speed that is set in the window of RLViser, if that is used; else 1."""
    viser = sys.modules.get("rlviser_py")
    return max(float(viser.get_game_speed()), 1e-3) if viser is not None and hasattr(viser, "get_game_speed") else 1.0
