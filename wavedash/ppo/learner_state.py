"""The state of a learner is what a checkpoint holds; from it a learner goes on bit for bit.

Tensors are grouped by file: `policy`, `optimizer`, `learner` (statistics, random streams, memory, observations), `env`,
`buffer`, `listeners`. Plain values are counters, schedules and the rest of what listeners keep. `rank_state.py` says which of
them each of several ranks has of its own, `state_checks.py` what a saved state must be like.

An iteration that is interrupted (by a second Ctrl-C, an environment, a listener) is saved as it began: see `snapshot.py`.
"""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import named_tensors
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import EnvError
from wavedash.ppo import listeners
from wavedash.ppo.episodes import Episode
from wavedash.ppo.rank_state import StateTensors, rank_part, shared_part, with_rank_parts
from wavedash.ppo.snapshot import Snapshot, copies
from wavedash.ppo.state_checks import check_saved, check_streams

if TYPE_CHECKING:
    from wavedash.config import PolicyConfig
    from wavedash.policy.actor_critic import ActorCritic
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

STREAMS = {5056: "a CPU", 16: "a GPU"}
"""Bytes that torch keeps of a random stream on this kind of device. A stream of one kind cannot go on on the other"""


def fingerprint(learner: Learner) -> dict[str, Any]:
    """Returns what must be equal for weights to fit: spaces and networks."""
    source = learner.env.source_space
    return {**policy_fingerprint(learner.policy), **({} if source is None else {"source_space": space_to_json(source)})}


def policy_fingerprint(policy: ActorCritic) -> dict[str, Any]:
    """Returns what a policy says of its spaces and networks."""
    clip = None if policy.normalizer is None else policy.normalizer.clip
    return fingerprint_of(Spaces(policy.observation_space, policy.action_space), policy.config, clip)


def fingerprint_of(spaces: Spaces, policy: PolicyConfig, normalize_obs: float | None) -> dict[str, Any]:
    """Returns what the policy for these spaces would say. `normalize_obs` is the range that observations are clipped to."""
    return {
        "observation_space": space_to_json(spaces.observation_space),
        "action_space": space_to_json(spaces.action_space),
        "policy": policy.model_dump(mode="json"),
        "normalize_obs": normalize_obs,
    }


