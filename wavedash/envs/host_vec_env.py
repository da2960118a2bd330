"""HostVecEnv: what every VecEnv over numpy environments has in common: tensors over the arrays, seeds, saved state."""
from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wavedash.envs.action_log import LIMIT, ActionLog, Mark
from wavedash.envs.arrays import Arrays
from wavedash.envs.errors import EnvError
from wavedash.envs.host import Array
from wavedash.envs.row_spec import RowSpec
from wavedash.envs.spaces import most
from wavedash.envs.staging import Staging
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.saved import Saved

logger = logging.getLogger(__name__)

MOST_EPISODES = 2**48
"""The largest index of an episode that a saved state may have."""


class HostVecEnv(VecEnv):
    """Environments that write into `arrays`, in shards that step together; subclasses say which process steps them.

    The state of an environment is its seed, the index of its episode and the actions taken in it, all known here. So saving
    needs no answer of a worker, and an environment need not know how to save itself.
    """

    def __init__(self, spec: RowSpec, arrays: Arrays, device: torch.device | str, groups: Sequence[slice]) -> None:
        self.num_rows = len(arrays.action)
        self.observation_space = spec.observation_space
        self.action_space = spec.action_space
        self.source_space = spec.source_space
        self.device = torch.device(device)
        self._arrays = arrays
        self._rows = RowTensors(spec, arrays, self.device)
        self._envs = groups
        self._groups = tuple(slice(g.start * spec.rows_per_env, g.stop * spec.rows_per_env) for g in groups)
        self._group_rows = [RowTensors(spec, arrays.part(envs), self.device) for envs in groups]
        self._logs = [ActionLog(arrays.part(envs)) for envs in groups]
        self._seeded = False
        self._dropped = 0

    @abstractmethod
    def _begin(self) -> None:
        """Begin episode `arrays.episode` of every environment."""

    @abstractmethod
    def _replay(self, actions: list[Array]) -> None:
        """Begin the episodes and take these actions in them."""

    @abstractmethod
    def notes(self) -> list[Any]:
        """Return what each environment with a method `notes` has noted since the last call. Never called during a step."""

    @property
    def groups(self) -> tuple[slice, ...]:
        return self._groups

    @property
    def health(self) -> dict[str, int]:
        return {"dropped_episodes": self._dropped}

    def name_row(self, row: int) -> str:
        per_env = self.num_rows // len(self._arrays.episode)
        return f"environment {row // per_env}" + (f", agent {row % per_env}" if per_env > 1 else "")

    def reset(self, seed: int | None = None) -> Obs:
        if seed is None and self._seeded:
            self._arrays.episode[:] += 1
        else:
            self._arrays.seed[0] = np.random.SeedSequence(seed).entropy % 2**63  # type: ignore[operator]
            self._arrays.episode[:] = 0
            self._seeded = True
        self._begin()
        return self._rows.obs()

    def save_state(self) -> dict[str, Tensor]:
        """It must not be called during a step."""
        return self._moment().state()

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        """Copies a few numbers per environment: the actions are in the logs anyway."""
        moment = self._moment()
        for log, mark in zip(self._logs, moment.marks, strict=True):
            log.hold(mark)
        return moment.state

    def _moment(self) -> Instant:
        return Instant(self._arrays.seed.copy(), self._arrays.episode.copy(), self._logs, [log.mark() for log in self._logs])

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        saved, arrays = Saved("env", state), self._arrays
        length = saved.has("length", torch.int64, (None,)).numpy()
        if len(length) != len(arrays.episode):
            raise EnvError(f"the saved state has {len(length)} environments, this run has {len(arrays.episode)}: "
                           "set env.count to what it was to resume exactly, or go on without the environments' saved state")
        self._check_saved(saved)
        episode = state["episode"].numpy() + (length < 0)
        arrays.seed[:], arrays.episode[:] = state["seed"].numpy(), episode
        self._seeded = True
        actions = np.split(state["action"].numpy(), np.cumsum(np.maximum(length, 0))[:-1])
        for envs, log in zip(self._envs, self._logs, strict=True):
            log.write(actions[envs])
        self._replay(actions)
        dropped = int((length < 0).sum() + (arrays.episode != episode).sum())
        if dropped:
            self._dropped += dropped
            logger.warning("%d of %d episodes could not be replayed and were dropped: too long, or the environment is not "
                           "deterministic under its seed", dropped, len(length))
        return self._rows.obs()

    def _check_saved(self, saved: Saved) -> None:
        """Check a state of as many environments as there are here. Actions of another shape belong to another environment;
        anything else that is wrong was not written by this package."""
        shape, envs = self._logs[0].action_shape, len(self._arrays.episode)
        if (found := saved.tensors.get("action")) is not None and tuple(found.shape[1:]) != shape:
            raise EnvError(f"the saved state has actions of shape {tuple(found.shape[1:])}, this environment takes {shape}: it "
                           "is the state of another environment")
        saved.has("seed", torch.int64, (1,))
        saved.has("episode", torch.int64, (envs,))
        saved.is_between("seed", 0, 2**63 - 1)
        saved.is_between("episode", 0, MOST_EPISODES)
        saved.is_between("length", -1, LIMIT)
        steps = int(saved.tensors["length"].clamp(min=0).sum())
        actions = saved.has("action", torch.from_numpy(self._arrays.action).dtype, (None, *shape))
        if len(actions) != steps:
            saved.refuse(f"action holds {len(actions):,} actions, but length says {steps:,}")
        if (greatest := most(self.action_space)) is not None:
            saved.is_between("action", 0, torch.as_tensor(greatest))


