"""torch.compile for real: the same numbers, new weights seen at once, and one warning where there is no compiler."""
from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.ppo.combinations import (
    CLOSE,
    ROWS,
    STEPS,
    Combination,
    Watched,
    differences,
    judged_and_gradient,
    learner_of,
    saved_and_loaded,
)
from tests.roundings import FUNCTION, assert_within, gamma
from wavedash.policy.compiled import Compiled
from wavedash.ppo.learner import Learner

pytestmark = pytest.mark.slow

CASES = [Combination("none", "discrete", True, True, "bf16"), Combination("none", "tanh", False, False, "fp32")]
"""There are two, because compiling takes ten seconds and more; tests/ppo/test_cuda.py has more. Memory is not compiled."""
NO_CONVOLUTION = {"encoders": {"camera": {"kind": "flat"}}}
"""A camera that is flattened: convolutions take longest to compile."""
NO_VECTORS = platform.machine() in ("x86_64", "AMD64") and torch.backends.cpu.get_cpu_capability() == "DEFAULT"
"""Torch 2.13 writes vector code also for a CPU without AVX2, which no compiler accepts; the policy then runs uncompiled."""
needs_compiler = pytest.mark.skipif(NO_VECTORS or not any(map(shutil.which, ("g++", "clang++", "cl"))),
                                    reason="needs a C++ compiler, and a CPU that torch can compile for")


def compiling(case: Combination, started: bool = True) -> Learner:
    """A learner that compiles its policy, with one minibatch size only: another one would be compiled again."""
    policy = NO_CONVOLUTION if case.senses else None
    return learner_of(case, started, policy=policy, ppo={"minibatch_size": 10**6}, compile=True)


class Run(Watched):
    """Two iterations; the state between them, read back from disk."""

    def __init__(self, case: Combination, folder: Path):
        from torch._dynamo.utils import counters  # here, because it imports the whole compiler, for seconds

        graphs = counters["stats"]["unique_graphs"]
        super().__init__(compiling(case))
        self.learner.iterate()
        self.state = saved_and_loaded(self.learner, folder)
        self.metrics = self.learner.iterate().metrics
        self.new_graphs = counters["stats"]["unique_graphs"] - graphs


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def run(case, tmp_path_factory):
    return Run(case, tmp_path_factory.mktemp("checkpoints"))


@needs_compiler
def test_the_ratio_is_one_although_acting_is_not_compiled(run):
    compiled = run.learner.policy._evaluate_outputs
    assert isinstance(compiled, Compiled) and compiled.compiled is not None
    assert run.new_graphs == 1, "compiled once, in one piece"
    assert max(x.ratio for x in run.before) < CLOSE and max(x.value for x in run.before) < CLOSE
    assert min(x.ratio for x in run.after) > 100 * CLOSE


@needs_compiler
def test_a_resumed_run_is_the_run_that_never_stopped(run, case):
    second = compiling(case, started=False)
    second.load_state(*run.state)
    second.start()
    assert second.iterate().metrics == run.metrics
    assert differences(run.learner, second) == set()


@needs_compiler
def test_new_weights_are_seen_at_once(run, case):
    """They are seen after an optimiser's step, which writes into them, and after other weights were loaded."""
    learner = run.learner
    old_weights = {name: x.clone() for name, x in learner.policy.state_dict().items()}
    seen = [judged_and_gradient(learner, compiled=True)]
    learner.updater.optimizer.step()
    seen.append(judged_and_gradient(learner, compiled=True))
    # In bf16 every layer rounds its result, five times in all; in full precision only the order of sums differs.
    close = gamma(5, torch.bfloat16) if case.precision == "bf16" else gamma(ROWS * STEPS + 2 * 8 + 5 * FUNCTION)
    for said, expected in zip(seen[-1], judged_and_gradient(learner, compiled=False), strict=True):
        assert_within(said, expected, close * (expected.abs() + expected.abs().max()))
    learner.policy.load_state_dict(old_weights)
    seen.append(judged_and_gradient(learner, compiled=True))
    assert all(torch.equal(a, b) for a, b in zip(seen[0], seen[2], strict=True)), "the same weights give the same outputs"
    assert (seen[0][0] - seen[1][0]).abs().max() > 1e-3, "other weights give other outputs"


WITHOUT_COMPILER = """
import logging, torch
from tests.ppo.combinations import Combination, differences, learner_of
logging.basicConfig(format="%(levelname)s %(message)s")
case = Combination("none", "discrete", True, False, "bf16")
learner, plain = (learner_of(case, compile=True) for _ in range(2))
plain.policy._evaluate_outputs.compiled = None
for _ in range(2):
    assert learner.iterate().metrics == plain.iterate().metrics
assert learner.policy._evaluate_outputs.compiled is None and differences(learner, plain) == set()
"""


def test_without_a_compiler_one_warning_and_the_same_run_as_it_is(tmp_path):
    hidden = {**os.environ, "PATH": str(tmp_path), "CXX": "no-such-compiler", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILER], cwd=root, capture_output=True, text=True, timeout=250,
                          env={**hidden, "PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 1 and "the policy cannot be compiled and runs uncompiled: " in warnings[0]