class LearnerState:
    """Reads and writes the state of one learner."""

    def __init__(self, learner: Learner):
        self._learner = learner
        self.before_update: dict[str, Tensor] = {}
        """The flat parameters and the optimiser's state when the iteration began"""
        self.snapshot: Snapshot | None = None
        """The state at the beginning of the current iteration"""
        self.interrupted: Snapshot | None = None
        """The state at the beginning of an iteration that was interrupted"""

    # --- the current iteration ---------------------------------------------------------------------------------------

    def take_snapshot(self) -> None:
        """Copies the current state: it is what is saved if the iteration is interrupted."""
        learner = self._learner
        self.snapshot = None  # first, so that its memory can be used again
        flat = learner.updater.optimizer.parameters
        self.before_update = {name: x.clone() for name, x in {"parameters": flat, **learner.updater.state_dict()}.items()}
        copy = self.before_update["parameters"]
        self.snapshot = Snapshot(
            policy=copies(learner.policy.state_dict(), flat, copy),
            optimizer={name: x for name, x in self.before_update.items() if name != "parameters"},
            learner=copies(self._own_tensors(), flat, copy),
            env=learner.env.keep_state(),
            listeners=learner.listeners.states(),
            counters=self._counters(),
        )

    def drop_snapshot(self) -> None:
        """Is called when all listeners were told of the iteration. An iteration that did not get so far is repeated on
        resume."""
        self.snapshot = None

    def rewind(self) -> None:
        """Takes the interrupted iteration back: counters and buffer are as they were at its beginning."""
        self.interrupted = self.snapshot
        if self.snapshot is not None:
            self._load_counters(self.snapshot.counters)
            self._learner.buffer.filled, self._learner.buffer.newest = self.snapshot.counters["buffer"]

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> tuple[StateTensors, dict[str, Any]]:
        """Returns tensors by file name, and plain values. The first rank calls it, while the others serve its requests."""
        learner = self._learner
        plain = {**self._counters(), "ranks": learner.ranks.size, "fingerprint": fingerprint(learner)}
        tensors = self._tensors()
        listener_tensors, listener_values = listeners.split(
            learner.listeners.states() if self.interrupted is None else self.interrupted.listeners)
        if listener_values:
            plain[listeners.NAME] = listener_values
        if listener_tensors:
            tensors[listeners.NAME] = listener_tensors
        return with_rank_parts(tensors, learner.ranks.request()), plain

    def rank_part(self) -> StateTensors:
        """Returns what only this rank has."""
        return rank_part(self._tensors())

    def _tensors(self) -> StateTensors:
        tensors = self._current() if self.interrupted is None else {
            "policy": self.interrupted.policy,
            "optimizer": self.interrupted.optimizer,
            "learner": self.interrupted.learner,
            "env": self.interrupted.env(),
        }
        tensors["buffer"] = self._learner.buffer.state_dict()
        return {file: content for file, content in tensors.items() if content}

    def _current(self) -> StateTensors:
        learner = self._learner
        return {
            "policy": dict(learner.policy.state_dict()),
            "optimizer": learner.updater.state_dict(),
            "learner": self._own_tensors(),
            "env": learner.env.save_state() if learner.collector.shards else {},  # empty before the first reset
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
            "buffer": [learner.buffer.filled, learner.buffer.newest], "split": learner.updater.split.state(),
        }

    # --- loading -----------------------------------------------------------------------------------------------------

    def load(self, tensors: StateTensors, plain: dict[str, Any], planned: bool = False) -> None:
        """Does what `Learner.load_state` says."""
        learner = self._learner
        if "optimizer" in tensors:
            tensors = {**tensors, "optimizer": learner.updater.optimizer.regrouped(tensors["optimizer"])}
        moved = self._moved(tensors)
        if moved is not None:
            tensors = shared_part(tensors)
        check_saved(learner, tensors, plain)
        learner.policy.load_state_dict(tensors["policy"])
        learner.updater.load_state_dict(tensors["optimizer"])
        self._load_counters(plain)
        learner.listeners.load(listeners.joined(tensors.get(listeners.NAME, {}), plain.get(listeners.NAME, {})))
        if learner.iteration:  # schedules advance at the end of an iteration
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
            return  # the run was stopped before its first reset, which `start` does now
        saved_ranks, reason = plain.get("ranks", 1), "the checkpoint holds no state of the environments"
        if saved_ranks != learner.ranks.size:
            reason = f"the checkpoint holds the environments of {saved_ranks} process(es), this run has {learner.ranks.size}"
        self._resume_episodes(tensors.get("env", {}), own, moved or reason, planned)

    def _moved(self, tensors: StateTensors) -> str | None:
        """Says so if the state was saved on another kind of device than this learner's: then weights, optimiser and statistics
        go on, and random streams and episodes begin anew. None: it was not."""
        here, saved = self._learner.updater.generator.get_state(), tensors.get("optimizer", {}).get("minibatches")
        if saved is None or saved.dtype != here.dtype or saved.dim() != 1 or len(saved) == len(here):
            return None
        there, this = STREAMS.get(len(saved)), STREAMS.get(len(here), "this device")
        return there and f"the checkpoint was saved on {there}, whose random streams cannot go on on {this}"

    def _load_counters(self, plain: dict[str, Any]) -> None:
        learner = self._learner
        learner.iteration, learner.steps, learner.episodes = plain["iteration"], plain["steps"], plain["episodes"]
        learner.divergence.dead_updates, learner.schedule.multiplier = plain["dead_updates"], plain["schedule"]
        for name, multiplier in plain.get("decays", {}).items():
            learner.decays[name].multiplier = multiplier
        learner.updater.split.load(plain.get("split"))
        learner.recent.episodes.clear()
        learner.recent.extend(Episode(*e) for e in plain["recent"])

    def _resume_episodes(self, env_state: dict[str, Tensor], own: dict[str, Tensor], reason: str, planned: bool) -> None:
        """Restores environments and collector. `reason` says why `env_state` is empty, where it is."""
        learner = self._learner
        learner.forget_graphs()  # they read tensors that are replaced here
        try:
            if not env_state:
                raise EnvError(reason)
            obs = learner.env.load_state(env_state)
        except EnvError as error:
            if planned:
                log.info("unfinished episodes are dropped, and others begin in the new environments")
            else:
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
