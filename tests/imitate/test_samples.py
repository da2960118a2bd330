"""Demonstrations as samples of an environment: what fits is taken over, what does not is named; and which are held out."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.imitate.cloners import LENGTHS, made_up, spaces_of
from wavedash.config import PolicyConfig
from wavedash.envs.kinds import Spaces
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import read, write_samples
from wavedash.imitate.samples import Samples, samples_of
from wavedash.imitate.split import split_episodes
from wavedash.policy.actor_critic import ActorCritic

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
OBS, EPISODE = torch.arange(12.0).view(6, 2) / 12, torch.tensor([0, 0, 0, 4, 4, 2])


def samples(folder: Path, where: Spaces, action: Any, obs: Any = OBS, **more: Any) -> Samples:
    write_samples(folder / "d.safetensors", obs, action, EPISODE, **more)
    return samples_of(read(folder / "d.safetensors"), where)


def test_a_discrete_space_may_begin_elsewhere(tmp_path: Path) -> None:
    acted = torch.tensor([5, 6, 7, 5, 6, 7])
    found = samples(tmp_path, Spaces(BOX, spaces.Discrete(3, start=5)), acted)
    assert found.action.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.begins.tolist() == [True, False, False, True, False, True] and found.first.tolist() == [0, 3, 5]


def test_keys_masks_and_types_are_those_of_the_environment(tmp_path: Path) -> None:
    where = Spaces(spaces.Dict({"a": BOX, "b": BOX, "action_mask": spaces.MultiBinary(5)}), spaces.MultiDiscrete([3, 2]))
    mask = torch.tensor([[1, 1, 0, 1, 1]]).bool().repeat(6, 1)
    acted = torch.tensor([[0, 1], [1, 0]] * 3)
    found = samples(tmp_path, where, acted, {"b": OBS.double(), "a": -OBS, "c": OBS}, mask=mask)
    assert isinstance(found.obs, dict) and found.obs.keys() == {"a", "b", "action_mask"}
    assert found.obs["b"].dtype == torch.float32 and found.obs["action_mask"].dtype == torch.int8
    assert torch.equal(found.obs["a"], -OBS)


@pytest.mark.parametrize(("where", "action", "more", "message"), [
    (Spaces(BOX, spaces.Discrete(3)), torch.tensor([0, 1, 2, 3, 0, 0]), {}, "the action of row 3 is 3, which is not in Discr"),
    (Spaces(BOX, spaces.Discrete(3)), torch.rand(6), {}, "takes whole numbers"),
    (Spaces(BOX, spaces.MultiDiscrete([2, 2])), torch.zeros(6, 3, dtype=torch.int64), {}, r"action is torch.int64 \[3\]"),
    (Spaces(BOX, BOX), torch.zeros(6, 2, dtype=torch.int64), {}, r"takes floats \[2\]"),
    (Spaces(spaces.Box(-1, 1, (3,), np.float32), BOX), torch.zeros(6, 2), {}, r"obs is \[2\] of each sample, and in this"),
    (Spaces(spaces.Dict({"camera": BOX}), BOX), torch.zeros(6, 2), {}, r"holds no obs.camera, which this environment gives"),
    (Spaces(spaces.Box(0, 255, (2,), np.uint8), BOX), torch.zeros(6, 2), {}, "obs is torch.float32, and in this environment"),
    (Spaces(spaces.Dict({"obs": BOX, "action_mask": spaces.MultiBinary(3)}), spaces.Discrete(3)),
     torch.zeros(6, dtype=torch.int64), {}, "holds no mask"),
    (Spaces(spaces.Dict({"obs": BOX, "action_mask": spaces.MultiBinary(3)}), spaces.Discrete(3)),
     torch.tensor([0, 0, 0, 0, 2, 0]), {"mask": torch.tensor([[1, 1, 0]] * 6)}, "the mask of row 4 forbids its action 2"),
    (Spaces(BOX, BOX), torch.zeros(6, 2), {"known": torch.zeros(6)}, "no action is known"),
])
def test_what_does_not_fit_is_named(tmp_path: Path, where: Spaces, action: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        samples(tmp_path, where, action, **more)


def test_a_forbidden_action_that_is_not_known_does_no_harm(tmp_path: Path) -> None:
    where = Spaces(spaces.Dict({"obs": BOX, "action_mask": spaces.MultiBinary(3)}), spaces.Discrete(3))
    known = torch.tensor([True] * 4 + [False, True])
    found = samples(tmp_path, where, torch.tensor([0, 0, 0, 0, 2, 0]), mask=torch.tensor([[1, 1, 0]] * 6), known=known)
    assert torch.equal(found.known, known)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.99])
def test_episodes_are_held_out_as_a_whole_and_never_learned_from(tmp_path: Path, share: float) -> None:
    path = made_up(tmp_path / "d.safetensors", "discrete")
    found = samples_of(read(path), spaces_of("discrete"))
    split = split_episodes(path, found, share, seed=5)
    assert sorted([*split.learned.tolist(), *split.held_out.tolist()]) == list(range(sum(LENGTHS)))
    episode = read(path).tensors["episode"]
    out, learned = (set(episode[numbers].tolist()) for numbers in (split.held_out, split.learned))
    assert not out & learned and len(out) == min(9, round(10 * share))
    for numbers in split:  # the samples of an episode follow each other
        assert (numbers.diff() == 1)[~found.begins[numbers][1:]].all()
    again, other = (split_episodes(path, found, share, seed) for seed in (5, 6))
    assert torch.equal(again.held_out, split.held_out) and not torch.equal(other.learned, split.learned)


def test_one_episode_cannot_be_held_out_and_nothing_need_be(tmp_path: Path) -> None:
    write_samples(tmp_path / "d.safetensors", OBS, torch.zeros(6, 2), torch.zeros(6))
    found = samples_of(read(tmp_path / "d.safetensors"), Spaces(BOX, BOX))
    with pytest.raises(UserError, match="has one episode, and episodes are held out as a whole"):
        split_episodes(tmp_path, found, 0.1, seed=0)
    nothing = split_episodes(tmp_path, found, 0.0, seed=0)
    assert not len(nothing.held_out) and nothing.learned.tolist() == list(range(6))


@pytest.mark.parametrize("distribution", ["gaussian", "tanh", "beta", "confined"])
def test_what_the_environment_takes_is_what_was_stored(distribution: str) -> None:
    """Taken back and forth: the demonstrated action is the one whose density is learned."""
    space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32))
    policy = ActorCritic(BOX, space, PolicyConfig.model_validate({"distribution": distribution}))
    taken = torch.tensor([[-1.9, 0.1], [0.5, 4.0], [1.0, 2.5], [3.0, -1.0]])
    clipped = taken.clamp(torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 5.0]))
    back = policy.head.env_action(policy.head.stored_action(taken))
    # Distributions that do not reach their bounds stay a thousandth of the half range away.
    edge = torch.tensor([2.0, 2.5]) * (1.01e-3 if distribution in ("tanh", "beta") else 0.0)
    assert ((back - clipped).abs() <= edge + 1e-5).all()
    density = policy.head(torch.zeros(4, policy.trunks["actor"].outputs)).log_prob(policy.head.stored_action(taken))
    assert density.isfinite().all()


def test_choices_of_any_shape_are_stored_flat() -> None:
    policy = ActorCritic(BOX, spaces.MultiBinary((2, 2)), PolicyConfig())
    taken = torch.tensor([[[0, 1], [1, 1]], [[1, 0], [0, 0]]])
    assert torch.equal(policy.head.env_action(policy.head.stored_action(taken.flatten(1).float())), taken)


def test_spaces_say_what_the_environment_gave_before_it_was_encoded() -> None:
    from wavedash.config import EnvConfig
    from wavedash.envs.kinds import kind_of

    config = EnvConfig(id="FrozenLake-v1", count=1)
    found = kind_of(config).spaces(config, torch.device("cpu"))
    assert isinstance(found.source_space, gymnasium.spaces.Discrete) and found.observation_space.shape == (16,)
