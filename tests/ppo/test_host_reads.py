"""One iteration reads the device once: another host sync would stall an accelerator at every step."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.ppo.combinations import MEMORIES, PRECISIONS, Combination, learner_of
from tests.ppo.learners import ACTIONS, learner_over, run_config
from tests.roundings import assert_within, gamma
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.vec_env import Step
from wavedash.policy.encoders import ConvEncoder
from wavedash.ppo.learner import Learner

READS = ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__float__", "__int__", "__index__", "__array__", "__iter__",
         "__contains__")
WAITING = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "unique", "_unique2", "allclose"}
"""Operations whose result must be known on the host, also when C++ calls them."""


class Watch(TorchDispatchMode):
    def __init__(self, counts: Counter):
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in WAITING:
            self.counts[name] += 1
        if name.startswith("index") and len(args) > 1 and isinstance(args[1], (list, tuple)):
            self.counts["boolean index"] += sum(isinstance(i, Tensor) and i.dtype == torch.bool for i in args[1])
        return func(*args, **(kwargs or {}))


@contextmanager
def watched_reads() -> Iterator[Counter]:
    counts: Counter = Counter()
    originals = {name: getattr(Tensor, name) for name in READS}

    def counting(name: str):
        def read(self, *args, **kwargs):
            # Shapes of host tensors may be iterated; device data may not be read.
            counts[name] += 1
            return originals[name](self, *args, **kwargs)
        return read

    try:
        for name in READS:
            setattr(Tensor, name, counting(name))
        with Watch(counts):
            yield counts
    finally:
        for name, original in originals.items():
            setattr(Tensor, name, original)
        counts += Counter()


def learner(env_type: type[TapeEnv], kind: str, **ppo) -> Learner:
    torch.manual_seed(0)
    shape = (24, 5)
    env = env_type(torch.randn(*shape, 3), torch.randn(shape), torch.rand(shape) < 0.1, torch.rand(shape) < 0.1,
                   torch.rand(shape) < 0.9, ACTIONS[kind])
    return as_on_a_gpu(learner_over(env, run_config({"rollout_steps": 8, "epochs": 2, "minibatch_size": 16, **ppo})))


def as_on_a_gpu(run: Learner) -> Learner:
    """The learner then avoids host syncs, as it does on a GPU."""
    run.collector.may_sync = False
    for part in run.policy.modules():
        if isinstance(part, ConvEncoder):
            part.may_sync = False
    return run


EVERYTHING = {"normalize_obs": True, "normalize_reward": True, "target_kl": 0.01, "buffer_rollouts": 2, "value_clip": 0.2,
              "accumulate": 2, "normalize_advantage": "minibatch", "schedule": {"kind": "kl"}}


class MeasuredEnv(TapeEnv):
    """It reports metrics of its own."""

    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        return step._replace(metrics={"speed": step.reward, "ball": step.reward.sum(), "episode/success": step.reward})


@pytest.mark.parametrize("ppo", [{}, EVERYTHING], ids=["plain", "everything"])
@pytest.mark.parametrize("kind", ACTIONS)
def test_an_iteration_reads_the_device_once(kind, ppo):
    run = learner(MeasuredEnv, kind, **ppo)
    for _ in range(3):
        with watched_reads() as counts:
            run.iterate()
        assert dict(counts) == {"tolist": 1}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_with_memory_pictures_masks_and_in_low_precision_too(memory, precision):
    run = as_on_a_gpu(learner_of(Combination(memory, "multi-discrete", True, True, precision), ppo=EVERYTHING))
    with watched_reads() as counts:
        run.iterate()
    assert dict(counts) == {"tolist": 1}


def test_with_state_dependent_exploration_too():
    run = as_on_a_gpu(learner_of(Combination("gru", "gsde", False, True, "bf16"), ppo={
        "clip_schedule": {"kind": "linear"}, "entropy_coef": 0.01, "entropy_schedule": {"kind": "cosine"}}))
    with watched_reads() as counts:
        run.iterate()
    assert dict(counts) == {"tolist": 1}


@pytest.mark.parametrize("memory", MEMORIES)
def test_last_observations_have_the_same_values_with_and_without_host_syncs(memory):
    syncing, free = (learner_of(Combination(memory, "multi-discrete", True, True, "fp32")) for _ in range(2))
    as_on_a_gpu(free)
    for _ in range(2):
        for run in (syncing, free):
            run.collector.collect(run.rollout)
        cut = syncing.rollout.truncated & syncing.rollout.active
        assert cut.any(), "an episode was truncated"
        assert torch.equal(cut, free.rollout.truncated & free.rollout.active)
        # Few rows or all are evaluated: sums over the inputs of layers, of at most 100 numbers below 10, differ in order.
        assert_within(syncing.rollout.final_value[cut], free.rollout.final_value[cut], gamma(100) * 10.0)
        assert (syncing.rollout.final_value[cut] != 0).all()


class NosyEnv(TapeEnv):
    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        if bool(step.terminated.any()):
            step.reward.clone()[step.terminated].sum().item()
        return step


def test_an_environment_that_reads_its_data_on_the_host_is_seen():
    run = learner(NosyEnv, "discrete")
    with watched_reads() as counts:
        run.iterate()
    assert counts["__bool__"] == 8 and counts["item"] >= 1 and counts["boolean index"] >= 1
    assert counts["_local_scalar_dense"] >= 9, "syncs below Python are seen too"
