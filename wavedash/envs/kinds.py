"""Kinds of environments: configuration, preflight, training, evaluation, export and advice ask the registry here, so that none
of them names a kind.

A kind that ships with the package is asked for by an option of `EnvConfig` (`env.id`, `env.factory`, `env.rocket`). To add one,
write the option there, a subclass of `Kind`, and a line of `register` below. The class is imported when it is first asked for,
and its file must import without torch, because configurations are checked before torch is loaded.

A kind of one's own needs no option: `env.factory` names its class by import path, and `env.kwargs` holds its `Options`.
"""
from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wavedash.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    import gymnasium
    import torch
    from pydantic import BaseModel

    from wavedash.config import EnvConfig, RecordingsConfig
    from wavedash.envs.vec_env import VecEnv
    from wavedash.evaluate.measure import Measured
    from wavedash.findings import Findings
    from wavedash.imitate.demonstrations import Demonstrations
    from wavedash.loading import LoadedRun
    from wavedash.ppo.listener import Listener
    from wavedash.runs.folder import RunFolder
    from wavedash.trained_policy import TrainedPolicy


class Spaces(NamedTuple):
    """All of an environment that a policy is built from."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    rows: int = 1
    """Agents of one environment"""
    source_space: gymnasium.Space[Any] | None = None
    """As in `VecEnv`: the space of observations as the environment gives them, where discrete ones become one-hot"""


class Evaluation(NamedTuple):
    """How `wavedash eval` plays episodes of an environment, unless it is told otherwise."""

    episodes: int = 100
    """Episodes that are played. More: a narrower interval."""
    environments: int = 32
    """The most environments that are stepped side by side. More: faster where a step of many costs little more than one."""


class Kind(ABC):
    """What the rest of the package asks about environments of one kind."""

    about: str = "an environment"
    """What its option holds, for messages: "a Gymnasium id"."""
    plural: str = "environments"
    """What several of them are called, for messages"""
    code_options: Mapping[str, frozenset[str]] = MappingProxyType({})
    """Options of `EnvConfig` whose text names code to import, and the values of each that ship with this package. With any
    other value, the run folder of somebody else needs `--trust`."""
    meaning_options: tuple[str, ...] = ("id", "factory", "kwargs", "wrappers", "frame_stack")
    """Options of `EnvConfig` that say what the numbers of observations and actions mean. A policy that was trained with other
    values of them sees and does something else here, even if its networks fit."""
    eval_options: tuple[str, ...] = ("random",)
    """Options of `wavedash eval` that `evaluate` takes, beside those that all kinds take; others are refused"""
    Options: ClassVar[type[BaseModel] | None] = None
    """The options of a kind that `env.factory` names: a subclass of `wavedash.config.Section`, read from `env.kwargs` by
    `options`. A kind with an option of `EnvConfig` has its own there."""

    @abstractmethod
    def describe(self, config: EnvConfig) -> str:
        """The environment's name, for people."""

    def check(self, config: EnvConfig) -> None:
        """Raise ValueError where options do not go together. It must be quick and work without torch. Preflight and evaluation
        ask with another `count` and without workers; `count` is `AUTO` (0) while it says auto."""
        if config.wrappers:
            raise ValueError("env.wrappers is for environments of Gymnasium: leave it empty")
        if config.workers and not self.takes_workers(config):
            raise ValueError(f"env.workers={config.workers} is not for this environment, which steps all rows in one process: "
                             "leave it at 0")

    def check_opponents(self, config: EnvConfig) -> None:
        """Raise ValueError unless a run may configure `opponents`."""
        raise ValueError(f"opponents is for Rocket League tasks with two teams (env.rocket), not for {self.describe(config)}: "
                         "turn it off with opponents=null")

    def check_rating(self, config: EnvConfig, size: str | None = None) -> None:
        """Raise ValueError unless a run may configure `rating`, with this `rating.size`."""
        raise ValueError(f"rating is for Rocket League tasks with two teams (env.rocket), not for {self.describe(config)}: "
                         "turn it off with rating=null")

    @abstractmethod
    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        """`config.count` environments whose rows live on `device`, the run's. Called by `make_env`, which stacks frames."""

    def make_against(self, config: EnvConfig, device: torch.device, line_up: Callable[[Any], Any]) -> VecEnv:
        """Does what `make` does, with opponents: `line_up` makes the line-up of each shard from its task. It is called
        where `check_opponents` allows it."""
        raise NotImplementedError

    def live_keys(self, config: EnvConfig) -> list[tuple[str, ...]]:
        """The options below `env` that `change` can change while a run runs: ("rocket", "team_spirit"). Values inside of
        mappings count as options."""
        return []

    def change(self, env: VecEnv, config: EnvConfig) -> None:  # noqa: B027 (most kinds have nothing to change)
        """Gives a running environment the values that `live_keys` have in `config`; everything else is as it was. It is called
        between rollouts, and must leave alone what CUDA graphs were captured of: numbers that may change are tensors that are
        filled. Raises UserError if a value cannot be used; it is then called again with the values of before."""

    def united(self, config: EnvConfig, others: Sequence[EnvConfig]) -> EnvConfig:
        """The same environment with all parts that `others` have beside it, switched off, and room for what they need: a run
        with phases goes from one of them to the next by `change`. `others` are those of all phases, in their order."""
        return config

    def few(self, config: EnvConfig, count: int) -> EnvConfig:
        """The configuration to make only `count` environments of, to look at or to evaluate."""
        return config.model_copy(update={"count": count, "workers": 0})

    def measured(self, config: EnvConfig) -> list[str] | None:
        """The names of attempts whose success is measured, those of a lane as `lane/name`; None: that is not known before."""
        return None

    def spaces(self, config: EnvConfig, device: torch.device) -> Spaces:
        """The spaces that preflight builds a policy from: one environment is made, reset and stepped once."""
        import torch

        from wavedash.envs.make import make_env

        env = make_env(config.model_copy(update={"count": 1, "workers": 0}), device)
        try:
            env.reset(0)
            env.action_space.seed(0)
            first = getattr(env.action_space, "start", 0)
            action = (env.action_space.sample() - first)[None].repeat(env.num_rows, 0)
            env.step(torch.from_numpy(action).to(env.device))
            return Spaces(env.observation_space, env.action_space, env.num_rows, env.source_space)
        finally:
            env.close()

    def makes_one_for_spaces(self, config: EnvConfig) -> bool:
        """Whether `spaces` makes an environment, which is slow for some, and of which some allow no second one."""
        return type(self).spaces is Kind.spaces

    def memory(self, config: EnvConfig, device: torch.device) -> Mapping[str, int]:
        """The bytes of the device's memory that `config.count` environments take, by what they are for. Most environments are
        in the memory of the host, which is not estimated."""
        return {}

    def counts(self, config: EnvConfig, device: torch.device) -> tuple[int, int]:
        """The fewest and the most environments that `env.count: auto` may choose on this device; the most is a power of two.
        Here they are stepped one by one on the host: four for each core, so that none waits for work."""
        from wavedash.threads import cores

        return 8, max(8, min(256, 4 << (cores() - 1).bit_length()))

    def team_size(self, config: EnvConfig) -> int | None:
        """How many agents a team has, where there are teams: it decides which champion `champion` means."""
        return None

    def takes_workers(self, config: EnvConfig) -> bool:
        """Whether `make` starts `env.workers` processes. Where it does not, workers are refused and never advised."""
        return False

    def demonstrated(self, config: EnvConfig, states: Demonstrations) -> Demonstrations:
        """Turns recorded states of the kind `states` into observations and actions as `config` has them, of the kind `samples`.
        UserError: these are not states of this environment."""
        raise UserError(f"{states.path} holds game states of Rocket League, and {self.describe(config)} needs observations and "
                        "actions of its own: record them with wavedash imitate record RUN FILE")

    def evaluation(self, config: EnvConfig) -> Evaluation:
        """The defaults of `wavedash eval`."""
        return Evaluation()

    def evaluate(self, run: LoadedRun, episodes: int | None = None, deterministic: bool = True, seed: int = 1,
                 progress: Callable[[float], None] | None = None, **options: Any) -> Measured:
        """Measures a policy on its own device, as `wavedash eval` prints it: by default over episodes of its own task.
        `episodes`: how many; None: as many as `evaluation` says. `progress` is told the share that is done. `options`: those of
        `eval_options` that were given."""
        from wavedash.evaluate.own_task import play_own_task

        return play_own_task(run, episodes, deterministic, seed, **options)

    def files_beside_export(self, run: LoadedRun, description: Mapping[str, Any],
                            policies: Mapping[str, str]) -> Mapping[str, bytes]:
        """Returns what whoever deploys an exported policy needs beside it, by name of a file (`terrain/stairs.npy`).
        `description`: that of the exported model. `policies`: the names of its files, by format."""
        return {}

    def debug_report(self, switch: str, config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings | None:
        """Returns what only this kind can say for the report of a debug switch, such as `actions`, before the first iteration;
        None: nothing. It must make environments of its own (`config.count` is that of the run) and close them; `policy` plays
        there."""
        return None

    def film(self, run: LoadedRun, video: Path | None, **options: Any) -> str:
        """Shows how the policy of a run plays: writes a video, or without a file opens a window. Returns a line about it."""
        raise UserError(f"{self.describe(run.config.env)} cannot be filmed; Rocket League is shown by viewers of its own: "
                        "docs/watch.md")

    def highlights(self, config: RecordingsConfig, run: RunFolder) -> Listener | None:
        """The listener that keeps the best moments of a training as recordings; None: there is none."""
        return None

    def stage(self, config: EnvConfig) -> str:
        """The class that plays its runs on the page, `module:Class`: a `wavedash.web.stage.base.Stage`. It is named and not
        returned, because nothing but the page needs it. UserError: it cannot be shown."""
        raise UserError(f"{self.describe(config)} cannot be shown on the page yet: it shows runs of Rocket League (env.rocket) "
                        "and of walking robots (env.walk). Its curves are on the page all the same")

    def options(self, config: EnvConfig) -> Any:
        """`env.kwargs`, checked and read as `Options`; None where there are none. EnvError: names what is wrong with them."""
        from wavedash.envs.options import read_options

        return read_options(self.Options, config.kwargs)


_registered: dict[str, str] = {}


def register(option: str, path: str) -> None:
    """Register the kind that `env.<option>` asks for; `path` is that of its class, `module:Class`."""
    _registered[option] = path
    _kind.cache_clear()


def kind_of(config: EnvConfig) -> Kind:
    """The kind that a configuration asks for. ValueError unless it asks for exactly one."""
    asked = [option for option in _registered if getattr(config, option, None) is not None]
    if len(asked) != 1:
        *others, last = (f"env.{option} ({_kind(option).about})" for option in _registered)
        raise ValueError(f"set exactly one of {', '.join(others)} and {last}")
    return _kind(asked[0])


def code_options() -> dict[str, frozenset[str]]:
    """Returns `Kind.code_options` of all kinds together."""
    return {option: shipped for name in _registered for option, shipped in _kind(name).code_options.items()}


@cache
def _kind(option: str) -> Kind:
    module, _, name = _registered[option].partition(":")
    kind: Kind = getattr(importlib.import_module(module), name)()
    return kind


register("id", "wavedash.envs.gymnasium.kind:GymnasiumKind")
register("factory", "wavedash.envs.imported:ImportedKind")
register("rocket", "wavedash.rocket.kind:RocketKind")
register("walk", "wavedash.walk.kind:WalkKind")
