"""The learner repeats one iteration: collect, estimate advantages, update, report.

`Learner.iterate` is one iteration of PPO from top to bottom. Its metrics are made in `metrics.py`; `learner_state.py` says what
a checkpoint holds. Everything else that happens in a run (checkpoints, console, curves) is a listener.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from wavedash.config import PPOConfig, RunConfig
from wavedash.envs.obs import Obs
from wavedash.envs.vec_env import EnvError, VecEnv
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.normalizer import RunningMoments
from wavedash.ppo.calibration import calibrate
from wavedash.ppo.collector import Collector, Counted
from wavedash.ppo.divergence import DivergenceWatch
from wavedash.ppo.episodes import EpisodeTracker, EpisodeWindow, RolloutEpisodes
from wavedash.ppo.gae import gae, next_values
from wavedash.ppo.graphs import CapturedCall
from wavedash.ppo.learner_state import LearnerState, fingerprint
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.listeners import Listeners
from wavedash.ppo.loss import KL, Loss
from wavedash.ppo.metrics import EPISODES, SKIPPED, STEPS, named_metrics, read_metrics
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.ppo.rank_state import StateTensors
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.readout import Readout
from wavedash.ppo.rollout import Rollout, RolloutBuffer
from wavedash.ppo.schedule import Schedule, chain, discount
from wavedash.ppo.update import Updater, UpdateTable
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""The dtype of each precision of the configuration but fp32, that of the weights"""


BETWEEN_GRAPHS = ("learning_rate", "critic_learning_rate", "schedule", "clip_range", "clip_schedule", "entropy_coef",
                  "entropy_schedule", "gamma", "gamma_end", "gae_lambda", "epochs")
"""Options of `ppo` that may change while a run runs: captured graphs read them from tensors, or they are read between graphs"""


