"""A run in several processes whose first process asks itself for changes after the second iteration.

    torchrun --nproc-per-node 2 -m tests.runs.asking_ranks
"""
from __future__ import annotations

import json
import sys
from typing import Any

from tests.runs.test_live import folder_of, post
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.training import train

SETTINGS = ("rocket-1v1", "total_steps=1280", "env.count=4", "env.groups=2", "ppo.rollout_steps=8", "ppo.epochs=2",
            "ppo.minibatch_size=16", "policy.hidden=[8]", "device=cpu", "threads=1", "report.console=off",
            "report.tensorboard=false", "checkpoint.every=1_000_000", "checkpoint.keep=100", "rating=null",
            "opponents={share: 0.5, slots: 1}",
            "env.rocket.rewards={touch: 1, velocity_player_to_ball: 0.1}")
REQUESTS = (("ppo.learning_rate=1e-2", "env.rocket.rewards.velocity_player_to_ball=3"), ("ppo.clip=1",), ("pause",),
            ("milestone=both",), ("milestone=4",), ("continue", "save"), ("env.rocket.rewards.touch=many",))
AT = 3


class Asking(Listener):
    """Asks in the first process, and prints in each what its learner then has."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == AT and learner.ranks.rank == 0:
            for words in REQUESTS:
                post(folder_of(learner), *words)
        if report.iteration in (AT, AT + 1):
            print(json.dumps(["has", learner.ranks.rank, report.iteration, *self.look(learner)]), flush=True)

    def look(self, learner: Learner) -> list[Any]:
        return [learner.config.ppo.learning_rate, [task.rewards.weights for task in learner.env.tasks]]


if __name__ == "__main__":
    sys.exit(train(*SETTINGS, listeners=[Asking()]))
