"""Encoders: one per key, suited to its shape; actor and critic may see different keys."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.roundings import assert_same_in_float64
from wavedash.config import EncoderConfig, PolicyConfig
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


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_picture_that_a_slow_camera_shows_for_several_steps_is_encoded_once(share):
    """Features and gradients are those of pictures that are encoded one by one, in float64."""
    steps, rows = 7, ROWS
    torch.manual_seed(1)
    encoder = ConvEncoder(SENSES["depth"], EncoderConfig(features=8)).double()
    new = torch.rand(steps, rows) < share
    new[0] = True
    new[2:4, 0] = True  # for one step, one column sees the picture of another column: that is another camera
    seen = torch.rand(steps, rows, 16, 16, dtype=torch.float64)
    for step, row in (~new).nonzero().tolist():
        seen[step, row] = seen[step - 1, row]
    seen[2, 0] = seen[1, 1]
    encoded: list[int] = []
    encoder.convolutions.register_forward_hook(lambda module, inputs, result: encoded.append(len(result)))
    weight = torch.rand(steps, rows, 8, dtype=torch.float64)

    def gradients(features: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad((weight * features).sum(), list(encoder.parameters())))

    features = encoder(seen)
    assert encoded == [int(new.sum())]
    one_by_one = torch.stack([encoder(picture.unsqueeze(0)).squeeze(0) for picture in seen.flatten(0, 1)]).view_as(features)
    assert_same_in_float64(features.detach(), one_by_one.detach())
    for mine, theirs in zip(gradients(features), gradients(one_by_one), strict=True):
        assert_same_in_float64(mine, theirs)


def test_what_is_no_number_is_no_picture_that_was_seen_before():
    encoder = ConvEncoder(SENSES["depth"], EncoderConfig(features=8))
    seen = torch.zeros(3, 2, 16, 16)
    seen[:, 1] = torch.nan
    with torch.no_grad():
        features = encoder(seen)
    assert features[:, 1].isnan().all() and not features[:, 0].isnan().any()


def test_a_key_that_does_not_exist_is_named():
    with pytest.raises(UserError, match=r"lidar.*camera, depth, joints, truth"):
        policy(critic_keys=["lidar"])