class Instant(NamedTuple):
    """The state of all environments between two steps, now or in the past."""

    seed: Array
    episode: Array
    logs: Sequence[ActionLog]
    marks: Sequence[Mark]

    def state(self) -> dict[str, Tensor]:
        marked = list(zip(self.logs, self.marks, strict=True))
        return {
            "seed": torch.from_numpy(self.seed),
            "episode": torch.from_numpy(self.episode),  # [E]
            "length": torch.tensor([length for log, mark in marked for length in log.lengths(mark)]),  # [E]; -1: too long
            "action": torch.from_numpy(np.concatenate([taken for log, mark in marked for taken in log.read(mark)])),
        }


class RowTensors:
    """The tensors of a range of rows: on the CPU views of the arrays, made once; elsewhere copies of them."""

    def __init__(self, spec: RowSpec, arrays: Arrays, device: torch.device) -> None:
        self._plain, self._keys = spec.is_plain, list(arrays.obs)
        self._device = device
        self._reports_success = arrays.reports_success
        self._success_reported = False
        self._ready: dict[bool, Step] = {}  # by whether an episode ended: the views never change
        self._action = torch.from_numpy(arrays.action)
        always = [*arrays.obs.values(), arrays.reward, arrays.terminated, arrays.truncated, arrays.active, arrays.success]
        self._fields = {False: always, True: [*always, *arrays.final_obs.values()]}
        """The fields to send, by whether an episode ended."""
        self._views = [torch.from_numpy(field) for field in self._fields[True]]

    @cached_property
    def _staging(self) -> Staging | None:
        return None if self._device.type == "cpu" else Staging(self._device, self._action.numpy(), self._fields[True])

    def write_action(self, action: Tensor) -> None:
        """Write the action into the arrays, where the environments read it."""
        self._action.copy_(action if self._staging is None else torch.from_numpy(self._staging.receive(action)))

    def obs(self) -> Obs:
        return self._obs([view.to(self._device) for view in self._views[: len(self._keys)]])

    def step(self, ended: bool) -> Step:
        if self._reports_success[0] and not self._success_reported:
            self._success_reported = True
            self._ready.clear()
        if self._staging is not None:
            return self._build(self._staging.send(self._fields[ended]), ended)
        if ended not in self._ready:
            self._ready[ended] = self._build(self._views, ended)
        return self._ready[ended]

    def _build(self, tensors: Sequence[Tensor], ended: bool) -> Step:
        obs = self._obs(tensors)
        reward, terminated, truncated, active, success, *final_obs = tensors[len(self._keys) :]
        return Step(
            obs=obs,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            final_obs=self._obs(final_obs) if ended else obs,
            active=active,
            metrics={"episode/success": success} if self._success_reported else {},
        )

    def _obs(self, tensors: Sequence[Tensor]) -> Obs:
        """The observation, whose parts are the first of these tensors."""
        return tensors[0] if self._plain else dict(zip(self._keys, tensors, strict=False))
