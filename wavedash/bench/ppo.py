"""Whole training against Stable-Baselines3 and CleanRL: same task, network, rollouts, minibatches and epochs.

    wavedash bench ppo [--task cartpole|hopper] [--rounds 3] [--iterations 8] [--cleanrl FOLDER] [--cleanrl-python PYTHON]

Every contestant trains in a process of its own with one torch thread; they take turns. Wavedash steps its environments in that
process, as Stable-Baselines3 does by default. Stable-Baselines3 comes with `pip install wavedash[bench]`. CleanRL is not a
package: give the folder of a checkout, and the Python of an environment with what that checkout pins (Gymnasium 0.29 and tyro;
its Hopper is v4).
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from wavedash.bench.tables import print_rates, take_turns
from wavedash.errors import UserError

MARK = "iteration finished"
WARM_UP = 2
"""Iterations that are not counted: imports, caches, CPU clocks."""


class Task(NamedTuple):
    """The same for all contestants; networks are two of 64 x 64 tanh, separate for actor and critic."""

    env: str
    environments: int
    steps: int
    minibatch: int
    epochs: int
    normalize: bool
    """Whether observations and rewards are normalised by running statistics."""
    cleanrl: tuple[str, str]
    """CleanRL's script and its name of the environment."""


TASKS = {
    "cartpole": Task("CartPole-v1", 8, 256, 64, 10, False, ("ppo.py", "CartPole-v1")),
    "hopper": Task("Hopper-v5", 8, 256, 64, 10, True, ("ppo_continuous_action.py", "Hopper-v4")),
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench ppo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", choices=TASKS, action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--cleanrl", type=Path, help="folder of a CleanRL checkout")
    parser.add_argument("--cleanrl-python", type=Path, default=Path(sys.executable))
    options = parser.parse_args(arguments)
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise UserError("the peers of this benchmark are missing: pip install 'wavedash[bench]'") from error
    for name in options.task or TASKS:
        task = TASKS[name]
        contestants: dict[str, Callable[[], float]] = {
            who: partial(_rate, [sys.executable, "-m", "wavedash.bench.ppo", train.__name__, name], task, options.iterations)
            for who, train in CONTESTANTS.items()
        }
        if options.cleanrl:
            command = _cleanrl_command(options.cleanrl_python, options.cleanrl, task, options.iterations)
            contestants["CleanRL"] = partial(_rate, command, task, options.iterations, "SPS:")
        print_rates(
            f"{task.env}, {task.environments} environments, {task.steps} steps a rollout, {task.epochs} epochs, minibatches of "
            f"{task.minibatch}: agent steps per second of whole training",
            take_turns(contestants, options.rounds),
        )


def _rate(command: list[str], task: Task, iterations: int, mark: str = MARK) -> float:
    """Steps per second of a training process, from the moments at which it says that an iteration is over."""
    moments = []
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith(mark):
                moments.append(perf_counter())
                if len(moments) > iterations + WARM_UP:
                    process.terminate()
                    break
        _, errors = process.communicate()
    if len(moments) <= WARM_UP + 1:
        raise UserError(f"{' '.join(command)} did not train:\n{errors[-1000:]}")
    each = [b - a for a, b in zip(moments[WARM_UP:], moments[WARM_UP + 1 :], strict=False)]
    return task.environments * task.steps / statistics.median(each)


def _cleanrl_command(python: Path, folder: Path, task: Task, iterations: int) -> list[str]:
    name, env = task.cleanrl
    script = folder / "cleanrl" / name
    if not script.exists():
        raise UserError(f"{script} does not exist: --cleanrl takes the folder of a checkout of CleanRL")
    options = {
        "env-id": env, "num-envs": task.environments, "num-steps": task.steps, "update-epochs": task.epochs,
        "num-minibatches": task.environments * task.steps // task.minibatch,
        "total-timesteps": task.environments * task.steps * (iterations + WARM_UP + 2),
    }
    words = [f"--{key}={value}" for key, value in options.items()]
    return [str(python.absolute()), str(script.absolute()), "--no-cuda", *words]


def train_wavedash(task: Task) -> None:
    from wavedash.assembly import make_policy, prepare_torch
    from wavedash.config import EnvConfig, PPOConfig, RunConfig
    from wavedash.envs.make import make_env
    from wavedash.ppo.learner import Learner

    config = RunConfig(
        env=EnvConfig(id=task.env, count=task.environments),
        ppo=PPOConfig(rollout_steps=task.steps, minibatch_size=task.minibatch, epochs=task.epochs,
                      normalize_obs=task.normalize, normalize_reward=task.normalize),
        total_steps=10**9,
    )
    env = make_env(config.env, prepare_torch(config))
    learner = Learner(env, make_policy(env, config), config)
    learner.start()
    while True:
        learner.iterate()
        print(MARK)


def train_sb3(task: Task, processes: bool = False) -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

    class Mark(BaseCallback):  # type: ignore[misc, unused-ignore]
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            print(MARK)

    env = make_vec_env(task.env, task.environments, vec_env_cls=SubprocVecEnv if processes else DummyVecEnv)
    if task.normalize:
        env = VecNormalize(env)
    model = PPO("MlpPolicy", env, n_steps=task.steps, batch_size=task.minibatch, n_epochs=task.epochs, device="cpu")
    model.learn(10**9, callback=Mark())


def train_sb3_processes(task: Task) -> None:
    train_sb3(task, processes=True)


CONTESTANTS = {
    "wavedash": train_wavedash,
    "Stable-Baselines3": train_sb3,
    "Stable-Baselines3, SubprocVecEnv": train_sb3_processes,
}

if __name__ == "__main__":
    {train.__name__: train for train in CONTESTANTS.values()}[sys.argv[1]](TASKS[sys.argv[2]])
