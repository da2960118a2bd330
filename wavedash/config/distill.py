"""Options of distillation: a policy learns what another one, its teacher, does."""
from __future__ import annotations

from typing import Literal

from wavedash.config.section import Section


class DistillConfig(Section):
    """Learning from a teacher instead of from rewards (DAgger, Ross et al. 2011): the student acts, and the teacher says at
    every step what it would have done. The student sees `policy.actor_keys`; the teacher sees those keys of the environment's
    observation that it was trained with, so the environment gives the keys of both."""

    teacher: str
    """The policy to learn from: `champion`, a run, a checkpoint, or a folder with a policy, as for `init`. It needs the actions
    of this environment; networks, memory and normalisation are its own. A copy of it is kept in the run folder."""
    act: Literal["sample", "mean"] = "sample"
    """How the student acts while it learns. sample: it explores as in PPO, so that it also sees what its mistakes lead to.
    mean: it takes its likeliest action (the mean, if continuous), as the paper on walking by depth images does (Agarwal et al.
    2022). The deviation of continuous actions is not learned from a teacher: with sample, set `policy.initial_std` to about
    0.1."""
    critic: bool = False
    """Also train the critic on the student's returns, with `ppo.value_coef`, so that PPO can go on from a critic that knows
    them. Off: no critic is computed, which takes less time; PPO then begins with `ppo.critic_warmup`."""
    begin_as_teacher: bool = False
    """The student begins with the actor of its teacher: memory, hidden layers and head, which must be made alike, and encoders
    and statistics of what both see. What it alone sees counts for nothing at first. So it can do already what it needs no
    eyes for, and learns sooner what to see. Off: it begins with random weights."""
