"""The worker pool against Gymnasium's AsyncVectorEnv and Stable-Baselines3's SubprocVecEnv: environment steps per second.

    wavedash bench pool [--rounds 3] [--seconds 4] [--workers N]

All step the same environments with the same random actions and without a policy. The peers use one process per environment,
as they do by default.
"""
from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from wavedash.bench.tables import print_rates, take_turns
from wavedash.errors import UserError
from wavedash.threads import allowed_cores

TASKS = (("CartPole-v1", 8), ("CartPole-v1", 32), ("Hopper-v5", 8), ("Hopper-v5", 32))
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench pool", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--workers", type=int, default=allowed_cores())
    options = parser.parse_args(arguments)
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise UserError("the peers of this benchmark are missing: pip install 'wavedash[bench]'") from error
    for env_id, count in TASKS:
        peers: dict[str, Callable[[], Any]] = {
            f"wavedash, {options.workers} workers": partial(our_pool, env_id, count, options.workers),
            "Gymnasium AsyncVectorEnv": partial(gymnasium_async, env_id, count),
            "Stable-Baselines3 SubprocVecEnv": partial(sb3_subproc, env_id, count),
        }
        print_rates(f"{env_id}, {count} environments: environment steps per second",
                    take_turns({name: partial(_rate, make, count, options.seconds) for name, make in peers.items()},
                               options.rounds))


def _rate(make: Callable[[], Any], count: int, seconds: float) -> float:
    """Environment steps per second. `make` returns a function that steps all environments once, and one that closes them."""
    step, close = make()
    try:
        for _ in range(20):
            step()
        steps, began = 0, perf_counter()
        while perf_counter() - began < seconds:
            step()
            steps += count
        return steps / (perf_counter() - began)
    finally:
        close()


def _actions(space: Any, count: int) -> Callable[[], Any]:
    """A supply of random actions that costs next to nothing to draw from."""
    stock = [np.stack([space.sample() for _ in range(count)]) for _ in range(64)]
    turn = iter(range(10**12))
    return lambda: stock[next(turn) % len(stock)]


def our_pool(env_id: str, count: int, workers: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import torch

    from wavedash.config import EnvConfig
    from wavedash.envs.make import make_env

    torch.set_num_threads(1)
    env = make_env(EnvConfig(id=env_id, count=count, workers=workers, groups=workers))
    env.reset(0)
    draw = _actions(env.action_space, count)

    def step() -> None:
        action = torch.from_numpy(draw())
        for group, rows in enumerate(env.groups):
            env.send(group, action[rows])
        for _ in env.groups:
            env.recv()

    return step, env.close


def gymnasium_async(env_id: str, count: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import gymnasium

    env = gymnasium.make_vec(env_id, count, vectorization_mode="async")
    env.reset(seed=0)
    draw = _actions(env.single_action_space, count)
    return lambda: env.step(draw()), env.close


def sb3_subproc(env_id: str, count: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = make_vec_env(env_id, count, vec_env_cls=SubprocVecEnv)
    env.reset()
    draw = _actions(env.action_space, count)
    return lambda: env.step(draw()), env.close
