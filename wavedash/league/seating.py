"""Seating: which members of a league may play in which slots, and the players that drive them.

Members that share a signature (networks, observation, action parser) take turns in the same slots and are inferred together.
Every script, and every signature other than the learner's, has one slot; the learner's own snapshots and guests of its
signature have the rest.
"""
from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch

from wavedash import champions
from wavedash.config import RocketConfig, RunConfig
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.league.frozen import FrozenPolicies, signature
from wavedash.league.players import Entrant, find_entrant
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.parts import Player
from wavedash.rocket.rehearsal import empty_arenas
from wavedash.rocket.task import Task, refuse_overlap
from wavedash.rocket.team_sizes import shard_plans
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.seeding import stream_seed

log = logging.getLogger(__name__)

SNAPSHOT = "step-"
"""Names of snapshots begin with this"""


class Guest(NamedTuple):
    """A member from elsewhere."""

    name: str
    """Its name in the league: that of the script, or of the copy of its policy in the pool"""
    entrant: Entrant


def invited(config: RunConfig, pool: Path | None = None, trust: bool = False) -> list[Guest]:
    """The guests that a configuration names. In a run that is resumed they are those of which `pool` has a copy: what they
    were taken from may have changed since. UserError: there is no such player, or it is named twice."""
    assert config.opponents is not None
    asked = config.opponents.members
    names = [guest_name(one) for one in asked]
    if twice := [one for one, name in zip(asked, names, strict=True) if names.count(name) > 1]:
        raise UserError(f"opponents.members names {twice[0]!r} twice: leave one of them out")
    size = kind_of(config.env).team_size(config.env)
    return [Guest(name, _found(f"{one}-{size}v{size}" if one == champions.NAME else one, name, pool, trust))
            for one, name in zip(asked, names, strict=True)]


def guest_name(asked: str) -> str:
    """A name for files and curves: short, and different for everybody who may be asked for."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", asked).strip("-")
    if plain == asked and not plain.startswith(SNAPSHOT):
        return plain
    return f"{plain[-40:].strip('-')}-{zlib.crc32(asked.encode()):08x}"


def _found(asked: str, name: str, pool: Path | None, trust: bool) -> Entrant:
    copy = None if pool is None else pool / name
    entrant = find_entrant(asked if copy is None or not PolicyFolder.is_one(copy) else str(copy), trust)
    if entrant.members:
        raise UserError(f"opponents.members: {asked!r} is a team of several players, and an opponent is one for all cars of "
                        "its team: name the players one by one")
    return entrant


@dataclass
class Group:
    """Members that take turns in the same slots."""

    slots: range
    guests: list[Guest] = field(default_factory=list)
    task: RocketConfig | None = None
    """The task of their policies; None for a script"""
    actors: StackedActors | None = None
    """Their networks, shared by all shards; None for a script"""

    def player(self, deterministic: bool, seed: int) -> Player:
        """A player for another shard."""
        if self.actors is None:
            return self.guests[0].entrant.player()
        assert self.task is not None
        named = "snapshots of this run" if not self.guests else ", ".join(guest.entrant.asked for guest in self.guests)
        return FrozenPolicies(self.actors, self.task, named, deterministic, seed)


class Seating:
    """The slots of a run's league, and who may sit in them."""

    def __init__(self, config: RunConfig, policy: ActorCritic, guests: Sequence[Guest], rank: int = 0) -> None:
        """`policy` is one with the networks of the learner; `rank`: the number of this process. UserError: there are too few
        slots."""
        assert config.opponents is not None
        if config.opponents.room == 0:
            raise UserError("with opponents.share=0 nobody plays, and no arenas are set aside for later: set opponents.most to "
                            "the largest share that opponents may get (opponents.most=0.2), or turn them off by opponents=null")
        task = rocket_task(config.env, Path(config.name))
        self.options, self.guests, self.seed = config.opponents, list(guests), config.seed
        by_signature: dict[str, list[Guest]] = {signature(policy, task): []}
        for guest in guests:
            by_signature.setdefault(self._signature_of(guest, policy), []).append(guest)
        (_, of_learner), *others = by_signature.items()
        slots = self.options.slots - len(others)
        if slots < 1:
            raise UserError(f"opponents.slots={self.options.slots} is too few: each script of opponents.members and each kind "
                            f"of policy with other networks or another task needs one, which makes {len(others)}, and the "
                            f"snapshots of this run need at least one. Set opponents.slots={len(others) + 1} or more")
        self.groups = [Group(range(slots), of_learner, task, StackedActors(policy, slots))]
        for slot, (_, members) in enumerate(others, slots):
            run = members[0].entrant.run
            actors = None if run is None else StackedActors(run.policy.policy, 1)
            self.groups.append(Group(range(slot, slot + 1), members, members[0].entrant.task, actors))
        self._shards = rank << 20

    @property
    def home(self) -> Group:
        """The group of the learner's own snapshots."""
        return self.groups[0]

    def line_up(self, task: Task) -> Opponents:
        """The line-up of another shard. Each draws numbers of its own."""
        self._shards += 1
        first = self._shards * len(self.groups)
        players = [group.player(self.options.deterministic, stream_seed(self.seed, "league players", first + number))
                   for number, group in enumerate(self.groups)]
        seed = stream_seed(self.seed, "league arenas", self._shards) % 2**31
        return Opponents(task.action, players, self.options.share, seed, self.options.most)

    def rehearse(self, config: RunConfig, device: torch.device) -> None:
        """Raises UserError if there are too few arenas for all slots, or if somebody cannot play in them."""
        task = rocket_task(config.env, Path(config.name))
        fewest = {plan.size: plan.arenas for plan in sorted(shard_plans(config.env, device), key=lambda plan: -plan.arenas)}
        for size, arenas in fewest.items():
            made = Task.configured(task)
            line_up = self.line_up(made)
            line_up.bind(empty_arenas(arenas, task.of_size(size)))
            made.lanes.set_aside(arenas)
            refuse_overlap(made.lanes, line_up, arenas)

    def _signature_of(self, guest: Guest, learner: ActorCritic) -> str:
        run, task = guest.entrant.run, guest.entrant.task
        if run is None or task is None:
            return guest.name
        run.policy.policy.precision = learner.precision  # so that it may play together with the learner's snapshots
        return signature(run.policy.policy, task)


def reseated(before: Sequence[str | None], chosen: Sequence[str]) -> dict[int, str]:
    """Returns who gets another slot, by slot, so that those who are in `chosen` have them, as often as they are in it, and as
    few as possible change."""
    left = list(chosen)
    changes = []
    for slot, name in enumerate(before):
        if name in left:
            left.remove(name)
        else:
            changes.append(slot)
    return dict(zip(changes, left, strict=True))


def warn_of_share(line_ups: Sequence[Opponents], asked: float) -> None:
    """Tells the user where opponents get far more or fewer arenas than the share that was asked for."""
    taken, arenas = sum(line_up.arenas_in_play for line_up in line_ups), sum(len(line_up.seats) for line_up in line_ups)
    if asked and not 0.8 <= taken / arenas / asked <= 1.25:
        log.warning("opponents play in %d of %d arenas, which is %.0f %% and not opponents.share=%g: each of the %d slots has "
                    "equally many, and at least one in each of the %d groups of arenas (env.groups, or one for each team "
                    "size). With more arenas (env.count) or fewer slots (opponents.slots) the share is met", taken, arenas,
                    100 * taken / arenas, asked, line_ups[0].slots, len(line_ups))
