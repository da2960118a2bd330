"""Stacked actors: every slot acts as the single policy with the same weights; slots are independent and change in place."""
from __future__ import annotations

import copy
import math

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.roundings import assert_same_in_float64, assert_within, sway
from wavedash.config import PolicyConfig
from wavedash.envs.obs import Obs, map_obs
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors

SLOTS, ROWS, STEPS, INPUTS = 3, 5, 4, 6
VECTOR = Box(-math.inf, math.inf, (INPUTS,), np.float32)
STICKS = Box(-1.0, 1.0, (4,), np.float32)
KINDS: dict[str, tuple[gymnasium.Space, dict, float | None]] = {
    "discrete": (Discrete(7), {"action_floor": 0.1}, None),
    "wide": (Discrete(7), {"hidden": [9, 8, 7], "activation": "relu", "layer_norm": True}, 5.0),
    "choices": (MultiDiscrete([3, 2, 5]), {"encoders": {"obs": {"hidden": [8]}}}, 5.0),
    "gru": (Discrete(7), {"memory": {"kind": "gru", "size": 5, "layers": 2}}, 5.0),
    "lstm": (MultiDiscrete([3, 2]), {"memory": {"kind": "lstm", "size": 5}}, None),
    "shared": (Discrete(7), {"shared": True}, None),
    "apart": (Discrete(7), {"critic_hidden": [3]}, None),
    "gaussian": (STICKS, {}, 5.0),
    "by state": (STICKS, {"std": "state", "layer_norm": True}, None),
    "tanh": (STICKS, {"distribution": "tanh"}, None),
    "confined": (STICKS, {"distribution": "confined"}, None),
    "beta": (STICKS, {"distribution": "beta"}, None),
    "gsde": (STICKS, {"std": "gsde", "memory": {"kind": "gru", "size": 5}}, None),
    "gsde by expln": (STICKS, {"distribution": "tanh", "std": "gsde", "gsde": {"expln": True}}, None),
}


def policy(kind: str, seed: int) -> ActorCritic:
    """A policy in which everything is random: weights, biases, deviations, gains and statistics."""
    actions, settings, clip = KINDS[kind]
    choices = int(sum(actions.nvec)) if isinstance(actions, MultiDiscrete) else 7
    seen = VECTOR if isinstance(actions, Box) else Dict({"obs": VECTOR, "action_mask": MultiBinary(choices)})
    made = ActorCritic(seen, actions, PolicyConfig.model_validate({"hidden": [8, 8]} | settings), clip)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, x in made.state_dict().items():
            if x.is_floating_point() and x.dim():
                x.copy_(0.5 * torch.randn(x.shape, generator=generator))
                if name.endswith("scale"):
                    x.exp_()
    return made.eval().requires_grad_(False)


def policies(kind: str) -> list[ActorCritic]:
    return [policy(kind, seed) for seed in range(SLOTS)]


def stacked(members: list[ActorCritic]) -> StackedActors:
    actors = StackedActors(members[0], len(members))
    for slot, member in enumerate(members):
        actors.load(slot, member)
    return actors


def observations(kind: str, *shape: int, seed: int = 0) -> Obs:
    generator = torch.Generator().manual_seed(seed)
    seen = torch.randn(*shape, INPUTS, generator=generator)
    actions = KINDS[kind][0]
    if isinstance(actions, Box):
        return seen
    sizes = actions.nvec.tolist() if isinstance(actions, MultiDiscrete) else [7]
    masks = [torch.rand(*shape, n, generator=generator) < 0.6 for n in sizes]
    for mask in masks:
        mask[..., 0] = True
    return {"obs": seen, "action_mask": torch.cat(masks, -1).to(torch.int8)}


def alone(member: ActorCritic, obs: Obs, memory: dict[str, Tensor], noise: Tensor | None = None) -> tuple[Tensor, dict]:
    """The reference: the policy itself."""
    decision = member.act(member.normalize(obs), memory, deterministic=noise is None, noise=noise)
    return member.head.env_action(decision.action), decision.memory


