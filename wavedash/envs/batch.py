"""HostBatch: steps a list of environments and writes the results into arrays. The same code runs in-process and in a worker.

Episode j of environment i is seeded by (run seed, i, j) alone, so it is the same whichever process plays it. That is also what
makes an environment that cannot be pickled resumable: reset with the same seed, then replay the actions.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavedash.envs.arrays import Arrays
from wavedash.envs.errors import EnvError
from wavedash.envs.finite import all_finite, first_not_finite
from wavedash.envs.host import Array, HostEnv
from wavedash.envs.moment import RESETTING, STEPPING, Moment
from wavedash.envs.moment import episode_seed as episode_seed
from wavedash.envs.obs_writer import ObsWriter
from wavedash.envs.row_spec import RowSpec, choice_sizes
from wavedash.envs.workers.signs_of_life import WAITING

# Types of a reward that need no closer look, which would take longer than the rest of the bookkeeping of a step.
NUMBERS = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
# sys.exit() in an environment ends the episode, not the training.
FAILURES = (Exception, SystemExit)


class HostBatch:
    """Environments `first`, `first + 1`, ... of the run, stepped in turn; an ended episode is followed by the next."""

    def __init__(self, envs: Sequence[HostEnv], spec: RowSpec, arrays: Arrays, first: int = 0) -> None:
        for i, env in enumerate(envs):
            if RowSpec.of(env) != spec:
                raise EnvError(f"environment {first + i} differs from the others: it is {RowSpec.of(env)}, they are {spec}; "
                               "environments that train together need equal spaces")
        self._envs, self._arrays, self._first = list(envs), arrays, first
        self._write_obs = ObsWriter(spec, arrays.obs, len(envs)).write
        self._start = spec.action_start
        self._reward_shape = () if spec.rows_per_env == 1 else (spec.rows_per_env,)
        self._plain_rewards = NUMBERS if spec.rows_per_env == 1 else frozenset()
        # The rows of each environment: an index where there is one row, so that unbatched values fit.
        k = spec.rows_per_env
        self._rows: list[int | slice] = [i if k == 1 else slice(i * k, (i + 1) * k) for i in range(len(envs))]
        self._seats = np.ones_like(arrays.active)
        self._float_obs = {key: a for key, a in arrays.obs.items() if np.issubdtype(a.dtype, np.floating)}  # may hold NaN
        mask, sizes = arrays.obs.get("action_mask"), choice_sizes(spec.action_space)
        self._mask = mask if mask is not None and mask.shape[1:] == (sum(sizes),) else None
        self._choices = np.cumsum([0, *sizes[:-1]])  # where the part of each choice begins in a mask
        self._index = range(len(envs))
        self._steps = [env.step for env in envs]
        self._beats = int(arrays.heartbeat.max())

    def reset(self) -> None:
        """Begin episode `arrays.episode` of every environment."""
        for i in range(len(self._envs)):
            self._begin(i)
        self._check_observations("reset")
        self._check_masks()
        self._arrays.doing[0] = WAITING

    def replay(self, actions: Sequence[Array]) -> None:
        """Begin the episodes again and take these actions in them, one array [length, ...] per environment.

        An episode that ends on the way was not deterministic; the next one begins, which the index of the episode shows.
        """
        for i, (env, taken) in enumerate(zip(self._envs, actions, strict=True)):
            self._begin(i)
            for action in taken + self._start:
                self._arrays.length[i] += 1
                self._calling(i, STEPPING)
                try:
                    obs, _, terminated, truncated, _ = env.step(action)
                    self._write_obs(i, obs)
                except FAILURES as error:
                    raise self._broken(i, "step", error) from error
                if (np.any(terminated) or np.any(truncated)) and self._end(i, terminated, truncated):
                    break
        self._check_observations("step")
        self._arrays.doing[0] = WAITING

    def step(self) -> bool:
        """Take `arrays.action`. Returns whether an episode ended, of an environment or of one of its rows."""
        arrays = self._arrays
        reward_out, terminated_out, truncated_out = arrays.reward, arrays.terminated, arrays.truncated
        write_obs, plain_rewards, heartbeat, beats = self._write_obs, self._plain_rewards, arrays.heartbeat, self._beats
        alone = not self._reward_shape
        arrays.active[:] = self._seats
        # A new array, because an environment may keep the action that it was given.
        actions = self._by_env(arrays.action) + self._start
        arrays.length[:] += 1
        arrays.doing[0] = STEPPING
        ended: list[tuple[int, Any]] = []
        for i, step, row, action in zip(self._index, self._steps, self._rows, actions, strict=True):
            beats += 1
            heartbeat[i] = beats
            try:
                obs, reward, terminated, truncated, info = step(action)
                write_obs(i, obs)
                if reward.__class__ not in plain_rewards:
                    self._check_reward(reward)
            except FAILURES as error:
                raise self._broken(i, "step", error) from error
            reward_out[row] = reward
            terminated_out[row] = terminated
            truncated_out[row] = truncated
            if (terminated or truncated) if alone else (np.any(terminated) or np.any(truncated)):
                ended.append((i, info))
        self._beats = beats
        self._check_observations("step")
        self._check_rewards()
        if ended:
            for key, array in arrays.obs.items():
                arrays.final_obs[key][:] = array
            for i, info in ended:
                self._note_success(i, info)
                self._end(i, terminated_out[self._rows[i]], truncated_out[self._rows[i]])
            self._check_observations("reset")
        self._check_masks()
        arrays.doing[0] = WAITING
        return bool(ended)

    def notes(self) -> list[Any]:
        """Return what each environment has noted since the last call; None for an environment that takes no notes."""
        return [env.notes() if hasattr(env, "notes") else None for env in self._envs]

    def close(self) -> None:
        """Safe to call twice."""
        while self._envs:
            self._envs.pop().close()

    def _by_env(self, array: Array) -> Array:
        """[N, ...] as [E, ...], or [E, rows, ...] where environments have several rows."""
        return array if not self._reward_shape else array.reshape(len(self._envs), *self._reward_shape, *array.shape[1:])

    def _begin(self, i: int) -> None:
        self._arrays.length[i] = 0
        self._calling(i, RESETTING)
        try:
            self._write_obs(i, self._envs[i].reset(self._moment(i, "reset").seed))
        except FAILURES as error:
            raise self._broken(i, "reset", error) from error
        self._seats[self._rows[i]] = self._envs[i].active

    def _end(self, i: int, terminated: Any, truncated: Any) -> bool:
        """End the episode of rows of environment i. When no active row is left, the next one begins; returns whether it did."""
        rows = self._rows[i]
        self._seats[rows] &= ~np.logical_or(terminated, truncated)
        over = not self._seats[rows].any()
        if over:
            self._arrays.episode[i] += 1
            self._begin(i)
        return over

    def _calling(self, i: int, what: int) -> None:
        """Notes, for whoever finds the process hung or dead, that environment i is about to be called."""
        self._beats += 1
        self._arrays.heartbeat[i] = self._beats
        self._arrays.doing[0] = what

    def _note_success(self, i: int, info: Any) -> None:
        success = info.get("is_success", info.get("success")) if info else None
        self._arrays.success[self._rows[i]] = 0.0 if success is None else bool(success)
        if success is not None:
            self._arrays.reports_success[0] = True

    def _check_reward(self, reward: Any) -> None:
        array = np.asarray(reward)
        if array.shape != self._reward_shape or array.dtype.kind not in "fiub":
            expected = f"an array of shape {self._reward_shape}" if self._reward_shape else "a number"
            raise EnvError(f"the reward must be {expected} but is {reward!r}: return float(reward)")

    def _check_observations(self, call: str) -> None:
        """Check the whole block at once; only a block with a bad value is searched."""
        for key, array in self._float_obs.items():
            if not all_finite(array):
                row, *index = first_not_finite(array)
                name = f"observation {key!r}" if key else "observation"
                self._not_finite(row, f"{name}{index} is {array[(row, *index)]}", call)

    def _check_masks(self) -> None:
        """Check the masks of the next actions. The mask of an episode's last observation may allow nothing."""
        if self._mask is None:
            return
        possible = np.logical_or.reduceat(self._mask != 0, self._choices, axis=1).all(1) | ~self._seats
        if not possible.all():
            row = int(possible.argmin())
            call = "step" if self._arrays.length[row * len(self._envs) // len(possible)] else "reset"
            raise EnvError(f"{self._place(row, call)}: 'action_mask' allows no action: of every choice at least one must be "
                           "allowed. If nothing can be done there, end the episode, or allow an action that does nothing")

    def _check_rewards(self) -> None:
        if not all_finite(self._arrays.reward):
            row, = first_not_finite(self._arrays.reward)
            self._not_finite(row, f"the reward is {self._arrays.reward[row]} (as float32)", "step")

    def _not_finite(self, row: int, what: str, call: str) -> None:
        action = f" after action {self._arrays.action[row].tolist()}" if call == "step" else ""
        raise EnvError(f"{self._place(row, call)}: {what}{action}. Values must be finite: look for a division by zero or a "
                       "simulation that blew up, and end the episode before it gets there")

    def _broken(self, i: int, call: str, error: BaseException) -> EnvError:
        if isinstance(error, EnvError):
            return EnvError(f"{self._moment(i, call)}: {error}")
        return EnvError(f"{self._moment(i, call)} raised {type(error).__name__}: {error}. The traceback above shows where; "
                        "reset the environment with this seed to see it again", shows_cause=True)

    def _place(self, row: int, call: str) -> str:
        """The call, with the agent where an environment has several."""
        env, agent = divmod(row, len(self._arrays.action) // len(self._envs))
        return f"{self._moment(env, call)}" + (f", agent {agent}" if self._reward_shape else "")

    def _moment(self, i: int, call: str) -> Moment:
        return Moment.of(self._arrays, self._first, i, call)
