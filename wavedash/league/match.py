"""Matches between entrants: `wavedash match A B` plays one and says who is stronger, and how sure that is."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from wavedash.config import EnvConfig
from wavedash.errors import UserError
from wavedash.evaluate import columns
from wavedash.evaluate.matches import SECONDS, Match, Progress, arenas_of
from wavedash.evaluate.results import MatchResult, Score
from wavedash.evaluate.shares import Share
from wavedash.league.frozen import FrozenPolicies
from wavedash.league.games import Game
from wavedash.league.players import Entrant, distinct_names
from wavedash.league.ratings import elo
from wavedash.league.rlbot_games import SIMULATOR, needs_server, play_through_server
from wavedash.recordings.order import Order
from wavedash.rlbot.server.program import USUAL_PATIENCE, Conduct, Patience
from wavedash.rocket.parts import Player
from wavedash.rocket.recording.events import TEAMS
from wavedash.rocket.recording.recorder import GameRecorder, Pairing
from wavedash.seeding import stream_seed
from wavedash.threads import cores, cost_of, set_torch_threads

SIMULATORS = ("warp", "rocketsim")
WORTH_WORKERS = 200
"""From so many games on, worker processes save more time in RocketSim than it takes to start them"""


@dataclass(frozen=True)
class Terms:
    """How games are played."""

    games: int = 200
    """Games of each pair of players in each simulator, half of them from either side"""
    simulators: Sequence[str] = ("rocketsim",)
    size: int = 1
    """Cars per team"""
    seconds: float = SECONDS
    """A game without a goal ends after so many seconds"""
    deterministic: bool = True
    """Policies take their likeliest action, instead of sampling as in training"""
    seed: int = 1
    device: torch.device | str = "cpu"
    hitbox: str = "octane"
    minutes: float | None = None
    """Games are whole matches of so many minutes through the match server; None: they end with the first goal"""
    patience: Patience = USUAL_PATIENCE
    """How long games wait for the programs of RLBot bots"""

    @property
    def stream(self) -> int:
        """The seed of every match, as games.csv has it."""
        return stream_seed(self.seed, "match")

    def for_entrants(self, entrants: Sequence[Entrant], size: int | None) -> Terms:
        """The same terms with the team size and the hitbox that suit these entrants. `size`: what the user asked for. By
        default it is that of teams such as A+B, or of the task of the first trained policy."""
        teams = {len(entrant.members): entrant for entrant in entrants if entrant.members}
        task = next((entrant.task for entrant in entrants if entrant.task is not None), None)
        if size is None:
            size = max(teams, default=1 if task is None else task.largest.larger)
        for members, team in teams.items():
            if members != size:
                raise UserError(f"{team.asked} has {members} players, and a team has {size} car{'s' * (size > 1)} here: name "
                                f"one player for each car, or use --size {members}")
        return replace(self, size=size, hitbox="octane" if task is None else task.hitbox)

    def __str__(self) -> str:
        if self.minutes is not None:
            return f"{self.size}v{self.size}, matches of {self.minutes:g} minutes with overtime, half of them as orange"
        return (f"{self.size}v{self.size}, from kick-offs to the first goal or {self.seconds:g} s, half of the games as orange,"
                f" {'deterministic' if self.deterministic else 'stochastic'}")


def play(terms: Terms, simulator: str, first: Entrant, seconds: Sequence[Entrant],
         progress: Progress | None = None, record: Order | None = None) -> list[MatchResult]:
    """Plays the first entrant against each of the others. `record`: games to record."""
    players = [entrant.player(terms.deterministic, stream_seed(terms.seed, "player", index))
               for index, entrant in enumerate([first, *seconds])]
    workers = cores() if simulator == "rocketsim" and cores() > 2 and terms.games >= WORTH_WORKERS else 0
    return play_players(arenas_of(terms.size, simulator, terms.hitbox), players[0], players[1:], terms.games, seed=terms.seed,
                        device=terms.device, limit=terms.seconds, workers=workers, progress=progress,
                        recorder=None if record is None else match_recorder(record, "match", first, seconds, terms.size,
                                                                            simulator))


def match_recorder(order: Order, source: str, first: Entrant, seconds: Sequence[Entrant], size: int, simulator: str,
                   start: str = "kickoff", **more: Any) -> GameRecorder:
    """Records games of the first entrant against each of the others, with `size` cars per team. `source`, and `more`: of
    headers."""
    def pairing(block: int, arena: int) -> Pairing:
        blue, orange = (first, seconds[block]) if arena % 2 == 0 else (seconds[block], first)  # as in `Duel`
        cars = [(member.name, member.run is not None) for team in (blue, orange) for member in team.members or (team,) * size]
        return Pairing(f"{blue.name} vs {orange.name}", [name for name, _ in cars], [policy for _, policy in cars])

    return GameRecorder(order, source, pairing, {"size": f"{size}v{size}", "simulator": simulator, "start": start}, **more)


def play_players(config: EnvConfig, first: Player, seconds: Sequence[Player], games: int, own_starts: bool = False,
                 seed: int = 1, device: torch.device | str = "cpu", limit: float = SECONDS, workers: int = 0,
                 progress: Progress | None = None, recorder: GameRecorder | None = None, series: int = 1) -> list[MatchResult]:
    """Plays a match in arenas of `config`, see Match. Players cannot be used again: each is bound to these arenas."""
    match = Match(config, first, seconds, games, own_starts, device, limit, workers, recorder=recorder, series=series)
    try:
        networks = [player.actors.config for player in (first, *seconds) if isinstance(player, FrozenPolicies)]
        if networks:
            set_torch_threads(match.rows, max(networks, key=lambda network: cost_of(1, network)))
        return match.play_all(stream_seed(seed, "match"), progress)
    finally:
        match.close()


@dataclass(frozen=True)
class Comparison:
    """The match of two players in one simulator or in both; `str()` is what `wavedash match` prints."""

    first: str
    second: str
    terms: Terms
    results: Mapping[str, MatchResult]
    """By simulator"""
    conduct: tuple[Sequence[Conduct], Sequence[Conduct]] = ((), ())
    """Of the programs of RLBot bots, of the first player and of the second"""

    @property
    def scores(self) -> dict[str, Score]:
        return {simulator: result.score for simulator, result in self.results.items()}

    @property
    def games(self) -> list[Game]:
        """All games as rows of games.csv."""
        return [game for result in self.results.values() for game in result.games(self.first, self.second)]

    @property
    def verdict(self) -> str:
        """Says who is stronger, and how sure that is; where these games do not tell, also what would."""
        shares = {simulator: score.goal_share for simulator, score in self.scores.items()}
        stronger = {simulator: self._stronger(share) for simulator, share in shares.items()}
        found, several = set(stronger.values()), len(shares) > 1
        evidence = " and ".join(f"{_percent(share)} in {simulator}" for simulator, share in shares.items())
        whose = "its goal share" if found == {self.first} else f"the goal share of {self.first}"
        said = f"{whose} with 95 % interval is {evidence}"
        if self.second == _again(self.first):
            return f"both are the same player, so every difference is chance: {said}"
        if not any(share.cases for share in shares.values()):
            return (f"neither is shown to be stronger: nobody scored. In longer games somebody may: --seconds "
                    f"{2 * self.terms.seconds:g}")
        if found == {None}:
            return (f"neither is shown to be stronger{' in either simulator' * several}: {said}. Four times as many games make "
                    f"an interval half as wide: --games {4 * self.terms.games}")
        if len(found) == 1:
            return f"{found.pop()} is stronger{' in both simulators' * several}: {said}"
        each = (f"{name} is stronger in {simulator}" if name else f"neither is shown to be stronger in {simulator}"
                for simulator, name in stronger.items())
        return f"{', '.join(each)}: {said}"

    def as_json(self) -> dict[str, Any]:
        return {
            "first": self.first, "second": self.second, "verdict": self.verdict, "size": self.terms.size,
            "seconds": self.terms.seconds, "seed": self.terms.seed, "deterministic": self.terms.deterministic,
            "simulators": {simulator: score_as_json(score) for simulator, score in self.scores.items()},
            "difference": columns.difference(self.scores), "programs": [
                {"player": player, **one.as_json()} for player, side in self._programs.items() for one in side],
        }

    def __str__(self) -> str:
        outcomes: dict[str, columns.Row] = {
            "won-drawn-lost": lambda score: f"{score.scored} - {score.goalless} - {score.conceded}"}
        elo_row: dict[str, columns.Row] = {"Elo difference": lambda score: elo_text(score.goal_share)}
        rows = {**columns.GAMES, **outcomes, **columns.GOALS, **columns.SHARE, **elo_row, **columns.TOUCHES}
        failed = [player for player, side in self._programs.items() if any(one.failed for one in side)]
        doubt = [f"But {' and '.join(failed)} stood still at times: see the programs below"] if failed else []
        programs = [line for player, side in self._programs.items()
                    for line in ("", f"programs of {player}", *(f"  {TEAMS[one.team]}, {one}" for one in side))]
        return "\n".join([self.verdict, *doubt, "", f"{self.first} against {self.second}: {self.terms}", "",
                          *columns.table(self.scores, rows), *programs])

    @property
    def _programs(self) -> dict[str, Sequence[Conduct]]:
        """Returns the programs by player. Names in matches do not tell, where two bots have the same."""
        return {player: side for player, side in zip((self.first, self.second), self.conduct, strict=True) if side}

    def _stronger(self, share: Share) -> str | None:
        low, high = share.interval
        return self.first if low > 0.5 else self.second if high < 0.5 else None


def compare(first: Entrant, second: Entrant, terms: Terms, progress: Callable[[str], Progress] | None = None,
            record: Order | None = None) -> Comparison:
    """Plays `wavedash match`. `progress`: makes a Progress for a line of text; `record`: games to record in each simulator."""
    names = names_of(first, second)
    if needs_server(terms, first, second):
        shown = progress(f"{names[0]} against {names[1]} through the match server") if progress else None
        found = play_through_server(first, second, terms, shown, record)
        return Comparison(*names, terms, {SIMULATOR: found.result}, found.conduct)
    results = {}
    for simulator in terms.simulators:
        shown = progress(f"{names[0]} against {names[1]} in {simulator}") if progress else None
        (results[simulator],) = play(terms, simulator, first, [second], shown, record)
    return Comparison(*names, terms, results)


def names_of(first: Entrant, second: Entrant) -> tuple[str, str]:
    """Different names for the two, also if they are the same policy."""
    try:
        return tuple(distinct_names([first, second]).values())  # type: ignore[return-value]
    except UserError:
        return first.name, _again(first.name)


def _again(name: str) -> str:
    """Returns what a player is called that plays against itself."""
    return f"{name}#2"


def score_as_json(score: Score) -> dict[str, Any]:
    share, differences = score.goal_share, elo(score.goal_share)
    return {
        "games": score.games, "won": score.scored, "drawn": score.goalless, "lost": score.conceded, "goals": score.scored,
        "goals_against": score.conceded, "goal_share": share.value if share.cases else None,
        "goal_share_interval": list(share.interval), "touches_per_minute": [score.touches, score.opponent_touches],
        "elo_difference": _finite(differences[0]), "elo_interval": [_finite(x) for x in differences[1:]],
    }


def elo_text(share: Share) -> str:
    value, low, high = elo(share)
    if not share.cases:
        return "unknown"
    if math.isinf(value):
        return f"above {low:+.0f}" if value > 0 else f"below {high:+.0f}"
    return f"{value:+.0f} ({low:+.0f} to {high:+.0f})"


def _percent(share: Share) -> str:
    if not share.cases:
        return "undefined (no goals)"
    low, high = share.interval
    return f"{100 * share.value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