@pytest.mark.parametrize("kind", KINDS)
def test_each_slot_acts_and_remembers_as_its_policy_alone(kind):
    """In float64, where rounding decides nothing; several steps, so that memory counts."""
    members = [member.double() for member in policies(kind)]
    actors = stacked(members)
    memory = {name: torch.stack([x] * SLOTS) for name, x in actors.initial_memory(ROWS).items()}
    memories = [member.initial_memory(ROWS) for member in members]
    chosen = []
    for t in range(STEPS):
        obs = map_obs(lambda x: x.double() if x.is_floating_point() else x, observations(kind, SLOTS, ROWS, seed=t))
        actions, memory = actors.act(obs, memory, deterministic=True)
        for slot, member in enumerate(members):
            expected, memories[slot] = alone(member, map_obs(lambda x, slot=slot: x[slot], obs), memories[slot])
            assert actions[slot].dtype == expected.dtype
            # Distributions are in float32 whatever the networks are: their last digit may differ.
            torch.testing.assert_close(actions[slot], expected, rtol=1e-5, atol=1e-6)
            for name, x in memory.items():
                assert_same_in_float64(x[slot], memories[slot][name], name)
        chosen.append(actions)
    told = torch.stack(chosen).float()
    assert (told[:, :1] != told[:, 1:]).any(), "the control: the policies differ"
    if memory:
        forgetful, _ = actors.act(obs, {name: torch.zeros_like(x) for name, x in memory.items()}, deterministic=True)
        assert not any(torch.equal(x, torch.zeros_like(x)) for x in memory.values())
        assert forgetful.shape == actions.shape


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.parametrize("kind", ["gaussian", "by state", "gsde"])
def test_the_precision_is_that_of_the_policy(kind, precision):
    """The exact result is the policy alone in float64. In bf16 every layer rounds its inputs, weights and outputs; a few
    roundings of all weights and observations in the same precision move it as far."""
    members = policies(kind)
    exact = [copy.deepcopy(member).double() for member in members]
    for member in members:
        member.precision = precision
    actors, obs = stacked(members), observations(kind, SLOTS, ROWS)
    zeros = {name: torch.stack([x] * SLOTS) for name, x in actors.initial_memory(ROWS).items()}
    actions, _ = actors.act(obs, zeros, deterministic=True)
    assert actions.dtype == torch.float32
    lowered = {x.dtype for x in actors.body.state_dict().values()}
    assert (torch.bfloat16 in lowered) == (precision is not None), "weights are kept in the precision of the products"
    for slot, member in enumerate(exact):
        def compute(seen: Tensor, weights: dict[str, Tensor], member: ActorCritic = member) -> Tensor:
            member.load_state_dict(weights)
            return alone(member, seen, member.initial_memory(ROWS))[0].double()

        inputs = obs[slot], dict(members[slot].state_dict())
        bound = sway(compute, inputs, 8, dtype=precision or torch.float32)
        assert_within(actions[slot], compute(*(x.double() if isinstance(x, Tensor) else {
            name: y.double() for name, y in x.items()} for x in inputs)), bound, f"slot {slot}")


