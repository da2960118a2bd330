"""Rating while training: every so many steps a frozen copy of the policy plays a panel of players that never change.

All games go into `games.csv` of the run folder, and the rating is the likeliest one over all of them (ratings.py). The training
is the same with and without a panel, bit for bit: games have arenas and random streams of their own. Only whether a rating is
played now or later depends on time, so that ratings never take more than their share of it (`rating.most`).
"""
from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from wavedash.config import RatingConfig, RocketConfig, RunConfig, TeamSize
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.evaluate.results import MatchResult
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.games import GamesFile
from wavedash.league.league import League
from wavedash.league.players import Entrant, distinct_names, find_entrant
from wavedash.league.ratings import Rating, Results, rate
from wavedash.league.reference import SHIPPED, read_references
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.rehearsal import rehearse_player
from wavedash.rocket.team_sizes import rehearse_sizes
from wavedash.runs.best import RATED_SIZE
from wavedash.seeding import stream_seed
from wavedash.threads import give_torch, set_torch_threads

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

NAME = re.compile(r"[\w-]+")
"""A player that is asked for by a name, such as chaser or champion, and not by a path"""


class Panel(Listener):
    """Rates the policy of one run, whose folder's lock this process holds."""

    saved_as = "rating"

    def __init__(self, config: RunConfig, rating: RatingConfig, run: Path, trust: bool = False) -> None:
        """`run`: the run folder; `trust` and UserError as in `find_panel`."""
        self.config, self.rating = config, rating
        self.entrants = find_panel(config, trust)
        """The players, with their names in games.csv"""
        self.reference = read_references(rating.reference)
        self.health: dict[str, int] = {"failed_ratings": 0}
        self.budget = Budget(rating.most)
        self._task = rocket_task(config.env, run)
        self._size = rated_size(config)
        self._games = GamesFile(run / "games.csv")
        self._results = Results.of([])
        self._reference = Results.of([])
        self._match: Match | None = None
        self._past: Snapshots | None = None
        self.rated = 0
        """The steps at the last rating"""

    def recorded(self, config: RunConfig) -> RunConfig:
        """The configuration of the run as its folder records it: paths in the panel do not depend on the current folder. What
        the phase has changed of the ratings stays out of it."""
        if config.rating is None:
            return config
        paths = {entrant.asked: str(Path(entrant.asked).absolute()) for entrant in self.entrants
                 if entrant.run is not None and Path(entrant.asked).exists()}
        panel = [paths.get(asked, asked) for asked in config.rating.panel]
        reference = [source if source == SHIPPED else str(Path(source).absolute()) for source in config.rating.reference]
        return config.model_copy(update={"rating": config.rating.model_copy(update={"panel": panel, "reference": reference})})

    @property
    def labels(self) -> list[str]:
        """Returns what metrics call the players: as they were asked for, if that is no path."""
        return [entrant.asked if NAME.fullmatch(entrant.asked) else name for entrant, name in self.entrants.items()]

    def state_dict(self) -> dict[str, Any]:
        return {"rated": self.rated}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rated = int(state["rated"])

    def on_start(self, learner: Learner) -> None:
        """Goes on with the games that the checkpoint knew: those played after it will be played again. UserError: one of the
        players does not fit into the arenas."""
        games = self._games.read()
        known = next((index for index, game in enumerate(games) if game.step > learner.steps), len(games))
        if games:
            self._games.keep(known)
        # Games of another team size, from a time in which the run was rated in it, say nothing about this one.
        self._results = Results.of([game for game in games[:known] if game.size == self._size.larger])
        where = (self.rating.simulator or self._task.simulator, self._size.larger)
        self._reference = self.reference.among(self.entrants.values(), [where], [self.rating.seconds])
        if self._reference.games:
            log.info("%d reference games between players that never change count for ratings too", self._reference.games)
        elif reason := self.reference.left_out(self.entrants.values(), [where], [self.rating.seconds]):
            log.warning("%s. Set rating.seconds to theirs for ratings that are known better", reason)
        if learner.total_steps < self.rating.every:
            return  # nothing will be played
        league = next((listener for listener in learner.listeners if isinstance(listener, League)), None)
        if league is not None and self.rating.snapshots:
            self._past = Snapshots(league, learner.policy, self._task)
        self._match = self._made(learner)
        threads = torch.get_num_threads()
        set_torch_threads(self._match.rows, learner.policy.config)
        self._match.warm_up()  # or the budget would take what is done once for the cost of every rating
        give_torch(threads)
        self.budget.start()

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        last = report.steps >= report.total_steps
        if not self._due(report.steps, last) or not (last or self.budget.allows(self.rating.every)):
            return None
        self.rated = report.steps
        began, threads = perf_counter(), torch.get_num_threads()
        try:
            return self._rate(learner, report.steps)
        except Exception as error:  # training is worth more than its rating, whatever went wrong
            self.health["failed_ratings"] += 1
            log.error("could not rate the policy at step %s: %s: %s", f"{report.steps:,}", type(error).__name__, error)
            return None
        finally:
            give_torch(threads)
            self.budget.spend(perf_counter() - began)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if self._match is not None:
            self._match.close()

    def _due(self, steps: int, last: bool) -> bool:
        """A run that is shorter than the steps between ratings has none, not even at its end."""
        every = self.rating.every
        return steps // every > self.rated // every or (last and steps >= every and steps > self.rated)

    def _rate(self, learner: Learner, steps: int) -> dict[str, float]:
        """Plays, keeps the games, and returns the metrics."""
        began, match = perf_counter(), self._match
        assert match is not None
        policy = match.line_up.players[0]
        assert isinstance(policy, FrozenPolicy)
        policy.play_as(learner.policy)
        set_torch_threads(match.rows, learner.policy.config)
        name, panel = f"{self.config.name}@{steps}", dict(zip(self.labels, self.entrants.values(), strict=True))
        if self._past is not None:
            panel |= {label: f"{self.config.name}@{step}" for label, step in self._past.take_turns(before=steps).items()}
        results = zip(panel.items(), match.play_all(stream_seed(self.config.seed, "rating", steps)), strict=True)
        played = [Played(label, other, result) for (label, other), result in results if other != name]
        games = [game for _, other, result in played for game in result.games(name, other, steps)]
        self._games.add(games)
        self._results = self._results.plus(Results.of(games))
        rating = rate(self._results.plus(self._reference))[name]
        scores = ", ".join(f"{scored}:{conceded} against {other}" for other, (scored, conceded) in _goals(played).items())
        seconds = perf_counter() - began
        log.info("%s is rated %.0f (%.0f to %.0f): %s; the games took %.1f s", name, rating.value, rating.low, rating.high,
                 scores, seconds)
        return {**_metrics(rating, played, seconds), RATED_SIZE: float(self._size.larger)}

    def _made(self, learner: Learner) -> Match:
        rating, task = self.rating, self._task
        arenas = arenas_of(self._size.larger, rating.simulator or task.simulator, task.hitbox)
        policy = FrozenPolicy(learner.policy, task, f"the policy of {self.config.name}")
        others = [entrant.player() for entrant in self.entrants]
        return Match(arenas, policy, [*others, *(self._past.players.values() if self._past else ())], rating.games,
                     device=learner.env.device, limit=rating.seconds, graphs=self.config.graphs)


