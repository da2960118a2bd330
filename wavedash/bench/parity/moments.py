"""Moments of games on RocketSim by random, scripted or trained players, from which both simulators play 8 ticks.

Whole games cannot be compared, because they drift apart after the first small difference. So both simulators are put into the
same moment of a game again and again, and play on from there for one action.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from wavedash.bench.parity.compare import JUDGED
from wavedash.bench.parity.scene import Scene, Script, Target
from wavedash.config import RocketConfig
from wavedash.envs.vec_env import Obs
from wavedash.evaluate.random_play import RandomPlayer
from wavedash.loading import load_policy, load_run
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.players import Chaser
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.task import Task

MOMENTS = 8
"""Moments that are taken from each arena."""
BETWEEN, BETWEEN_TRAINED = 7, 20
"""Steps from one moment to the next. A trained policy plays its own task, and needs seconds to get to the ball."""
STARTS = ("kickoff", "random", "turtle", "shot", "wall", "dribble", "air_dribble", "flip_reset", "jump_challenge")
TASK = RocketConfig(starts=dict.fromkeys(STARTS, 1.0), endings={"goal": {}, "time_out": {"seconds": 3}})
"""Short games that begin where something happens."""


def moments_scene(name: str, seats: int) -> Scene:
    """The scene as which such moments are judged."""
    return Scene(name, lambda stage: None, Target.MOTION, ("car", "ball"), tuple(range(seats)), ticks=JUDGED)


def random_play(simulator: Simulator, seed: int) -> list[Script]:
    return _record(simulator, TASK, lambda env: RandomPlayer(env, seed), seed)


def scripted_play(simulator: Simulator, seed: int) -> list[Script]:
    chaser = Chaser()
    task = TASK.model_copy(update={"action": "continuous"})
    return _record(simulator, task, lambda env: lambda obs: chaser.controls(simulator.state).flatten(0, 1), seed)


def trained_task(run: str | Path) -> RocketConfig:
    loaded = load_run(run)
    return rocket_task(loaded.config.env, loaded.path)


def trained_play(simulator: Simulator, run: str | Path, seed: int) -> list[Script]:
    player = load_policy(run)
    return _record(simulator, trained_task(run), lambda env: lambda obs: player.step(obs, deterministic=False), seed,
                     BETWEEN_TRAINED)


class Recorder(Simulator):
    """Passes everything on to another simulator, and records its state and the controls at every `between`-th step."""

    def __init__(self, simulator: Simulator, between: int = BETWEEN) -> None:
        self.between = between
        self.simulator, self.state, self.device = simulator, simulator.state, simulator.device
        self.scripts: list[Script] = []
        self._steps = 0

    def send(self, controls: Tensor, ticks: int, delay: int = 0) -> None:
        self._steps += 1
        if self._steps % self.between == 0:
            start = self.state.clone().to("cpu")
            held = [start.cars.controls.clone()] * delay + [controls.clone().to("cpu")] * (max(ticks, JUDGED) - delay)
            self.scripts.append(Script(start, torch.stack(held)))
        self.simulator.send(controls, ticks, delay)

    def recv(self) -> None:
        self.simulator.recv()

    def place(self, arenas: Tensor) -> None:
        self.simulator.place(arenas)


def _record(simulator: Simulator, task: RocketConfig, player: Callable[[RocketEnv], Callable[[Obs], Tensor]],
              seed: int, between: int = BETWEEN) -> list[Script]:
    recorder = Recorder(simulator, between)
    env = RocketEnv([recorder], lambda: Task.configured(task))
    act, obs = player(env), env.reset(seed)
    for _ in range(MOMENTS * between):
        obs = env.step(act(obs)).obs
    return recorder.scripts
