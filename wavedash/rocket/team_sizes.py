"""Team sizes side by side: which shards the arenas are divided into, and whether one policy can play all sizes.

With one team size, shards are equal parts of the arenas (`env.groups`). With several (`env.rocket.sizes`) each size is a shard:
its arenas have another number of cars, so they cannot step in one call with the others.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from gymnasium.spaces import Dict

from wavedash.config import EnvConfig, RocketConfig, TeamSize
from wavedash.envs.errors import EnvError
from wavedash.envs.kinds import Spaces
from wavedash.errors import UserError
from wavedash.rocket.rehearsal import rehearse
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task


class ShardPlan(NamedTuple):
    """What one shard shall be."""

    size: TeamSize
    arenas: int
    workers: int
    """Worker processes of RocketSim; 0: none"""


def shard_plans(config: EnvConfig, device: torch.device | str) -> list[ShardPlan]:
    """The shards of an environment. On a GPU warp has one shard for each team size."""
    assert config.rocket is not None
    sizes = _played(config.rocket.team_sizes, config.count)
    if len(sizes) == 1:
        counts = _equal_parts(config.count, _groups(config, device))
        workers = _equal_parts(config.workers, len(counts))
        return [ShardPlan(sizes[0], *each) for each in zip(counts, workers, strict=True)]
    counts = divided(config.count, [size.share for size in sizes])
    cars = [(size.blue + size.orange) * count for size, count in zip(sizes, counts, strict=True)]
    workers = divided(config.workers, cars, counts) if config.workers else [0] * len(sizes)
    return [ShardPlan(*each) for each in zip(sizes, counts, workers, strict=True)]


def _groups(config: EnvConfig, device: torch.device | str) -> int:
    """How many shards arenas of one team size have."""
    assert config.rocket is not None
    if config.rocket.simulator == "warp":
        # The number of shards must not depend on the machine: each has a random stream of its own, and a run must go on
        # exactly on any machine.
        return min(config.groups, config.count) if torch.device(device).type == "cpu" else 1
    return config.groups if config.workers else 1


def _played(sizes: Sequence[TeamSize], arenas: int) -> list[TeamSize]:
    """The sizes that are played in so many arenas. A run has an arena for each of them; where fewer are made, as to show a
    game, those with the largest shares are played, and of these the larger teams first."""
    chosen = sorted(enumerate(sizes), key=lambda each: (each[1].share, each[0]))[-arenas:]
    return [size for _, size in sorted(chosen)]


def divided(total: int, weights: Sequence[float], most: Sequence[int] | None = None) -> list[int]:
    """Divides a number by weight, so that each part gets at least one and no more than its `most`: first the whole shares, then
    one by one what is left over, to those who are short of the most."""
    most = [total] * len(weights) if most is None else most
    wanted = [total * weight / sum(weights) for weight in weights]
    parts = [min(max(1, int(share)), limit) for share, limit in zip(wanted, most, strict=True)]
    while (left := total - sum(parts)) != 0:
        step = 1 if left > 0 else -1
        able = [i for i, part in enumerate(parts) if 1 <= part + step <= most[i]]
        parts[max(able, key=lambda i: (step * (wanted[i] - parts[i]), -i))] += step
    return parts


def _equal_parts(total: int, parts: int) -> list[int]:
    return [total * (i + 1) // parts - total * i // parts for i in range(parts)]


def rehearse_sizes(config: RocketConfig, sizes: Sequence[TeamSize]) -> Spaces:
    """The spaces of one car, which must be the same in teams of all these sizes. EnvError: they are not, or a part of the task
    does not do what its kind must."""
    found = {size: _rehearsed(config, size, sizes) for size in sizes}
    (first, here), *others = found.items()
    for size, there in others:
        if here != there:
            raise EnvError(f"a car sees {_told(here)} in {first} and {_told(there)} in {size}, and one policy plays both. "
                           f"{_advice(sizes)}")
    return here


def _rehearsed(config: RocketConfig, size: TeamSize, sizes: Sequence[TeamSize]) -> Spaces:
    task = Task.configured(config)
    try:
        task.observation.size(size.blue + size.orange)
    except UserError as error:
        raise EnvError(f"env.rocket.observation has no room for {size}: {error}. {_advice(sizes)}") from error
    except Exception:
        pass  # a mistake in somebody's own observation, which the rehearsal names
    return Spaces(*rehearse(task, config.of_size(size)))


def _advice(sizes: Sequence[TeamSize]) -> str:
    places = max(size.larger for size in sizes)
    return (f"Set env.rocket.observation to one with {places} places per team: {{advanced_obs_plus: {{team_size: {places}}}}}, "
            f"or {{default_obs: {{zero_padding: {places}}}}}")


def _told(spaces: Spaces) -> str:
    seen = spaces.observation_space
    return f"{(seen['obs'] if isinstance(seen, Dict) else seen).shape[0]} numbers"  # type: ignore[index]


def team_size_of(state: GameState) -> TeamSize:
    """How many cars each team has in these arenas. This is a host sync."""
    return TeamSize(*(int((state.cars.team[0] == team).sum()) for team in (0, 1)))
