"""Where a teacher comes from: it is found as `init` finds policies, and copied into `teacher/` of the run folder.

A run that is resumed learns from the copy, whatever has happened to the original since, on any machine. The checkpoint holds
the checksum of the teacher, so that a run never goes on with another one. Only data is read, no code runs: a teacher needs no
trust.
"""
from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.distill.teacher import check_fits
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.heads import GaussianHead
from wavedash.ppo.listener import Listener
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.content import read_policy
from wavedash.runs.find import resolve_policy
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.plain import to_json
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.store import tensor_bytes
from wavedash.runs.trust import UntrustedError, run_config

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

FOLDER = "teacher"
LOUD = 0.5
"""A deviation, in units where the action range is [-1, 1], with which a student that samples does little of what it means to"""


class FoundTeacher(NamedTuple):
    """A teacher as it was read, from its own folder or from the copy in the run folder."""

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


def find_teacher(config: RunConfig, run: Path | None = None, ranks: Ranks = ALONE, trust: bool = False) -> FoundTeacher | None:
    """Reads the teacher that a configuration names; in a run that is resumed, the copy in its folder `run`. The first rank
    reads it for all. RunError or CheckpointError: it cannot be read. None: the run has no teacher."""
    if config.distill is None:
        return None
    return ranks.shared(_read(config, config.distill.teacher, run, trust) if ranks.rank == 0 else None)


def _read(config: RunConfig, asked: str, run: Path | None, trust: bool) -> FoundTeacher:
    copy = None if run is None else PolicyFolder(run / FOLDER)
    if copy is not None and copy.path.is_dir():
        source: Any = copy
    else:
        try:
            source = resolve_policy(asked, kind_of(config.env).team_size(config.env))
        except RunError as error:
            lost = "" if copy is None else (f"{copy.path}, the copy of the teacher, is gone: copy it again from where the run "
                                            "came. The original is not there either: ")
            raise RunError(f"{lost}distill.teacher={asked}: {error}") from error
    policy, _ = read_policy(source)
    theirs, trusted = _configuration(source.run_config, trust)
    return FoundTeacher(asked, source.path, source.step, policy, source.load([])[1]["fingerprint"], theirs, trusted)


def _configuration(file: Path, trust: bool) -> tuple[RunConfig | None, bool]:
    """Returns what a policy was trained with, and whether its code is trusted. None: it was copied without its configuration,
    or that cannot be read here. Reading it runs nothing."""
    try:
        return run_config(file, trust=trust), True
    except UntrustedError:
        return load_config(str(file)), False
    except UserError:
        return None, False


def check_teacher(config: RunConfig, spaces: Spaces) -> None:
    """Raises UserError if the teacher of a run cannot be found, or cannot teach in this environment."""
    if (teacher := find_teacher(config)) is not None:
        check_fits(teacher.policy, spaces, teacher.asked)


class TeacherCopy(Listener):
    """Copies the teacher into the folder of the run, and sees to it that the run goes on with the one that it began with."""

    saved_as = "distill"

    def __init__(self, teacher: FoundTeacher) -> None:
        self.teacher = teacher
        self.run: RunFolder | None = None
        self._sha256 = teacher.sha256
        self._saved: str | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"teacher": self._sha256}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = str(state["teacher"])

    def on_start(self, learner: Learner) -> None:
        teacher = self.teacher
        if self._saved is not None and self._saved != self._sha256:
            raise UserError(f"{teacher.path} is not the teacher that this run began with: its SHA-256 is not the one in the "
                            "checkpoint. Copy the folder again from where the run came, or resume from another checkpoint")
        if self.run is None:
            return
        if not (self.run.path / FOLDER).exists():
            PolicyFolder.write(self.run.path / FOLDER, _to_play(teacher.config), teacher.policy.state_dict(),
                               {"steps": teacher.step, "fingerprint": teacher.fingerprint}, signed=teacher.trusted)
        sees, student = (", ".join(policy.trunks["actor"].encoders.keys) for policy in (teacher.policy, learner.policy))
        log.info("learning from %s after %s steps, which sees %s; the student sees %s", teacher.asked, f"{teacher.step:,}",
                 sees, student)
        _warn_of_noise(learner)


def _to_play(config: RunConfig | None) -> RunConfig | None:
    """Drops from whom a policy has learned: it plays without them, and code named there must not need trust."""
    return None if config is None else config.model_copy(update={"opponents": None, "distill": None})


def _warn_of_noise(learner: Learner) -> None:
    head, options = learner.policy.head, learner.config.distill
    if options is None or options.act != "sample" or not isinstance(head, GaussianHead) or head.gsde is not None:
        return
    if (std := float(head.log_std.detach().exp().max())) > LOUD:
        log.warning("the student samples its actions with a deviation of %.2g, where the range is 2 wide, and a teacher does "
                    "not change it: set policy.initial_std=0.1 in a new run, or distill.act=mean", std)
