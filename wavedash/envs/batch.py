"""HostBatch: steps a list of worlds and writes the results into arrays. The same code runs in-process and in a worker.

Episode j of world i is seeded by (run seed, i, j) alone, so it is the same episode whichever process plays it. That is also
what makes a world that cannot be pickled resumable: reset with the same seed, then replay the actions.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wavedash.envs.arrays import Arrays
from wavedash.envs.errors import EnvError
from wavedash.envs.finite import all_finite, first_not_finite
from wavedash.envs.host import Array, HostEnv
from wavedash.envs.obs_writer import ObsWriter
from wavedash.envs.row_spec import RowSpec

# Types of a reward that need no closer look, which would take longer than the rest of the bookkeeping of a step.
NUMBERS = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
SEED_BLOCK = 64


def episode_seed(run_seed: int, world: int, episode: int) -> int:
    """Depends on nothing else. 31 bits, because simulators written in C take an int."""
    return _seed_block(run_seed, world, episode // SEED_BLOCK)[episode % SEED_BLOCK]


@lru_cache(maxsize=4096)
def _seed_block(run_seed: int, world: int, block: int) -> list[int]:
    # A SeedSequence costs as much as a step of CartPole, so it is asked for many seeds at once.
    sequence = np.random.SeedSequence(run_seed, spawn_key=(world, block))
    return (sequence.generate_state(SEED_BLOCK) & 0x7FFF_FFFF).tolist()


class HostBatch:
    """Worlds `first`, `first + 1`, ... of the run, stepped one after the other; an ended episode is followed by the next."""

    def __init__(self, worlds: Sequence[HostEnv], spec: RowSpec, arrays: Arrays, first: int = 0) -> None:
        for i, world in enumerate(worlds):
            if RowSpec.of(world) != spec:
                raise EnvError(f"environment {first + i} differs from the others: it is {RowSpec.of(world)}, they are {spec}; "
                               "environments that train together need equal spaces")
        self._worlds, self._arrays, self._first = list(worlds), arrays, first
        self._write_obs = ObsWriter(spec, arrays.obs, len(worlds)).write
        self._start = spec.action_start
        self._reward_shape = () if spec.rows_per_world == 1 else (spec.rows_per_world,)
        self._plain_rewards = NUMBERS if spec.rows_per_world == 1 else frozenset()
        # Where a world's rows are: an index where there is one row, so that unbatched values fit.
        k = spec.rows_per_world
        self._rows: list[int | slice] = [i if k == 1 else slice(i * k, (i + 1) * k) for i in range(len(worlds))]
        self._seats = np.ones_like(arrays.active)
        self._float_obs = {key: a for key, a in arrays.obs.items() if np.issubdtype(a.dtype, np.floating)}  # may hold NaN
        self._index = range(len(worlds))
        self._steps = [world.step for world in worlds]
        self._beats = int(arrays.heartbeat.max())

    def reset(self) -> None:
        """Begin episode `arrays.episode` of every world."""
        for i in range(len(self._worlds)):
            self._begin(i)
        self._check_observations("reset")

    def replay(self, actions: Sequence[Array]) -> None:
        """Begin the episodes again and take these actions in them, one array [length, ...] per world.

        An episode that ends on the way was not deterministic; the next one begins, which the index of the episode shows.
        """
        for i, (world, taken) in enumerate(zip(self._worlds, actions, strict=True)):
            self._begin(i)
            for action in taken + self._start:
                self._arrays.length[i] += 1
                try:
                    obs, _, terminated, truncated, _ = world.step(action)
                    self._write_obs(i, obs)
                except Exception as error:
                    raise self._broken(i, "step", error) from error
                self._live(i)
                if (np.any(terminated) or np.any(truncated)) and self._end(i, terminated, truncated):
                    break
        self._check_observations("step")

    def step(self) -> bool:
        """Take `arrays.action`; tells whether an episode ended, of a world or of one of its rows."""
        arrays = self._arrays
        reward_out, terminated_out, truncated_out = arrays.reward, arrays.terminated, arrays.truncated
        write_obs, plain_rewards, heartbeat, beats = self._write_obs, self._plain_rewards, arrays.heartbeat, self._beats
        alone = not self._reward_shape
        arrays.active[:] = self._seats
        # A new array, because an environment may keep the action that it was given.
        actions = self._by_world(arrays.action) + self._start
        arrays.length[:] += 1
        ended: list[tuple[int, Any]] = []
        for i, step, row, action in zip(self._index, self._steps, self._rows, actions, strict=True):
            try:
                obs, reward, terminated, truncated, info = step(action)
                write_obs(i, obs)
                if reward.__class__ not in plain_rewards:
                    self._check_reward(reward)
            except Exception as error:
                raise self._broken(i, "step", error) from error
            reward_out[row] = reward
            terminated_out[row] = terminated
            truncated_out[row] = truncated
            if (terminated or truncated) if alone else (np.any(terminated) or np.any(truncated)):
                ended.append((i, info))
            beats += 1
            heartbeat[i] = beats
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
        return bool(ended)

    def notes(self) -> list[Any]:
        """What each world has noted since it was last asked; None of a world that takes no notes."""
        return [world.notes() if hasattr(world, "notes") else None for world in self._worlds]

    def close(self) -> None:
        """Safe to call twice."""
        while self._worlds:
            self._worlds.pop().close()

    def _by_world(self, array: Array) -> Array:
        """[N, ...] as [E, ...], or [E, rows, ...] where worlds have several rows."""
        return array if not self._reward_shape else array.reshape(len(self._worlds), *self._reward_shape, *array.shape[1:])

    def _begin(self, i: int) -> None:
        self._arrays.length[i] = 0
        try:
            self._write_obs(i, self._worlds[i].reset(self._seed(i)))
        except Exception as error:
            raise self._broken(i, "reset", error) from error
        self._seats[self._rows[i]] = self._worlds[i].active
        self._live(i)

    def _end(self, i: int, terminated: Any, truncated: Any) -> bool:
        """Of rows of world i. When none is left that takes part, the next episode begins; tells whether it did."""
        rows = self._rows[i]
        self._seats[rows] &= ~np.logical_or(terminated, truncated)
        over = not self._seats[rows].any()
        if over:
            self._arrays.episode[i] += 1
            self._begin(i)
        return over

    def _seed(self, i: int) -> int:
        return episode_seed(int(self._arrays.seed[0]), self._first + i, int(self._arrays.episode[i]))

    def _live(self, i: int) -> None:
        self._beats += 1
        self._arrays.heartbeat[i] = self._beats

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
        """The whole block at once; only a block with a bad value is searched."""
        for key, array in self._float_obs.items():
            if not all_finite(array):
                row, *index = first_not_finite(array)
                name = f"observation {key!r}" if key else "observation"
                self._not_finite(row, f"{name}{index} is {array[(row, *index)]}", call)

    def _check_rewards(self) -> None:
        if not all_finite(self._arrays.reward):
            row, = first_not_finite(self._arrays.reward)
            self._not_finite(row, f"the reward is {self._arrays.reward[row]} (as float32)", "step")

    def _not_finite(self, row: int, what: str, call: str) -> None:
        world = row * len(self._worlds) // len(self._arrays.action)
        action = f" after action {self._arrays.action[row].tolist()}" if call == "step" else ""
        raise EnvError(f"{self._where(world, call)}: {what}{action}. Values must be finite: look for a division by zero or a "
                       "simulation that blew up, and end the episode before it gets there")

    def _broken(self, i: int, call: str, error: Exception) -> EnvError:
        if isinstance(error, EnvError):
            return EnvError(f"{self._where(i, call)}: {error}")
        return EnvError(f"{self._where(i, call)} raised {type(error).__name__}: {error}. The traceback above shows where; "
                        "reset the environment with this seed to see it again", shows_cause=True)

    def _where(self, i: int, call: str) -> str:
        return (f"environment {self._first + i}, episode {self._arrays.episode[i]} (seed {self._seed(i)}), "
                f"step {self._arrays.length[i]}: {call}()")
