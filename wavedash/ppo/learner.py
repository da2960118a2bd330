"""The learner: collect, estimate advantages, update, report; again and again.

`Learner.iterate` is one iteration of PPO from top to bottom. Everything else that happens in a run (checkpoints, console,
curves) is a listener.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from wavedash.config import PPOConfig, RunConfig
from wavedash.envs.obs import Obs, named_tensors
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import EnvError, VecEnv
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.normalizer import RunningMoments
from wavedash.ppo import faults
from wavedash.ppo.beginning import Beginning, copies
from wavedash.ppo.collector import Collector
from wavedash.ppo.episodes import Episode, EpisodeWindow, latest_rows, running_sums
from wavedash.ppo.gae import gae, next_values
from wavedash.ppo.graphs import Replayed
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.rank_state import Groups, own_part, with_parts
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.ppo.reading import Reading, joined
from wavedash.ppo.rollout import Rollout, RolloutBuffer
from wavedash.ppo.saved_state import check_saved, check_streams
from wavedash.ppo.schedule import Schedule
from wavedash.ppo.update import FIGURES, Updater
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads

log = logging.getLogger(__name__)

MOST_DEAD_UPDATES = 5
"""So many iterations in a row without one finite gradient end the run: it will not recover by itself."""


class DivergedError(UserError):
    """No gradient has been finite for several iterations."""


class Learner:
    """Trains `policy` in `env`. `learn()` runs to the end; `state()` and `load_state()` stop and resume exactly."""

    def __init__(
        self, env: VecEnv, policy: ActorCritic, config: RunConfig, listeners: Sequence[Listener] = (), ranks: Ranks = ALONE
    ):
        """`ranks`: the processes that train this policy together, each with an `env` of its own."""
        ppo = config.ppo
        decide_threads(config.threads, ranks.local_size)
        self.env, self.config, self.listeners, self.ranks = env, config, list(listeners), ranks
        self.policy = policy.to(env.device)
        self.collector = Collector(env, self.policy, ppo.rollout_steps, config.seed, ranks)
        self.policy.precision = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(config.precision)
        if config.compile:
            self.policy.compile_networks()
        self.updater = Updater(self.policy, ppo, config.seed, config.graphs, ranks)
        self.schedule = Schedule(ppo.schedule)
        self.decays = {"clip_range": Schedule(ppo.clip_schedule), "entropy_coef": Schedule(ppo.entropy_schedule)}
        self.buffer = RolloutBuffer(
            ppo.buffer_rollouts, ppo.rollout_steps, env.num_rows, env.observation_space,
            self.policy.head.action_shape, self.policy.head.action_dtype, env.device,
            self.policy.initial_memory(env.num_rows), self.policy.sequence_length,
        )
        self.return_moments = RunningMoments(()).to(env.device) if ppo.normalize_reward else None
        self.running = torch.zeros(env.num_rows, 3, device=env.device)  # per row: return, length, discounted return
        self.running_decay = torch.tensor([1.0, 1.0, ppo.gamma], device=env.device)
        self.recent = EpisodeWindow(config.checkpoint.best_window)
        self.iteration = self.steps = self.episodes = self.dead_updates = 0
        self.before_update: dict[str, Tensor] = {}
        self.interruptible = False
        """Whether an exception may be raised here from outside (a second Ctrl-C): then the run ends and is saved"""
        self._beginning: Beginning | None = None
        """Of the iteration that is under way"""
        self._broken_off: Beginning | None = None
        """Of the one that did not end well"""
        self._replays: dict[int, Replayed[tuple[Tensor, Tensor]]] = {}
        self.stop_reason: str | None = None

    @property
    def total_steps(self) -> int:
        return self.config.total_steps

    @property
    def rollout(self) -> Rollout:
        """The latest rollout."""
        return self.buffer.slot(self.buffer.newest)

    @property
    def coefficients(self) -> dict[str, float]:
        """The numbers of the loss that move over the run, as they are now."""
        return {name: getattr(self.config.ppo, name) * decay.multiplier for name, decay in self.decays.items()}

    def stop(self, reason: str) -> None:
        """End the run after the current iteration."""
        self.stop_reason = self.stop_reason or reason

    def change(self, config: RunConfig) -> None:
        """Other rates, coefficients, epochs, minibatches, discounts or goal from the next iteration on. What shapes networks,
        environments and buffers must be as it was."""
        ppo = config.ppo
        if _captured(ppo) != _captured(self.config.ppo):
            self._replays.clear()
            self.updater.forget_graphs()
        self.config = config
        self.updater.config = ppo
        self.running_decay[2] = ppo.gamma
        rates = self.updater.optimizer.base_rates
        critic_rate = ppo.learning_rate if ppo.critic_learning_rate is None else ppo.critic_learning_rate
        rates.update({name: critic_rate if name == "critic" else ppo.learning_rate for name in rates})

    def learn(self) -> None:
        """Iterate until the run is finished or stopped. Listeners hear of the end however it comes, the last of them first: a
        run is saved before anything else is waited for."""
        error: BaseException | None = None
        failures: list[Exception] = []
        self._broken_off = None
        try:
            try:
                self._iterate_to_the_end()
            finally:
                self.interruptible = False
        except BaseException as raised:
            error = raised
            self._rewind()
            self.ranks = ALONE  # the others are somewhere else: what is saved now is saved without them
            raise
        finally:
            for listener in reversed(self.listeners):
                try:
                    listener.on_stop(self, error)
                except Exception as failure:
                    log.error("%s failed while the run was ending: %s", type(listener).__name__, failure)
                    failures.append(failure)
        self.ranks.stand_by(self._own_part)
        if failures:
            raise failures[0]

    def _iterate_to_the_end(self) -> None:
        for listener in self.listeners:
            listener.on_start(self)
        self.interruptible = True
        self.start()
        while self.steps < self.total_steps and not self._stopped():
            report = self.iterate()
            for listener in self.listeners:
                listener.on_iteration(self, report)
            self._beginning = None  # only now: an iteration that was not reported to the end is done again
            self.ranks.stand_by(self._own_part)

    def _stopped(self) -> bool:
        """Whether any rank was told to stop: then all do, after the same iteration."""
        if self.ranks.any(self.stop_reason is not None):
            self.stop("another process of the run was stopped")
        return self.stop_reason is not None

    def start(self) -> None:
        """First observations, unless they were restored; normalisers are calibrated before anything is learned."""
        if not self.collector.groups:
            self.collector.start(self._fresh_worlds())
        self._begin_alike()
        if self.steps == 0 and self.normalizers:
            self._keep()
            self._calibrate()
            self._beginning = None

    def iterate(self) -> IterationReport:
        """One iteration of PPO."""
        began = perf_counter()
        self._keep()
        self.updater.optimizer.set_rate_multiplier(self.schedule.multiplier)
        for number, value in zip(self.updater.coefficients, self.coefficients.values(), strict=True):
            number.fill_(value)

        rollout = self.buffer.next_slot()
        self.collector.stopwatch.start()
        ended, sums = self._gather(rollout)
        table = self.updater.update(self.buffer)
        self._commit_normalizers()
        self.collector.stopwatch.lap("update")
        self.iteration += 1
        figures = self._read_figures(rollout, table, ended, sums)

        progress = self.steps / self.total_steps
        for schedule in (self.schedule, *self.decays.values()):
            schedule.advance(progress, figures.get("policy/kl"))
        seconds = self.collector.stopwatch.read()
        seconds["other"] = max(0.0, perf_counter() - began - sum(seconds.values()))
        return IterationReport(self.iteration, self.steps, self.total_steps, self.episodes, figures, seconds)

    def _gather(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Collect, follow episodes, estimate advantages; all of it replayed from one recording where the world allows it."""
        slot = self.buffer.newest
        self.env.prepare()

        def gather() -> tuple[Tensor, Tensor]:
            episodes = self.complete(rollout, self.collector.collect(rollout))
            self.collector.stopwatch.lap("gae")
            return episodes

        if not self.replays_collection:
            self.collector.stopwatch.lap("env")
            return gather()
        if slot not in self._replays:
            generators = [group.generator for group in self.collector.groups]
            self._replays[slot] = Replayed(gather, "collection", generators)
        episodes = self._replays[slot]()
        if self._replays[slot].graph is not None:
            self.collector.stopwatch.lap("collect")  # the parts of a recording cannot be told apart
        return episodes

    @property
    def replays_collection(self) -> bool:
        """Whether rollouts are gathered by replaying a recording."""
        return self.config.graphs and self.env.capturable and self.env.device.type == "cuda"

    def _fresh_worlds(self) -> Obs:
        number = self.iteration * self.ranks.size + self.ranks.rank  # no two ranks play the same episodes
        return self.env.reset(stream_seed(self.config.seed, "environments", number))

    def _begin_alike(self) -> None:
        """What all ranks share is the first rank's: weights and statistics."""
        if len(set(self.ranks.all_gather((self.config.model_dump_json(), self.env.num_rows)))) > 1:
            raise UserError("the processes of this run have different configurations or environments: start all with the same")
        for module in (self.policy, *self.normalizers):
            for tensor in module.state_dict().values():
                self.ranks.first_(tensor)

    # --- the parts of an iteration -----------------------------------------------------------------------------------

    def complete(self, rollout: Rollout, last_value: Tensor) -> tuple[Tensor, Tensor]:
        """What is left to do for a rollout that was just collected: follow its episodes, estimate its advantages."""
        episodes = self._follow_episodes(rollout)
        self._estimate_advantages(rollout, last_value)
        return episodes

    def _follow_episodes(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Where episodes ended [T, N], and their running return, length and discounted return [T, N, 3]."""
        active, done = rollout.active, rollout.done
        counted = active.float()
        reward = rollout.reward.nan_to_num(0.0, 0.0, 0.0)  # one bad reward must not stay in the statistics for ever
        each = torch.stack([reward, counted, reward], -1)
        sums, running = running_sums(each, self.running_decay, self.running, active & ~done)
        self.running.copy_(running)
        if self.return_moments is not None:
            discounted = self.return_moments.standardize(sums[..., 2].reshape(-1))
            self.return_moments.gather(discounted, counted.reshape(-1))
        return done & active, sums

    def _estimate_advantages(self, rollout: Rollout, last_value: Tensor) -> None:
        ppo, reward = self.config.ppo, rollout.reward
        if self.return_moments is not None:
            reward = (reward * self.return_moments.scale).clamp(-ppo.reward_clip, ppo.reward_clip)
        following = next_values(rollout.value, last_value, rollout.final_value, rollout.terminated, rollout.truncated)
        advantage = gae(reward, rollout.value, following, rollout.done, rollout.active, ppo.gamma, ppo.gae_lambda)
        rollout.advantage.copy_(advantage)
        torch.add(advantage, rollout.value, out=rollout.returns)

    @property
    def normalizers(self) -> list[Any]:
        return [n for n in (self.policy.normalizer, self.return_moments) if n is not None]

    def _commit_normalizers(self) -> None:
        for normalizer in self.normalizers:
            for part in normalizer.modules():
                if isinstance(part, RunningMoments):
                    self.ranks.sum_(part.sums)
            normalizer.commit()

    def _calibrate(self) -> None:
        """One rollout that only measures: the first update must not learn from observations of unknown scale."""
        rollout = self.buffer.next_slot()
        log.info("measuring the scale of observations and returns first: %s steps that nothing is learned from",
                 f"{self.config.ppo.rollout_steps * self.env.num_rows * self.ranks.size:,}")
        self.env.prepare()
        self.collector.collect(rollout)
        ended, sums = self._follow_episodes(rollout)
        self._commit_normalizers()
        wrong = faults.suspicion(rollout, self.env)
        steps, episodes, wrong_ones = self.ranks.sum_(torch.stack([rollout.active.sum(), ended.sum(), wrong.long()])).tolist()
        if wrong_ones:
            told = self.ranks.all_gather(faults.explain(rollout, sums[..., 1], self.env))
            self._refuse(next((words for words in told if words), None))
        self.steps += steps
        self.episodes += episodes
        self.buffer.clear()

    def _read_figures(self, rollout: Rollout, table: Tensor, ended: Tensor, sums: Tensor) -> dict[str, float]:
        """Everything that is to be known about this iteration, in one copy from the device: sums over this rank's rows, to
        which those of the other ranks are added, and what is the same on all."""
        active = rollout.active.float()
        applied = table[:, FIGURES.index("applied")]
        means = torch.where(applied.unsqueeze(-1) > 0, table, 0).sum(0) / applied.sum().clamp(min=1.0)
        error_var, return_var = (_variance(x, active, self.ranks) for x in (rollout.returns - rollout.value, rollout.returns))
        rows, real = latest_rows(ended)
        maximum = self.policy.head.max_entropy
        latest = sums[..., :2].reshape(-1, 2)[rows]
        success = self.collector.success
        told = torch.full_like(latest[:, 0], torch.nan) if success is None else success.reshape(-1)[rows]
        own = {
            "wrong": faults.suspicion(rollout, self.env),
            "steps": active.sum(),
            "episodes": ended.sum(),
            "rollout/reward": (rollout.reward * active).sum(),
            "rollout/return": (sums[..., 0] * ended).sum(),
            "rollout/length": (sums[..., 1] * ended).sum(),
        }
        for name, metric in self.collector.metric_sums.items():
            own[f"env/{name}"], own[f"count/{name}"] = metric.unbind()
        same = {
            "applied": applied.sum(),
            "skipped": (~table[:, FIGURES.index("grad_norm")].isfinite()).sum(),
            "loss/policy": means[0],
            "loss/value": means[1],
            "policy/entropy": means[2],
            **({} if maximum is None else {"policy/entropy_share": means[2] / maximum}),
            "policy/kl": means[3],
            "policy/clip_fraction": means[4],
            "optim/grad_norm": means[5],
            "optim/update_size": torch.linalg.vector_norm(
                self.updater.optimizer.parameters - self.before_update["parameters"]
            ),
            "loss/explained_variance": 1.0 - error_var / return_var.clamp(min=1e-12),
        }
        scalars = {**own, **same}
        host = torch.cat([torch.stack([x.float() for x in scalars.values()]), latest.reshape(-1), told, real.float()]).tolist()

        numbers = dict(zip(scalars, host, strict=False))
        n = len(real)
        rest = host[len(scalars) :]
        rows_of = zip(rest[: 2 * n : 2], rest[1 : 2 * n : 2], rest[2 * n : 3 * n], rest[3 * n :], strict=True)
        finished = [Episode(ret, length, success) for ret, length, success, is_real in rows_of if is_real]
        fault = faults.explain(rollout, sums[..., 1], self.env) if numbers.pop("wrong") else None
        reading = Reading({name: numbers.pop(name) for name in own if name in numbers}, finished, self.env.health, fault)
        return self._name_figures(numbers, joined(self.ranks.all_gather(reading)))

    def _name_figures(self, figures: dict[str, float], reading: Reading) -> dict[str, float]:
        """`figures` that are the same on all ranks, `reading` of all ranks together."""
        self._refuse(reading.fault)
        applied, skipped = (int(figures.pop(name)) for name in ("applied", "skipped"))
        sums = dict(reading.sums)
        steps, episodes = (int(sums.pop(name)) for name in ("steps", "episodes"))
        self.steps += steps
        self.episodes += episodes
        self.recent.extend(reading.episodes)
        if not applied:  # the losses of an update that never happened say nothing
            figures = {name: x for name, x in figures.items() if not name.startswith(("loss/", "policy/"))}
        if self.updater.scale is not None and applied:  # fp16: now and then the loss scale is tried too high, by design
            figures["optim/scale_overflows"], skipped = float(skipped), 0
        figures |= {"rollout/steps": float(steps), "rollout/episodes": float(episodes), "optim/skipped": float(skipped)}
        figures |= {"optim/gradient_steps": float(applied), **{f"optim/{name}": x for name, x in self.coefficients.items()}}
        figures["optim/learning_rate"] = self.config.ppo.learning_rate * self.schedule.multiplier
        counts: dict[str, float] = {"rollout/reward": max(steps, 1), "rollout/return": episodes, "rollout/length": episodes}
        counts |= {f"env/{name[6:]}": count for name, count in sums.items() if name.startswith("count/")}
        figures |= {name: sums[name] / count for name, count in counts.items() if count}
        figures = {name: x for name, x in figures.items() if not (name.startswith("env/") and x != x)}
        figures |= self.recent.figures()
        for counters in (reading.health, *(listener.health for listener in self.listeners)):
            figures |= {f"health/{name}": float(x) for name, x in counters.items()}
        self._watch_for_divergence(applied, skipped)
        return figures

    def _refuse(self, fault: str | None) -> None:
        if fault is not None:
            raise EnvError(f"{fault} (found at the end of iteration {self.iteration}, after step {self.steps:,})")

    def _watch_for_divergence(self, applied: int, skipped: int) -> None:
        if skipped:
            log.warning(
                "%d gradient step(s) of iteration %d were not finite and were skipped; weights are unharmed. "
                "If this repeats, lower ppo.learning_rate or look for huge rewards or observations.", skipped, self.iteration,
            )
        self.dead_updates = self.dead_updates + 1 if skipped and not applied else 0
        if self.dead_updates >= MOST_DEAD_UPDATES:
            raise DivergedError(
                f"no finite gradient in the last {self.dead_updates} iterations (step {self.steps}). The weights are those of "
                "the last good update. Look for huge rewards and observations, lower ppo.learning_rate or ppo.max_grad_norm, "
                "or set ppo.normalize_obs=true and ppo.normalize_reward=true; then resume."
            )

    # --- stop and resume ---------------------------------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        """What must be equal for weights to fit."""
        return {
            "observation_space": space_to_json(self.policy.observation_space),
            "action_space": space_to_json(self.policy.action_space),
            "policy": self.policy.config.model_dump(mode="json"),
            "normalize_obs": None if self.policy.normalizer is None else self.policy.normalizer.clip,
            **({} if self.env.source_space is None else {"source_space": space_to_json(self.env.source_space)}),
        }

    def state(self) -> tuple[Groups, dict[str, Any]]:
        """Tensors by file name, and plain values: everything needed to go on exactly from the end of this iteration, or from
        its beginning once it was broken off. Of several ranks the first may ask for it, in a listener."""
        plain = {**self._counters(), "ranks": self.ranks.size, "fingerprint": self.fingerprint()}
        return with_parts(self._tensors(), self.ranks.ask()), plain

    def _own_part(self) -> Groups:
        return own_part(self._tensors())

    def _tensors(self) -> Groups:
        tensors = self._current() if self._broken_off is None else {
            "policy": self._broken_off.policy,
            "optimizer": self._broken_off.optimizer,
            "learner": self._broken_off.learner,
            "env": self._broken_off.env(),
        }
        tensors["buffer"] = self.buffer.state_dict()
        return {name: group for name, group in tensors.items() if group}

    def _current(self) -> Groups:
        return {
            "policy": dict(self.policy.state_dict()),
            "optimizer": self.updater.state_dict(),
            "learner": self._own_tensors(),
            "env": self.env.save_state() if self.collector.groups else {},  # else no episode has begun
        }

    def _own_tensors(self) -> dict[str, Tensor]:
        tensors = {"running": self.running, **self.collector.state_dict()}
        if self.return_moments is not None:
            tensors |= {f"return_moments.{name}": x for name, x in self.return_moments.state_dict().items()}
        for index, group in enumerate(self.collector.groups):
            tensors |= named_tensors(group.obs, f"obs.{index}")
        return tensors

    def _counters(self) -> dict[str, Any]:
        return {
            "iteration": self.iteration, "steps": self.steps, "episodes": self.episodes, "dead_updates": self.dead_updates,
            "schedule": self.schedule.multiplier, "decays": {name: decay.multiplier for name, decay in self.decays.items()},
            "recent": [list(e) for e in self.recent.episodes],
            "buffer": [self.buffer.filled, self.buffer.newest],
        }

    def _load_counters(self, plain: dict[str, Any]) -> None:
        self.iteration, self.steps, self.episodes = plain["iteration"], plain["steps"], plain["episodes"]
        self.dead_updates, self.schedule.multiplier = plain["dead_updates"], plain["schedule"]
        for name, multiplier in plain.get("decays", {}).items():
            self.decays[name].multiplier = multiplier
        self.recent.episodes.clear()
        self.recent.extend(Episode(*e) for e in plain["recent"])

    def _keep(self) -> None:
        """Remember the state of now: it is what is saved if what follows does not end well."""
        self._beginning = None  # first, so that its memory can be used again
        flat = self.updater.optimizer.parameters
        self.before_update = {name: x.clone() for name, x in {"parameters": flat, **self.updater.state_dict()}.items()}
        copy = self.before_update["parameters"]
        self._beginning = Beginning(
            policy=copies(self.policy.state_dict(), flat, copy),
            optimizer={name: x for name, x in self.before_update.items() if name != "parameters"},
            learner=copies(self._own_tensors(), flat, copy),
            env=self.env.keep_state(),
            counters=self._counters(),
        )

    def _rewind(self) -> None:
        """What was broken off is as if it had not begun."""
        self._broken_off = self._beginning
        if self._beginning is not None:
            self._load_counters(self._beginning.counters)
            self.buffer.filled, self.buffer.newest = self._beginning.counters["buffer"]

    def load_state(self, tensors: Groups, plain: dict[str, Any]) -> None:
        """Go on from `state()`; of several ranks, from what `seen_by` this one. Where the world cannot be restored its episodes
        start afresh, with a warning. SavedError: it cannot be right, and this learner cannot go on."""
        check_saved(self, tensors, plain)
        self.policy.load_state_dict(tensors["policy"])
        self.updater.load_state_dict(tensors["optimizer"])
        self._load_counters(plain)
        learner = tensors.get("learner", {})
        if self.return_moments is not None and "return_moments.count" in learner:
            self.return_moments.load_state_dict(
                {name: learner[f"return_moments.{name}"] for name in self.return_moments.state_dict()}
            )
        if "buffer" in tensors and self.buffer.fits(tensors["buffer"]):
            self.buffer.load_state_dict(tensors["buffer"])
            self.buffer.filled, self.buffer.newest = plain["buffer"]
        if self.iteration == self.steps == 0 and "env" not in tensors:
            return  # it was stopped before its first episodes had begun: `start` begins them
        saved_by, missing = plain.get("ranks", 1), "the checkpoint holds no state of the environments"
        if saved_by != self.ranks.size:
            missing = f"the checkpoint holds the environments of {saved_by} process(es), this run has {self.ranks.size}"
        self._resume_episodes(tensors.get("env", {}), learner, missing)

    def _resume_episodes(self, env_state: dict[str, Tensor], learner: dict[str, Tensor], missing: str) -> None:
        self._replays.clear()  # recordings of collection play on what is replaced now
        try:
            if not env_state:
                raise EnvError(missing)
            obs = self.env.load_state(env_state)
        except EnvError as error:
            log.warning("%s: unfinished episodes are dropped and the run goes on from fresh ones", error)
            self.collector.start(self._fresh_worlds())
            return
        self.collector.start(obs)
        check_streams(learner, self.collector.state_dict())
        self.collector.load_state_dict(learner)
        if learner["running"].shape == self.running.shape:
            self.running.copy_(learner["running"])
        for index, group in enumerate(self.collector.groups):
            for name, x in named_tensors(group.obs, f"obs.{index}").items():
                if name not in learner or not torch.equal(learner[name].to(x.device), x):
                    log.warning(
                        "the environments did not return to the observations that were saved, so this resume is not exact: "
                        "they draw on randomness that reset(seed=...) does not control"
                    )
                    return


def _captured(ppo: PPOConfig) -> PPOConfig:
    """The options that captured graphs have read once and for all: without those that are tensors, or read between graphs."""
    live = ("clip_range", "entropy_coef", "learning_rate", "critic_learning_rate", "epochs")
    return ppo.model_copy(update=dict.fromkeys(live))


def _variance(x: Tensor, weight: Tensor, ranks: Ranks) -> Tensor:
    x = x.masked_fill(weight == 0, 0.0)  # an empty seat may be worth NaN
    return ranks.mean((x - ranks.mean(x, weight)).square(), weight)
