"""Plays whole episodes of all rows of an environment, and collects their statistics."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from wavedash.envs.vec_env import EnvError, Obs, Step, VecEnv


@dataclass(frozen=True)
class Games:
    """Statistics of whole episodes of one player, a number for each episode."""

    returns: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    success: list[float] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    """Metrics of the environment's steps, such as touches per minute, averaged over each episode; those of attempts have a
    number for each attempt, and are absent where there were none. Those of lanes are named `lane/<name>/...`; all other
    statistics are of the main task"""


class Watcher(Protocol):
    """Looks at episodes while they are played, without an effect on them."""

    def begin(self) -> None:
        """Is called when all environments were reset."""

    def stepped(self) -> None:
        """Is called after each step."""

    def look(self) -> None:
        """Is called after the last step."""


@torch.no_grad()
def play(env: VecEnv, act: Callable[[Obs], Tensor], episodes: int, rounds: int, seed: int,
         forget: Callable[[Tensor], None] = lambda rows: None, watcher: Watcher | None = None) -> Games:
    """Every row plays `rounds` episodes, so that short ones are not favored; those of `episodes` environments are counted.
    `forget` gets a mask of the rows [N] whose episode begins."""
    obs, rows, device = env.reset(seed), env.num_rows, env.device
    if watcher is not None:
        watcher.begin()
    sums: dict[str, Tensor] = {name: torch.zeros(rows, device=device) for name in ("return", "length")}
    played, games = [0] * rows, Games()
    attempts: list[list[tuple[str, float]]] = [[] for _ in range(rows)]
    """Outcomes of the attempts of each row in its current episode"""
    most = episodes * rows // max(1, -(-episodes // rounds))
    prefixes = ["", *(f"lane/{name}/" for name in env.lanes)]
    forget(torch.ones(rows, dtype=torch.bool, device=device))
    while min(played) < rounds:
        step = env.step(act(obs))
        if env.fault is not None and bool(env.fault) and (message := env.explain_fault()):
            raise EnvError(message)
        obs, active = step.obs, step.active.float()
        sums["return"] += torch.where(step.active, step.reward, 0.0)
        sums["length"] += active
        for name, x in step.metrics.items():
            if name.startswith("attempt/"):
                decided = (step.active & ~x.isnan()).nonzero().flatten()
                for row, outcome in zip(decided.tolist(), x[decided].tolist(), strict=True):
                    attempts[row].append((name, outcome))
            elif not name.startswith("episode/"):
                measured = step.active if step.lane is None else step.active & ~x.isnan()
                sums.setdefault(name, torch.zeros(rows, device=device)).add_(torch.where(measured, x, 0.0))
        done = step.terminated | step.truncated
        forget(done)
        ended = done.nonzero().flatten().tolist()
        for row in ended:
            lane = 0 if step.lane is None else int(step.lane[row])
            if played[row] < rounds and len(games.returns) < most and sums["length"][row] > 0:
                mine = {name: x for name, x in sums.items() if name not in _absent(step, row)}
                _count(games, row, mine, step.metrics, prefixes[lane])
                for name, outcome in attempts[row]:
                    games.metrics.setdefault(prefixes[lane] + name, []).append(outcome)
            attempts[row].clear()
            played[row] += 1
        for total in sums.values():
            total.masked_fill_(done, 0.0)
        if ended:
            env.prepare()
        if watcher is not None:
            watcher.stepped()
    if watcher is not None:
        watcher.look()
    return games


def _absent(step: Step, row: int) -> set[str]:
    """The metrics that are not measured in the lane of this row."""
    if step.lane is None:
        return set()
    return {name for name, x in step.metrics.items() if bool(x.expand(len(step.lane))[row].isnan())}


def _count(games: Games, row: int, sums: dict[str, Tensor], metrics: dict[str, Tensor], prefix: str) -> None:
    """Adds the episode that this row has just finished. `prefix`: of the names of its metrics, if it was played in a lane; it
    then counts for nothing else."""
    length = float(sums["length"][row])
    if not prefix:
        games.returns.append(float(sums["return"][row]))
        games.lengths.append(length)
        if "episode/success" in metrics:
            games.success.append(float(metrics["episode/success"][row]))
    for name, total in sums.items():
        if name not in ("return", "length"):
            games.metrics.setdefault(prefix + name, []).append(float(total[row]) / length)
