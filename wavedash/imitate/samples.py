"""Samples are what a policy learns from when it imitates: demonstrations as observations and actions of its own environment."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import ACTION_MASK, Obs, empty_obs, map_obs
from wavedash.envs.row_spec import choice_sizes
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import Demonstrations, episode_begins


@dataclass(frozen=True)
class Samples:
    """M samples; those of an episode follow each other in the order of time."""

    obs: Obs
    """[M, ...] as the environment gives them, with a mask where it gives one"""
    action: Tensor
    """[M] of one discrete choice, counted from 0, else [M, A], flat"""
    known: Tensor
    """[M] bool: the action is known, and is learned; where it is not, the sample is only remembered by a policy with memory"""
    begins: Tensor
    """[M] bool: the first sample of an episode"""
    together: Tensor
    """[E]: a number that episodes have in common which are held out together at least, as those of all cars of a game"""
    recording: Tensor
    """[E]: the same, of the recordings that they are from; where none are known, as `together`"""

    @property
    def count(self) -> int:
        return len(self.begins)

    @property
    def first(self) -> Tensor:
        """[E]: the number of the first sample of each episode."""
        return self.begins.nonzero().flatten()

    def to(self, device: torch.device) -> Samples:
        rest = self.action, self.known, self.begins, self.together, self.recording
        return Samples(map_obs(lambda x: x.to(device), self.obs), *(x.to(device) for x in rest))


def samples_of(found: Demonstrations, spaces: Spaces) -> Samples:
    """The samples of a file as an environment with these spaces would have given and taken them. UserError: they do not fit."""
    tensors, path = found.tensors, found.path
    obs = _observations(path, tensors, spaces.observation_space)
    action = tensors["action"]
    if isinstance(spaces.action_space, gymnasium.spaces.Box):
        action = _continuous(path, action, spaces.action_space)
    else:
        action = _discrete(path, action, spaces.action_space)
    known = tensors.get("known", torch.ones(found.count, dtype=torch.bool))
    if known.shape != (found.count,) or known.dtype != torch.bool:
        raise UserError(f"{path}: known must be bool [{found.count}], is {known.dtype} {list(known.shape)}")
    if not bool(known.any()):
        raise UserError(f"{path}: no action is known, so there is nothing to learn")
    if isinstance(obs, dict) and ACTION_MASK in obs:
        _refuse_forbidden(path, action, obs[ACTION_MASK], known, spaces.action_space)
    begins = episode_begins(tensors["episode"])
    together = tensors["together"][begins] if "together" in tensors else torch.arange(int(begins.sum()))
    recording = tensors["recording"][begins] if "recording" in tensors else together
    return Samples(obs, action, known, begins, together, recording)


def _observations(path: Path, tensors: dict[str, Tensor], space: gymnasium.Space[Any]) -> Obs:
    """The observations by the keys of the space. Extra keys in the file are left out."""
    wanted = empty_obs(space, 0)
    if not isinstance(wanted, dict):
        return _like(path, "obs", tensors, wanted)
    parts = {key: _like(path, "obs" if key == "obs" and "obs" in tensors else f"obs.{key}", tensors, x)
             for key, x in wanted.items() if key != ACTION_MASK}
    if ACTION_MASK in wanted:
        parts[ACTION_MASK] = _like(path, "mask", tensors, wanted[ACTION_MASK])
    return parts


def _like(path: Path, name: str, tensors: dict[str, Tensor], wanted: Tensor) -> Tensor:
    """The tensor of this name, with the type that the environment gives."""
    if name not in tensors:
        raise UserError(f"{path} holds no {name}, which this environment gives; it holds {', '.join(sorted(tensors))}. Record "
                        "it in this environment, or set its options as they were there")
    found = tensors[name]
    if found.shape[1:] != wanted.shape[1:]:
        raise UserError(f"{path}: {name} is {list(found.shape[1:])} of each sample, and in this environment it is "
                        f"{list(wanted.shape[1:])}: set its options as they were where the file was recorded")
    if found.dtype != wanted.dtype and not (wanted.is_floating_point() or found.dtype == torch.bool):
        raise UserError(f"{path}: {name} is {found.dtype}, and in this environment it is {wanted.dtype}: record it as that")
    return found.to(wanted.dtype)


def _continuous(path: Path, action: Tensor, space: gymnasium.spaces.Box) -> Tensor:
    if action.shape[1:] != space.shape or not action.is_floating_point():
        raise UserError(f"{path}: action is {action.dtype} {list(action.shape[1:])} of each sample, and this environment takes "
                        f"floats {list(space.shape)}")
    return action.float().view(len(action), -1)


def _discrete(path: Path, action: Tensor, space: gymnasium.Space[Any]) -> Tensor:
    """Choices counted from 0. A space of Gymnasium may begin elsewhere."""
    if action.shape[1:] != space.shape or action.is_floating_point():
        raise UserError(f"{path}: action is {action.dtype} {list(action.shape[1:])} of each sample, and this environment takes "
                        f"whole numbers {list(space.shape or ())}")
    first = torch.as_tensor(np.asarray(getattr(space, "start", 0)), dtype=torch.int64)
    chosen = (action.long() - first).view(len(action), -1)
    wrong = ((chosen < 0) | (chosen >= torch.tensor(choice_sizes(space)))).any(-1)
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise UserError(f"{path}: the action of row {row:,} is {action[row].tolist()}, which is not in {space}")
    return chosen[:, 0] if isinstance(space, gymnasium.spaces.Discrete) else chosen


def _refuse_forbidden(path: Path, action: Tensor, mask: Tensor, known: Tensor, space: gymnasium.Space[Any]) -> None:
    """Raises UserError if a mask forbids what was done: no policy with that mask can do it."""
    offsets = torch.tensor([0, *np.cumsum(choice_sizes(space)[:-1]).tolist()])
    allowed = mask.gather(-1, action.view(len(action), -1) + offsets).ne(0).all(-1)
    wrong = known & ~allowed
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise UserError(f"{path}: the mask of row {row:,} forbids its action {action[row].tolist()}: leave such rows out when "
                        "the file is written, or set known to false there")
