"""Every key of the configuration is changed when a run is resumed: it counts, or it is refused by its name.

Each run is resumed for real, by `wavedash.resume`. Whether a setting counts is read from what the run then does or holds (its
weights, metrics, files, output, tensors), never from its configuration.
"""
from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import gymnasium
import psutil
import pytest
import torch
from pydantic import BaseModel
from safetensors.torch import load

from tests.processes import words_of
from wavedash import threads
from wavedash.config import RunConfig
from wavedash.config.debug import SWITCHES
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import write_samples
from wavedash.league.games import Game, GamesFile
from wavedash.league.league import League
from wavedash.league.panel import Panel
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.recording.highlights import Highlights
from wavedash.runs.compatible import FIXED, decides_weights
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

HERE = "tests.runs.test_resume_settings"
TINY = ("total_steps=64", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1")
GOAL = "total_steps=128"
ROCKET = (*TINY, "env.count=2", "env.groups=1")
LEAGUE = (*ROCKET, "env.count=4", "ppo.rollout_steps=4", "env.rocket.endings={time_out: {seconds: 0.1}}",
          "opponents.share=0.5", "opponents.slots=2")
"""Two of four arenas have opponents; an iteration is 24 steps, and an episode two."""
RATED = "rating={every: 32, games: 2, seconds: 1, most: 1}"
BASES: dict[str, tuple[str, ...]] = {
    "cartpole": ("cartpole", *TINY),
    "decays": ("cartpole", *TINY, "ppo.schedule.kind=linear", "ppo.clip_schedule.kind=linear", "ppo.entropy_coef=0.05",
               "ppo.entropy_schedule.kind=linear"),
    "kl": ("cartpole", *TINY, "ppo.schedule.kind=kl"),
    "normalised": ("cartpole", *TINY, "ppo.normalize_obs=true", "ppo.normalize_reward=true"),
    "memory": ("cartpole-memory", *TINY, "policy.memory.sequence=8"),
    "gsde": ("pendulum", *TINY, "policy.std=gsde"),
    "factory": ("cartpole", *TINY, "env.id=null", f"env.factory={HERE}:cartpole"),
    "workers": ("cartpole", *TINY, "env.workers=2", "env.groups=1"),
    "slow workers": ("cartpole", *TINY, "env.workers=2", "env.groups=1", "env.id=null", "env.factory=tests.sleepy_env:make"),
    "rocket": ("rocket-1v1", *ROCKET, "rating=null", "env.rocket.observation={advanced_obs_plus: {team_size: 2}}"),
    "hybrid": ("rocket-1v1", *ROCKET, "env.rocket.reward_mode=hybrid"),
    "teams": ("rocket-2v2", *ROCKET),
    "league": ("rocket-1v1", *LEAGUE),
    "league by age": ("rocket-1v1", *LEAGUE, "opponents.strategy=recent"),
    "league by rating": ("rocket-1v1", *LEAGUE, "opponents.strategy=rating"),
    "league by win rate": ("rocket-1v1", *LEAGUE, "opponents.strategy=target_win_rate"),
    "many snapshots": ("rocket-1v1", *LEAGUE, "opponents.snapshot_every=20", "opponents.refresh_every=1",
                       "opponents.strategy=uniform", "opponents.prune_above=0"),
    "easily pruned": ("rocket-1v1", *LEAGUE, "opponents.snapshot_every=20", "opponents.refresh_every=1",
                      "opponents.strategy=uniform", "opponents.prune_above=0", "opponents.prune_games=1"),
    "rated": ("rocket-1v1", *ROCKET, RATED),
    "rated with places": ("rocket-1v1", *ROCKET, RATED, "env.rocket.observation={advanced_obs_plus: {team_size: 2}}"),
    "rated league": ("rocket-1v1", *LEAGUE, RATED),
    "walk": ("walk-flat", *TINY, "env.walk.rewards={track_velocity: 1, track_turning: 0.5}", "env.walk.levels=2",
             "env.walk.terrain={rough: 1, stairs_up: 1}", "env.walk.resolution=0.1",
             "env.walk.endings={fallen: {}, time_out: {seconds: 0.1}}"),
    "randomised walk": ("walk-flat", *TINY, "env.walk.terrain={rough: 1}", "env.walk.levels=3", "env.walk.first_level=0",
                        "env.walk.resolution=0.1", "env.walk.endings={time_out: {seconds: 0.1}}",
                        "env.walk.randomize={friction: {}}"),
    "wandb": ("cartpole", *TINY, "report.wandb=true"),
    "distilled": ("pendulum", *TINY, "policy.initial_std=0.2", "distill.teacher=TEACHER"),
    "pendulum": ("pendulum", *TINY),
    "cloned": ("cartpole", *TINY, "checkpoint.every=16", "imitate.data=DATA", "imitate.every=64"),
    "held near": ("cartpole", *TINY, "init=INIT", "prior.coef=0.5"),
    "debugged": ("cartpole", *TINY, "debug.learning=true"),
}
SHORT = "tests/ShortCartPole-v0"
gymnasium.register(SHORT, f"{HERE}:cartpole", kwargs={"steps": 3})


def cartpole(steps: int = 30) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", max_episode_steps=steps)


def short_cartpole() -> gymnasium.Env[Any, Any]:
    return cartpole(3)


class Resumed(NamedTuple):
    """A run that was resumed and has come to its end."""

    folder: Path
    seen: dict[str, Any]
    """What the probes of each key saw in the learner when it began."""
    metrics: list[dict[str, float]]
    """The metrics of each iteration after the resume."""
    output: str


class Counts(NamedTuple):
    """With `value` the probe gives `expected`, and without it something else. `seen` probes the learner at its start, `after`
    the resumed run at its end and the same run without the change. Without a probe, the setting changes the weights."""

    value: str
    seen: Callable[[Learner], Any] | None = None
    expected: Any = None
    base: str = "cartpole"
    after: Callable[[Resumed, Resumed], Any] | None = None


class Fails(NamedTuple):
    """With another change, `because`, the resumed run ends with an error of its environments that shows the setting."""

    value: str
    because: str
    message: str
    base: str


class Refused(NamedTuple):
    """The resume is refused with the name of the key."""

    value: str
    base: str = "cartpole"


# --- probes of a learner ---------------------------------------------------------------------------------------------


def task(learner: Learner) -> Any:
    return learner.env.tasks[0]


def cars(learner: Learner) -> Any:
    return learner.env.state_of(0).cars  # type: ignore[attr-defined]


def ground(learner: Learner) -> Any:
    return learner.env.ground  # type: ignore[attr-defined]


def physics(learner: Learner) -> Any:
    return learner.env.simulator.physics  # type: ignore[attr-defined]


def line_up(learner: Learner) -> Any:
    return task(learner).line_up


def strategy(learner: Learner) -> Any:
    (strategy,) = (listener.strategy for listener in learner.listeners if isinstance(listener, League))
    return strategy


def worker_processes(learner: Learner) -> int:
    return len([child for child in psutil.Process().children() if "spawn_main" in " ".join(words_of(child))])


def limits(learner: Learner) -> dict[str, float]:
    """The limits of endings in ticks."""
    return {name: float(getattr(ending, "limit", 0)) for name, ending in task(learner).endings.items()}


# --- probes of a run that has ended ----------------------------------------------------------------------------------


def episode_length(run: Resumed, unchanged: Resumed) -> float | None:
    """The mean length in the last iteration, whose episodes all began after the resume."""
    return run.metrics[-1].get("rollout/length")


def ratio(metric: str) -> Callable[[Resumed, Resumed], float]:
    """A metric of the first iteration, whose rollout is played by the same policy, over its value without the change."""
    return lambda run, unchanged: round(run.metrics[0][metric] / unchanged.metrics[0][metric], 3)


def mean_reward(run: Resumed, unchanged: Resumed) -> float:
    return round(run.metrics[0]["rollout/reward"], 6)


def steps_of(store: str) -> Callable[[Resumed, Resumed], list[int]]:
    """The steps of the checkpoints in a folder of the run."""
    return lambda run, unchanged: sorted(int(path.name.partition("-")[2]) for path in (run.folder / store).glob("step-*"))


def members(run: Resumed) -> int:
    """How many members the league has at the end."""
    (final,) = (run.folder / "final").iterdir()
    return len(json.loads((final / "state.json").read_text())["listeners"]["league"]["members"])


def projects(run: Resumed, unchanged: Resumed) -> list[str]:
    """The last project that the client of Weights & Biases was given, if any."""
    record = run.folder / RECORD
    return record.read_text().split()[-1:] if record.exists() else []


def games_of(run: Resumed) -> list[Game]:
    return GamesFile(run.folder / "games.csv").read()


def games(value: Callable[[Game], Any]) -> Callable[[Resumed, Resumed], list[Any]]:
    """What all games after the resume have, without repetitions."""
    return lambda run, unchanged: sorted({value(game) for game in games_of(run) if game.step > 64})


def debug_reports(run: Resumed, unchanged: Resumed) -> list[str]:
    return sorted(path.name for path in run.folder.glob("debug/*"))


def highlights_of(learner: Learner) -> Highlights:
    return next(listener for listener in learner.listeners if isinstance(listener, Highlights))


def panel_of(learner: Learner) -> Panel:
    return next(listener for listener in learner.listeners if isinstance(listener, Panel))


KEYS: dict[str, Counts | Fails | Refused] = {
    "name": Refused("other"),
    "seed": Refused("7"),
    "total_steps": Counts("512", lambda learner: learner.total_steps, 512),
    "init": Refused("champion"),
    "device": Refused("cuda:99"),  # a device that exists counts; tests on a GPU resume on another one
    "threads": Counts("3", lambda _: threads.cores(), 3),
    "precision": Counts("bf16", lambda learner: learner.policy.precision, torch.bfloat16),
    "compile": Counts("true", lambda learner: learner.policy.compiled, True),
    "graphs": Counts("false", lambda learner: learner.updater.graphs, False),
    "deterministic": Counts("true", lambda _: torch.are_deterministic_algorithms_enabled(), True),
    "env.id": Counts(SHORT, after=episode_length, expected=3.0),
    "env.factory": Counts(f"{HERE}:short_cartpole", after=episode_length, expected=3.0, base="factory"),
    "env.kwargs": Counts("{max_episode_steps: 3}", after=episode_length, expected=3.0),
    "env.wrappers": Counts("[{TimeLimit: {max_episode_steps: 3}}]", after=episode_length, expected=3.0),
    "env.frame_stack": Refused("2"),
    "env.count": Counts("6", lambda learner: (learner.env.num_rows, learner.buffer.all.reward.shape[-1]), (6, 6)),
    "env.workers": Counts("2", worker_processes, 2),
    "env.groups": Counts("2", lambda learner: len(learner.env.groups), 2, "workers"),
    "env.worker_timeout": Fails("0.6", "env.kwargs={delay: 2.0}", "hung: no sign of life for 1.0 s", "slow workers"),
    "env.rocket.simulator": Counts("rocketsim", base="rocket"),
    "env.rocket.blue": Counts("0", lambda learner: cars(learner).team.tolist(), [[1]], "rocket"),
    "env.rocket.orange": Counts("0", lambda learner: cars(learner).team.tolist(), [[0]], "rocket"),
    "env.rocket.sizes": Counts("{1v1: 0.5, 2v2: 0.5}", lambda learner: [rows.stop for rows in learner.env.groups], [2, 6],
                               "rocket"),
    "env.rocket.hitbox": Counts("merc", lambda learner: {HITBOXES[i].name for i in cars(learner).hitbox.unique()}, {"merc"},
                                "rocket"),
    "env.rocket.observation": Refused("{advanced_obs_plus: {team_size: 2, frames: 2}}", "rocket"),
    "env.rocket.action": Counts("{lookup_table: {ticks: 4}}", lambda learner: task(learner).action.ticks, 4, "rocket"),
    "env.rocket.rewards": Counts("{face_ball: 0.05}", after=ratio("env/reward/face_ball"), expected=10.0, base="rocket"),
    "env.rocket.reward_mode": Counts("sparse", after=ratio("env/reward/face_ball"), expected=0.0, base="rocket"),
    "env.rocket.dense_scale": Counts("2", after=ratio("env/reward/face_ball"), expected=20.0, base="hybrid"),
    "env.rocket.team_spirit": Counts("0.9", base="teams"),
    "env.rocket.zero_sum": Counts("true", after=mean_reward, expected=0.0, base="rocket"),
    "env.rocket.starts": Counts("{random: 0, turtle: 5}", lambda learner: task(learner).start.below.tolist(), [[0.0, 5.0]],
                                "rocket"),
    "env.rocket.endings": Counts("{no_touch: {seconds: 3}}", limits, {"no_touch": 360.0}, "rocket"),
    "env.rocket.lanes": Counts("{turtle: {share: 0.5, starts: {turtle: 1}}}", lambda learner: task(learner).lanes.names,
                               ["turtle"], "rocket"),
    "env.rocket.games": Counts("3", lambda learner: task(learner).series and task(learner).series.games, 3, "rocket"),
    "env.rocket.measures": Counts("[turtle, wall]", lambda learner: list(task(learner).measures.parts.keys()),
                                  ["turtle", "wall"], "rocket"),
    "env.walk.simulator": Counts("mujoco_warp", lambda learner: type(learner.env.simulator).__name__,  # type: ignore[attr-defined]
                                 "MujocoWarpSimulator", "walk"),
    "env.walk.terrain": Counts("{stones: 1}", lambda learner: ground(learner).kinds[-1], "stones", "walk"),
    "env.walk.levels": Counts("3", lambda learner: ground(learner).levels, 3, "walk"),
    "env.walk.hardest": Counts("0.5", lambda learner: ground(learner).difficulty(1), 0.5, "walk"),
    "env.walk.first_level": Counts("0", lambda learner: task(learner).levels.first, 0, "walk"),
    "env.walk.curriculum": Counts("false", lambda learner: task(learner).levels.moves, False, "walk"),
    "env.walk.layout": Counts("track", lambda learner: ground(learner).length, 20.0, "walk"),
    "env.walk.resolution": Counts("0.2", lambda learner: ground(learner).resolution, 0.2, "walk"),
    "env.walk.terrain_seed": Counts("1", base="walk"),
    "env.walk.observation": Refused("{proprioception: {}}", "walk"),
    "env.walk.action": Counts("{joint_targets: {scale: 0.25}}", lambda learner: float(task(learner).action.scale[0]), 0.25,
                              "walk"),
    "env.walk.commands": Counts("{ahead: {speed: 0.123}}", lambda learner: task(learner).commands.parts["ahead"].speed, 0.123,
                                "walk"),
    "env.walk.command_seconds": Counts("0.04", lambda learner: task(learner).commands.steps, 2, "walk"),
    "env.walk.rewards": Counts("{track_turning: 5}", after=ratio("env/reward/track_turning"), expected=10.0, base="walk"),
    "env.walk.reward_floor": Counts("7", after=mean_reward, expected=0.14, base="walk"),
    "env.walk.starts": Counts("{stand: {shift: 0.0}}", lambda learner: task(learner).start.starts[0].shift, 0.0, "walk"),
    "env.walk.endings": Counts("{time_out: {seconds: 0.06}}", after=episode_length, expected=3.0, base="walk"),
    "env.walk.randomize": Counts("{payload: {low: 2, high: 2}}", lambda learner: physics(learner).payload.tolist(), [2.0] * 4,
                                 "walk"),
    "env.walk.progressive": Counts("false", after=lambda run, unchanged: weights(run) != weights(unchanged), expected=True,
                                   base="randomised walk"),
    "policy.encoders": Refused("{obs: {kind: mlp, hidden: [4]}}"),
    "policy.actor_keys": Refused("[obs]"),
    "policy.critic_keys": Refused("[obs]"),
    "policy.memory.kind": Refused("lstm", "memory"),
    "policy.memory.size": Refused("16", "memory"),
    "policy.memory.layers": Refused("2", "memory"),
    "policy.memory.sequence": Counts("4", lambda learner: learner.policy.sequence_length, 4, "memory"),
    "policy.hidden": Refused("[4]"),
    "policy.critic_hidden": Refused("[4]"),
    "policy.shared": Refused("true"),
    "policy.activation": Refused("relu"),
    "policy.layer_norm": Refused("true"),
    "policy.orthogonal": Refused("false"),
    "policy.action_floor": Counts("0.5"),
    "policy.distribution": Refused("tanh"),
    "policy.std": Refused("fixed"),
    "policy.initial_std": Refused("0.5"),
    "policy.gsde.sample_every": Counts("2", base="gsde"),
    "policy.gsde.expln": Refused("true", "gsde"),
    "policy.std_range": Refused("[0.2, 0.9]"),
    "ppo.rollout_steps": Counts("4", lambda learner: learner.buffer.all.reward.shape[1], 4),
    "ppo.epochs": Counts("3"),
    "ppo.minibatch_size": Counts("8"),
    "ppo.keep_samples": Counts("0.5"),
    "ppo.accumulate": Counts("2"),
    "ppo.microbatch_size": Counts("5"),
    "ppo.buffer_rollouts": Counts("3", lambda learner: learner.buffer.capacity, 3),
    "ppo.optimizer": Counts("muon"),
    "ppo.learning_rate": Counts("0.02"),
    "ppo.critic_learning_rate": Counts("0.02"),
    "ppo.schedule.kind": Counts("constant", after=ratio("optim/learning_rate"), expected=2.0, base="decays"),
    "ppo.schedule.floor": Counts("0.5", after=ratio("optim/learning_rate"), expected=1.5, base="decays"),
    "ppo.schedule.target_kl": Counts("1e-9", base="kl"),
    "ppo.schedule.factor": Counts("3", base="kl"),
    "ppo.schedule.bounds": Counts("[0.9, 1.1]", base="kl"),
    "ppo.critic_warmup": Counts("100"),
    "ppo.weight_decay": Counts("5"),
    "ppo.adam_betas": Counts("[0.5, 0.9]"),
    "ppo.adam_eps": Counts("0.1"),
    "ppo.gamma": Counts("0.5"),
    "ppo.gamma_end": Counts("0.5"),
    "ppo.gae_lambda": Counts("0.3"),
    "ppo.clip_range": Counts("0.00001"),
    "ppo.clip_schedule.kind": Counts("constant", after=ratio("optim/clip_range"), expected=1.818, base="decays"),
    "ppo.clip_schedule.floor": Counts("0.9", after=ratio("optim/clip_range"), expected=1.727, base="decays"),
    "ppo.value_clip": Counts("0.00001"),
    "ppo.value_coef": Counts("3"),
    "ppo.entropy_coef": Counts("1"),
    "ppo.entropy_schedule.kind": Counts("constant", after=ratio("optim/entropy_coef"), expected=1.818, base="decays"),
    "ppo.entropy_schedule.floor": Counts("0.9", after=ratio("optim/entropy_coef"), expected=1.727, base="decays"),
    "ppo.normalize_advantage": Counts("off"),
    "ppo.max_grad_norm": Counts("0.001"),
    "ppo.target_kl": Counts("0.0000001"),
    "ppo.normalize_obs": Refused("true"),
    "ppo.obs_clip": Counts("0.01", base="normalised"),
    "ppo.normalize_reward": Counts("true", lambda learner: learner.return_moments is not None, True),
    "ppo.reward_clip": Counts("0.01", base="normalised"),
    "distill.teacher": Refused("another", "distilled"),
    "distill.begin_as_teacher": Refused("true", "distilled"),
    "distill.act": Counts("mean", base="distilled"),
    "distill.critic": Counts("true", after=lambda run, _: "loss/value" in run.metrics[-1], expected=True, base="distilled"),
    "imitate.data": Refused("nowhere.safetensors", "cloned"),  # with the same content it counts: tests/imitate/test_runs.py
    "imitate.held_out": Refused("0.3", "cloned"),
    "imitate.every": Counts("32", after=lambda run, _: sum("imitate/held_out_loss" in line for line in reported(run)),
                            expected=2, base="cloned"),
    "prior.coef": Counts("5", base="held near"),
    "prior.fade": Counts("100", after=lambda run, _: reported(run)[-1]["prior/coef"], expected=0.0, base="held near"),
    "opponents.share": Counts("1.0", lambda learner: len(line_up(learner).arena), 4, "league"),
    "opponents.most": Counts("1.0", lambda learner: len(line_up(learner).arena), 4, "league"),
    "opponents.slots": Counts("1", lambda learner: line_up(learner).slots, 1, "league"),
    "opponents.members": Counts("[chaser]", lambda learner: len(line_up(learner).players), 2, "league"),
    "opponents.snapshot_every": Counts("20", after=lambda run, _: members(run) > 2, expected=True, base="league"),
    "opponents.pool": Counts("2", after=lambda run, _: members(run), expected=2, base="many snapshots"),
    "opponents.refresh_every": Counts("1", after=lambda run, _: (run.folder / "league/results.csv").read_text().count("\n") > 1,
                                      expected=True, base="league"),
    "opponents.strategy": Counts("uniform", lambda learner: type(strategy(learner)).__name__, "Uniform", "league"),
    "opponents.temperature": Counts("3", lambda learner: strategy(learner).temperature, 3.0, "league"),
    "opponents.decay": Counts("0.5", lambda learner: strategy(learner).decay, 0.5, "league by age"),
    "opponents.window": Counts("50", lambda learner: strategy(learner).window, 50.0, "league by rating"),
    "opponents.target": Counts("0.9", lambda learner: strategy(learner).target, 0.9, "league by win rate"),
    "opponents.width": Counts("0.5", lambda learner: strategy(learner).width, 0.5, "league by win rate"),
    "opponents.power": Counts("2", lambda learner: strategy(learner).power, 2.0, "league"),
    "opponents.deterministic": Counts("true", lambda learner: line_up(learner).players[0].deterministic, True, "league"),
    "opponents.prune_above": Counts("1", after=lambda run, unchanged: members(run) > members(unchanged), expected=True,
                                    base="easily pruned"),
    "opponents.prune_games": Counts("1", after=lambda run, unchanged: members(run) < members(unchanged), expected=True,
                                    base="many snapshots"),
    "checkpoint.every": Counts("32", after=steps_of("checkpoints"), expected=[64, 96, 128]),
    "checkpoint.keep": Counts("1", after=steps_of("checkpoints"), expected=[128]),
    "checkpoint.spaced_every": Counts("32", after=steps_of("spaced"), expected=[96, 128]),
    "milestones.every": Counts("32", after=lambda run, _: sorted(path.name for path in run.folder.glob("milestones/*")),
                               expected=["128", "96"]),
    "checkpoint.best_by": Counts("rating", after=lambda run, _: (run.folder / "best").exists(), expected=True, base="rated"),
    "checkpoint.best_window": Counts("3", lambda learner: learner.recent.episodes.maxlen, 3),
    "rating.every": Counts("64", after=games(lambda game: game.step), expected=[128], base="rated"),
    "rating.panel": Counts("[chaser, idle]", after=games(lambda game: {game.blue, game.orange} >= {"idle"}),
                           expected=[False, True], base="rated"),
    "rating.size": Counts("2v2", after=games(lambda game: game.size), expected=[2], base="rated with places"),
    "rating.snapshots": Counts("false", after=lambda run, _: sum("@" in game.blue and "@" in game.orange for game in
                                                                 games_of(run)[-4:]), expected=0, base="rated league"),
    "rating.games": Counts("4", after=lambda run, _: len(games_of(run)), expected=4 + 16, base="rated"),
    "rating.seconds": Counts("0.8", after=games(lambda game: game.seconds), expected=[0.8], base="rated"),
    "rating.reference": Counts("[]", lambda learner: len(panel_of(learner).reference.rows), 0, "rated"),
    "rating.simulator": Counts("rocketsim", after=games(lambda game: game.simulator), expected=["rocketsim"], base="rated"),
    "rating.most": Counts("0.5", lambda learner: panel_of(learner).budget.most, 0.5, "rated"),
    "phases": Counts("[{name: A, set: {ppo.clip_range: 0.01}}]", lambda learner: learner.coefficients["clip_range"], 0.01),
    **{f"debug.{switch}": Counts("true", after=debug_reports, expected=[f"{switch}.txt"]) for switch in SWITCHES},
    "debug.all": Counts("true", after=debug_reports, expected=sorted(f"{switch}.txt" for switch in SWITCHES)),
    "debug.iterations": Counts("1", after=lambda run, _: "the first iteration (step 96)" in
                               (run.folder / "debug/learning.txt").read_text(encoding="utf-8"), expected=True, base="debugged"),
    "recordings.watched": Counts("1", lambda learner: highlights_of(learner).config.watched, 1, "rocket"),
    "recordings.keep": Counts("2", lambda learner: highlights_of(learner).shelf.each, 2, "rocket"),
    "report.console": Counts("plain", after=lambda run, _: "128/128 steps" in run.output, expected=True),
    "report.tensorboard": Counts("true", after=lambda run, _: (run.folder / "tb").exists(), expected=True),
    "report.wandb": Counts("true", after=projects, expected=["wavedash"]),
    "report.wandb_project": Counts("mine", after=projects, expected=["mine"], base="wandb"),
}


def leaf_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """All keys of a model that are values, not sections."""
    for name, field in model.model_fields.items():
        of_many = get_origin(field.annotation) in (dict, list)
        kinds = () if of_many else (field.annotation, *get_args(field.annotation))
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if section is None:
            yield prefix + name
        else:
            yield from leaf_keys(section, f"{prefix}{name}.")


def test_every_key_has_a_rule() -> None:
    assert sorted(KEYS) == sorted(leaf_keys(RunConfig)), "say of every key how it counts on resume, or that it is refused"
    assert set(FIXED) <= set(KEYS)


def test_what_decides_the_weights_is_what_a_resume_refuses() -> None:
    """`wavedash set` must not send anybody to a resume that will refuse the same."""
    said = {key for key in KEYS if decides_weights(key)} - set(FIXED)
    refused = {key for key, rule in KEYS.items() if isinstance(rule, Refused)} - set(FIXED)
    by_value = {"device", "env.rocket.observation", "env.walk.observation", "imitate.data"}
    assert refused - said == by_value, "whether these are refused depends on the value"
    assert said <= refused


# --- runs ------------------------------------------------------------------------------------------------------------

RECORD = "wandb.txt"
CLIENT = f"""
import os, pathlib

class Settings:
    def __init__(self, **settings): pass

class Run:
    def define_metric(self, name, step_metric): pass
    def log(self, point): pass
    def finish(self): pass

def init(**settings):
    with pathlib.Path(settings["dir"], {RECORD!r}).open("a") as file:
        print(settings["project"], file=file)
    return Run()
"""
"""It stands in for the client of Weights & Biases and writes the name of the project into the run folder."""


class Probe(Listener):
    """Looks at the learner when it begins, and keeps its metrics."""

    def __init__(self, looks: dict[str, Callable[[Learner], Any]], stop: bool) -> None:
        self.looks, self.stop_at_once = looks, stop
        self.seen: dict[str, Any] = {}
        self.metrics: list[dict[str, float]] = []

    def on_start(self, learner: Learner) -> None:
        self.seen = {key: look(learner) for key, look in self.looks.items()}
        if self.stop_at_once:
            learner.stop("seen")

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.metrics.append(dict(report.metrics))


class Runs:
    """Short runs of each base, each trained and resumed without a change when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self._unchanged, self._count = root, {}, 0

    def trained(self, base: str) -> Path:
        folder = self.root / base
        if not folder.exists():
            teacher = str(self.trained("pendulum")) if base == "distilled" else ""
            first = str(self.trained("cartpole")) if base == "held near" else ""
            data = str(self.demonstrations())
            os.environ["WAVEDASH_RUNS"] = str(folder)
            assert train(*(option.replace("TEACHER", teacher).replace("INIT", first).replace("DATA", data)
                           for option in BASES[base])) == 0
        return folder

    def demonstrations(self) -> Path:
        """Random play in CartPole: four episodes of forty samples."""
        path = self.root / "demonstrations.safetensors"
        if not path.exists():
            torch.manual_seed(0)
            write_samples(path, torch.randn(160, 4), torch.randint(2, (160,)), torch.arange(4).repeat_interleave(40))
        return path

    def unchanged(self, base: str) -> Resumed:
        if base not in self._unchanged:
            looks = {key: rule.seen for key, rule in KEYS.items()
                     if isinstance(rule, Counts) and rule.base == base and rule.seen is not None}
            self._unchanged[base] = self.resumed(base, GOAL, looks=looks)
        return self._unchanged[base]

    def resumed(self, base: str, *overrides: str, looks: dict[str, Callable[[Learner], Any]] | None = None,
                stop: bool = False) -> Resumed:
        self._count += 1
        folder = self.root / f"{base}-{self._count}"
        shutil.copytree(self.trained(base), folder)
        probe, output = Probe(looks or {}, stop), io.StringIO()
        with redirect_stdout(output):
            assert resume(str(folder), *overrides, trust=True, listeners=[probe]) == 0
        (run,) = folder.glob("*/*/")
        return Resumed(run, probe.seen, probe.metrics, output.getvalue())


def reported(run: Resumed) -> list[dict[str, float]]:
    """The metrics of each iteration after the resume, those of all listeners among them."""
    lines = map(json.loads, (run.folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["steps"] > 64]


def weights(run: Resumed) -> bytes:
    (final,) = (run.folder / "final").iterdir()
    return (final / "policy.safetensors").read_bytes()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    root, packages = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("packages")
    (packages / "wandb.py").write_text(CLIENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(packages))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(packages), str(Path(__file__).parents[2])]))
        patch.setenv("WAVEDASH_RUNS", "")
        yield Runs(root)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    threads.decide_threads(0)
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("key", KEYS)
def test_a_changed_setting_counts_or_is_refused_by_name(key: str, runs: Runs) -> None:
    rule = KEYS[key]
    if key == "env.walk.simulator":
        pytest.importorskip("mujoco_warp")
        pytest.importorskip("wavedash.walk.mujoco_warp")
    change = [f"{key}={rule.value}"] if key == "total_steps" else [GOAL, f"{key}={rule.value}"]
    if isinstance(rule, Refused):
        with pytest.raises(UserError, match=key.replace(".", r"\.")):
            runs.resumed(rule.base, *change)
    elif isinstance(rule, Fails):
        with pytest.raises(EnvError, match=rule.message):
            runs.resumed(rule.base, *change, rule.because)
    elif rule.seen is not None:
        assert runs.unchanged(rule.base).seen[key] != rule.expected, "the control: without the change it is something else"
        changed = runs.resumed(rule.base, *change, looks={key: rule.seen}, stop=key == "compile")
        assert changed.seen[key] == rule.expected
    elif rule.after is not None:
        unchanged = runs.unchanged(rule.base)
        assert rule.after(unchanged, unchanged) != rule.expected, "the control: without the change it is something else"
        assert rule.after(runs.resumed(rule.base, *change), unchanged) == rule.expected
    else:
        assert weights(runs.resumed(rule.base, *change)) != weights(runs.unchanged(rule.base))


def test_a_run_that_is_resumed_twice_alike_learns_the_same(runs: Runs) -> None:
    """This is the control of the comparisons of weights above: nothing differs unless a setting does."""
    for base in sorted({rule.base for rule in KEYS.values() if isinstance(rule, Counts) and not (rule.seen or rule.after)}):
        assert weights(runs.resumed(base, GOAL)) == weights(runs.unchanged(base)), base


def test_a_critic_that_gets_a_rate_of_its_own_keeps_its_moments(runs: Runs) -> None:
    """If the rate is the same as before, only roundings of another grouping of the weights differ."""
    rate = 1e-3  # that of the preset
    looks = {"rates": lambda learner: list(learner.updater.optimizer.rates)}
    plain = runs.resumed("cartpole", GOAL, looks=looks)
    own = runs.resumed("cartpole", GOAL, f"ppo.critic_learning_rate={rate}", looks=looks)
    assert plain.seen["rates"] == ["policy"] and own.seen["rates"] == ["actor", "critic"]
    one, two = (load(weights(run)) for run in (plain, own))
    for name, x in one.items():
        torch.testing.assert_close(two[name], x)
