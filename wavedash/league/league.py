"""The league of a run: a listener that counts games against opponents, decides who plays, and freezes snapshots.

    league/
      step-000025000000/ ...   snapshots of the run and copies of guests' policies, each a policy folder; see pool.py
      results.csv              games against each member, one row per member and draw: step, member, won, drawn, lost

Arenas and slots are the line-up's (rocket/line_up.py). Between iterations the league reads how games in each slot ended, and
every `refresh_every` iterations it draws anew who has which slot, by weights of a strategy. All that it decides follows from
its state, which is part of the checkpoint, and from random numbers that are a function of the seed and of how often was drawn.

With several ranks each has slots of its own in its own arenas, with the same members: results are summed over ranks, and all
ranks decide the same. Only the first has the run folder; it sends the others what it reads from there.
"""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from wavedash.config import OpponentsConfig, RunConfig
from wavedash.league.members import SAVED_AS, LeagueState, Member, known
from wavedash.league.pool import Pool, named_by_checkpoints, thinned
from wavedash.league.results import ResultsFile
from wavedash.league.seating import SNAPSHOT, Group, Guest, Seating, reseated, warn_of_share
from wavedash.league.strategies import drawn, strategy_of
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import uninterrupted
from wavedash.runs.milestones import check_label
from wavedash.seeding import stream_seed

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner
    from wavedash.rocket.line_up import Opponents

log = logging.getLogger(__name__)

FOLDER = "league"


def live_options(options: OpponentsConfig) -> tuple[str, ...]:
    """Returns what may change while a run runs; the share only where there are arenas that opponents may get."""
    live = ("snapshot_every", "pool", "refresh_every", "strategy", "temperature", "decay", "window", "target", "width", "power",
            "prune_above", "prune_games", *(["share"] if options.most is not None else []))
    return tuple(f"opponents.{option}" for option in live)


