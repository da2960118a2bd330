"""Each term of the estimate against what is really allocated for the same tensors, on a CPU."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from tests.memory.peak import peak
from wavedash.assembly import assembled, make_policy
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.envs.obs import empty_obs, map_obs
from wavedash.memory.choice import shapes_for
from wavedash.memory.estimate import COUNTED, GPU_PROGRAMS, LEARNING, WORK, memory_of
from wavedash.memory.shapes import Shapes
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors
from wavedash.ppo.learner import Learner
from wavedash.ppo.optimizer import ALIGNMENT
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.sim.simulator import WarpSimulator

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ROCKET = ("rocket-1v1", "rating=null", "env.count=24", "ppo.rollout_steps=8", "ppo.minibatch_size=128",
          "policy.hidden=[64, 32]")
RUNS: dict[str, tuple[str, ...]] = {
    "discrete": ("cartpole", "env.count=6", "ppo.rollout_steps=8", "ppo.buffer_rollouts=2"),
    "continuous": ("pendulum", "env.count=6", "ppo.rollout_steps=8"),
    "sequences": ("cartpole-memory", "env.count=6", "ppo.rollout_steps=16", "policy.memory.sequence=8"),
    "rocket, masked": ROCKET,
    "rocket, lanes": (*ROCKET, "env.rocket.lanes={kickoffs: {share: 0.5, starts: {kickoff: 1.0}}}"),
}


def config_of(*source: str) -> RunConfig:
    return load_config(source[0], [*source[1:], "device=cpu", "threads=1"])


@contextmanager
def run(*source: str) -> Iterator[tuple[Learner, Shapes, dict[str, int]]]:
    """A learner after two iterations, the shapes of its run, and the estimate."""
    config = config_of(*source)
    shapes = shapes_for(config, CPU)(config.precision)
    with assembled(config) as learner:
        learner.start()
        for _ in range(config.ppo.buffer_rollouts + 1):
            learner.iterate()
        yield learner, shapes, memory_of(config, shapes, CPU)


def size(tensors: Iterable[Tensor]) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


@pytest.mark.parametrize("name", RUNS)
def test_rollouts_statistics_and_weights(name):
    with run(*RUNS[name]) as (learner, shapes, terms):
        ppo, buffer, optimizer = learner.config.ppo, learner.buffer, learner.updater.optimizer
        assert shapes.rows * learner.config.env.count == learner.env.num_rows
        assert terms["rollouts"] == size(buffer.all.tensors().values())
        experience = learner.updater.experience.all
        stored = buffer.all.reward.numel()
        flags = 0 if experience.fresh is None else size([experience.fresh])
        assert size([experience.numbers]) + flags <= stored * LEARNING <= size([experience.numbers]) + stored
        rollout = learner.rollout
        last = rollout.value[-1].clone()
        work = peak(lambda: learner.complete(rollout, last)) + peak(learner.updater.experience.refresh)
        assert 0.4 * WORK * rollout.reward.numel() < work < WORK * rollout.reward.numel() + 4096  # a few numbers of any size
        assert terms["learning"] == stored * (LEARNING + COUNTED) + stored // ppo.buffer_rollouts * WORK
        collector = learner.collector
        told = [x for x in (collector.counted.success, collector.lane) if x is not None]
        assert (collector.lane is not None) == (name == "rocket, lanes")
        assert size(told) <= rollout.reward.numel() * COUNTED
        held = [optimizer.parameters, optimizer.gradient, optimizer.exp_avg, optimizer.exp_avg_sq,
                *(learner.before_update[part] for part in ("parameters", "exp_avg", "exp_avg_sq"))]
        padding = 4 * ALIGNMENT * len(list(learner.policy.parameters()))
        assert terms["weights"] <= size(held) <= terms["weights"] + 7 * padding


@pytest.mark.parametrize("cars", [(1, 1), (3, 3), (2, 0)])
def test_arenas(cars):
    """Every array of the simulator and every tensor around it."""
    blue, orange = cars
    observation = f"env.rocket.observation={{advanced_obs_plus: {{team_size: {max(cars)}}}}}"
    with run(*ROCKET, f"env.rocket.blue={blue}", f"env.rocket.orange={orange}", observation) as (learner, _, terms):
        assert isinstance(learner.env, RocketEnv)
        shards = learner.env._shards
        arenas = learner.config.env.count
        states, work = 0, 0
        for shard in shards:
            states += size([shard.state.memory, shard.previous.memory, shard.chosen, shard.controls])
            assert isinstance(shard.simulator, WarpSimulator)
            memory = shard.simulator._memory
            states += size([x for name, x in memory._asdict().items() if name != "words"])
            for partition in shard.simulator._partitions:
                arrays = [getattr(partition.arenas, name) for name in partition.arenas._cls.vars]
                over_memory = {"words", "floats", *memory._fields}
                work += sum(x.capacity for name, x in zip(partition.arenas._cls.vars, arrays, strict=True)
                            if hasattr(x, "capacity") and name not in over_memory)
        assert terms["simulator"] == states + work
        assert terms["beginnings"] == size([shard.fresh.memory for shard in shards])
        kept = size(learner.env.keep_state()().values())
        # Small numbers of the task: which start wrote a beginning, when an episode began, what to press; random streams.
        small = 8 * sum(shard.fresh.arenas for shard in shards) + arenas * 64 * (blue + orange) + 8192 * len(shards)
        assert terms["snapshot"] <= kept <= terms["snapshot"] + small


def test_a_gpu_has_the_same_arenas_but_other_work_memory():
    config = config_of(*ROCKET).env
    here, there = ([kind_of(config).memory(config.model_copy(update={"count": n}), device) for n in (4096, 8192)]
                   for device in (CPU, GPU))
    for few, many in (here, there):
        assert many["beginnings"] == 2 * few["beginnings"] and many["snapshot"] == 2 * few["snapshot"]
    assert 0 <= 2 * there[0]["simulator"] - there[1]["simulator"] < 4 * 2**20, "what all arenas of a GPU share"


# --- networks --------------------------------------------------------------------------------------------------------


def inputs(policy: ActorCritic, samples: int) -> tuple[Any, Tensor]:
    obs = map_obs(torch.ones_like, empty_obs(policy.observation_space, samples))
    return obs, torch.zeros(samples, *policy.head.action_shape, dtype=policy.head.action_dtype)


def policy_of(*source: str) -> tuple[RunConfig, ActorCritic, Shapes]:
    config = config_of(*source)
    policy = make_policy(kind_of(config.env).spaces(config.env, CPU), config)
    policy.precision = {"bf16": torch.bfloat16}.get(config.precision)
    return config, policy, shapes_for(config, CPU)(config.precision)


@pytest.mark.parametrize(("activation", "kept"), [("relu", 1), ("tanh", 1), ("silu", 2), ("gelu", 2)])
@pytest.mark.parametrize("hidden", [[64], [128, 64, 32]])
def test_the_activations_of_layers_follow_from_their_widths(activation, kept, hidden):
    """An activation whose gradient needs its input keeps two numbers of each unit: before and after. In fp32; the second policy
    has twice the units, and its heads, which do not change, cancel out."""
    one, two = (policy_of(*ROCKET, f"policy.activation={activation}", f"policy.hidden={[n * k for n in hidden]}")[2]
                for k in (1, 2))
    assert two.activations - one.activations == 2 * 4 * kept * sum(hidden)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_autograd_keeps_of_a_minibatch_what_was_counted_in_a_few_samples(precision):
    _, policy, shapes = policy_of(*ROCKET, "policy.hidden=[256, 256]", f"precision={precision}")
    found = []
    for samples in (512, 1024):
        kept: dict[int, Tensor] = {}
        own = {p.untyped_storage().data_ptr() for p in policy.parameters()}

        def keep(x: Tensor, kept: dict[int, Tensor] = kept, own: set[int] = own) -> Tensor:
            if x.untyped_storage().data_ptr() not in own:
                kept[x.untyped_storage().data_ptr()] = x
            return x

        with saved_tensors_hooks(keep, lambda x: x), torch.enable_grad():
            policy.evaluate_outputs(*inputs(policy, samples), None, None)
        found.append(sum(x.untyped_storage().nbytes() for x in kept.values()))
    assert found[1] - found[0] == 512 * shapes.activations


@pytest.mark.parametrize("name", ["rocket, masked", "continuous"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_forward_and_backward_of_a_minibatch_take_what_is_estimated(name, precision):
    config, policy, shapes = policy_of(*RUNS[name], "policy.hidden=[256, 128]", f"precision={precision}")
    for p in policy.parameters():
        p.grad = torch.zeros_like(p)
    peaks = []
    for samples in (1024, 2048):
        obs, action = inputs(policy, samples)

        def update(obs: Any = obs, action: Tensor = action) -> None:
            with torch.enable_grad():
                outputs = [x for x in policy.evaluate_outputs(obs, action, None, None) if x.requires_grad]
            torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs])

        peaks.append(peak(update))
    whole = config.model_copy(update={"ppo": config.ppo.model_copy(update={"minibatch_size": 1024})})
    large = config.env.model_copy(update={"count": 4096})
    estimated = memory_of(whole.model_copy(update={"env": large}), shapes, CPU)["activations"]
    real = peaks[1] - peaks[0] + 1024 * shapes.observation  # autograd keeps observations too
    assert 0.6 * estimated < real <= estimated


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_inference_takes_what_is_estimated(precision):
    config, policy, shapes = policy_of(*ROCKET, "policy.hidden=[256, 256, 256]", f"precision={precision}")
    generator = torch.Generator()
    peaks = []
    for rows in (512, 1024):
        obs, _ = inputs(policy, rows)
        with torch.no_grad():
            peaks.append(peak(partial(policy.act, obs, {}, generator)))
    large = config.model_copy(update={"env": config.env.model_copy(update={"count": 256})})
    estimated = memory_of(large, shapes, CPU)["inference"]
    assert 0.2 * estimated < peaks[1] - peaks[0] < estimated


def test_stacked_weights_of_opponents():
    config, policy, shapes = policy_of(*ROCKET, "opponents={slots: 5, share: 0.5}", "precision=bf16")
    few, many = (memory_of(config.model_copy(update={"opponents": config.opponents.model_copy(update={"slots": slots})}),
                           shapes, CPU)["opponents"] for slots in (5, 10))
    stacked = size(StackedActors(policy, 5).parameters())
    heads = size(policy.head.parameters())  # in full precision
    assert stacked - 5 * heads <= many - few <= stacked


# --- how terms grow --------------------------------------------------------------------------------------------------


def terms_of(**changes: Any) -> dict[str, int]:
    values = {"env.count": 4096, "ppo.rollout_steps": 32, "ppo.minibatch_size": 4096, **changes}
    source = ["rocket-1v1-gpu", *(f"{key}={value}" for key, value in values.items()), "precision=bf16"]
    config = load_config(source[0], source[1:])
    return memory_of(config, SHAPES, GPU)


SHAPES = Shapes(rows=2, observation=886, action=8, memory=0, weights=4_000_000, actor_weights=2_000_000, networks=2,
                activations=12_000, widest=2048, outputs=364)


@pytest.mark.parametrize(("change", "doubled"), [
    ({"env.count": 8192}, {"beginnings", "snapshot", "rollouts", "learning", "inference"}),
    ({"ppo.rollout_steps": 64}, {"rollouts", "learning"}),
    ({"ppo.minibatch_size": 8192}, {"minibatch", "activations"}),
    ({"ppo.minibatch_size": 8192, "ppo.microbatch_size": 4096}, {"minibatch"}),
    ({"rating.games": 512}, set()),
])
def test_terms_double_with_what_they_depend_on_and_no_others_change(change, doubled):
    before, after = terms_of(), terms_of(**change)
    grown = {name for name in before if after[name] != before[name]}
    assert {name for name in grown if after[name] == 2 * before[name]} == doubled
    assert grown - doubled <= {"simulator", "opponents", "rating"}, "these have a part that does not depend on it"


def test_a_part_of_a_minibatch_takes_its_share_and_uneven_minibatches_have_two_graphs():
    whole = terms_of()
    assert terms_of(**{"ppo.microbatch_size": 1024})["activations"] == whole["activations"] // 4
    assert terms_of(**{"ppo.accumulate": 4})["activations"] == whole["activations"] // 4
    assert terms_of(**{"ppo.minibatch_size": 4095})["activations"] == 2 * whole["activations"] // 4096 * 4095
    assert terms_of(**{"ppo.minibatch_size": 4095, "graphs": "false"})["activations"] < whole["activations"]
    assert whole["programs"] == GPU_PROGRAMS
