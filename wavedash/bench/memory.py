"""Recurrent training against sb3-contrib's RecurrentPPO and rsl-rl: speed and curve on CartPole without velocities.

    wavedash bench memory [--rounds 1] [--steps 50000] [--contestant NAME]

Every contestant trains in a process of its own with one torch thread; they take turns. All get the settings of the preset
`cartpole-memory`: environments, rollouts, minibatches, epochs, rates, LSTM and hidden layers of the same size. Two differences
cannot be set: sb3-contrib and rsl-rl learn from sequences as long as the rollout, ours have 32 steps; rsl-rl knows normal
distributions only, so CartPole gets the sign of its action. "zoo" is sb3-contrib with the settings that its authors tuned for
this task. The peers come with `pip install sb3-contrib` and `pip install --no-deps rsl-rl-lib tensordict`.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from wavedash.errors import UserError

MARK = "iteration"
WARM_UP = 3
"""Iterations whose time is not counted: imports, caches, CPU clocks."""
MARKS = 5
"""Points of a curve."""
RECENT = 30
"""Episodes over which a point of a curve is averaged."""


class Curve(NamedTuple):
    """One run: steps per second without evaluation or start, and (steps, mean return of the recent episodes)."""

    rate: float
    points: list[tuple[int, float]]

    def at(self, steps: float) -> float:
        return min(self.points, key=lambda point: abs(point[0] - steps))[1]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench memory", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--contestant", choices=CONTESTANTS, action="append", help="default: all")
    options = parser.parse_args(arguments)
    chosen = options.contestant or list(CONTESTANTS)
    runs: dict[str, list[Curve]] = {name: [] for name in chosen}
    for seed in range(1, options.rounds + 1):
        for name in list(runs):
            try:
                runs[name].append(_run(name, seed, options.steps))
                print(f"{name}, seed {seed}: {runs[name][-1].rate:,.0f} steps/s", flush=True)
            except UserError as error:
                print(f"{name} drops out: {error}")
                del runs[name]
    table = Table(title=f"CartPole without velocities, {options.steps:,} steps: agent steps per second of whole training, and "
                        f"mean return of the last {RECENT} training episodes (500 at best), {options.rounds} seed(s)",
                  title_justify="left")
    table.add_column("")
    marks = [options.steps * (k + 1) // MARKS for k in range(MARKS)]
    for column in ("steps/s", "wavedash is", *(f"{mark // 1000}k" for mark in marks)):
        table.add_column(column, justify="right")
    first = statistics.median(curve.rate for curve in next(iter(runs.values())))
    for name, curves in runs.items():
        rate = statistics.median(curve.rate for curve in curves)
        points = (f"{statistics.mean(curve.at(mark) for curve in curves):.0f}" for mark in marks)
        table.add_row(name, f"{rate:,.0f}", "" if "wavedash" in name else f"{first / rate:.1f} x", *points)
    Console(width=130, highlight=False).print(table)


def _run(name: str, seed: int, steps: int) -> Curve:
    command = [sys.executable, "-m", "wavedash.bench.memory", name, str(seed), str(steps)]
    points: list[tuple[int, float]] = []
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                moments.append(perf_counter())
                _, done, mean = line.split()
                points.append((int(done), float(mean)))
                if int(done) >= steps:
                    process.terminate()
                    break
        _, errors = process.communicate()
    if len(points) <= WARM_UP + 1:
        raise UserError(f"it did not train:\n{errors[-1000:]}")
    each = [(b - a) / (after - before) for a, b, (before, _), (after, _) in
            zip(moments[WARM_UP:], moments[WARM_UP + 1 :], points[WARM_UP:], points[WARM_UP + 1 :], strict=False)]
    return Curve(1.0 / statistics.median(each), points)


def _say(steps: int, returns: Any) -> None:
    recent = list(returns)
    print(MARK, steps, sum(recent) / max(1, len(recent)))


# --- the contestants -------------------------------------------------------------------------------------------------


def train_wavedash(kind: str, seed: int, steps: int) -> None:
    from wavedash.assembly import assembled
    from wavedash.config_file import load_config

    config = load_config("cartpole-memory", [
        f"policy.memory.kind={kind}", f"seed={seed}", f"total_steps={steps}", f"checkpoint.best_window={RECENT}",
    ])
    with assembled(config) as learner:
        learner.start()
        while learner.steps < steps:
            report = learner.iterate()
            _say(learner.steps, [report.metrics.get("recent/return", 0.0)])


def train_sb3_contrib(zoo: bool, seed: int, steps: int) -> None:
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize
    from torch import nn

    from wavedash.envs.puzzles import masked_cartpole

    class Say(BaseCallback):  # type: ignore[misc, unused-ignore]
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            if self.num_timesteps:
                _say(self.num_timesteps, [episode["r"] for episode in list(self.model.ep_info_buffer or ())[-RECENT:]])

    rest: dict[str, Any]
    if zoo:
        environments, length, rest = 8, 32, {"gae_lambda": 0.8, "clip_range": lambda left: 0.2 * left}
        networks = {"lstm_hidden_size": 64, "enable_critic_lstm": True, "net_arch": {"pi": [64], "vf": [64]},
                    "ortho_init": False}
    else:
        environments, length, rest = 16, 64, {"gae_lambda": 0.9}
        networks = {"lstm_hidden_size": 32, "enable_critic_lstm": True, "net_arch": {"pi": [64], "vf": [64]},
                    "activation_fn": nn.SiLU}
    env = VecNormalize(make_vec_env(masked_cartpole, environments, seed=seed), gamma=0.98)
    model = RecurrentPPO(
        "MlpLstmPolicy", env, learning_rate=lambda left: 2e-3 * max(left, 1e-3), n_steps=length, batch_size=256, n_epochs=10,
        gamma=0.98, ent_coef=0.0, max_grad_norm=0.5, policy_kwargs=networks, seed=seed, device="cpu", **rest,
    )
    model.learn(steps + environments * length, callback=Say())


def train_rsl_rl(seed: int, steps: int) -> None:
    import torch
    from rsl_rl.env import VecEnv
    from rsl_rl.runners import OnPolicyRunner
    from tensordict import TensorDict

    from wavedash.config_file import load_config
    from wavedash.envs.make import make_env

    config = load_config("cartpole-memory")
    env = make_env(config.env)
    returns: deque[float] = deque(maxlen=RECENT)

    class Masked(VecEnv):  # type: ignore[misc, unused-ignore]
        num_envs, num_actions, max_episode_length, device = env.num_rows, 1, 500, "cpu"
        cfg: dict[str, Any] = {}  # noqa: RUF012 (theirs)

        def __init__(self) -> None:
            self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
            self.running = torch.zeros(self.num_envs)
            self.obs, self.taken = env.reset(seed), 0

        def get_observations(self) -> Any:
            assert isinstance(self.obs, torch.Tensor)
            return TensorDict({"policy": self.obs.clone()}, batch_size=self.num_envs)

        def step(self, actions: torch.Tensor) -> Any:
            step = env.step((actions[:, 0] > 0).long())
            self.obs, done = step.obs, step.terminated | step.truncated
            self.running += step.reward
            returns.extend(self.running[done].tolist())
            self.running *= ~done
            self.taken += self.num_envs
            if self.taken % (self.num_envs * config.ppo.rollout_steps) == 0 and self.taken > self.num_envs:
                _say(self.taken, returns)
            return self.get_observations(), step.reward.clone(), done.long(), {"time_outs": step.truncated.clone()}

    network = {"class_name": "RNNModel", "hidden_dims": [64], "activation": "swish", "obs_normalization": True,
               "rnn_type": "lstm", "rnn_hidden_dim": 32}
    torch.manual_seed(seed)
    runner = OnPolicyRunner(Masked(), {
        "num_steps_per_env": config.ppo.rollout_steps, "save_interval": 10**9,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution"}}, "critic": dict(network),
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 10, "num_mini_batches": 4, "gamma": 0.98, "lam": 0.9,
                      "value_loss_coef": 0.5, "entropy_coef": 0.0, "learning_rate": 2e-3, "max_grad_norm": 0.5,
                      "use_clipped_value_loss": False, "schedule": "fixed"},
    })
    sys.stdout.flush()
    runner.learn(-(-steps // (env.num_rows * config.ppo.rollout_steps)) + 1)


CONTESTANTS: dict[str, Callable[[int, int], None]] = {
    "wavedash, LSTM": lambda seed, steps: train_wavedash("lstm", seed, steps),
    "wavedash, GRU": lambda seed, steps: train_wavedash("gru", seed, steps),
    "sb3-contrib": lambda seed, steps: train_sb3_contrib(False, seed, steps),
    "sb3-contrib, zoo": lambda seed, steps: train_sb3_contrib(True, seed, steps),
    "rsl-rl": train_rsl_rl,
}

if __name__ == "__main__":
    CONTESTANTS[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
