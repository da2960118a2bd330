"""Where a teacher comes from: it is found as `init` finds policies, and copied into `teacher/` of the run folder."""
from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from wavedash.config import RunConfig
from wavedash.distill.begin import check_alike
from wavedash.distill.teacher import check_fits
from wavedash.envs.kinds import Spaces
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.heads import GaussianHead
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.policy_copy import FoundPolicy, PolicyCopy, find_policy

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

FOLDER = "teacher"
LOUD = 0.5
"""A deviation, in units where the action range is [-1, 1], with which a student that samples does little of what it means to"""


def find_teacher(config: RunConfig, run: Path | None = None, ranks: Ranks = ALONE, trust: bool = False) -> FoundPolicy | None:
    """Reads the teacher that a configuration names; in a run that is resumed, the copy in its folder `run`. The first rank
    reads it for all. RunError or CheckpointError: it cannot be read. None: the run has no teacher."""
    if config.distill is None:
        return None
    copied, asked = None if run is None else run / FOLDER, config.distill.teacher
    return ranks.shared(find_policy(config, "distill.teacher", asked, copied, trust) if ranks.rank == 0 else None)


def check_teacher(config: RunConfig, spaces: Spaces, student: ActorCritic) -> None:
    """Raises UserError if the teacher of a run cannot be found, cannot teach in this environment, or if the student is to begin
    as a teacher that it is not like."""
    if (teacher := find_teacher(config)) is not None and config.distill is not None:
        check_fits(teacher.policy, spaces, teacher.asked)
        if config.distill.begin_as_teacher:
            check_alike(student, teacher.policy, teacher.asked)


class TeacherCopy(PolicyCopy):
    """Keeps the teacher in the folder of the run."""

    saved_as, folder = "distill", FOLDER

    def on_start(self, learner: Learner) -> None:
        super().on_start(learner)
        if self.run is None:
            return
        teacher = self.found
        sees, student = (policy.trunks["actor"].encoders.keys for policy in (teacher.policy, learner.policy))
        log.info("learning from %s after %s steps, which sees %s; the student sees %s", teacher.asked, f"{teacher.step:,}",
                 ", ".join(sees), ", ".join(student))
        if learner.config.distill is not None and learner.config.distill.begin_as_teacher and set(sees) <= set(student):
            log.warning("the student begins as its teacher, which sees nothing that the student does not see: there is nothing "
                        "to learn. Let distill.teacher be a policy that sees more")
        _warn_of_noise(learner)


def _warn_of_noise(learner: Learner) -> None:
    head, options = learner.policy.head, learner.config.distill
    if options is None or options.act != "sample" or not isinstance(head, GaussianHead) or head.gsde is not None:
        return
    if (std := float(head.log_std.detach().exp().max())) > LOUD:
        log.warning("the student samples its actions with a deviation of %.2g, where the range is 2 wide, and a teacher does "
                    "not change it: set policy.initial_std=0.1 in a new run, or distill.act=mean", std)
