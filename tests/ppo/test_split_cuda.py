"""On a GPU a minibatch in parts is captured in one graph, and memory that really runs out makes the parts smaller."""
from __future__ import annotations

import gc
import logging

import pytest
import torch

from tests.ppo.learners import learner_over, run_config
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.learner import Learner

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ITERATIONS = 2 * (WARM_UP + 1)
MINIBATCH = 32_768


def learner(hidden: int = 64, precision: str = "fp32", compiled: bool = False, **ppo: object) -> Learner:
    """It sees what every other one sees that iterates before another is made: SyntheticEnv draws from torch's own generator."""
    torch.manual_seed(0)
    settings = {"rollout_steps": 16, "minibatch_size": MINIBATCH, "epochs": 2, **ppo}
    config = run_config(settings, {"hidden": [hidden] * 3}, precision=precision, compile=compiled)
    return learner_over(SyntheticEnv(4096, "cuda"), config)


def captured(made: Learner) -> bool:
    steps = [step for _, step in made.updater._graphs.values()]
    return bool(steps) and all(isinstance(step, CapturedCall) and step.graph is not None for step in steps)


@pytest.mark.parametrize(("precision", "compiled"), [("fp32", False), ("bf16", False), ("fp16", False), ("bf16", True)])
def test_parts_are_captured_and_give_the_gradient_of_the_whole(precision, compiled):
    torch._dynamo.reset()
    metrics = []
    for most in (None, 5000):
        made = learner(precision=precision, compiled=compiled, microbatch_size=most, adam_eps=1.0)
        metrics.append([made.iterate().metrics for _ in range(ITERATIONS)])
        assert captured(made)
    for one, other in zip(*metrics, strict=True):
        assert one["loss/value"] == pytest.approx(other["loss/value"], rel=1e-2)
        assert one["optim/grad_norm"] == pytest.approx(other["optim/grad_norm"], rel=1e-2)
        assert other["optim/skipped"] == 0


@pytest.mark.parametrize("after_capture", [False, True])
def test_memory_that_runs_out_makes_the_parts_smaller_and_training_goes_on(after_capture, caplog):
    """What is left to torch is enough for a part of a minibatch, but not for a whole one: once at the first call, once when a
    graph is captured anew."""
    made = learner(hidden=1024)
    if after_capture:
        for _ in range(ITERATIONS):
            made.iterate()
        made.updater.forget_graphs()
    gc.collect()  # what earlier tests have left, which would give room later
    torch.cuda.empty_cache()
    activations = MINIBATCH * 1024 * 4 * 6  # two networks of three layers
    total = torch.cuda.mem_get_info()[1]
    room = torch.cuda.memory_reserved() + activations // 2
    torch.cuda.set_per_process_memory_fraction(room / total)
    try:
        with caplog.at_level(logging.WARNING):
            metrics = [made.iterate().metrics for _ in range(ITERATIONS)]
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert made.updater.split.fitting is not None and made.updater.split.fitting < MINIBATCH
    assert "ppo.microbatch_size=" in caplog.text and captured(made)
    told = learner(hidden=1024, microbatch_size=made.updater.split.fitting)
    for mine in metrics if not after_capture else ():
        theirs = told.iterate().metrics
        assert mine["loss/value"] == pytest.approx(theirs["loss/value"], rel=1e-3)
