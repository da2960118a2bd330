"""The state of a learner: what a checkpoint holds, and how a learner goes on from it, bit for bit.

Tensors are in groups, one file each: `policy`, `optimizer`, `learner` (statistics, random streams, memory, observations),
`env`, `buffer`, `listeners`. Plain values are counters, schedules and what else listeners keep. What of this belongs to each of
several ranks is in `rank_state.py`, what a saved state must be like in `state_checks.py`.

An iteration that is broken off (a second Ctrl-C, an environment, a listener) is saved as it began: see `beginning.py`.
"""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from wavedash.envs.obs import named_tensors
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import EnvError
from wavedash.ppo import listeners
from wavedash.ppo.beginning import Beginning, copies
from wavedash.ppo.episodes import Episode
from wavedash.ppo.rank_state import Groups, own_part, with_parts
from wavedash.ppo.state_checks import check_saved, check_streams

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


def fingerprint(learner: Learner) -> dict[str, Any]:
    """What must be equal for weights to fit."""
    policy, source = learner.policy, learner.env.source_space
    return {
        "observation_space": space_to_json(policy.observation_space),
        "action_space": space_to_json(policy.action_space),
        "policy": policy.config.model_dump(mode="json"),
        "normalize_obs": None if policy.normalizer is None else policy.normalizer.clip,
        **({} if source is None else {"source_space": space_to_json(source)}),
    }


