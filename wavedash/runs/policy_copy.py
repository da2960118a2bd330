"""Policies that a run needs beside its own: a teacher, a prior. They are found as `init` finds policies, and copied into the
run folder.

A run that is resumed goes on with the copy, whatever has happened to the original since, on any machine. The checkpoint holds
the checksum of the policy, so that a run never goes on with another one. Only data is read, no code runs: it needs no trust.
"""
from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.listener import Listener
from wavedash.runs.content import read_policy
from wavedash.runs.find import resolve_policy
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.plain import to_json
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.store import tensor_bytes
from wavedash.runs.trust import UntrustedError, run_config

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner


class FoundPolicy(NamedTuple):
    """A policy as it was read, from its own folder or from the copy in the run folder."""

    asked: str
    path: Path
    step: int
    policy: ActorCritic
    fingerprint: dict[str, Any]
    config: RunConfig | None
    """What it was trained with; None: that cannot be read here"""
    trusted: bool
    """Whether code that its configuration names may run, were it to play in its own environment"""

    @property
    def sha256(self) -> str:
        """The checksum of weights, spaces and networks."""
        described = to_json(self.fingerprint).encode()
        return hashlib.sha256(tensor_bytes("policy", self.policy.state_dict()) + described).hexdigest()


def find_policy(config: RunConfig, option: str, asked: str, copied: Path | None, trust: bool) -> FoundPolicy:
    """Reads the policy that an option names: from the folder `copied`, if it is there. RunError or CheckpointError: it cannot
    be read."""
    copy = None if copied is None else PolicyFolder(copied)
    if copy is not None and copy.path.is_dir():
        source: Any = copy
    else:
        try:
            source = resolve_policy(asked, kind_of(config.env).team_size(config.env))
        except RunError as error:
            lost = "" if copy is None else (f"{copy.path}, the copy of the {copy.path.name}, is gone: copy it again from where "
                                            "the run came. The original is not there either: ")
            raise RunError(f"{lost}{option}={asked}: {error}") from error
    policy, _ = read_policy(source)
    theirs, trusted = _configuration(source.run_config, trust)
    return FoundPolicy(asked, source.path, source.step, policy, source.load([])[1]["fingerprint"], theirs, trusted)


def _configuration(file: Path, trust: bool) -> tuple[RunConfig | None, bool]:
    """Returns what a policy was trained with, and whether its code is trusted. None: it was copied without its configuration,
    or that cannot be read here. Reading it runs nothing."""
    try:
        return run_config(file, trust=trust), True
    except UntrustedError:
        return load_config(str(file)), False
    except UserError:
        return None, False


class PolicyCopy(Listener):
    """Copies a policy into the folder of the run, and sees to it that the run goes on with the one that it began with."""

    folder: str
    """What the policy is to the run, and its folder there"""

    def __init__(self, found: FoundPolicy) -> None:
        self.found = found
        self.run: RunFolder | None = None
        self._sha256 = found.sha256
        self._saved: str | None = None

    def state_dict(self) -> dict[str, Any]:
        return {self.folder: self._sha256}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = str(state[self.folder])

    def on_start(self, learner: Learner) -> None:
        found = self.found
        if self._saved is not None and self._saved != self._sha256:
            raise UserError(f"{found.path} is not the {self.folder} that this run began with: its SHA-256 is not the one in "
                            "the checkpoint. Copy the folder again from where the run came, or resume from another checkpoint")
        if self.run is not None and not (self.run.path / self.folder).exists():
            PolicyFolder.write(self.run.path / self.folder, _to_play(found.config), found.policy.state_dict(),
                               {"steps": found.step, "fingerprint": found.fingerprint}, signed=found.trusted)


def _to_play(config: RunConfig | None) -> RunConfig | None:
    """Drops from whom a policy has learned: it plays without them, and code named there must not need trust."""
    alone = {"opponents": None, "distill": None, "imitate": None, "prior": None}
    return None if config is None else config.model_copy(update=alone)