@pytest.mark.parametrize("kind", ["discrete", "choices", "gaussian", "beta", "gsde"])
def test_samples_are_distributed_as_those_of_the_policy(kind):
    """Every row of a slot sees the same. Frequencies and means are within five deviations of those of the policy."""
    rows, members = 4000, policies(kind)
    actors, one = stacked(members), observations(kind, SLOTS, 1)
    obs = map_obs(lambda x: x.expand(-1, rows, -1), one)
    memory = {name: torch.stack([x] * SLOTS) for name, x in actors.initial_memory(rows).items()}
    generator = torch.Generator().manual_seed(1)
    noise = torch.empty(SLOTS, rows, *actors.noise_shape).normal_(generator=generator) if kind == "gsde" else None
    actions, _ = actors.act(obs, memory, generator, noise=noise)
    again, _ = actors.act(obs, memory, torch.Generator().manual_seed(1), noise=noise)
    assert kind == "gsde" or torch.equal(actions, again), "its own random stream decides"
    for slot, member in enumerate(members):
        if kind == "gsde":
            expected = with_noise(member, obs[slot])
        else:
            seen = member.normalize(map_obs(lambda x, slot=slot: x[slot], obs))
            distribution, _ = member(seen)
            expected = member.head.env_action(distribution.sample(generator))
        ours, theirs = actions[slot].float().view(rows, -1), expected.float().view(rows, -1)
        for value in [None] if isinstance(KINDS[kind][0], Box) else range(7):
            a, b = (x if value is None else (x == value).float() for x in (ours, theirs))
            spread = torch.stack([a.std(0), b.std(0)]).amax(0) + 1e-6
            assert_within(a.mean(0), b.mean(0), 5 * math.sqrt(2 / rows) * spread, f"slot {slot}, {value}")
            if value is None:
                assert_within(a.std(0), b.std(0), 5 * spread / math.sqrt(rows), f"slot {slot}")


def with_noise(member: ActorCritic, obs: Tensor) -> Tensor:
    """Actions of the policy with noise matrices of its own."""
    noise = member.draw_noise(0, len(obs), None, torch.Generator().manual_seed(2))
    return alone(member, obs, member.initial_memory(len(obs)), noise)[0]


def test_loading_a_slot_changes_it_in_place_and_no_other():
    members, other = policies("gru"), policy("gru", 9)
    actors, obs = stacked(members), observations("gru", SLOTS, 40)
    memory = {name: torch.stack([x] * SLOTS) for name, x in actors.initial_memory(40).items()}
    before, _ = actors.act(obs, memory, deterministic=True)
    places = {name: x.data_ptr() for name, x in actors.state_dict().items()}
    with NoHostSync():
        actors.load(1, other.state_dict())
        after, _ = actors.act(obs, memory, deterministic=True)
    assert {name: x.data_ptr() for name, x in actors.state_dict().items()} == places, "captured graphs read the new weights"
    assert torch.equal(before[[0, 2]], after[[0, 2]]) and not torch.equal(before[1], after[1])
    fresh, _ = stacked([members[0], other, members[2]]).act(obs, memory, deterministic=True)
    assert torch.equal(after, fresh)
    other.head.logits.weight.zero_()
    assert torch.equal(actors.act(obs, memory, deterministic=True)[0], after), "weights are copied"


def test_what_cannot_be_stacked_together_is_refused():
    actors = StackedActors(policy("gru", 0), 2)
    for kind, other in (("lstm", policy("lstm", 0)), ("discrete", policy("discrete", 0))):
        with pytest.raises(UserError, match="another signature"):
            actors.load(0, other)
        with pytest.raises(UserError, match="is missing or has another shape"):
            actors.load(0, other.state_dict() if kind == "lstm" else {})
    lower = policy("gru", 1)
    lower.precision = torch.bfloat16
    with pytest.raises(UserError, match="precision"):
        actors.load(0, lower)
    with pytest.raises(UserError, match="there is no slot 2"):
        actors.load(2, policy("gru", 1))
    with pytest.raises(UserError, match="at least one slot"):
        StackedActors(policy("gru", 0), 0)


def test_a_network_of_an_unknown_kind_is_refused():
    """A picture needs convolutions, which Rocket League has none of."""
    seen = Box(0, 255, (8, 8, 3), np.uint8)
    with pytest.raises(UserError, match="a ConvEncoder cannot be stacked"):
        StackedActors(ActorCritic(seen, Discrete(2), PolicyConfig()), 2)


def test_the_critic_does_not_matter():
    one, other = policy("shared", 0), policy("apart", 0)
    actors = StackedActors(one, 1)
    assert not any("critic" in name for name in actors.state_dict())
    actors.load(0, other)
