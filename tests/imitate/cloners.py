"""Shared by the tests of imitation: made-up demonstrations for every kind of action, and learners that imitate them."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from tests.ppo.combinations import ACTIONS
from tests.ppo.learners import learner_over, run_config
from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import ACTION_MASK
from wavedash.envs.row_spec import choice_sizes
from wavedash.imitate.demonstrations import read, write_samples
from wavedash.imitate.held_out import HeldOut
from wavedash.imitate.loss import ImitationLoss
from wavedash.imitate.playback import Playback
from wavedash.imitate.samples import Samples, samples_of
from wavedash.imitate.split import split_episodes
from wavedash.ppo.learner import Learner

FEATURES, ROWS = 4, 6
LENGTHS = (7, 12, 1, 20, 9, 3, 14, 16, 5, 11)
GRU, LSTM = {"kind": "gru", "size": 8, "sequence": 4}, {"kind": "lstm", "size": 6, "layers": 2, "sequence": 4}
SMALL = {"rollout_steps": 8, "epochs": 2, "minibatch_size": 24, "learning_rate": 3e-3}


def spaces_of(action: str, masked: bool = False) -> Spaces:
    space, box = ACTIONS[action][0], spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
    seen: gymnasium.Space[Any] = box
    if masked:
        seen = spaces.Dict({"obs": box, ACTION_MASK: spaces.MultiBinary(sum(choice_sizes(space)))})
    return Spaces(seen, space)


def made_up(path: Path, action: str, masked: bool = False, unknown: float = 0.0) -> Path:
    """Writes a file whose actions follow from what was seen in this and the last step, so that there is something to learn."""
    generator = torch.Generator().manual_seed(3)
    count, space = sum(LENGTHS), ACTIONS[action][0]
    obs = torch.randn(count, FEATURES, generator=generator)
    signal = torch.stack([obs[:, 0] + obs[:, 1].roll(1), obs[:, 2], obs[:, 1]], -1)
    mask = None
    if isinstance(space, spaces.Box):
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        acted = low + (high - low) * signal[:, : len(low)].sigmoid()
    else:
        sizes = torch.tensor(choice_sizes(space))
        acted = (signal[:, : len(sizes)].sigmoid() * sizes).long()
        if masked:
            mask = torch.rand(count, int(sizes.sum()), generator=generator) < 0.7
            mask.scatter_(1, acted + sizes.cumsum(0) - sizes, True)
        acted = acted[:, 0] if isinstance(space, spaces.Discrete) else acted
    known = torch.rand(count, generator=generator) >= unknown
    episode = torch.arange(len(LENGTHS)).repeat_interleave(torch.tensor(LENGTHS))
    write_samples(path, obs, acted, episode, mask, known=known)
    return path


def cloner_of(folder: Path, action: str, memory: dict[str, Any] | None = None, *, masked: bool = False, unknown: float = 0.0,
              rows: int = ROWS, started: bool = True, ppo: dict[str, Any] | None = None, policy: dict[str, Any] | None = None,
              imitate: dict[str, Any] | None = None, **run: Any) -> Learner:
    path = made_up(folder / "made-up.safetensors", action, masked, unknown)
    config = run_config({**SMALL, **(ppo or {})}, {**ACTIONS[action][1], "memory": memory or {}, **(policy or {})},
                        imitate={"data": str(path), "held_out": 0.3, "every": 96, **(imitate or {})}, **run)
    assert config.imitate is not None
    where = spaces_of(action, masked)
    samples = samples_of(read(path), where)
    split = split_episodes(path, samples, config.imitate.held_out, config.seed)
    env = Playback(samples, split.learned, where, rows)
    loss = ImitationLoss(env, not samples.action.is_floating_point())
    told = HeldOut(samples, split.held_out, config.imitate.every, "made up")
    return learner_over(env, config, started, loss=loss, listeners=[told])


def one_by_one(learner: Learner, samples: Samples, numbers: Tensor) -> list[tuple[Any, Tensor, Tensor]]:
    """What the policy says of each of these samples, one after another, with the memory that it would have in a game: the
    distribution, the action as the environment took it, and whether that is known."""
    policy, found = learner.policy, []
    memory: dict[str, Tensor] = {}
    for number in numbers.tolist():
        if samples.begins[number]:
            memory = {f"actor.{name}": x for name, x in policy.trunks["actor"].initial_state(1).items()}
        obs = {key: x[number : number + 1] for key, x in samples.obs.items()} if isinstance(samples.obs, dict) \
            else samples.obs[number : number + 1]
        with torch.no_grad():
            distribution, memory = policy.step_actor(policy.normalize(obs), memory)
        found.append((distribution, samples.action[number], samples.known[number]))
    return found
