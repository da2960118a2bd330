"""Shared by the tests of several ranks: environments that can be split by rows, the cases, and the program that each rank runs.

    RANK=0 WORLD_SIZE=2 ... python -m tests.ppo.two_ranks RESULT
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import gymnasium
import torch
from torch import Tensor

from tests.ppo.learners import ACTIONS, learner_over, run_config
from wavedash.envs.vec_env import EnvError, Step, VecEnv
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.rank_state import state_of_rank
from wavedash.ppo.ranks import ALONE, Ranks, RanksError, SeveralRanks, init_ranks

ROWS, RANKS = 8, 2
HALVES = (slice(0, ROWS // RANKS), slice(ROWS // RANKS, ROWS))
ITERATIONS, SEED = 4, 5


class Parade(VecEnv):
    """Some of eight rows. What happens to a row depends neither on the other rows nor on any action.

    The halves are far apart in observations and rewards, and most rows of the second are inactive in most steps; only that half
    reports whether an episode was a success.
    """

    observation_space = gymnasium.spaces.Box(-1e3, 1e3, (3,))

    def __init__(self, kind: str, rows: slice, lanes: Sequence[str] = ()):
        self.rows, self.num_rows, self.action_space = rows, rows.stop - rows.start, ACTIONS[kind]
        self.names = lanes
        self.second = (torch.arange(ROWS) >= ROWS // 2)[rows]
        self.generator = torch.Generator()

    @property
    def lanes(self) -> Sequence[str]:
        return self.names

    @property
    def health(self) -> dict[str, int]:
        return {"dropped_episodes": int(self.second.sum())}

    def _draw(self, draw: Callable[..., Tensor], *shape: int) -> Tensor:
        return draw(ROWS, *shape, generator=self.generator)[self.rows]

    def reset(self, seed: int | None = None) -> Tensor:
        self.generator.manual_seed(SEED)
        return self._look()

    def _look(self) -> Tensor:
        self.obs = 50.0 + 2.0 * self._draw(torch.randn, 3) + 8.0 * self.second.unsqueeze(-1)
        return self.obs

    def step(self, action: Tensor) -> Step:
        pull = action.float().reshape(self.num_rows, -1)[:, 0]
        reward = (pull - 1.0) * (self.obs[:, 0] - 54.0) + 10.0 * self.second
        ended, cut = self._draw(torch.rand) < 0.2, self._draw(torch.rand) < 0.5
        active = self._draw(torch.rand) < torch.where(self.second, 0.3, 0.95)
        metrics = {"speed": self.obs[:, 1], **({"episode/success": (reward > 10).float()} if self.second.all() else {})}
        obs = self._look()
        lane = torch.arange(ROWS)[self.rows] % (1 + len(self.names)) if self.names else None
        return Step(obs, reward, ended & ~cut, ended & cut, obs.clone(), active, metrics, lane)

    def save_state(self) -> dict[str, Tensor]:
        return {"generator": self.generator.get_state(), "obs": self.obs}

    def load_state(self, state: dict[str, Tensor]) -> Tensor:
        self.generator.set_state(state["generator"])
        self.obs = state["obs"].clone()
        return self.obs


class Joined(VecEnv):
    """Both halves in one process, as two shards: a rank's random streams are numbered as if it were the next shard."""

    def __init__(self, kind: str, lanes: Sequence[str] = ()):
        self.halves = [Parade(kind, rows, lanes) for rows in HALVES]
        self.num_rows, self.groups_sent = ROWS, []
        self.observation_space, self.action_space = Parade.observation_space, ACTIONS[kind]

    groups = HALVES

    @property
    def lanes(self) -> Sequence[str]:
        return self.halves[0].names

    @property
    def health(self) -> dict[str, int]:
        return {"dropped_episodes": sum(half.health["dropped_episodes"] for half in self.halves)}

    def reset(self, seed: int | None = None) -> Tensor:
        return torch.cat([half.reset(seed) for half in self.halves])

    def step(self, action: Tensor) -> Step:
        raise NotImplementedError

    def send(self, group: int, action: Tensor) -> None:
        self.groups_sent.append((group, action))

    def recv(self) -> tuple[int, Step]:
        group, action = self.groups_sent.pop(0)
        return group, self.halves[group].step(action)


