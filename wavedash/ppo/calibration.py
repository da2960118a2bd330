"""Calibration is a rollout that only measures: the first update must not learn from data of unknown scale."""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from wavedash.ppo import faults

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


def calibrate(learner: Learner) -> None:
    """Collects a rollout, takes statistics from it, and drops it. Its steps and episodes are counted."""
    rollout, ranks, env = learner.buffer.next_slot(), learner.ranks, learner.env
    log.info("measuring the scale of observations and returns first: %s steps that nothing is learned from",
             f"{learner.config.ppo.rollout_steps * env.num_rows * ranks.size:,}")
    env.prepare()
    learner.collector.collect(rollout)
    episodes = learner.follow_episodes(rollout)
    learner.commit_normalizers()
    faulty = faults.may_be_faulty(rollout, env)
    counts = ranks.sum_(torch.stack([rollout.active.sum(), episodes.ended.sum(), faulty.long()]))
    steps, ended, faulty_ranks = counts.tolist()
    if faulty_ranks:
        messages = ranks.all_gather(faults.explain(rollout, episodes.length, env))
        learner.raise_fault(next((message for message in messages if message), None))
    learner.steps += steps
    learner.episodes += ended
    learner.buffer.clear()
