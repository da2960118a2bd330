"""Tournaments: everybody plays everybody, and the table follows from the games alone.

`Tournament` holds games of any source, so the table of a games.csv is the same as that of the command that wrote it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import torch

from wavedash.evaluate.matches import Progress
from wavedash.evaluate.shares import Share
from wavedash.league.games import Game
from wavedash.league.match import Terms, play
from wavedash.league.players import Entrant, distinct_names
from wavedash.league.ratings import Rating, Results, anchors_among, scale_of
from wavedash.league.reference import NO_REFERENCE, Reference, rate_among
from wavedash.league.standings import rating_table, reference_line, strongest_first
from wavedash.league.teams import Skill, line_up, rate_line_ups
from wavedash.recordings.order import Order


@dataclass(frozen=True)
class Tournament:
    """Games between several players; `str()` is what `wavedash tournament` prints."""

    games: Sequence[Game]
    about: str = ""
    """How they were played, for the first line of the table"""
    reference: Reference = NO_REFERENCE
    """Results that count too where its players take part"""

    @cached_property
    def simulators(self) -> list[str]:
        return list(dict.fromkeys(game.simulator for game in self.games))

    @cached_property
    def anchors(self) -> dict[str, float]:
        """Returns those that have a chain of games to the players in every simulator."""
        among = [anchors_among([*self._results[simulator].players, *self._reference[simulator].players])
                 for simulator in self.simulators]
        return {player: value for player, value in among[0].items() if all(player in other for other in among)} if among else {}

    @cached_property
    def standings(self) -> dict[str, dict[str, Rating]]:
        """Returns, by simulator, the ratings of all players, the strongest first."""
        found = {}
        for simulator in self.simulators:
            ratings = rate_among(self._results[simulator], self._reference[simulator], self.anchors)
            found[simulator] = strongest_first(ratings)
        return found

    @property
    def reference_games(self) -> int:
        return sum(results.games for results in self._reference.values())

    def goal_share(self, simulator: str, player: str, other: str) -> Share:
        """The share of the goals between two players that the first of them scored."""
        return Share(self._goals[simulator].get((player, other), 0),
                     sum(self._goals[simulator].get(pair, 0) for pair in ((player, other), (other, player))))

    @property
    def tau(self) -> float | None:
        """Kendall's tau between the orders of the two simulators: 1 for the same order, -1 for the opposite one."""
        if len(self.simulators) < 2:
            return None
        pairs = len(list(combinations(next(iter(self.standings.values())), 2)))
        return 1 - 2 * len(self.disagreements) / pairs if pairs else None

    @property
    def disagreements(self) -> list[tuple[str, str, bool]]:
        """Pairs of players that the two simulators put in a different order. True: the intervals of the two overlap in one of
        them, so these games do not tell which of the two is stronger there."""
        first, second = list(self.standings.values())[:2]
        return [(a, b, _overlap(first[a], first[b]) or _overlap(second[a], second[b]))
                for a, b in combinations(first, 2) if second[a].value < second[b].value]

    @cached_property
    def skills(self) -> dict[str, dict[str, Skill]]:
        """Returns, by simulator, the skills of the players in mixed teams; empty where nobody played in one."""
        if all(len(line_up(name, game.size)) == 1 for game in self.games for name in (game.blue, game.orange)):
            return {}
        return {simulator: rate_line_ups(game for game in self.games if game.simulator == simulator)
                for simulator in self.simulators}

    def as_json(self) -> dict[str, Any]:
        return {
            "about": self.about, "scale": scale_of(self.anchors), "kendall_tau": self.tau,
            "reference_games": self.reference_games,
            "simulators": {simulator: {
                "ratings": [{"player": player, **rating._asdict()} for player, rating in standings.items()],
                "goal_shares": {a: {b: {"goals": share.hits, "of": share.cases, "interval": list(share.interval)}
                                    for b in standings if b != a and (share := self.goal_share(simulator, a, b))}
                                for a in standings},
                **({"skills": {player: skill._asdict() for player, skill in self.skills[simulator].items()}}
                   if self.skills else {}),
            } for simulator, standings in self.standings.items()},
        }

    def __str__(self) -> str:
        blocks = ["\n".join([f"{len(self.games)} games, {self.about}", f"ratings: {scale_of(self.anchors)}",
                             *reference_line(self.reference_games, self.reference.left_out_of_games(self.games))])]
        for simulator in self.simulators:
            ratings = rating_table(self._results[simulator], self.standings[simulator], self.anchors, simulator)
            blocks += ["\n".join(ratings), "\n".join(self._cross_table(simulator))]
            if self.skills:
                blocks.append("\n".join(self._skill_table(simulator)))
        if self.tau is not None:
            blocks.append(self._agreement(self.tau))
        return "\n\n".join(blocks)

    def _cross_table(self, simulator: str) -> list[str]:
        standings = list(self.standings[simulator])
        wide = max(len(player) for player in standings) + 5
        title = f"goals of the row's player in % of those between the two, {simulator}"
        lines = [title, " " * wide + "".join(f"{place:>7}" for place in range(1, len(standings) + 1))]
        for place, player in enumerate(standings, 1):
            shares = {other: self.goal_share(simulator, player, other) for other in standings}
            cells = ("" if other == player else f"{100 * share.value:.1f}" if share.cases else "-"
                     for other, share in shares.items())
            lines.append(f"{place:>2}  {player:<{wide - 4}}" + "".join(f"{cell:>7}" for cell in cells))
        return [line.rstrip() for line in lines]

    def _skill_table(self, simulator: str) -> list[str]:
        skills = self.skills[simulator]
        wide = max(len(player) for player in skills) + 5
        lines = [f"players of the teams by openskill, {simulator}",
                 f"{'':<{wide}}{'skill':>8}{'95 % interval':>18}{'games':>8}"]
        for place, (player, skill) in enumerate(skills.items(), 1):
            interval = "{:.1f} to {:.1f}".format(*skill.interval)
            lines.append(f"{place:>2}  {player:<{wide - 4}}{skill.mean:>8.1f}{interval:>18}{skill.games:>8}")
        return lines

    def _agreement(self, tau: float) -> str:
        first, second = self.simulators[:2]
        lines = [f"Kendall's tau between the orders of {first} and {second}: {tau:.2f}"]
        if not self.disagreements:
            lines.append("The orders agree.")
        for a, b, overlap in self.disagreements:
            reason = "their intervals overlap, so these games do not tell them apart" if overlap else "by more than noise"
            lines.append(f"{a} is above {b} in {first} and below it in {second}: {reason}.")
        return "\n".join(lines)

    @cached_property
    def _results(self) -> dict[str, Results]:
        return {simulator: Results.of(game for game in self.games if game.simulator == simulator)
                for simulator in self.simulators}

    @cached_property
    def _reference(self) -> dict[str, Results]:
        return {simulator: self.reference.among_games([game for game in self.games if game.simulator == simulator])
                for simulator in self.simulators}

    @cached_property
    def _goals(self) -> dict[str, dict[tuple[str, str], int]]:
        """Returns, by simulator, the goals of the first player against the second."""
        goals: dict[str, dict[tuple[str, str], int]] = {simulator: {} for simulator in self.simulators}
        for game in self.games:
            for pair, scored in (((game.blue, game.orange), game.blue_goals), ((game.orange, game.blue), game.orange_goals)):
                goals[game.simulator][pair] = goals[game.simulator].get(pair, 0) + scored
        return goals


