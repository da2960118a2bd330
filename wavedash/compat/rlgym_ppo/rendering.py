"""`render=True`: the first environment is shown while it trains. Runs in its worker process; torch is imported only there.

An environment that has a way to draw itself is asked to, as in rlgym-ppo. Any other game of RLGym or rlgym-sim is shown through
RocketSimVis, which may be started before or after, or not at all. A window never ends the training.
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
"""Shows a state of the game."""


@dataclass(frozen=True)
class Rendering:
    """`delay`: seconds from one step to the next, as people watch."""

    delay: float

    def of(self, env: HostEnv, built: Any) -> HostEnv:
        """`env` as it is, but shown. `built`: what the script's function returned."""
        return ShownEnv(env, own_window(built), self.delay)


class ShownEnv:
    """Everything as in `env`; what it shows after every step is in info["state"], or known to its own window."""

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
                print(f"render=True: this environment cannot be shown ({error}); the training goes on without", file=sys.stderr)
            else:
                self._show, self._is_bridge = bridge(), True
                print(f"render=True: the environment's own render() failed ({type(error).__name__}: {error}); it is shown "
                      "through RocketSimVis instead", file=sys.stderr)

    def close(self) -> None:
        self._env.close()


def own_window(env: Any) -> Show | None:
    """The environment's own, if it has one: RLGym v2 without a renderer has a `render()` that cannot work."""
    inner = getattr(env, "rlgym_env", env)
    if hasattr(inner, "renderer") and inner.renderer is None:
        return None
    return (lambda state: env.render()) if callable(getattr(env, "render", None)) else None


def bridge() -> Show:
    """RocketSimVis."""
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
    """The speed of the game, where RLViser shows it: its window has a slider."""
    viser = sys.modules.get("rlviser_py")
    return max(float(viser.get_game_speed()), 1e-3) if viser is not None and hasattr(viser, "get_game_speed") else 1.0
