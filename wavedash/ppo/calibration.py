"""One rollout that only measures: the first update must not learn from observations and rewards of unknown scale."""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from wavedash.ppo import faults

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


def calibrate(learner: Learner) -> None:
    """Its steps and episodes are counted, and its rollout is forgotten."""
    rollout, ranks, env = learner.buffer.next_slot(), learner.ranks, learner.env
    log.info("measuring the scale of observations and returns first: %s steps that nothing is learned from",
             f"{learner.config.ppo.rollout_steps * env.num_rows * ranks.size:,}")
    env.prepare()
    learner.collector.collect(rollout)
    followed = learner.follow_episodes(rollout)
    learner.commit_normalizers()
    wrong = faults.suspicion(rollout, env)
    counts = ranks.sum_(torch.stack([rollout.active.sum(), followed.ended.sum(), wrong.long()]))
    steps, episodes, wrong_ones = counts.tolist()
    if wrong_ones:
        told = ranks.all_gather(faults.explain(rollout, followed.length, env))
        learner.refuse(next((words for words in told if words), None))
    learner.steps += steps
    learner.episodes += episodes
    learner.buffer.clear()
