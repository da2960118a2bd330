"""Learning against Stable-Baselines3 with the settings and budgets that RL-Zoo tuned for it.

    wavedash bench zoo [--task mountaincar-continuous|acrobot|lunarlander] [--side wavedash|sb3] [--seeds 3] [--steps N]
                       [--episodes 100] [--jobs N] [--results FILE]

Our settings are those of the presets of these names; theirs, below, are RL-Zoo's (`hyperparams/ppo.yml`). Every run is a
process of its own with one torch thread. What is compared is the policy at the end of the budget, not the best on the way: 100
episodes, without exploration, with the statistics of the observations as training left them. `--results` keeps the episodes of
every run in a file of JSON lines, and runs only what is not there yet: three seeds of all tasks take an hour on one core.
Stable-Baselines3 and Box2D come with `pip install "wavedash[bench]"`.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from wavedash.errors import UserError
from wavedash.evaluate.shares import Sample

EVALUATION = 10_000
"""The run's seed plus this is the seed of the episodes that are counted."""
ZOO: dict[str, dict[str, Any]] = {
    "mountaincar-continuous": {
        "env": "MountainCarContinuous-v0", "steps": 20_000, "environments": 1, "normalize": True, "n_steps": 8,
        "batch_size": 256, "gamma": 0.9999, "learning_rate": 7.77e-5, "ent_coef": 0.00429, "clip_range": 0.1, "n_epochs": 10,
        "gae_lambda": 0.9, "max_grad_norm": 5, "vf_coef": 0.19, "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
    },
    "acrobot": {
        "env": "Acrobot-v1", "steps": 1_000_000, "environments": 16, "normalize": True, "n_steps": 256, "gae_lambda": 0.94,
        "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0,
    },
    "lunarlander": {
        "env": "LunarLander-v3", "steps": 1_000_000, "environments": 16, "normalize": False, "n_steps": 1024, "batch_size": 64,
        "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01,
    },
}
SIDES = ("wavedash", "sb3")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench zoo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", choices=ZOO, action="append", help="default: all")
    parser.add_argument("--side", choices=SIDES, action="append", help="default: both")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="instead of RL-Zoo's budget")
    parser.add_argument("--episodes", type=int, default=100, help="that are counted of each run")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side: as many as there are cores to spare")
    parser.add_argument("--results", type=Path, help="a file of JSON lines: what it holds is not run again")
    options = parser.parse_args(arguments)
    wanted = [{"side": side, "task": task, "seed": seed, "steps": options.steps or ZOO[task]["steps"],
               "episodes": options.episodes} for seed in range(1, options.seeds + 1) for task in options.task or ZOO
              for side in options.side or SIDES]
    runs = _kept(options.results)
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(_run, **what) for what in wanted if _found(what, runs) is None]):
            run = done.result()
            runs.append(run)
            print(f"{run['task']}, {run['side']}, seed {run['seed']}: {Sample(run['returns']).mean:.1f}", flush=True)
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
    for task in options.task or ZOO:
        _print_table(task, [kept for what in wanted if what["task"] == task and (kept := _found(what, runs)) is not None])


def _found(what: dict[str, Any], runs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return next((run for run in runs if all(run[key] == value for key, value in what.items())), None)


def _kept(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _run(side: str, task: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train and evaluate once, in a process of its own."""
    command = [sys.executable, "-m", "wavedash.bench.zoo", side, task, str(seed), str(steps), str(episodes)]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if result.returncode:
        raise UserError(f"{side} did not train {task}:\n{result.stderr[-1000:]}")
    what = {"side": side, "task": task, "seed": seed, "steps": steps, "episodes": episodes}
    return {**what, **json.loads(result.stdout.splitlines()[-1])}


def _print_table(task: str, runs: Sequence[dict[str, Any]]) -> None:
    """Print every run, then each side's mean over its seeds."""
    steps, episodes = runs[0]["steps"], runs[0]["episodes"]
    table = Table(title=f"{ZOO[task]['env']}, {steps:,} steps: returns of {episodes} episodes without exploration",
                  title_justify="left")
    for column in ("", "seed", "mean", "95 % interval", "deviation", "seconds"):
        table.add_column(column, justify="left" if not column else "right")
    for side in SIDES:
        own = [run for run in runs if run["side"] == side]
        for run in own:
            sample = Sample(run["returns"])
            table.add_row(side, str(run["seed"]), f"{sample.mean:.1f}", "{:.1f} to {:.1f}".format(*sample.interval),
                          f"{sample.std:.1f}", f"{run['seconds']:.0f}")
        if len(own) > 1:
            means = [Sample(run["returns"]).mean for run in own]
            table.add_row(side, "all", f"{statistics.mean(means):.1f}", f"{min(means):.1f} to {max(means):.1f} (the seeds)",
                          f"{statistics.stdev(means):.1f}", "", style="bold")
    Console(width=110, highlight=False).print(table)


# --- the two sides ---------------------------------------------------------------------------------------------------


def train_wavedash(task: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    from wavedash.assembly import assembled
    from wavedash.config_file import load_config
    from wavedash.envs.make import make_env
    from wavedash.evaluate.episodes import play
    from wavedash.trained_policy import TrainedPolicy

    config = load_config(task, [f"seed={seed}", f"total_steps={steps}", "threads=1", "device=cpu"])
    began = perf_counter()
    with assembled(config) as learner:
        learner.learn()
        seconds, player = perf_counter() - began, TrainedPolicy(learner.policy)
    env = make_env(config.env.model_copy(update={"count": episodes}))
    try:
        games = play(env, player.step, episodes, 1, EVALUATION + seed, player.reset)
    finally:
        env.close()
    return {"seconds": seconds, "returns": games.returns}


def train_sb3(task: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    settings = {key: value for key, value in ZOO[task].items() if key not in ("env", "steps", "environments", "normalize")}
    name, normalize = ZOO[task]["env"], ZOO[task]["normalize"]
    env = make_vec_env(name, ZOO[task]["environments"], seed=seed)
    if normalize:
        env = VecNormalize(env, gamma=settings["gamma"])
    began = perf_counter()
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **settings)
    model.learn(steps)
    seconds = perf_counter() - began
    fresh = make_vec_env(name, 1, seed=EVALUATION + seed)
    if normalize:
        fresh = VecNormalize(fresh, training=False, norm_reward=False)
        fresh.obs_rms = env.obs_rms
    returns, _ = evaluate_policy(model, fresh, n_eval_episodes=episodes, return_episode_rewards=True)
    return {"seconds": seconds, "returns": [float(x) for x in returns]}


if __name__ == "__main__":
    _, side, task, *numbers = sys.argv
    print(json.dumps({"wavedash": train_wavedash, "sb3": train_sb3}[side](task, *map(int, numbers))))
