"""Each slot of the buffer has a CUDA graph of its own, and the metrics of an iteration are those of its slot.

On a GPU: `test_cuda.py`. Here a stand-in does what a replay does: it writes to the tensors that were made at the capture, and
leaves all that Python remembers as it was.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.envs.vec_env import Step
from wavedash.ppo.collector import Counted
from wavedash.ppo.episodes import RolloutEpisodes
from wavedash.ppo.learner import Learner

SLOTS = 3
STEPS, ROWS = 16, 32


class Dated(SyntheticEnv):
    """Its metrics and its successes tell in which iteration they were measured."""

    def __init__(self, device: str) -> None:
        super().__init__(ROWS, device, features=8, actions=5, episode=4)
        self.date = torch.zeros((), device=self.device)

    def step(self, action: Tensor) -> Step:
        date = self.date.expand(ROWS).clone()
        return super().step(action)._replace(metrics={"date": date, "episode/date": 10 * date, "episode/success": 100 * date})


def learner_with_slots(device: str) -> Learner:
    ppo = {"rollout_steps": STEPS, "minibatch_size": SLOTS * STEPS * ROWS, "epochs": 1, "buffer_rollouts": SLOTS}
    return learner_over(Dated(device), run_config(ppo))


def assert_metrics_are_those_of_each_iteration(learner: Learner, iterations: int) -> None:
    assert isinstance(learner.env, Dated)
    for date in range(1, iterations + 1):
        learner.env.date.fill_(date)
        report = learner.iterate()
        assert report.metrics["env/date"] == date and report.metrics["env/episode/date"] == 10 * date
        assert learner.recent.episodes[-1].success == 100 * date, "episodes have ended in every iteration"


class Replayed:
    """Stands in for `CapturedCall`."""

    graph = "captured"

    def __init__(self, learner: Learner, body: Callable[[], tuple[RolloutEpisodes, Counted]]) -> None:
        self.learner, self.body = learner, body
        self.result: tuple[RolloutEpisodes, Counted] | None = None

    def __call__(self) -> tuple[RolloutEpisodes, Counted]:
        if self.result is None:
            self.result = self.body()
            return self.result
        remembered = self.learner.collector.counted
        episodes, counted = self.body()
        self.learner.collector.counted = remembered
        for written, new in zip(self._tensors(*self.result), self._tensors(episodes, counted), strict=True):
            written.copy_(new)
        return self.result

    @staticmethod
    def _tensors(episodes: RolloutEpisodes, counted: Counted) -> Sequence[Tensor]:
        assert counted.success is not None
        return [*episodes, *counted.sums.values(), counted.success]


def test_metrics_are_of_the_slot_that_was_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_with_slots("cpu")
    monkeypatch.setattr(Learner, "captures_collection", True)
    monkeypatch.setattr("wavedash.ppo.learner.CapturedCall", lambda body, *_: Replayed(learner, body))
    assert_metrics_are_those_of_each_iteration(learner, 3 * SLOTS)
    assert len(learner._graphs) == SLOTS
