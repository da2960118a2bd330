"""A trained policy: what its `act` returns is what an environment's `step` takes."""
from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from wavedash.config import PolicyConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.trained_policy import TrainedPolicy

OBS = spaces.Box(-1, 1, (3,))


@pytest.mark.parametrize("space", [
    spaces.Discrete(4), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3), spaces.Box(-0.1, 0.1, (2,), np.float32),
    spaces.Discrete(4, start=-9), spaces.MultiDiscrete([2, 3], start=[5, 5]),
], ids=str)
@pytest.mark.parametrize("deterministic", [True, False])
def test_actions_lie_in_the_action_space(space, deterministic):
    player = TrainedPolicy(ActorCritic(OBS, space, PolicyConfig(hidden=[8])))
    for _ in range(5):
        action = player.act(OBS.sample(), deterministic)
        assert space.contains(np.asarray(action, space.dtype) if space.shape else action)


def test_act_takes_one_observation_or_a_batch():
    player = TrainedPolicy(ActorCritic(OBS, spaces.Discrete(4), PolicyConfig(hidden=[8])))
    batch = np.stack([OBS.sample() for _ in range(6)])
    assert player.act(batch).tolist() == [int(player.act(x)) for x in batch]