def play_tournament(entrants: Sequence[Entrant], terms: Terms, played: Callable[[list[Game]], None] = lambda games: None,
                    progress: Callable[[str], Progress] | None = None,
                    reference: Reference = NO_REFERENCE, record: Order | None = None) -> Tournament:
    """Plays a round robin. `played` is told the games of each match as soon as they are over. `progress`: makes a Progress for
    a line of text. `reference`: results that count for the ratings too. `record`: games to record of each pair."""
    names = distinct_names(entrants)
    # A script adapts its pace to a policy that it plays against, if the policy is the first of the two.
    order = sorted(entrants, key=lambda entrant: entrant.task is None)
    matches = [(simulator, first, seconds) for simulator in terms.simulators
               for i, first in enumerate(order) for seconds in _together(order[i + 1 :], terms.device)]
    games: list[Game] = []
    for number, (simulator, first, seconds) in enumerate(matches, 1):
        others = ", ".join(names[second] for second in seconds)
        shown = progress(f"{number} of {len(matches)}: {names[first]} against {others} in {simulator}") if progress else None
        for second, result in zip(seconds, play(terms, simulator, first, seconds, shown, record), strict=True):
            new = result.games(names[first], names[second])
            played(new)
            games += new
    return Tournament(games, str(terms), reference)


def _together(seconds: Sequence[Entrant], device: torch.device | str) -> list[Sequence[Entrant]]:
    """Returns those that the first player meets in one batch. On a GPU these are all, because more arenas hardly take longer;
    on a CPU one by one, so that short games do not wait for those against another player."""
    if torch.device(device).type == "cpu" or not seconds:
        return [[second] for second in seconds]
    return [seconds]


def _overlap(one: Rating, other: Rating) -> bool:
    return one.low <= other.high and other.low <= one.high
