"""`load_run(path)` loads a run in one call: configuration, environments, policy. `load_policy(path)` loads the policy alone.

A path names a run folder (its best checkpoint, else its newest), a folder of runs (its newest run), `runs/<name>/best`, a
checkpoint, or a folder with config.yaml, policy.safetensors and state.json. `champion` is the policy that comes with the
package.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch

from wavedash.config import EnvConfig, RunConfig
from wavedash.curriculum.plan import Plan
from wavedash.curriculum.state import saved_phase
from wavedash.envs.kinds import kind_of
from wavedash.envs.make import make_env
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.preflight import usable_device
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.content import read_policy
from wavedash.runs.find import resolve_policy
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.trust import run_config
from wavedash.threads import decide_threads, set_torch_threads
from wavedash.trained_policy import TrainedPolicy


@dataclass(frozen=True)
class LoadedRun:
    """The policy of a run, its configuration and its environments. Reading the policy runs no code. The configuration may name
    code: if the run is somebody else's and not trusted, `config` raises UntrustedError."""

    source: Checkpoint | PolicyFolder
    policy: TrainedPolicy
    trust: bool = False

    @property
    def path(self) -> Path:
        return self.source.path

    @cached_property
    def config(self) -> RunConfig:
        """The settings that counted when the policy was saved: those of its phase, in a run with phases."""
        config = run_config(self.source.run_config, trust=self.trust)
        plan, state = Plan(config), self.source.load([])[1] if config.phases else {}
        return plan.settings(saved_phase(state).among(plan.names), state.get("steps", 0))

    @property
    def device(self) -> torch.device:
        """The device that the run is configured for, or the CPU if this machine does not have it."""
        config = self.config
        try:
            return usable_device(config)
        except UserError:
            return torch.device("cpu")

    def to_run_device(self) -> LoadedRun:
        """Returns the same run with its policy on the run's device."""
        return replace(self, policy=self.policy.to(self.device))

    def make_env(self, count: int, env: EnvConfig | None = None) -> VecEnv:
        """Makes `count` of the run's environments, or of `env`, in this process and on the device of the policy. UserError:
        their spaces are not those of the policy."""
        decide_threads(self.config.threads)
        config = env or self.config.env
        made = make_env(kind_of(config).few(config, count), self.policy.device)
        try:
            self.check_spaces(made)
        except BaseException:
            made.close()
            raise
        set_torch_threads(made.num_rows, self.policy.policy.config)
        return made

    def check_spaces(self, env: VecEnv) -> None:
        """Raises UserError unless the environments have the spaces of the policy."""
        for what, its, here in (("observations", self.policy.policy.observation_space, env.observation_space),
                                ("actions", self.policy.policy.action_space, env.action_space)):
            if space_to_json(its) != space_to_json(here):
                raise UserError(f"the policy of {self.path} was trained with other {what} than this environment has: {its} "
                                f"there, {here} here. Use the config.yaml that it was trained with, or another checkpoint")


def load_run(path: str | Path, device: str | torch.device = "cpu", trust: bool = False, teams: int | None = None) -> LoadedRun:
    """Loads configuration, environments and policy of a run. With `trust`, code that a run of somebody else names may run.
    `teams` is how many cars a team has where the policy is to play: it decides which champion `champion` means."""
    source = resolve_policy(path, teams)
    policy, source_space = read_policy(source)
    return LoadedRun(source, TrainedPolicy(policy.to(device), source_space=source_space), trust)


def load_policy(path: str | Path, device: str | torch.device = "cpu") -> TrainedPolicy:
    """Loads the policy alone. Only data is read: no code runs."""
    return load_run(path, device).policy
