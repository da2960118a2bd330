"""Every reward against a plain reference car by car, in the mirrored game, and without host syncs."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.rocket.reward_reference import REWARDS, STATEFUL, Reference, arenas_of
from tests.rocket.reward_states import scene
from wavedash.rocket import names
from wavedash.rocket.rewards import Rewards

ALL = sorted(names.shipped("reward"))


def everything() -> Rewards:
    return Rewards([(name, names.make("reward", name), 1.0) for name in ALL])


@pytest.mark.parametrize(("blue", "orange"), [(1, 1), (2, 1), (3, 3), (1, 0)])
def test_every_reward_agrees_with_a_plain_reference_car_by_car(blue: int, orange: int) -> None:
    """They are compared over several steps, with episodes that begin at different times."""
    assert set(REWARDS) | set(STATEFUL) == set(ALL)
    arenas = 150 if orange == 3 else 100
    now = scene(arenas, blue, orange, seed=0)
    combined, references = everything(), [Reference() for _ in range(arenas)]
    begins = torch.ones(arenas, dtype=torch.bool)
    combined.bind(now)
    paid = dict.fromkeys(ALL, 0)
    for step in range(1, 5):
        combined.begin(now, begins)
        for begin, arena, reference in zip(begins.tolist(), arenas_of(now), references, strict=True):
            if begin:
                reference.begin(arena)
        before, now = now, scene(arenas, blue, orange, seed=step, like=now)
        combined(now, before, now.events)
        shares = combined.shares()
        expected = [r.step(*both) for r, *both in zip(references, arenas_of(now), arenas_of(before), strict=True)]
        for name in ALL:
            reference_values = torch.tensor([[car[name] for car in arena] for arena in expected])
            torch.testing.assert_close(shares[name], reference_values, atol=2e-4, rtol=0, msg=f"{name}: {{}}".format)
            paid[name] += int(reference_values.count_nonzero())
        begins = torch.rand(arenas, generator=torch.Generator().manual_seed(step)) < 0.3
    if orange == 3:
        assert min(paid.values()) >= 10, f"a reward that is hardly ever paid is hardly tested: {paid}"


@pytest.mark.parametrize("name", ALL)
def test_a_car_gets_the_same_in_the_mirrored_game(name: str) -> None:
    before = scene(400, 2, 2, seed=7)
    now = scene(400, 2, 2, seed=8, like=before)
    paid = []
    for first, second in ((before, now), (before.mirrored(), now.mirrored())):
        one = Rewards([(name, names.make("reward", name), 1.0)])
        one.bind(first)
        one.begin(first, torch.ones(400, dtype=torch.bool))
        one(second, first, second.events)
        paid.append(one(first, second, first.events))  # and back, for those that remember
    torch.testing.assert_close(*paid)
    if name not in ("flip_reset", "wavedash", "recovery"):  # seldom in two steps; the hand-made cases have them
        assert paid[0].count_nonzero() > 10


def memory_of(combined: Rewards) -> dict[tuple[str, str], int]:
    """The address of every tensor of every reward."""
    return {(type(reward).__name__, key): value.data_ptr() for reward in combined.rewards
            for key, value in (*vars(reward).items(), *reward.named_buffers()) if isinstance(value, Tensor)}


def test_no_reward_has_a_host_sync_or_moves_its_memory() -> None:
    """CUDA graphs need this: nothing is read back, shapes do not depend on data, and tensors keep their addresses."""
    seen: set[str] = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            seen.add(func._overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    before, now = scene(20, 3, 2, seed=1), scene(20, 3, 2, seed=2)
    combined = everything()
    combined.bind(now)
    held = memory_of(combined)
    with Watch():
        combined.begin(before, torch.arange(20) > 10)
        combined(now, before, now.events)
        combined.set_weights({"goal": 3.0})
    assert "where" in seen
    assert not seen & {"_local_scalar_dense", "nonzero", "masked_select", "index", "index_put_", "lift_fresh"}
    assert len(held) > 8
    assert memory_of(combined) == held
