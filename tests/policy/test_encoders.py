"""Encoders: one per key, suited to its shape; actor and critic may see different keys."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from wavedash.config import PolicyConfig
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.encoders import ConvEncoder, FlatEncoder, MlpEncoder

SENSES = spaces.Dict({
    "camera": spaces.Box(0, 255, (24, 32, 3), np.uint8),
    "depth": spaces.Box(0.0, 5.0, (16, 16), np.float32),
    "joints": spaces.Box(-1.0, 1.0, (6,), np.float32),
    "truth": spaces.Box(-1.0, 1.0, (2,), np.float32),
})
ROWS = 5


def some_obs() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {key: torch.from_numpy(np.stack([space.sample() for _ in range(ROWS)])) for key, space in SENSES.spaces.items()}


def policy(**options) -> ActorCritic:
    torch.manual_seed(0)
    return ActorCritic(SENSES, spaces.Discrete(3), PolicyConfig(hidden=[16], **options))


def test_every_key_gets_an_encoder_that_suits_its_shape():
    parts = policy(encoders={"joints": {"hidden": [8]}}).trunks["actor"].encoders.parts
    kinds = {key: type(part) for key, part in parts.items()}
    assert kinds == {"camera": ConvEncoder, "depth": ConvEncoder, "joints": MlpEncoder, "truth": FlatEncoder}


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_actor_and_critic_each_see_their_own_keys(memory):
    """The critic knows the truth, the actor does not: changing it moves values and leaves actions as they are."""
    obs = some_obs()
    player = policy(actor_keys=["camera", "depth", "joints"], memory={"kind": memory})
    carried = player.initial_memory(ROWS)
    with torch.no_grad():
        before = player.act(obs, carried, deterministic=True)
        for key in SENSES.spaces:
            changed = {**obs, key: torch.zeros_like(obs[key])}
            after = player.act(changed, carried, deterministic=True)
            assert not torch.equal(before.value, after.value), key
            assert torch.equal(before.log_prob, after.log_prob) == (key == "truth"), key


def test_sequences_of_pictures_are_encoded_as_single_ones_are():
    obs = some_obs()
    player = policy()
    with torch.no_grad():
        _, flat = player(obs)
        _, stacked = player({key: x.view(1, ROWS, *x.shape[1:]).expand(3, *x.shape) for key, x in obs.items()})
    torch.testing.assert_close(stacked, flat.expand(3, ROWS))


def test_a_key_that_does_not_exist_is_named():
    with pytest.raises(UserError, match=r"lidar.*camera, depth, joints, truth"):
        policy(critic_keys=["lidar"])
