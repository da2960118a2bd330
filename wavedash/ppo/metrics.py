"""The metrics of an iteration are read from the device in one copy at its end, and named.

`read_metrics` holds the only host sync of an iteration. `named_metrics` turns what all ranks have read into what listeners are
told.
"""
from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from wavedash.ppo import faults
from wavedash.ppo.episodes import Episode, RolloutEpisodes, latest_rows
from wavedash.ppo.loss import ENTROPY
from wavedash.ppo.ranks import Ranks
from wavedash.ppo.readout import Readout, joined
from wavedash.ppo.rollout import Rollout
from wavedash.ppo.update import APPLIED, GRAD_NORM, UpdateTable

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

STEPS, EPISODES, SKIPPED, FAULTY = "rollout/steps", "rollout/episodes", "optim/skipped", "faulty"
COUNT = "count of "
"""The prefix that names the count of a sum: how many agent steps were added up"""


class LatestEpisodes(NamedTuple):
    """Holds the episodes of a rollout that ended last, oldest first, in columns of a fixed length."""

    returns: Tensor
    length: Tensor
    success: Tensor
    real: Tensor
    """False in the padding, where fewer episodes have ended"""

    @classmethod
    def of(cls, episodes: RolloutEpisodes, success: Tensor | None) -> LatestEpisodes:
        """Picks the latest of `episodes`. `success` [T, N] is what the environment says of episodes that end, if it does."""
        rows, real = latest_rows(episodes.ended)
        returns, length = (x.reshape(-1)[rows] for x in (episodes.returns, episodes.length))
        return cls(returns, length, torch.full_like(returns, torch.nan) if success is None else success.reshape(-1)[rows], real)


def read_metrics(learner: Learner, rollout: Rollout, episodes: RolloutEpisodes, table: UpdateTable) -> Readout:
    """Reads all numbers of this iteration from the device of this rank in one copy, and joins them with those of all ranks."""
    own = _row_sums(learner, rollout, episodes)
    shared = _update_metrics(learner, rollout, table)
    latest = LatestEpisodes.of(_in_main_task(learner, episodes), learner.collector.counted.success)
    faulty = faults.may_be_faulty(rollout, learner.env)
    numbers, columns = read_in_one_copy({FAULTY: faulty, **own, **shared}, latest._asdict())
    fault = faults.explain(rollout, episodes.length, learner.env) if numbers[FAULTY] else None
    finished = [Episode(ret, length, success)
                for ret, length, success, real in zip(*columns.values(), strict=True) if real]
    readout = Readout({name: numbers[name] for name in own}, finished, learner.env.health, fault,
                      {name: numbers[name] for name in shared})
    return joined(learner.ranks.all_gather(readout))