class League(Listener):
    """Plays the members of `seating` against the policy. It does nothing until `run` is set: a learner without a run folder
    plays against its own first policy."""

    saved_as = SAVED_AS
    orders = ("milestone",)

    def __init__(self, seating: Seating, config: RunConfig) -> None:
        assert config.opponents is not None
        self.health: dict[str, int] = {"failed_snapshots": 0}
        self.run: RunFolder | None = None
        self.seating, self.config, self.options = seating, config, config.opponents
        self.live = live_options(self.options)
        self.strategy = strategy_of(self.options)
        self.state = LeagueState()
        self._resumed = False
        self._ranks: Ranks = ALONE
        self._line_ups: list[Opponents] = []
        self._results: ResultsFile | None = None
        self._not_before = 0  # after a failed snapshot, the step of the next try
        self._dropped: dict[str, int] = {}  # the step at which each member left, while its files may still be needed

    # --- a listener --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return self.state.model_dump()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state, self._resumed = LeagueState.model_validate(state), True

    def on_start(self, learner: Learner) -> None:
        self._ranks = learner.ranks
        if not self._ranks.any(self.run is not None):
            return
        self._line_ups = [task.line_up for task in learner.env.tasks]
        if self.run is not None:
            warn_of_share(self._line_ups, self.options.share)
            self._open(self.run, learner.steps)
        self.state = self._ranks.shared(self.state)
        if not self._snapshots():
            self._freeze(learner)
        self._take_seats()

    def _open(self, run: RunFolder, steps: int) -> None:
        """Goes on with the folder `league/` of a run, or begins one."""
        self.pool = Pool(run.path / FOLDER)
        if self._resumed and not self.pool.folder.exists():
            log.warning("%s is gone: the league begins anew", self.pool.folder)
            self.state, self._resumed = LeagueState(), False
        self.pool.check({member.name: member.sha256 for member in self.state.members if member.sha256 is not None})
        self._take_in_guests()
        self._collect()  # afterwards: a guest may be taken in from a copy that nobody names yet
        if not self._resumed:
            self.state.steps = steps
        self._results = ResultsFile(self.pool.folder / "results.csv", steps)

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        if not self._line_ups:
            return None
        milestone = self._passes_milestone(report.steps)
        games = self._count(report.steps)
        if milestone or report.steps // self.options.snapshot_every > self.state.frozen_at // self.options.snapshot_every:
            self._freeze(learner, milestone)
        if report.iteration % self.options.refresh_every == 0:
            self._report(report.steps)
            self._prune(report.steps)
            self._draw()
        return self._metrics(games)

    def _passes_milestone(self, steps: int) -> bool:
        """Whether a milestone of this step is about to be saved, which shall hold itself as a member."""
        every = None if self.config.milestones is None else self.config.milestones.every
        return every is not None and steps // every > self.state.steps // every

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        """Takes in the version of which the saver then writes a milestone."""
        check_label(argument)  # the saver will refuse it too
        if self._line_ups:
            self._freeze(learner, milestone=True)
        return ""

    def on_change(self, learner: Learner, then: RunConfig) -> None:
        assert learner.config.opponents is not None
        self.config, self.options = learner.config, learner.config.opponents
        self.strategy = strategy_of(self.options)
        if then.opponents is not None and then.opponents.share != self.options.share:
            before = [line_up.arenas_in_play for line_up in self._line_ups]
            for task in learner.env.tasks:
                task.line_up.set(share=self.options.share)
            if self.run is not None and [line_up.arenas_in_play for line_up in self._line_ups] != before:
                warn_of_share(self._line_ups, self.options.share)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if self._results is not None:
            self._results.close()

    # --- games -------------------------------------------------------------------------------------------------------

    def _count(self, steps: int) -> int:
        """Credits the games since the last iteration to the members that played them; returns how many there were."""
        own = torch.stack([line_up.results for line_up in self._line_ups]).sum(0)
        results = self._ranks.sum_(own).tolist()  # one host copy
        for line_up in self._line_ups:
            line_up.clear_results()
        fading = 0.5 ** ((steps - self.state.steps) / self.options.snapshot_every)
        by_name = {member.name: member for member in self.state.members}
        for member in self.state.members:
            member.fade(fading)
        for name, result in zip(self.state.seats, results, strict=True):
            if name is not None:
                by_name[name].add(result)
        self.state.steps = steps
        return sum(map(sum, results))

    def _report(self, steps: int) -> None:
        if self._results is not None:
            self._results.add(steps, self.state.members)
        for member in self.state.members:
            member.unreported = [0, 0, 0]

    def _metrics(self, games: int) -> dict[str, float]:
        members, snapshots = self.state.members, self._snapshots()
        metrics = {"league/games": float(games), "league/members": float(len(members))}
        if played := sum(member.games for member in members):
            metrics["league/win_rate"] = sum(member.points for member in members) / played
        shown = {"oldest": snapshots[0], "newest": snapshots[-1]} if len(snapshots) > 1 else {}
        shown |= {member.name: member for member in members if member.guest}
        return metrics | {f"league/win_rate_{name}": member.win_rate for name, member in shown.items() if member.games > 1}

    # --- who plays ---------------------------------------------------------------------------------------------------

    def _members_of(self, group: Group) -> list[Member]:
        guests = {guest.name for guest in group.guests}
        own = self._snapshots() if group is self.seating.home else []
        return own + [member for member in self.state.members if member.guest and member.name in guests]

    def _snapshots(self) -> list[Member]:
        """The snapshots of this run, oldest first."""
        return [member for member in self.state.members if not member.guest]

    def _draw(self) -> None:
        """Draws anew who has which slot. Who had one of the slots before keeps it if he is drawn again."""
        number = np.random.default_rng(stream_seed(self.config.seed, "league", self.state.draws)).random()
        self.state.draws += 1
        for group in self.seating.groups:
            members = self._members_of(group)
            if not members:
                continue
            told, own = known(members)
            chosen = [members[i].name for i in drawn(self.strategy.weights(told, own), len(group.slots), number)]
            for slot, name in reseated([self.state.seats[slot] for slot in group.slots], chosen).items():
                self._exchange(group, group.slots[slot], name)

    def _exchange(self, group: Group, slot: int, name: str) -> None:
        weights = None if group.actors is None else self._read(name)
        if group.actors is not None and weights is None:
            log.error("the opponent of slot %d stays", slot)
            return
        for line_up in self._line_ups:
            line_up.results[slot].zero_()  # of an interrupted iteration, before a resume with other members
            if weights is None:
                line_up.forget_games(slot)  # a script is in its slot already, but perhaps it was not when a game began
            else:
                line_up.exchange(slot, weights)
        self.state.seats[slot] = name

    def _read(self, name: str) -> dict[str, Tensor] | None:
        """The weights of a member, which the first rank reads; None: that failed."""
        weights = None
        if self.run is not None:
            try:
                weights = self.pool.read(name)
            except CheckpointError as error:
                log.error("an opponent cannot be read: %s", error)
        return self._ranks.shared(weights)

    def _take_seats(self) -> None:
        """At the start, gives every slot the weights of its member. Where a slot is new, or its member is not there any more,
        all are drawn anew."""
        before = dict(enumerate(self.state.seats))
        self.state.seats = [None] * self.options.slots
        for group in self.seating.groups:
            names = [member.name for member in self._members_of(group)]
            for slot in group.slots:
                name = before.get(slot)
                if name is None or name not in names:
                    continue
                weights = None if group.actors is None else self._read(name)
                if group.actors is not None and weights is not None:
                    group.actors.load(slot - group.slots.start, weights)
                if group.actors is None or weights is not None:
                    self.state.seats[slot] = name
        if None in self.state.seats:
            self._draw()

    # --- members -----------------------------------------------------------------------------------------------------

    def _take_in_guests(self) -> None:
        """The members from elsewhere are those of the configuration. Their policies are copied, so that a run that is resumed
        plays the same ones whatever happens to where they came from."""
        invited = {guest.name: guest for guest in self.seating.guests}
        self.state.members = [member for member in self.state.members if not member.guest or member.name in invited]
        known_before = {member.name for member in self.state.members}
        for name, guest in invited.items():
            if name not in known_before:
                self.state.members.append(Member(name=name, step=0, guest=True, sha256=self._copied(guest)))

    def _copied(self, guest: Guest) -> str | None:
        run = guest.entrant.run
        if run is None:
            return None
        if guest.name not in self.pool.names():
            state = {"steps": run.source.step, "fingerprint": run.source.load([])[1]["fingerprint"]}
            self.pool.add(guest.name, run.config, run.policy.policy.state_dict(), state)
        return self.pool.sha256(guest.name)

    def _freeze(self, learner: Learner, milestone: bool = False) -> None:
        """Adds the policy as it is now to the pool, and drops what is too much; milestones stay. A failure does not end the
        run."""
        steps = learner.steps
        if steps < self._not_before and not milestone:
            return
        member = self._ranks.shared(None if self.run is None else self._frozen(learner))
        if member is None:
            self.health["failed_snapshots"] += 1
            self._not_before = steps + self.options.snapshot_every // 10
            return
        self._join(member, milestone)
        self.state.frozen_at = steps
        snapshots = [member for member in self._snapshots() if not member.milestone]
        kept = thinned([member.step for member in snapshots], self.options.pool)
        self._drop([member for index, member in enumerate(snapshots) if index not in kept], steps)
        for slot, seated in enumerate(self.state.seats[: len(self.seating.home.slots)]):
            if seated is None:
                self._exchange(self.seating.home, slot, member.name)  # who had the slot has just left
        self._collect()

    def _join(self, member: Member, milestone: bool) -> None:
        """Adds a snapshot to the members, unless this very policy is one already."""
        known_before = {known.name: known for known in self.state.members}
        member = known_before.get(member.name, member)
        member.milestone |= milestone
        if member.name not in known_before:
            self.state.members.append(member)

    def _frozen(self, learner: Learner) -> Member | None:
        """The policy as it is now, once it is on disk; None: that failed."""
        state = {"steps": learner.steps, "fingerprint": learner.fingerprint()}
        try:
            with uninterrupted():
                name = self.pool.add(f"{SNAPSHOT}{learner.steps:012d}", self.config, learner.policy.state_dict(), state)
                return Member(name=name, step=learner.steps, sha256=self.pool.sha256(name))
        except CheckpointError as error:
            log.error("no snapshot for the league: %s", error)
            return None

    def _prune(self, steps: int) -> None:
        """Drops snapshots that the policy nearly always beats, except milestones, the oldest and the newest."""
        limits = self.options.prune_above, self.options.prune_games
        self._drop([member for member in self._snapshots()[1:-1]
                    if not member.milestone and member.is_beaten(*limits)], steps)

    def _drop(self, members: Sequence[Member], steps: int) -> None:
        """Members leave the pool. Their slots are nobody's until another gets them."""
        gone = {member.name for member in members}
        self.state.members = [member for member in self.state.members if member.name not in gone]
        self.state.seats = [None if name in gone else name for name in self.state.seats]
        self._dropped |= dict.fromkeys(gone, steps)

    def _collect(self) -> None:
        """Removes policies from disk that neither the league nor a checkpoint names. Who has just left stays for a while: a
        checkpoint that names it may be about to be written (that of an interrupted iteration, or `best`)."""
        if self.run is None:
            return
        late = self.state.steps - self.config.checkpoint.every
        self._dropped = {name: step for name, step in self._dropped.items() if step > late}
        try:
            named = named_by_checkpoints(self.run)
        except CheckpointError as error:
            log.warning("old policies of the league stay on disk, because it is not known whether a checkpoint needs them: %s",
                        error)
            return
        with uninterrupted():
            self.pool.collect({member.name for member in self.state.members} | set(self._dropped) | named)
