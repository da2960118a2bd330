"""Every key of the configuration, changed when a run is resumed: it counts, or it is refused by its name.

What counts is looked for where it lives, never in the configuration: in a tensor, an object, or in what is learned next.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import gymnasium
import pytest
import torch
from pydantic import BaseModel

from wavedash import report, threads
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.rocket.constants import HITBOXES
from wavedash.runs.compatible import FIXED, check_changes
from wavedash.runs.find import find_run
from wavedash.runs.saver import Saver
from wavedash.runs.trust import run_config
from wavedash.training import _rank_states, restored, train

HERE = "tests.runs.test_resume_settings"
TINY = ("total_steps=64", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1")
BASES: dict[str, tuple[str, ...]] = {
    "cartpole": ("cartpole", *TINY),
    "decays": ("cartpole", *TINY, "ppo.schedule.kind=linear", "ppo.clip_schedule.kind=linear", "ppo.entropy_coef=0.05",
               "ppo.entropy_schedule.kind=linear"),
    "normalised": ("cartpole", *TINY, "ppo.normalize_obs=true", "ppo.normalize_reward=true"),
    "memory": ("cartpole-memory", *TINY, "policy.memory.sequence=8"),
    "gsde": ("pendulum", *TINY, "policy.std=gsde"),
    "factory": ("cartpole", *TINY, "env.id=null", f"env.factory={HERE}:cartpole"),
    "workers": ("cartpole", *TINY, "env.workers=2", "env.groups=1"),
    "rocket": ("rocket-1v1", *TINY, "env.count=2", "env.groups=1",
               "env.rocket.observation={advanced_obs_plus: {team_size: 2}}"),
    "hybrid": ("rocket-1v1", *TINY, "env.count=2", "env.groups=1", "env.rocket.reward_mode=hybrid"),
}


def cartpole(steps: int = 30) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", max_episode_steps=steps)


def short_cartpole() -> gymnasium.Env[Any, Any]:
    return cartpole(3)


class Counts(NamedTuple):
    """`value` is where it should be, which `seen` looks at; None: the next iteration is another one."""

    value: str
    seen: Callable[[Learner], Any] | None = None
    where: Any = None
    """What is seen there then"""
    base: str = "cartpole"


class Refused(NamedTuple):
    """By the name of the key."""

    value: str
    base: str = "cartpole"


def task(learner: Learner) -> Any:
    return learner.env.tasks[0]


def simulator(learner: Learner) -> Any:
    return learner.env._shards[0].simulator  # type: ignore[attr-defined]


def cars(learner: Learner) -> Any:
    return simulator(learner).state.cars


def weight_of(reward: str) -> Callable[[Learner], float]:
    """As graphs read it."""
    return lambda learner: round(task(learner).rewards._factors[task(learner).rewards.names.index(reward)].item(), 5)


def workers(learner: Learner) -> int:
    supervisor = getattr(learner.env, "_supervisor", None)
    return 0 if supervisor is None else len(supervisor.workers)


def timeouts(learner: Learner) -> Any:
    return learner.env._supervisor._timeouts  # type: ignore[attr-defined]


def limits(learner: Learner) -> dict[str, float]:
    """In ticks, of endings that have one."""
    return {name: float(getattr(ending, "limit", 0)) for name, ending in task(learner).endings.items()}


def longest_episode(learner: Learner) -> Any:
    env = learner.env._batch._envs[0]._env  # type: ignore[attr-defined]
    while not isinstance(env, gymnasium.wrappers.TimeLimit):
        env = env.env
    return env._max_episode_steps


def saver(learner: Learner) -> Any:
    return Saver(find_run(os.environ["WAVEDASH_RUNS"]).run, learner.config.checkpoint)


def listeners(learner: Learner) -> list[str]:
    return [type(listener).__name__ for listener in report.listeners(learner.config, os.environ["WAVEDASH_RUNS"])]


def ppo(name: str, value: str, where: Any, base: str = "cartpole") -> Counts:
    """What the update reads at every minibatch, or the learner at every rollout."""
    return Counts(value, lambda learner: getattr(learner.updater.config, name), where, base)


KEYS: dict[str, Counts | Refused] = {
    "name": Refused("other"),
    "seed": Refused("7"),
    "total_steps": Counts("512", lambda learner: learner.total_steps, 512),
    "device": Refused("cuda:99"),  # a device that is there counts; tests on a GPU resume on another one
    "threads": Counts("3", lambda _: threads.cores(), 3),
    "precision": Counts("bf16", lambda learner: learner.policy.precision, torch.bfloat16),
    "compile": Counts("true", lambda learner: type(learner.policy._evaluate_outputs).__name__, "Compiled"),
    "graphs": Counts("false", lambda learner: learner.updater.graphs, False),
    "deterministic": Counts("true", lambda _: torch.are_deterministic_algorithms_enabled(), True),
    "env.id": Counts("CartPole-v0", longest_episode, 200),
    "env.factory": Counts(f"{HERE}:short_cartpole", longest_episode, 3, "factory"),
    "env.kwargs": Counts("{max_episode_steps: 11}", longest_episode, 11),
    "env.wrappers": Counts("[{TimeLimit: {max_episode_steps: 7}}]", longest_episode, 7),
    "env.frame_stack": Refused("2"),
    "env.count": Counts("6", lambda learner: (learner.env.num_rows, learner.buffer.all.reward.shape[-1]), (6, 6)),
    "env.workers": Counts("2", workers, 2),
    "env.groups": Counts("2", lambda learner: len(learner.env.groups), 2, "workers"),
    "env.worker_timeout": Counts("77", lambda learner: 77.0 in timeouts(learner), True, "workers"),
    "env.rocket.simulator": Counts("rocketsim", lambda learner: type(simulator(learner)).__name__, "RocketSimSimulator",
                                   "rocket"),
    "env.rocket.blue": Counts("0", lambda learner: cars(learner).team.tolist(), [[1], [1]], "rocket"),
    "env.rocket.orange": Counts("0", lambda learner: cars(learner).team.tolist(), [[0], [0]], "rocket"),
    "env.rocket.hitbox": Counts("merc", lambda learner: {HITBOXES[i].name for i in cars(learner).hitbox.unique()}, {"merc"},
                                "rocket"),
    "env.rocket.observation": Refused("{advanced_obs_plus: {team_size: 2, frames: 2}}", "rocket"),
    "env.rocket.action": Counts("{lookup_table: {ticks: 4}}", lambda learner: task(learner).action.ticks, 4, "rocket"),
    "env.rocket.rewards": Counts("{goal: 20, speed: 3}", weight_of("goal"), 20.0, "rocket"),
    "env.rocket.reward_mode": Counts("sparse", weight_of("face_ball"), 0.0, "rocket"),
    "env.rocket.dense_scale": Counts("2", weight_of("face_ball"), 0.01, "hybrid"),
    "env.rocket.team_spirit": Counts("0.25", lambda learner: task(learner).rewards._team_spirit.item(), 0.25, "rocket"),
    "env.rocket.zero_sum": Counts("true", lambda learner: task(learner).rewards._zero_sum.item(), 1.0, "rocket"),
    "env.rocket.starts": Counts("{random: 0, turtle: 5}", lambda learner: task(learner).start.weights.tolist(), [0.0, 5.0],
                                "rocket"),
    "env.rocket.endings": Counts("{no_touch: {seconds: 3}}", limits, {"no_touch": 360.0}, "rocket"),
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
    "policy.orthogonal": Refused("false"),
    "policy.distribution": Refused("tanh"),
    "policy.std": Refused("fixed"),
    "policy.initial_std": Refused("0.5"),
    "policy.gsde.sample_every": Counts("2", lambda learner: learner.policy.config.gsde.sample_every, 2, "gsde"),
    "policy.gsde.expln": Refused("true", "gsde"),
    "policy.std_range": Refused("[0.2, 0.9]"),
    "ppo.rollout_steps": Counts("4", lambda learner: learner.buffer.all.reward.shape[1], 4),
    "ppo.epochs": Counts("3"),
    "ppo.minibatch_size": Counts("8"),
    "ppo.accumulate": ppo("accumulate", "2", 2),
    "ppo.buffer_rollouts": Counts("3", lambda learner: learner.buffer.capacity, 3),
    "ppo.learning_rate": Counts("0.02"),
    "ppo.critic_learning_rate": Counts("0.02"),
    "ppo.schedule.kind": Counts("constant", lambda learner: learner.schedule.multiplier, 1.0, "decays"),
    "ppo.schedule.floor": Counts("0.5", None, None, "decays"),
    "ppo.schedule.target_kl": Counts("0.5", lambda learner: learner.schedule.config.target_kl, 0.5),
    "ppo.schedule.factor": Counts("3", lambda learner: learner.schedule.config.factor, 3.0),
    "ppo.schedule.bounds": Counts("[0.5, 2]", lambda learner: learner.schedule.config.bounds, (0.5, 2.0)),
    "ppo.weight_decay": Counts("5"),
    "ppo.adam_betas": Counts("[0.5, 0.9]"),
    "ppo.adam_eps": Counts("0.1"),
    "ppo.gamma": Counts("0.5"),
    "ppo.gae_lambda": Counts("0.3"),
    "ppo.clip_range": Counts("0.00001"),
    "ppo.clip_schedule.kind": Counts("constant", lambda learner: learner.decays["clip_range"].multiplier, 1.0, "decays"),
    "ppo.clip_schedule.floor": Counts("0.9", lambda learner: round(learner.decays["clip_range"].multiplier, 4), 0.975,
                                      "decays"),
    "ppo.value_clip": Counts("0.00001"),
    "ppo.value_coef": Counts("3"),
    "ppo.entropy_coef": Counts("1"),
    "ppo.entropy_schedule.kind": Counts("constant", lambda learner: learner.decays["entropy_coef"].multiplier, 1.0, "decays"),
    "ppo.entropy_schedule.floor": Counts("0.9", lambda learner: round(learner.decays["entropy_coef"].multiplier, 4), 0.975,
                                         "decays"),
    "ppo.normalize_advantage": Counts("off"),
    "ppo.max_grad_norm": Counts("0.001"),
    "ppo.target_kl": Counts("0.0000001"),
    "ppo.normalize_obs": Refused("true"),
    "ppo.obs_clip": Counts("0.01", None, None, "normalised"),
    "ppo.normalize_reward": Counts("true", lambda learner: learner.return_moments is not None, True),
    "ppo.reward_clip": Counts("0.01", None, None, "normalised"),
    "checkpoint.every": Counts("1234", lambda learner: saver(learner)._checkpoints.every, 1234),
    "checkpoint.keep": Counts("2", lambda learner: saver(learner)._checkpoints.store.keep, 2),
    "checkpoint.spaced_every": Counts("99", lambda learner: saver(learner)._regular[-1].every, 99),
    "checkpoint.best_window": Counts("3", lambda learner: learner.recent.episodes.maxlen, 3),
    "report.console": Counts("plain", lambda learner: "ConsoleView" in listeners(learner), True),
    "report.tensorboard": Counts("true", lambda learner: "TensorBoard" in listeners(learner), True),
    "report.wandb": (Counts("true", lambda learner: "Wandb" in listeners(learner), True) if find_spec("wandb") else
                     Refused("true")),
    "report.wandb_project": Counts("mine", lambda learner: learner.config.report.wandb_project, "mine"),
}


def leaf_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """All keys of a model that are values, not sections."""
    for name, field in model.model_fields.items():
        kinds = () if get_origin(field.annotation) is dict else (field.annotation, *get_args(field.annotation))
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if section is None:
            yield prefix + name
        else:
            yield from leaf_keys(section, f"{prefix}{name}.")


def test_every_key_is_looked_at() -> None:
    assert sorted(KEYS) == sorted(leaf_keys(RunConfig)), "say of every key how it counts on resume, or that it is refused"
    assert set(FIXED) <= set(KEYS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """One short run of each base, trained when it is first asked for."""
    root = tmp_path_factory.mktemp("runs")

    def run(base: str) -> Path:
        folder = root / base
        if not folder.exists():
            os.environ["WAVEDASH_RUNS"] = str(folder)
            assert train(*BASES[base]) == 0
        return folder

    return run


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WAVEDASH_RUNS", "")
    decided = threads._threads, threads._processes
    yield
    threads.decide_threads(*decided)
    torch.use_deterministic_algorithms(False)


@contextmanager
def resumed(folder: Path, *overrides: str) -> Iterator[Learner]:
    """As `wavedash resume` goes on with it, before the next iteration."""
    os.environ["WAVEDASH_RUNS"] = str(folder)
    run, checkpoint = found = find_run(folder)
    config = run_config(run.config, overrides, trust=True)
    check_changes(load_config(str(run.config)), config)
    (part,) = _rank_states(run, checkpoint, config, 1)
    with restored(part, found=found) as learner:
        report.listeners(config, run.path)
        yield learner


def learned_next(folder: Path, *overrides: str) -> bytes:
    with resumed(folder, "total_steps=256", *overrides) as learner:
        before = [x.clone() for x in learner.policy.state_dict().values()]
        learner.start()
        learner.iterate()
        learner.iterate()
        after = list(learner.policy.state_dict().values())
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True)), "something is learned"
        return b"".join(x.numpy().tobytes() for x in after)


@pytest.mark.parametrize("key", KEYS)
def test_a_changed_setting_counts_or_is_refused_by_name(key: str, runs: Callable[[str], Path]) -> None:
    rule = KEYS[key]
    folder = runs(rule.base)
    more = [] if key == "total_steps" else ["total_steps=256"]
    if isinstance(rule, Refused):
        with pytest.raises(UserError, match=key.replace(".", r"\.")), resumed(folder, *more, f"{key}={rule.value}"):
            pass
    elif rule.seen is None:
        assert learned_next(folder, f"{key}={rule.value}") != learned_next(folder)
    else:
        with resumed(folder, "total_steps=256") as learner:
            assert rule.seen(learner) != rule.where, "the control: it was something else before"
        with resumed(folder, *more, f"{key}={rule.value}") as learner:
            assert rule.seen(learner) == rule.where
            learner.start()
            if key not in ("compile", "env.rocket.simulator"):
                learner.iterate()  # and the run goes on with it


def test_a_run_that_is_resumed_twice_alike_learns_the_same(runs: Callable[[str], Path]) -> None:
    """The control of the comparisons above: nothing differs unless a setting does."""
    for base in ("cartpole", "decays", "normalised"):
        assert learned_next(runs(base)) == learned_next(runs(base))


def test_a_critic_that_gets_a_rate_of_its_own_keeps_its_moments(runs: Callable[[str], Path]) -> None:
    """Of the same height as before, it changes nothing but the roundings of another grouping."""
    with resumed(runs("cartpole"), "total_steps=256") as one:
        rate = one.config.ppo.learning_rate
        assert [id(p) for p in one.policy.parameters()] == [
            id(p) for part in (one.policy.actor, one.policy.critic) for p in part.parameters()], "the order of the moments"
        one.start()
        one.iterate()
    with resumed(runs("cartpole"), "total_steps=256", f"ppo.critic_learning_rate={rate}") as two:
        assert list(two.updater.optimizer.rates) == ["actor", "critic"]
        two.start()
        two.iterate()
    for name, x in two.policy.state_dict().items():
        torch.testing.assert_close(x, one.policy.state_dict()[name])