class LearnerState:
    """Reads and writes the state of one learner."""

    def __init__(self, learner: Learner):
        self._learner = learner
        self.before_update: dict[str, Tensor] = {}
        """The flat parameters and the optimiser's state when the iteration began"""
        self.beginning: Beginning | None = None
        """The state at the beginning of the iteration that is under way"""
        self.broken_off: Beginning | None = None
        """The state at the beginning of an iteration that did not end well"""

    # --- the iteration that is under way -----------------------------------------------------------------------------

    def keep(self) -> None:
        """Remember the state of now: it is what is saved if what follows does not end well."""
        learner = self._learner
        self.beginning = None  # first, so that its memory can be used again
        flat = learner.updater.optimizer.parameters
        self.before_update = {name: x.clone() for name, x in {"parameters": flat, **learner.updater.state_dict()}.items()}
        copy = self.before_update["parameters"]
        self.beginning = Beginning(
            policy=copies(learner.policy.state_dict(), flat, copy),
            optimizer={name: x for name, x in self.before_update.items() if name != "parameters"},
            learner=copies(self._own_tensors(), flat, copy),
            env=learner.env.keep_state(),
            listeners=learner.listeners.states(),
            counters=self._counters(),
        )

    def completed(self) -> None:
        """The iteration was reported to the end. One that was not is done again."""
        self.beginning = None

    def rewind(self) -> None:
        """What was broken off is as if it had not begun."""
        self.broken_off = self.beginning
        if self.beginning is not None:
            self._load_counters(self.beginning.counters)
            self._learner.buffer.filled, self._learner.buffer.newest = self.beginning.counters["buffer"]

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> tuple[Groups, dict[str, Any]]:
        """Tensors by file name, and plain values. Called by the first rank, while the others stand by."""
        learner = self._learner
        plain = {**self._counters(), "ranks": learner.ranks.size, "fingerprint": fingerprint(learner)}
        tensors = self._tensors()
        listener_tensors, listener_values = listeners.split(
            learner.listeners.states() if self.broken_off is None else self.broken_off.listeners)
        if listener_values:
            plain[listeners.GROUP] = listener_values
        if listener_tensors:
            tensors[listeners.GROUP] = listener_tensors
        return with_parts(tensors, learner.ranks.ask()), plain

    def own_part(self) -> Groups:
        """What only this rank has."""
        return own_part(self._tensors())

    def _tensors(self) -> Groups:
        tensors = self._current() if self.broken_off is None else {
            "policy": self.broken_off.policy,
            "optimizer": self.broken_off.optimizer,
            "learner": self.broken_off.learner,
            "env": self.broken_off.env(),
        }
        tensors["buffer"] = self._learner.buffer.state_dict()
        return {name: group for name, group in tensors.items() if group}

    def _current(self) -> Groups:
        learner = self._learner
        return {
            "policy": dict(learner.policy.state_dict()),
            "optimizer": learner.updater.state_dict(),
            "learner": self._own_tensors(),
            "env": learner.env.save_state() if learner.collector.shards else {},  # else no episode has begun
        }

    def _own_tensors(self) -> dict[str, Tensor]:
        learner = self._learner
        tensors = {"running": learner.tracker.running, **learner.collector.state_dict()}
        if learner.return_moments is not None:
            tensors |= {f"return_moments.{name}": x for name, x in learner.return_moments.state_dict().items()}
        for index, shard in enumerate(learner.collector.shards):
            tensors |= named_tensors(shard.obs, f"obs.{index}")
        return tensors

    def _counters(self) -> dict[str, Any]:
        learner = self._learner
        return {
            "iteration": learner.iteration, "steps": learner.steps, "episodes": learner.episodes,
            "dead_updates": learner.divergence.dead_updates, "schedule": learner.schedule.multiplier,
            "decays": {name: decay.multiplier for name, decay in learner.decays.items()},
            "recent": [list(e) for e in learner.recent.episodes],
            "buffer": [learner.buffer.filled, learner.buffer.newest],
        }

    # --- going on ----------------------------------------------------------------------------------------------------

    def load(self, tensors: Groups, plain: dict[str, Any]) -> None:
        """See `Learner.load_state`."""
        learner = self._learner
        if "optimizer" in tensors:
            tensors = {**tensors, "optimizer": learner.updater.optimizer.regrouped(tensors["optimizer"])}
        check_saved(learner, tensors, plain)
        learner.policy.load_state_dict(tensors["policy"])
        learner.updater.load_state_dict(tensors["optimizer"])
        self._load_counters(plain)
        learner.listeners.load(listeners.joined(tensors.get(listeners.GROUP, {}), plain.get(listeners.GROUP, {})))
        if learner.iteration:  # before, nothing was advanced yet
            for schedule in (learner.schedule, *learner.decays.values()):
                schedule.resume(learner.steps / learner.total_steps)
        own = tensors.get("learner", {})
        if learner.return_moments is not None and "return_moments.count" in own:
            learner.return_moments.load_state_dict(
                {name: own[f"return_moments.{name}"] for name in learner.return_moments.state_dict()}
            )
        if "buffer" in tensors and learner.buffer.fits(tensors["buffer"]):
            learner.buffer.load_state_dict(tensors["buffer"])
            learner.buffer.filled, learner.buffer.newest = plain["buffer"]
        if learner.iteration == learner.steps == 0 and "env" not in tensors:
            return  # it was stopped before its first episodes had begun: `start` begins them
        saved_by, missing = plain.get("ranks", 1), "the checkpoint holds no state of the environments"
        if saved_by != learner.ranks.size:
            missing = f"the checkpoint holds the environments of {saved_by} process(es), this run has {learner.ranks.size}"
        self._resume_episodes(tensors.get("env", {}), own, missing)

    def _load_counters(self, plain: dict[str, Any]) -> None:
        learner = self._learner
        learner.iteration, learner.steps, learner.episodes = plain["iteration"], plain["steps"], plain["episodes"]
        learner.divergence.dead_updates, learner.schedule.multiplier = plain["dead_updates"], plain["schedule"]
        for name, multiplier in plain.get("decays", {}).items():
            learner.decays[name].multiplier = multiplier
        learner.recent.episodes.clear()
        learner.recent.extend(Episode(*e) for e in plain["recent"])

    def _resume_episodes(self, env_state: dict[str, Tensor], own: dict[str, Tensor], missing: str) -> None:
        learner = self._learner
        learner.forget_graphs()  # those of collection read what is replaced now
        try:
            if not env_state:
                raise EnvError(missing)
            obs = learner.env.load_state(env_state)
        except EnvError as error:
            log.warning("%s: unfinished episodes are dropped and the run goes on from fresh ones", error)
            learner.collector.start(learner.reset_environments())
            return
        learner.collector.start(obs)
        check_streams(own, learner.collector.state_dict())
        learner.collector.load_state_dict(own)
        if own["running"].shape == learner.tracker.running.shape:
            learner.tracker.running.copy_(own["running"])
        for index, shard in enumerate(learner.collector.shards):
            for name, x in named_tensors(shard.obs, f"obs.{index}").items():
                if name not in own or not torch.equal(own[name].to(x.device), x):
                    log.warning(
                        "the environments did not return to the observations that were saved, so this resume is not exact: "
                        "they draw on randomness that reset(seed=...) does not control"
                    )
                    return
