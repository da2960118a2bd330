"""Ratings: how strong players are, by maximum likelihood over all decided games, on the scale of Elo.

A difference of 400 means ten wins for every loss (the model of Bradley and Terry). The likelihood is concave, so there is one
best answer, and the order in which games were played does not matter.

Draws count for nothing. How often two players draw depends on how they play: one that never scores draws with everybody whom it
keeps from scoring. A model with one rate of draws for all (Davidson's) takes few draws for a large difference of strength: in a
tournament of four scripts and four policies, whether two scripts that hardly score took part moved the best rating by 235
points, here by 29.

Ratings are relative. An anchor, whose rating is given, makes those of different runs and machines comparable: the chaser, a
script that never changes, has 1000. Where no anchor played, the mean of all ratings is 1000, and only their differences mean
something. A player without a loss (or without a win) has no finite maximum-likelihood rating; a weak prior, a normal
distribution around the anchors (or that mean) with a standard deviation of 1500 points, keeps it finite and its interval wide.
"""
from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavedash.errors import UserError
from wavedash.evaluate.shares import Share
from wavedash.league.games import Game

ANCHORS: Mapping[str, float] = {"chaser": 1000.0}
ELO = 400 / math.log(10)
"""Elo points of one unit of log odds"""
MEAN = 1000.0
"""The mean of all ratings where no anchor played"""
PRIOR = 1500 / ELO
"""Standard deviation of the prior, in log odds"""
TWO_SIDED_95 = 1.959964

Matrix = NDArray[np.float64]


class Rating(NamedTuple):
    """In Elo points, with its 95 % interval."""

    value: float
    low: float
    high: float
    games: int


class Results(NamedTuple):
    """Games between P players, counted."""

    players: list[str]
    wins: Matrix
    """[P, P]: how often the player of the row beat that of the column"""
    draws: Matrix
    """[P, P], symmetric"""

    @classmethod
    def of(cls, games: Iterable[Game]) -> Results:
        games = list(games)
        players = sorted({player for game in games for player in (game.blue, game.orange)})
        index = {player: i for i, player in enumerate(players)}
        blue, orange = np.array([(index[game.blue], index[game.orange]) for game in games], dtype=np.int64).reshape(-1, 2).T
        ahead = np.array([game.blue_goals - game.orange_goals for game in games], dtype=np.int64)
        wins, draws = np.zeros((2, len(players), len(players)))
        np.add.at(wins, (blue[ahead > 0], orange[ahead > 0]), 1)
        np.add.at(wins, (orange[ahead < 0], blue[ahead < 0]), 1)
        np.add.at(draws, (blue[ahead == 0], orange[ahead == 0]), 1)
        return cls(players, wins, draws + draws.T)

    def plus(self, more: Results) -> Results:
        """The games of both, counted together."""
        players = sorted({*self.players, *more.players})
        index = {player: i for i, player in enumerate(players)}
        wins, draws = np.zeros((2, len(players), len(players)))
        for part in (self, more):
            where = np.ix_(*[[index[player] for player in part.players]] * 2)
            wins[where] += part.wins
            draws[where] += part.draws
        return Results(players, wins, draws)

    @property
    def played(self) -> Matrix:
        """[P, P], symmetric: games between two players."""
        return self.wins + self.wins.T + self.draws

    @property
    def decided(self) -> Matrix:
        """[P, P], symmetric: games between two players that one of them won."""
        return self.wins + self.wins.T

    @property
    def games(self) -> int:
        return int(self.played.sum()) // 2


def rate(results: Results, anchors: Mapping[str, float] = ANCHORS) -> dict[str, Rating]:
    """The ratings of all players. Without anchors they are relative: their mean is 1000. UserError: some have no chain of games
    to an anchor (or, without anchors, to each other), so that nothing fixes their ratings."""
    players, played = results.players, results.played
    known = {i: anchors[player] for i, player in enumerate(players) if player in anchors}
    _check_connected(results, known, anchors)
    free = [i for i in range(len(players)) if i not in known]
    middle = (float(np.mean(list(known.values()))) if known else MEAN) / ELO
    strength = np.array([known[i] / ELO if i in known else middle for i in range(len(players))])
    strength, spread = _maximum(results, strength, free, middle)
    rows = zip(players, strength * ELO, spread * ELO * TWO_SIDED_95, played.sum(1), strict=True)
    return {player: Rating(float(value), float(value - half), float(value + half), int(count))
            for player, value, half, count in rows}


def elo(share: Share) -> tuple[float, float, float]:
    """The difference of two ratings by the share of their decided games that the first player won, with its 95 % interval.
    Draws say nothing about it. It is infinite for a share of 0 or 1, and nan without a game."""
    return tuple(_log_odds(x) for x in (share.value, *share.interval))  # type: ignore[return-value]