# name: (kind of action, ppo, policy)
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "discrete": ("discrete", {}, {}),
    "gaussian, normalised, kl schedule": (
        "gaussian",
        {"normalize_obs": True, "normalize_reward": True, "schedule": {"kind": "kl", "target_kl": 1e-3}}, {},
    ),
    "lanes": ("discrete", {}, {}),
    "gru": ("discrete", {"normalize_obs": True}, {"memory": {"kind": "gru", "size": 8, "sequence": 4}}),
    "layer norm, action floor": ("discrete", {"normalize_obs": True}, {"layer_norm": True, "action_floor": 0.05}),
    "early stop": ("discrete", {"target_kl": 2.6e-5, "normalize_obs": True, "learning_rate": 0.5}, {}),
    "minibatches": ("discrete", {"minibatch_size": 8, "buffer_rollouts": 2, "normalize_obs": True, "accumulate": 2}, {}),
    "minibatches, each normalised": ("discrete", {"minibatch_size": 8, "normalize_advantage": "minibatch"}, {}),
    "minibatches of sequences": (
        "gaussian", {"minibatch_size": 8, "normalize_reward": True}, {"memory": {"kind": "gru", "size": 8, "sequence": 4}},
    ),
}


OWN_SAMPLES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "largest advantages": ("discrete", {"keep_samples": 0.5, "minibatch_size": 8}, {}),
    "largest advantages, muon": ("discrete", {"keep_samples": 0.5, "minibatch_size": 8, "optimizer": "muon"}, {}),
}
"""Each rank chooses among its own samples, so that no single process makes the same steps; but all ranks must stay equal."""