class Snapshots:
    """Two players of the panel: the oldest and the newest snapshot of the run's league, whichever these are at the time."""

    def __init__(self, league: League, policy: ActorCritic, task: RocketConfig) -> None:
        """`policy`: that of the run, whose networks snapshots have."""
        self.players = {label: FrozenPolicy(policy, task, f"the {label} snapshot") for label in ("oldest", "newest")}
        self._league = league

    def take_turns(self, before: int) -> dict[str, int]:
        """Gives the players the weights of the oldest snapshot and of the newest one that was taken before this step. Returns
        their steps."""
        members = [member for member in self._league.state.members if not member.guest]
        oldest = members[0]
        newest = [oldest, *(member for member in members if member.step < before)][-1]
        for player, member in zip(self.players.values(), (oldest, newest), strict=True):
            player.play_as(self._league.pool.read(member.name))
        return dict(zip(self.players, (oldest.step, newest.step), strict=True))


class Played(NamedTuple):
    """The games against one player of the panel."""

    label: str
    """What metrics call the player"""
    name: str
    """What games.csv calls it"""
    result: MatchResult


def rated_size(config: RunConfig) -> TeamSize:
    """The team size of rated games, which is even."""
    assert config.rating is not None
    task = rocket_task(config.env, Path(config.name))
    return task.largest if config.rating.size is None else TeamSize.named(config.rating.size)


def find_panel(config: RunConfig, trust: bool = False) -> dict[Entrant, str]:
    """The players of the panel and their names in games.csv. `trust`: code that a policy of another user names may run.
    UserError: one of them does not exist, cannot play in teams of this size, or is named twice; or the run's own policy cannot
    play in teams of this size."""
    assert config.rating is not None
    task, size = rocket_task(config.env, Path(config.name)), rated_size(config)
    if config.rating.size is not None:
        rehearse_sizes(task, [*task.team_sizes, size])
    names = distinct_names([find_entrant(name, trust, size.larger) for name in config.rating.panel])
    for entrant in names:
        rehearse_player(entrant.player(), task.of_size(size))
    # Another run of the same name is called by its folder: its versions must not be taken for those of this run.
    return {entrant: entrant.full_name if name.startswith(f"{config.name}@") else name for entrant, name in names.items()}


class Budget:
    """The share of the time since the start that ratings may take. What the last one took is what the next is expected to
    take."""

    def __init__(self, most: float) -> None:
        self.most = most
        self._began = perf_counter()
        self._spent = self._last = 0.0
        self._told = False

    def start(self) -> None:
        self._began = perf_counter()

    def spend(self, seconds: float) -> None:
        self._last = seconds
        self._spent += seconds

    def allows(self, every: int) -> bool:
        """Whether there is time for another. The first one is always allowed, because nobody knows yet what it takes."""
        affordable = self._spent + self._last <= self.most * (perf_counter() - self._began)
        allowed = affordable or self._spent == 0 or self.most == 1
        if not allowed and not self._told:
            self._told = True
            log.info("a rating takes %.1f s: to stay below %.3g %% of the run's time (rating.most), there is one about every "
                     "%.0f s instead of every %s steps", self._last, 100 * self.most, self._last / self.most, f"{every:,}")
        return allowed


def _goals(played: Sequence[Played]) -> dict[str, tuple[int, int]]:
    """Goals for and against the policy, by opponent: the oldest snapshot may be the newest one, too."""
    goals: dict[str, tuple[int, int]] = {}
    for _, other, result in played:
        scored, conceded = goals.get(other, (0, 0))
        goals[other] = scored + result.score.scored, conceded + result.score.conceded
    return goals


def _metrics(rating: Rating, played: Sequence[Played], seconds: float) -> dict[str, float]:
    shares = {f"rating/goal_share_{label}": result.score.goal_share.value for label, _, result in played}
    shares |= {f"rating/win_rate_{label}": result.score.win_rate for label, _, result in played}
    found = {"rating/elo": rating.value, "rating/low": rating.low, "rating/high": rating.high, "rating/seconds": seconds,
             **shares}
    return {name: value for name, value in found.items() if math.isfinite(value)}
