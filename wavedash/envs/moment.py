"""Moment: names a call of an environment by episode, seed and step, and says how to repeat one that failed.

This file runs in worker processes, so it must not import torch.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wavedash.envs.arrays import Arrays
from wavedash.envs.factory import EnvFactory
from wavedash.envs.host import Array
from wavedash.envs.workers.signs_of_life import MAKING

RESETTING, STEPPING = MAKING + 1, MAKING + 2
"""What a process does besides waiting and making environments: a call of the environment that gave the latest sign of life."""
SEED_BLOCK = 64
"""Seeds that are drawn at once."""
SHOWN_ACTIONS = 400
"""Characters of a list of actions that a message shows; a longer list goes to a file."""


def episode_seed(run_seed: int, env: int, episode: int) -> int:
    """The seed of an episode, which depends on nothing else. It has 31 bits, because simulators written in C take an int."""
    return _seed_block(run_seed, env, episode // SEED_BLOCK)[episode % SEED_BLOCK]


@lru_cache(maxsize=4096)
def _seed_block(run_seed: int, env: int, block: int) -> list[int]:
    # A SeedSequence costs as much as a step of CartPole, so it draws many seeds at once.
    sequence = np.random.SeedSequence(run_seed, spawn_key=(env, block))
    return (sequence.generate_state(SEED_BLOCK) & 0x7FFF_FFFF).tolist()


class Moment(NamedTuple):
    """A call of an environment."""

    env: int
    """Its number in the whole run."""
    episode: int
    seed: int
    step: int
    """Steps taken in the episode; 0 in its reset()."""
    call: str

    @classmethod
    def of(cls, arrays: Arrays, first: int, i: int, call: str) -> Moment:
        """The moment of environment `i` of `arrays`, whose first environment is number `first` of the run."""
        episode = int(arrays.episode[i])
        return cls(first + i, episode, episode_seed(int(arrays.seed[0]), first + i, episode), int(arrays.length[i]), call)

    def __str__(self) -> str:
        return f"environment {self.env}, episode {self.episode} (seed {self.seed}), step {self.step}: {self.call}()"


def current_moment(arrays: Arrays, first: int) -> Moment | None:
    """The call that the process of these environments is in; None where it is in none."""
    call = {RESETTING: "reset", STEPPING: "step"}.get(int(arrays.doing[0]))
    return None if call is None else Moment.of(arrays, first, arrays.signs.thing, call)


def how_to_see_it_again(moment: Moment, make: Callable[[], Any], actions: Array) -> str:
    """Lines of Python that play an episode up to this moment. `actions` are those taken in it, as the environment gets them."""
    lines = ["from wavedash.envs.adapters import as_host_env"]
    if isinstance(make, EnvFactory):
        lines += ["from wavedash.envs.factory import EnvFactory", f"env = as_host_env({make!r}())"]
    else:
        lines += [f"env = as_host_env(make())  # make: {make!r}"]
    lines.append(f"env.reset({moment.seed})")
    if moment.step:
        lines[:0] = ["import numpy as np"]
        lines += [f"for action in {_as_source(actions[: moment.step], moment)}:", "    env.step(action)"]
    return "To see it again:\n" + "\n".join(f"    {line}" for line in lines)


def _as_source(actions: Array, moment: Moment) -> str:
    text = f"np.array({actions.tolist()}, np.{actions.dtype})"
    if len(text) <= SHOWN_ACTIONS:
        return text
    path = Path(tempfile.gettempdir(), f"wavedash-{os.getpid()}-environment-{moment.env}-episode-{moment.episode}.npy")
    try:
        np.save(path, actions)
    except OSError:  # the disk is full: the seed alone is better than nothing
        return f"{text[:SHOWN_ACTIONS]} ...  # {len(actions)} actions, which could not be written to {path.parent}"
    return f"np.load({str(path)!r})"