class Learner:
    """Trains `policy` in `env`. `learn()` runs to the end. A learner that loads the `state()` of another goes on exactly."""

    def __init__(
        self, env: VecEnv, policy: ActorCritic, config: RunConfig, listeners: Sequence[Listener] = (), ranks: Ranks = ALONE,
        loss: Loss | None = None,
    ):
        """`ranks` are the processes that train this policy together, each with an `env` of its own. `loss` is what the update
        minimises; it is PPO's unless another is handed in."""
        ppo = config.ppo
        if undecided := [name for name in config.undecided if name != "env.count"]:
            raise UserError(f"{' and '.join(undecided)} must be decided before there is a learner: "
                            "config = wavedash.memory.choice.resolved(config, env.device)")
        decide_threads(config.threads, ranks.local_size)
        self.env, self.config, self._listeners, self.ranks = env, config, Listeners(listeners), ranks
        self.policy = policy.to(env.device)
        loss = PPOLoss(ppo, env.device) if loss is None else loss
        self.collector = Collector(env, self.policy, ppo.rollout_steps, config.seed, ranks, loss)
        self.policy.precision = PRECISIONS.get(config.precision)
        if config.compile:
            self.policy.compile_networks()
        self.updater = Updater(self.policy, ppo, config.seed, config.graphs, ranks, loss)
        self.schedule = Schedule(ppo.schedule)
        self.decays = {"clip_range": Schedule(ppo.clip_schedule), "entropy_coef": Schedule(ppo.entropy_schedule)}
        self.buffer = RolloutBuffer(
            ppo.buffer_rollouts, ppo.rollout_steps, env.num_rows, env.observation_space,
            self.policy.head.action_shape, self.policy.head.action_dtype, env.device,
            self.policy.initial_memory(env.num_rows), self.policy.sequence_length, loss.observed(self.policy),
            None if loss.labeller is None else loss.labeller.shapes,
        )
        self.return_moments = RunningMoments(()).to(env.device) if ppo.normalize_reward else None
        self.discount = ppo.gamma
        """Gamma of the current iteration"""
        self.tracker = EpisodeTracker(env.num_rows, ppo.gamma, env.device)
        self._chain = torch.tensor(chain(ppo, ppo.gamma), device=env.device)  # gamma * lambda, which captured graphs read
        self.recent = EpisodeWindow(config.checkpoint.best_window)
        self.divergence = DivergenceWatch()
        self.iteration = self.steps = self.episodes = 0
        self.phase: str | None = None
        """The phase that the run is in, as folders of milestones are called, such as `Phase2-BronzeSkills`; None in a run
        without phases. Whoever leads through the phases sets it."""
        self.saved = LearnerState(self)
        self.interruptible = False
        """Whether a signal handler may raise an exception here (a second Ctrl-C), which ends the run and saves it."""
        self.stop_reason: str | None = None
        self._graphs: dict[int, CapturedCall[tuple[RolloutEpisodes, Counted]]] = {}

    # --- the run -----------------------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Iterates until the run is finished or stopped. Listeners are told of the end even after an error, in reverse order:
        the saver is the last of them, so the run is saved before anything else can block."""
        error: BaseException | None = None
        self.saved.interrupted = None
        try:
            try:
                self._iterate_to_the_end()
            finally:
                self.interruptible = False
        except BaseException as raised:
            error = raised
            self.saved.rewind()
            self.ranks = ALONE  # the other ranks are not at this point, so the state is saved without theirs
            raise
        finally:
            failures = self.listeners.stop(self, error)
        self.ranks.serve_requests(self.saved.rank_part)
        if failures:
            raise failures[0]

    def _iterate_to_the_end(self) -> None:
        self.listeners.start(self)
        self.interruptible = True
        self.start()
        while self.steps < self.total_steps and not self._stopped():
            self.listeners.tell(self, self.iterate())
            self.saved.drop_snapshot()
            self.ranks.serve_requests(self.saved.rank_part)
            self.listeners.settle(self)

    def start(self) -> None:
        """Resets the environments, unless they were restored, and calibrates the normalisers before anything is learned."""
        if not self.collector.shards:
            self.collector.start(self.reset_environments())
        self._synchronize_ranks()
        if self.steps == 0 and not all(normalizer.started for normalizer in self.normalizers):
            self.saved.take_snapshot()
            calibrate(self)
            self.saved.drop_snapshot()

    def iterate(self) -> IterationReport:
        """Runs one iteration of PPO."""
        began, stopwatch = perf_counter(), self.collector.stopwatch
        self.saved.take_snapshot()
        self._set_rates()

        rollout = self.buffer.next_slot()
        stopwatch.start()
        episodes = self._collect(rollout)
        table = self._update()
        self.commit_normalizers()
        stopwatch.lap("update")

        self.iteration += 1
        readout = read_metrics(self, rollout, episodes, table)
        self._count(readout)
        metrics = named_metrics(self, readout)
        self.divergence.watch(int(metrics["optim/gradient_steps"]), int(metrics[SKIPPED]), self.iteration, self.steps)
        for schedule in (self.schedule, *self.decays.values()):
            schedule.advance(self.steps / self.total_steps, metrics.get(KL) if self.updater.actor_learns else None)
        seconds = stopwatch.read()
        seconds["other"] = max(0.0, perf_counter() - began - sum(seconds.values()))
        return IterationReport(self.iteration, self.steps, self.total_steps, self.episodes, metrics, seconds, self.phase)

    # --- the parts of an iteration -----------------------------------------------------------------------------------

    def _set_rates(self) -> None:
        """Sets the learning rate, the coefficients of the loss and the discount to what their schedules say, and who learns: at
        the beginning of a run perhaps only the critic."""
        self.updater.freeze_actor(self.iteration < self.config.ppo.critic_warmup)
        self.updater.optimizer.set_rate_multiplier(self.schedule.multiplier)
        for name, value in self.coefficients.items():
            self.updater.loss.coefficients[name].fill_(value)
        self._set_discount()

    def _set_discount(self) -> None:
        self.discount = discount(self.config.ppo, self.steps / self.total_steps)
        self.tracker.gamma = self.discount
        self._chain.fill_(chain(self.config.ppo, self.discount))

    def _collect(self, rollout: Rollout) -> RolloutEpisodes:
        """Collects, follows episodes and estimates advantages, in one CUDA graph where the environment allows it."""
        slot = self.buffer.newest
        self.env.prepare()

        def collect() -> tuple[RolloutEpisodes, Counted]:
            episodes = self.complete(rollout, self.collector.collect(rollout))
            self.collector.stopwatch.lap("gae")
            return episodes, self.collector.counted

        if not self.captures_collection:
            self.collector.stopwatch.lap("env")
            return collect()[0]
        if slot not in self._graphs:
            generators = [*(shard.generator for shard in self.collector.shards), *self.env.generators]
            self._graphs[slot] = CapturedCall(collect, "collection", generators)
        episodes, self.collector.counted = self._graphs[slot]()  # the graph of each slot has counted in tensors of its own
        if self._graphs[slot].graph is not None:
            self.collector.stopwatch.lap("collect")  # parts of a replayed graph cannot be timed one by one
        return episodes

    def complete(self, rollout: Rollout, last_value: Tensor) -> RolloutEpisodes:
        """Follows the episodes of a rollout that was just collected and estimates its advantages, if the loss reads them."""
        episodes = self.follow_episodes(rollout)
        if self.updater.loss.values:
            self.estimate_advantages(rollout, last_value)
        return episodes

    def follow_episodes(self, rollout: Rollout) -> RolloutEpisodes:
        """Returns the episodes of a rollout; their discounted returns go into the statistics by which rewards are scaled."""
        episodes = self.tracker.follow(rollout)
        if self.return_moments is not None:
            discounted = self.return_moments.standardize(episodes.discounted.reshape(-1))
            self.return_moments.accumulate(discounted, rollout.active.float().reshape(-1))
        return episodes

    def estimate_advantages(self, rollout: Rollout, last_value: Tensor) -> None:
        """Writes advantages and returns into the rollout."""
        ppo, reward = self.config.ppo, rollout.reward
        if self.return_moments is not None:
            reward = (reward * self.return_moments.scale).clamp(-ppo.reward_clip, ppo.reward_clip)
        gamma = self.tracker.gamma_tensor  # a captured CUDA graph reads the current one
        following = next_values(rollout.value, last_value, rollout.final_value, rollout.terminated, rollout.truncated)
        advantage = gae(reward, rollout.value, following, rollout.done, rollout.active, gamma, ppo.gae_lambda,
                        self._chain)
        rollout.advantage.copy_(advantage)
        torch.add(advantage, rollout.value, out=rollout.returns)

    def _update(self) -> UpdateTable:
        """Updates the weights. Where there is not enough memory, the update begins again, in smaller parts: from the same
        weights, moments and random numbers, so that it does not matter how far it had come."""
        while True:
            with suppress(torch.OutOfMemoryError):
                return self.updater.update(self.buffer)
            self.updater.compute_less_at_once()
            self.updater.restore(self.before_update)

    def commit_normalizers(self) -> None:
        """Adds what all ranks have measured in this rollout to the statistics that later rollouts are normalised by."""
        for normalizer in self.normalizers:
            for part in normalizer.modules():
                if isinstance(part, RunningMoments):
                    self.ranks.sum_(part.sums)
            normalizer.commit()

    def _count(self, readout: Readout) -> None:
        self.raise_fault(readout.fault)
        self.steps += int(readout.sums[STEPS])
        self.episodes += int(readout.sums[EPISODES])
        self.recent.extend(readout.episodes)

    def raise_fault(self, fault: str | None) -> None:
        """Raises EnvError if there is a fault: the environment did what cannot be learned from."""
        if fault is not None:
            raise EnvError(f"{fault} (found at the end of iteration {self.iteration}, after step {self.steps:,})")

    # --- for listeners and callers -----------------------------------------------------------------------------------

    @property
    def listeners(self) -> Listeners:
        """The listeners, in the order of their calls. `learner.listeners.add(...)` adds one, an assignment replaces all."""
        return self._listeners

    @listeners.setter
    def listeners(self, listeners: Iterable[Listener]) -> None:
        self._listeners.set(listeners)

    @property
    def total_steps(self) -> int:
        return self.config.total_steps

    @property
    def rollout(self) -> Rollout:
        """The latest rollout."""
        return self.buffer.slot(self.buffer.newest)

    @property
    def before_update(self) -> dict[str, Tensor]:
        """The flat parameters (`parameters`) and the optimiser's state as they were before the latest update."""
        return self.saved.before_update

    @property
    def coefficients(self) -> dict[str, float]:
        """The current values of those coefficients of the loss that have a schedule."""
        own = self.updater.loss.coefficients
        return {name: getattr(self.config.ppo, name) * decay.multiplier for name, decay in self.decays.items() if name in own}

    @property
    def normalizers(self) -> list[Any]:
        return [n for n in (self.policy.normalizer, self.return_moments) if n is not None]

    @property
    def captures_collection(self) -> bool:
        """Whether rollouts are collected by replaying a CUDA graph."""
        return self.config.graphs and self.env.capturable and self.env.device.type == "cuda"

    def stop(self, reason: str) -> None:
        """Ends the run after the current iteration."""
        self.stop_reason = self.stop_reason or reason

    def change(self, config: RunConfig) -> None:
        """Takes over rates, schedules, coefficients, epochs, minibatches, discounts and total steps from the next iteration on.
        Whatever shapes networks, environments and buffers must be unchanged. Changes to everything else of a run, and what may
        change at all: `runs/changes.py`."""
        if _captured(config.ppo) != _captured(self.config.ppo):
            self.forget_graphs()
            self.updater.forget_graphs()
        self.config = config
        self.updater.change(config.ppo)
        progress = self.steps / self.total_steps if self.iteration else None
        self.schedule.change(config.ppo.schedule, progress)
        self.decays["clip_range"].change(config.ppo.clip_schedule, progress)
        self.decays["entropy_coef"].change(config.ppo.entropy_schedule, progress)
        self._set_discount()

    def forget_graphs(self) -> None:
        """Drops the CUDA graphs of collection; they are captured again when they are next needed."""
        self._graphs.clear()

    def fingerprint(self) -> dict[str, Any]:
        """Returns what must be equal for weights to fit: spaces and networks."""
        return fingerprint(self)

    def state(self) -> tuple[StateTensors, dict[str, Any]]:
        """Returns tensors by file name, and plain values: everything needed to go on exactly from the end of this iteration, or
        from its beginning if it was interrupted. Of several ranks only the first may call it, in a listener."""
        return self.saved.save()

    def load_state(self, tensors: StateTensors, plain: dict[str, Any], planned: bool = False) -> None:
        """Goes on from `state()`; with several ranks, from what `state_of_rank` gives. Where environments cannot be restored,
        their episodes start afresh, with a warning, unless that is `planned`. SavedError: the state does not fit this learner
        or is damaged."""
        self.saved.load(tensors, plain, planned)

    def reset_environments(self) -> Obs:
        """Begins fresh episodes; every rank has a seed of its own."""
        number = self.iteration * self.ranks.size + self.ranks.rank
        return self.env.reset(stream_seed(self.config.seed, "environments", number))

    def _synchronize_ranks(self) -> None:
        """Gives all ranks the weights and statistics of the first."""
        if len(set(self.ranks.all_gather((self.config.model_dump_json(), self.env.num_rows)))) > 1:
            raise UserError("the processes of this run have different configurations or environments: start all with the same")
        for module in (self.policy, *self.normalizers):
            for tensor in module.state_dict().values():
                self.ranks.broadcast_(tensor)

    def _stopped(self) -> bool:
        """Whether any rank was told to stop: then all stop after the same iteration."""
        if self.ranks.any(self.stop_reason is not None):
            self.stop("another process of the run was stopped")
        return self.stop_reason is not None


def _captured(ppo: PPOConfig) -> PPOConfig:
    """Returns the options that are fixed in captured graphs: all but those that are tensors or are read between graphs."""
    return ppo.model_copy(update=dict.fromkeys((*BETWEEN_GRAPHS, "critic_warmup")))