def _log_odds(share: float) -> float:
    if math.isnan(share):
        return math.nan
    return ELO * math.log(share / (1 - share)) if 0.0 < share < 1.0 else math.copysign(math.inf, share - 0.5)


def anchors_among(players: Iterable[str]) -> dict[str, float]:
    """The anchors that take part; none of them: ratings are relative."""
    return {player: ANCHORS[player] for player in sorted(set(players)) if player in ANCHORS}


def scale_of(anchors: Mapping[str, float]) -> str:
    """Says what ratings with these anchors are relative to, in words for users."""
    if anchors:
        return "; ".join(f"the {player} has {value:.0f} by definition" for player, value in anchors.items())
    return (f"relative: their mean is {MEAN:.0f}, because no {' or '.join(ANCHORS)} played. Do not compare them with those of "
            "other games")


def _maximum(results: Results, strength: Matrix, free: list[int], middle: float) -> tuple[Matrix, Matrix]:
    """Find the likeliest strengths in log odds and their standard errors, by Newton's method on the free strengths. Those of
    anchors stay, with an error of 0."""
    spread = np.zeros(len(strength))
    if not free:
        return strength, spread
    for _ in range(100):
        gradient, curvature, value = _derivatives(results, strength, free, middle)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6:  # a full step can overshoot far from the maximum
            trial = strength.copy()
            trial[free] += size * step
            if _derivatives(results, trial, free, middle)[2] >= value:
                break
            size /= 2
        strength[free] += size * step
        if np.abs(step).max() < 1e-9:
            break
    _, curvature, _ = _derivatives(results, strength, free, middle)
    covariance = _scatter(results, strength, free) * np.linalg.inv(curvature)
    if len(free) == len(strength):  # no anchor: the error of a rating is that of its distance to the mean of all
        away = np.eye(len(free)) - 1 / len(free)
        covariance = away @ covariance @ away
    spread[free] = np.sqrt(np.diagonal(covariance))
    return strength, spread


def _derivatives(results: Results, strength: Matrix, free: list[int], middle: float) -> tuple[Matrix, Matrix, float]:
    """Gradient [F], negative Hessian [F, F] and value of the log posterior of the free strengths."""
    wins, decided, win = results.wins, results.decided, _chances(strength)
    value = float((wins * np.log(win)).sum())
    gradient = (wins - decided * win).sum(1)
    information = decided * win * win.T
    curvature = np.diag(information.sum(1)) - information
    away = strength - middle  # the prior
    value -= float((away[free] ** 2).sum() / (2 * PRIOR**2))
    gradient -= away / PRIOR**2
    curvature += np.eye(len(strength)) / PRIOR**2
    return gradient[free], curvature[np.ix_(free, free)], value


def _scatter(results: Results, strength: Matrix, free: list[int]) -> float:
    """How many times as far as by chance results are from what the ratings predict, as variances; at least 1. Strength is not
    one number: a bot that beats the chaser may be the one that a weaker bot beats. By so much every variance is larger (the
    dispersion of a quasi-likelihood). Only pairs tell about it of which the weaker player should have won a game or more."""
    expected = results.decided * _chances(strength)
    telling = np.minimum(expected, expected.T) >= 1
    fitted = int(telling[free].any(1).sum()) - (len(free) == len(strength))
    freedom = int(telling.sum()) // 2 - fitted
    if freedom <= 0:
        return 1.0
    won = results.wins[telling]
    deviance = 2 * float((won * np.log(np.maximum(won, 1) / expected[telling])).sum())
    return max(1.0, deviance / freedom)


def _chances(strength: Matrix) -> Matrix:
    """[P, P]: how likely the player of the row wins a decided game against that of the column. Never 0: a logarithm follows."""
    gap = np.clip(strength[:, None] - strength[None, :], -500.0, 500.0)
    chances: Matrix = 1 / (1 + np.exp(-gap))
    return chances


def _check_connected(results: Results, known: Collection[int], anchors: Mapping[str, float]) -> None:
    players = results.players
    reached = _reached(results.played > 0, set(known) or (set() if anchors else {0}))
    unconnected = [player for i, player in enumerate(players) if i not in reached]
    if unconnected and anchors:
        raise UserError(f"no rating for {', '.join(unconnected)}: no chain of games leads from there to "
                        f"{' or '.join(anchors)}. Let one of them play {next(iter(anchors))}")
    if unconnected:
        raise UserError(f"no common ratings: no chain of games leads from {players[0]} to {', '.join(unconnected)}. Let one of "
                        f"them play {players[0]}, or all of them play {next(iter(ANCHORS))}")


def _reached(played: NDArray[np.bool_], anchors: set[int]) -> set[int]:
    """Find the players that are connected to an anchor by games."""
    reached, edge = set(anchors), list(anchors)
    while edge:
        for other in np.flatnonzero(played[edge.pop()]).tolist():
            if other not in reached:
                reached.add(other)
                edge.append(other)
    return reached