def read_in_one_copy(
    scalars: Mapping[str, Tensor], columns: Mapping[str, Tensor]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Reads named scalars and columns from the device at once."""
    numbers = torch.stack([x.float() for x in scalars.values()])
    flat = iter(torch.cat([numbers, *(x.float() for x in columns.values())]).tolist())
    return {name: next(flat) for name in scalars}, {name: list(islice(flat, len(x))) for name, x in columns.items()}


def named_metrics(learner: Learner, readout: Readout) -> dict[str, float]:
    """Returns the metrics that listeners are told. A metric with nothing to measure is absent."""
    sums, metrics = dict(readout.sums), dict(readout.shared)
    applied, skipped = int(metrics.pop(APPLIED)), int(metrics.pop(SKIPPED))
    if not applied:  # losses of an update in which every step was skipped mean nothing
        meaningless = ("loss/", "policy/", "distill/", "imitate/", "prior/")
        metrics = {name: x for name, x in metrics.items() if not name.startswith(meaningless)}
    if learner.updater.scale is not None and applied:  # dynamic loss scaling overflows now and then by design
        metrics["optim/scale_overflows"], skipped = float(skipped), 0
    metrics |= {STEPS: sums[STEPS], EPISODES: sums[EPISODES], SKIPPED: float(skipped), "optim/gradient_steps": float(applied)}
    metrics |= {f"optim/{name}": x for name, x in learner.coefficients.items()}
    if learner.config.ppo.gamma_end is not None:
        metrics["optim/gamma"] = learner.discount
    metrics["optim/learning_rate"] = learner.config.ppo.learning_rate * learner.schedule.multiplier
    metrics |= _means(sums)
    metrics |= learner.recent.metrics()
    for counters in (readout.health, *(listener.health for listener in learner.listeners)):
        metrics |= {f"health/{name}": float(x) for name, x in counters.items()}
    if not learner.env.rewarding:
        metrics = {name: x for name, x in metrics.items() if name.rpartition("/")[2] not in ("reward", "return")}
    return metrics


def _row_sums(learner: Learner, rollout: Rollout, episodes: RolloutEpisodes) -> dict[str, Tensor]:
    """Returns sums over the rows of this rank, to which those of the other ranks are added later."""
    lane, lanes = learner.collector.lane, learner.env.lanes
    active, ended = rollout.active, episodes.ended
    sums = {STEPS: active.float().sum(), EPISODES: ended.sum()}
    if lane is None:
        sums |= _episode_sums("rollout/", rollout, episodes, active, ended)
    else:
        for number, prefix in enumerate(["rollout/", *(f"lane/{name}/" for name in lanes)]):
            here = lane == number
            sums |= _episode_sums(prefix, rollout, episodes, active & here, ended & here)
        for name in lanes:
            sums[f"lane/{name}/share"], sums[f"{COUNT}lane/{name}/share"] = sums[f"{COUNT}lane/{name}/reward"], sums[STEPS]
    for name, metric in learner.collector.metric_sums.items():
        sums[name], sums[f"{COUNT}{name}"] = metric.unbind()
    return sums


def _episode_sums(prefix: str, rollout: Rollout, episodes: RolloutEpisodes, active: Tensor, ended: Tensor) -> dict[str, Tensor]:
    """Returns the sums of reward, return and length over the steps `active` and the episodes `ended` [T, N], with counts."""
    steps, count = active.float().sum(), ended.sum()
    sums = {
        f"{prefix}reward": (rollout.reward * active.float()).sum(),
        f"{prefix}return": (episodes.returns * ended).sum(),
        f"{prefix}length": (episodes.length * ended).sum(),
    }
    return sums | {f"{COUNT}{prefix}reward": steps, f"{COUNT}{prefix}return": count, f"{COUNT}{prefix}length": count}


def _in_main_task(learner: Learner, episodes: RolloutEpisodes) -> RolloutEpisodes:
    """Returns the episodes without those of lanes, which tell nothing about the main task."""
    lane = learner.collector.lane
    return episodes if lane is None else episodes._replace(ended=episodes.ended & (lane == 0))


def _update_metrics(learner: Learner, rollout: Rollout, table: UpdateTable) -> dict[str, Tensor]:
    """Returns numbers that are the same on all ranks."""
    applied, maximum = table[APPLIED], learner.policy.head.max_entropy
    numbers = {APPLIED: applied.sum(), SKIPPED: (~table[GRAD_NORM].isfinite()).sum()}
    loss = learner.updater.loss
    for name, mean in loss.metrics(table.means()).items():
        if name != APPLIED:
            numbers[name] = mean
        if name == ENTROPY and maximum is not None:
            numbers["policy/entropy_share"] = mean / maximum
    moved = learner.updater.optimizer.parameters - learner.before_update["parameters"]
    numbers["optim/update_size"] = torch.linalg.vector_norm(moved)
    if loss.values:
        active = rollout.active.float()
        error, total = (_variance(x, active, learner.ranks) for x in (rollout.returns - rollout.value, rollout.returns))
        numbers["loss/explained_variance"] = 1.0 - error / total.clamp(min=1e-12)
    return numbers


def _means(sums: Mapping[str, float]) -> dict[str, float]:
    """Returns the mean of every sum that has a count. A metric of the environment that is NaN is left out."""
    counts = {name.removeprefix(COUNT): count for name, count in sums.items() if name.startswith(COUNT)}
    means = {name: sums[name] / count for name, count in counts.items() if count}
    return {name: x for name, x in means.items() if not (name.startswith(("env/", "lane/")) and x != x)}


def _variance(x: Tensor, weight: Tensor, ranks: Ranks) -> Tensor:
    x = x.masked_fill(weight == 0, 0.0)  # inactive rows may hold NaN
    return ranks.mean((x - ranks.mean(x, weight)).square(), weight)
