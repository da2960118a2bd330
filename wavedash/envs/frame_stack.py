"""FrameStackEnv: any VecEnv whose rows see their latest observations together, so that pictures show motion.

    vector, number   [k * numbers], the oldest first
    picture          [H, W, k * C], the oldest first, whatever the order of the axes was

At the start of an episode its first observation is repeated. Action masks are not stacked.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from wavedash.envs.headline import Headline
from wavedash.envs.obs import ACTION_MASK, Obs, channels_last, is_picture
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.saved import Saved

SAVED = "frame_stack"
"""The name of the frames in a saved state."""


class FrameStackEnv(VecEnv):
    """Keeps [N, k, ...] frames of every row on the device of `env`, which does everything else."""

    def __init__(self, env: VecEnv, frames: int):
        self.env, self.frames = env, frames
        self.num_rows, self.action_space = env.num_rows, env.action_space
        self.device, self.capturable = env.device, env.capturable
        seen = env.observation_space
        self._shapes = {key: part.shape for key, part in _parts(seen).items()}
        self.observation_space = spaces.Dict(
            {key: self._stacked_space(key, part) for key, part in seen.spaces.items()}
        ) if isinstance(seen, spaces.Dict) else self._stacked_space("", seen)
        self._stack: dict[str, Tensor] = {}  # [N, k, ...] by key, the oldest first

    @property
    def groups(self) -> tuple[slice, ...]:
        return self.env.groups

    @property
    def lanes(self) -> Sequence[str]:
        return self.env.lanes

    @property
    def health(self) -> dict[str, int]:
        return self.env.health

    @property
    def tasks(self) -> Sequence[Any]:
        return self.env.tasks

    @property
    def generators(self) -> Sequence[torch.Generator]:
        return self.env.generators

    @property
    def headlines(self) -> Sequence[Headline]:
        return self.env.headlines

    @property
    def fault(self) -> Tensor | None:
        return self.env.fault

    def explain_fault(self) -> str | None:
        return self.env.explain_fault()

    def name_row(self, row: int) -> str:
        return self.env.name_row(row)

    def reset(self, seed: int | None = None) -> Obs:
        return self._begin(self.env.reset(seed))

    def prepare(self) -> None:
        self.env.prepare()

    def step(self, action: Tensor) -> Step:
        return self._follow(slice(0, self.num_rows), self.env.step(action))

    def send(self, group: int, action: Tensor) -> None:
        self.env.send(group, action)

    def recv(self) -> tuple[int, Step]:
        group, step = self.env.recv()
        return group, self._follow(self.groups[group], step)

    def save_state(self) -> dict[str, Tensor]:
        return _with_frames(self.env.save_state(), self._stack)

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        kept, frames = self.env.keep_state(), {key: x.clone() for key, x in self._stack.items()}
        return lambda: _with_frames(kept(), frames)

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        obs = self.env.load_state({name: x for name, x in state.items() if not name.startswith(f"{SAVED}.")})
        fresh = self._begin(obs)
        saved = {key: state.get(f"{SAVED}.{key}") for key in self._stack}
        if any(x is None or x.shape != self._stack[key].shape for key, x in saved.items()):
            return fresh
        for key, x in self._stack.items():
            Saved("env", state).is_like(f"{SAVED}.{key}", x)
        # Where a row could not be restored to the same observation, the saved frames belong to another episode.
        same = torch.stack([(x[:, -1].to(self.device) == self._stack[key][:, -1]).flatten(1).all(-1)  # type: ignore[index]
                            for key, x in saved.items()]).all(0)
        for key, x in self._stack.items():
            x.copy_(torch.where(_beside(same, x), saved[key].to(self.device), x))  # type: ignore[union-attr]
        return self._seen(obs, self._stack)

    def close(self) -> None:
        self.env.close()

    def _begin(self, obs: Obs) -> Obs:
        self._stack = {key: self._repeated(x).clone() for key, x in _stackable(obs).items()}
        return self._seen(obs, self._stack)

    def _follow(self, rows: slice, step: Step) -> Step:
        # An inactive row may be about to begin an episode, which no other flag says.
        begun = step.terminated | step.truncated | ~step.active
        stack = {key: x[rows] for key, x in self._stack.items()}
        final_obs = None
        if step.final_obs is not step.obs:
            last = {key: self._moved_on(stack[key], x) for key, x in _stackable(step.final_obs).items()}
            final_obs = self._seen(step.final_obs, last)
        for key, x in _stackable(step.obs).items():
            frames = stack[key]
            frames.copy_(torch.where(_beside(begun, frames), self._repeated(x), self._moved_on(frames, x)))
        obs = self._seen(step.obs, stack)
        return step._replace(obs=obs, final_obs=obs if final_obs is None else final_obs)

    def _repeated(self, x: Tensor) -> Tensor:
        return x.unsqueeze(1).expand(-1, self.frames, *x.shape[1:])

    @staticmethod
    def _moved_on(frames: Tensor, x: Tensor) -> Tensor:
        return torch.cat([frames[:, 1:], x.unsqueeze(1)], 1)

    def _seen(self, obs: Obs, stack: dict[str, Tensor]) -> Obs:
        """Return what the policy sees: the frames side by side, and those parts of `obs` that are not stacked."""
        if not isinstance(obs, dict):
            return joined(stack[""], self._shapes[""])
        return {key: joined(stack[key], self._shapes[key]) if key in stack else x for key, x in obs.items()}

    def _stacked_space(self, key: str, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        if key == ACTION_MASK:
            return space
        assert isinstance(space, spaces.Box)
        low, high = (joined(torch.from_numpy(np.stack([bound] * self.frames)[None]), space.shape)[0].numpy()
                     for bound in (space.low, space.high))
        return spaces.Box(low, high, dtype=space.dtype.type)


def joined(frames: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Frames [N, k, *shape] side by side."""
    if not is_picture(shape):
        return frames.flatten(1)
    if len(shape) == 2:
        return frames.movedim(1, -1)  # [N, H, W, k]
    by_pixel = frames if channels_last(shape) else frames.movedim(2, -1)  # [N, k, H, W, C]
    return by_pixel.movedim(1, -2).flatten(-2)


def _with_frames(state: dict[str, Tensor], stack: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state with its frames; empty where the environment cannot save its state."""
    return {**state, **{f"{SAVED}.{key}": x for key, x in stack.items()}} if state else {}


def _parts(space: gymnasium.Space[Any]) -> dict[str, Any]:
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}


def _stackable(obs: Obs) -> dict[str, Tensor]:
    return {key: x for key, x in obs.items() if key != ACTION_MASK} if isinstance(obs, dict) else {"": obs}


def _beside(rows: Tensor, x: Tensor) -> Tensor:
    """Rows [N] with as many axes as x."""
    return rows.view(-1, *(1,) * (x.dim() - 1))