def make_learner(case: str, ranks: Ranks = ALONE, **kwargs: Any) -> Learner:
    """A learner over the rows of this rank, or over all rows if it is alone; then a minibatch is as large as those of both
    ranks."""
    kind, ppo, policy = {**CASES, **OWN_SAMPLES}[case]
    own = ppo.get("minibatch_size", 10**6)
    # Epsilon is as large as the gradients, so that Adam enlarges no rounding, however many steps follow each other.
    settings = {"rollout_steps": 8, "epochs": 3, "learning_rate": 0.1, "adam_eps": 0.3, **ppo,
                "minibatch_size": own * RANKS // ranks.size}
    config = run_config(settings, policy, seed=SEED)
    lanes = ("one", "two") if case == "lanes" else ()
    env = Joined(kind, lanes) if ranks.size == 1 else Parade(kind, HALVES[ranks.rank], lanes)
    if ranks.size > 1:  # the same everywhere, so that configurations are equal
        config = config.model_copy(update={"ppo": config.ppo.model_copy(update={"minibatch_size": own})})
    return learner_over(env, config, ranks=ranks, **kwargs)


def outcome(learner: Learner) -> dict[str, Any]:
    """Runs some iterations and returns everything about them that ranks share."""
    metrics = [dict(learner.iterate().metrics) for _ in range(ITERATIONS)]
    tensors = {**learner.policy.state_dict(), **learner.updater.optimizer.state_dict()}
    if learner.return_moments is not None:
        tensors |= {f"return_moments.{name}": x for name, x in learner.return_moments.state_dict().items()}
    return {"tensors": {name: x.clone() for name, x in tensors.items()}, "metrics": metrics,
            "counters": [learner.steps, learner.episodes, learner.schedule.multiplier],
            "recent": sorted(list(episode) for episode in learner.recent.episodes)}


# --- mistakes that ranks could make -------------------------------------------------------------------------------------


def _own_gradient(self: Ranks, means: Tensor) -> None:
    pass


def _equal_ranks(self: Ranks, means: Tensor) -> None:
    self.sum_(means[:-1].div_(self.size))


def _own_kl(self: Ranks, means: Tensor) -> None:
    own = means[-6:].clone()
    SHARED_MEAN_(self, means)
    means[-6:] = own


def _own_moments(self: Ranks, tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else SHARED_SUM_(self, tensor)


def _mean_of_variances(self: Ranks, tensor: Tensor) -> Tensor:
    """Adds up how far values are from the mean of their own rank: the between-rank term is lost."""
    if tensor.dtype == torch.float64:
        tensor[2] -= tensor[1].square() / tensor[0].clamp(min=1.0)
    SHARED_SUM_(self, tensor)
    if tensor.dtype == torch.float64:
        tensor[2] += tensor[1].square() / tensor[0].clamp(min=1.0)
    return tensor


SHARED_MEAN_, SHARED_SUM_ = SeveralRanks.mean_, SeveralRanks.sum_
# name: (case, method of SeveralRanks, what it does instead)
MISTAKES: dict[str, tuple[str, str, Any]] = {
    "every rank steps by its own gradient": ("discrete", "mean_", _own_gradient),
    "ranks count equally, however many samples they have": ("discrete", "mean_", _equal_ranks),
    "every rank stops by its own KL": ("early stop", "mean_", _own_kl),
    "statistics are of the own rows": ("gaussian, normalised, kl schedule", "sum_", _own_moments),
    "statistics are averaged without the between-rank term": ("gaussian, normalised, kl schedule", "sum_", _mean_of_variances),
    "advantages are normalised over the own rows": ("discrete", "mean", ALONE.mean),
}


def unlike_weights(ranks: Ranks) -> dict[str, Any]:
    """The second rank begins with another policy."""
    learner = make_learner("discrete", ranks, started=False)
    with torch.no_grad():
        learner.updater.optimizer.parameters += 0.5 * ranks.rank
    learner.start()
    return outcome(learner)


def unlike_configurations(ranks: Ranks) -> str:
    learner = make_learner("discrete", ranks, started=False)
    learner.config = learner.config.model_copy(update={"total_steps": 100 + ranks.rank})
    try:
        learner.start()
    except UserError as error:
        return str(error)
    return ""


# --- stopping, resuming, failing ----------------------------------------------------------------------------------------


class StopAt(Listener):
    def __init__(self, iteration: int):
        self.iteration = iteration

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == self.iteration:
            learner.stop("enough")


class Keeper(Listener):
    """Keeps the states after some iterations, and at the end."""

    def __init__(self, *iterations: int):
        self.iterations, self.kept, self.metrics, self.error = iterations, [], [], None

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.metrics.append(dict(report.metrics))
        if report.iteration in self.iterations:
            self._keep(learner)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        self.error = error
        self._keep(learner)

    def _keep(self, learner: Learner) -> None:
        tensors, plain = learner.state()
        self.kept.append(({g: {n: x.clone() for n, x in part.items()} for g, part in tensors.items()}, plain))


class Counting(Listener):
    """It counts iterations. Each rank has one of its own."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.returns = torch.zeros(0)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        self.told.append(report.iteration)
        self.returns = torch.cat([self.returns, torch.tensor([report.metrics["rollout/reward"]])])

    def state_dict(self) -> dict[str, Any]:
        return {"told": self.told, "returns": self.returns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.told, self.returns = state["told"], state["returns"]


RESUMED = ["gaussian, normalised, kl schedule", "minibatches", "minibatches of sequences"]


def stop_and_resume(case: str, ranks: Ranks) -> dict[str, Any]:
    """A run that the second rank alone stops after 6 iterations, and another from its state after 3."""
    first = ranks.rank == 0
    keeper, count, count_again = Keeper(3), Counting(), Counting()
    make_learner(case, ranks, started=False, listeners=[count, keeper if first else StopAt(6)]).learn()
    parts = None
    if first:
        tensors, plain = keeper.kept[0]
        parts = [(state_of_rank(rank, ranks.size, tensors, plain["ranks"]), plain) for rank in range(ranks.size)]
    again = Keeper()
    second = make_learner(case, ranks, started=False, listeners=[count_again, again if first else StopAt(6)])
    second.load_state(*ranks.scatter(parts))
    second.learn()
    return {"kept": keeper.kept, "metrics": keeper.metrics, "resumed": again.kept, "resumed_metrics": again.metrics,
            "iterations": second.iteration, "reason": second.stop_reason,
            "counted": count.state_dict(), "counted_again": count_again.state_dict()}


class Breaking(Listener):
    """The environment of this rank breaks."""

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == 2:
            learner.env.step = mock.Mock(side_effect=EnvError("the bridge is out"))


def fail(ranks: Ranks) -> dict[str, Any]:
    keeper = Keeper()
    learner = make_learner("discrete", ranks, started=False, listeners=[keeper] if ranks.rank == 0 else [Breaking()])
    try:
        learner.learn()
    except (RanksError, EnvError) as error:
        return {"error": f"{type(error).__name__}: {error}", "kept": keeper.kept, "iteration": learner.iteration}
    return {}


SHORT_OF_MEMORY = ["minibatches", "minibatches, each normalised", "minibatches of sequences"]


def short_of_memory(case: str, ranks: Ranks) -> dict[str, Any]:
    """The second rank alone runs out of memory with more than 4 samples; where minibatches are in parts of 4 already, in the
    second part of the first. Another run is told beforehand what fits."""
    found = make_learner(case, ranks)
    if ranks.rank == 1:
        loss, calls = found.updater.loss, []
        add = loss.add_gradient

        def add_gradient(policy: Any, batch: Any, scale: Any) -> Any:
            calls.append(1)
            if batch.flat.weight.numel() > 4 or (len(calls) == 2 and "accumulate" in CASES[case][1]):
                raise torch.OutOfMemoryError("CUDA out of memory")
            return add(policy, batch, scale)

        loss.add_gradient = add_gradient
    results = {"found": outcome(found), "fitting": found.updater.split.fitting}
    told = make_learner(case, ranks)
    told.updater.change(told.config.ppo.model_copy(update={"microbatch_size": results["fitting"]}))
    return {**results, "told": outcome(told)}


# where: (case, what runs out of memory on the second rank: an object of the updater, and its method)
SHORTAGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "experience": ("discrete", lambda updater: updater, "experience_of"),
    "refresh": ("discrete", lambda updater: updater.ranks, "mean"),
    "between the sums of a batch": ("discrete", lambda updater: updater.ranks, "mean"),
    "between the sums of a minibatch": ("minibatches, each normalised", lambda updater: updater.ranks, "mean"),
    "largest advantages": ("largest advantages", lambda updater: updater.experience, "largest_advantages"),
    "step": ("minibatches", lambda updater: updater.optimizer, "step"),
    "step of muon": ("largest advantages, muon", lambda updater: updater.optimizer, "step"),
    "after the sum of gradients": ("minibatches", lambda updater: updater.ranks, "mean_"),
}


def shortage(where: str, ranks: Ranks) -> dict[str, Any]:
    """The second rank runs out of memory once, at some place of its second update; another run is told beforehand what fits."""
    case, owner, method = SHORTAGES[where]
    found, told = make_learner(case, ranks), make_learner(case, ranks)
    for learner in (found, told):
        learner.iterate()
    real, calls = getattr(owner(found.updater), method), []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        now = len(calls) == (2 if where.startswith("between") else 1)
        if now and method == "mean_":
            real(*args, **kwargs)
        if now:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*args, **kwargs)

    update = found.updater.update

    def update_with_a_shortage(buffer: Any) -> Any:
        # Only the update of one rank is short of memory, and once; the metrics also use the means of ranks.
        with mock.patch.object(owner(found.updater), method, failing):
            return update(buffer)

    if ranks.rank == 1:
        found.updater.update = update_with_a_shortage
    results = {"found": outcome(found), "failures": len(calls), "fitting": found.updater.split.fitting}
    told.updater.split.fitting = found.updater.split.fitting
    return {**results, "told": outcome(told)}


def main(path: str) -> None:
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    with init_ranks() as ranks:
        for case in (*CASES, *OWN_SAMPLES):
            results[case] = outcome(make_learner(case, ranks))
        for mistake, (case, method, wrong) in MISTAKES.items():
            with mock.patch.object(SeveralRanks, method, wrong):
                results[mistake] = outcome(make_learner(case, ranks))
        results["unlike weights"] = unlike_weights(ranks)
        results["unlike configurations"] = unlike_configurations(ranks)
        for case in RESUMED:
            results[f"resumed: {case}"] = stop_and_resume(case, ranks)
        for case in SHORT_OF_MEMORY:
            results[f"short of memory: {case}"] = short_of_memory(case, ranks)
        for where in SHORTAGES:
            results[f"shortage: {where}"] = shortage(where, ranks)
        results["failed"] = fail(ranks)
    torch.save(results, path)


if __name__ == "__main__":
    main(sys.argv[1])
