"""`learner.agent` is a BatchedAgentManager, from which scripts read the policy, counters and statistics. Our collector
plays."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from wavedash.compat.rlgym_ppo.ppo.network import Network
from wavedash.compat.rlgym_ppo.statistics import MomentsStat
from wavedash.errors import UserError
from wavedash.policy.normalizer import RunningMoments

if TYPE_CHECKING:
    from wavedash.compat.rlgym_ppo.report import Reporter
    from wavedash.ppo.learner import Learner

INSTEAD = ("the Learner starts and steps the environments by itself. Call learner.learn(), and observe it in a metrics_logger; "
           "to play what was trained, step an environment of your own with learner.agent.policy.get_action")


class BatchedAgentManager:
    """Holds what scripts read. `cumulative_timesteps` and `average_reward` (a moving average over episodes; None before one has
    ended) can be set, as scripts do that load a checkpoint by hand."""

    policy: Network
    n_procs: int
    standardize_obs: bool
    _learner: Learner
    _reporter: Reporter

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UserError(f"a BatchedAgentManager of one's own cannot be run here: {INSTEAD}")

    @classmethod
    def around(cls, learner: Learner, policy: Network, reporter: Reporter, n_procs: int) -> Self:
        agent = cls.__new__(cls)
        agent._learner, agent._reporter = learner, reporter
        agent.policy, agent.n_procs = policy, n_procs
        agent.standardize_obs = learner.policy.normalizer is not None
        return agent

    @property
    def cumulative_timesteps(self) -> int:
        return self._learner.steps

    @cumulative_timesteps.setter
    def cumulative_timesteps(self, steps: int) -> None:
        self._learner.steps = int(steps)

    @property
    def average_reward(self) -> float | None:
        return self._reporter.average_reward

    @average_reward.setter
    def average_reward(self, average: float | None) -> None:
        self._reporter.average_reward = average

    @property
    def obs_stats(self) -> MomentsStat | None:
        """Statistics of every number of an observation (in rlgym-ppo those of the first number scale all)."""
        normalizer = self._learner.policy.normalizer
        parts = [] if normalizer is None else [part for part in normalizer.parts.values() if isinstance(part, RunningMoments)]
        return MomentsStat(parts[0]) if parts else None

    def collect_timesteps(self, n: int) -> NoReturn:
        """Raises UserError."""
        raise UserError(f"agent.collect_timesteps() cannot be called from outside: {INSTEAD}")

    def init_processes(self, *args: Any, **options: Any) -> NoReturn:
        """Raises UserError."""
        raise UserError(f"agent.init_processes() cannot be called from outside: {INSTEAD}")

    def cleanup(self) -> None:
        """Ends the worker processes. Safe to call twice."""
        self._learner.env.close()
