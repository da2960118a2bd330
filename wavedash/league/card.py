"""How a champion plays, on its card: how strong it is, and its games against others.

Ratings and shares follow from the games of a tournament (games.csv) alone, so that the card can be made again from that file.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from wavedash.champions.card import Card, Count, Entry, Interval
from wavedash.errors import UserError
from wavedash.evaluate.shares import Share
from wavedash.league.games import Game
from wavedash.league.ratings import ANCHORS, Results, rate


class Against(Entry):
    """All games against one opponent. A game ends with the first goal, so games won are goals scored."""

    won: Count
    drawn: Count
    lost: Count
    goal_share: float | None
    """The share of all goals that the champion scored; None: no goals were scored"""
    interval: Interval

    @classmethod
    def of(cls, won: int, drawn: int, lost: int) -> Against:
        share = Share(won, won + lost)
        value = round(share.value, 4) if share.cases else None
        return cls(won=won, drawn=drawn, lost=lost, goal_share=value, interval=[round(bound, 4) for bound in share.interval])

    @property
    def games(self) -> int:
        return self.won + self.drawn + self.lost


class Play(Entry):
    """How the champion plays in one simulator."""

    rating: float
    """On the scale of Elo, where the chaser has 1000"""
    interval: Interval
    against: dict[str, Against]
    """Results by opponent, the strongest first"""


class PlayingCard(Card):
    """The card of a champion that plays Rocket League."""

    play: dict[str, Play] = Field(default={})
    """Results by simulator; empty until `wavedash champion card` was run"""
    deterministic: bool = True
    """Whether the policies in these games took their likeliest actions, instead of sampling as in training"""

    def with_games(self, games: Sequence[Game], deterministic: bool = True) -> PlayingCard:
        """The same card with ratings and shares from these games, of which only those of its team size count."""
        size = int(self.mode.partition("v")[0])
        games = [game for game in games if game.size == size]
        if not any(self.name in (game.blue, game.orange) for game in games):
            raise UserError(f"there are no {self.mode} games of {self.name} in this file: it holds those of "
                            f"{', '.join(sorted({player for game in games for player in (game.blue, game.orange)})) or 'none'}")
        simulators = dict.fromkeys(game.simulator for game in games)
        play = {simulator: self._play([game for game in games if game.simulator == simulator]) for simulator in simulators}
        return self.model_copy(update={"play": play, "deterministic": deterministic})

    def _play(self, games: Sequence[Game]) -> Play:
        """Plays of one simulator. The games of others among themselves count too: they tell how strong the opponents are."""
        ratings = rate(Results.of(games), ANCHORS)
        own = ratings.pop(self.name)
        outcomes = Counter(_outcome(game, self.name) for game in games if self.name in (game.blue, game.orange))
        strongest_first = sorted(ratings, key=lambda player: -ratings[player].value)
        against = {player: Against.of(*(outcomes[player, result] for result in (1, 0, -1))) for player in strongest_first}
        return Play(rating=round(own.value, 1), interval=[round(own.low, 1), round(own.high, 1)],
                    against={player: record for player, record in against.items() if record.games})

    def __str__(self) -> str:
        lines = self.head()
        if self.play:
            lines += ["", "its games, in which policies "
                      + ("took their likeliest actions" if self.deterministic else "sampled their actions as in training")]
        for simulator, play in self.play.items():
            low, high = play.interval
            lines += ["", f"{simulator}: rating {play.rating:.0f} ({low:.0f} to {high:.0f}), where the chaser has 1000",
                      f"  {'against':<24}{'games':>6}{'won':>6}{'drawn':>7}{'lost':>6}   goal share (95 % interval)"]
            lines += [f"  {player:<24}{record.games:>6}{record.won:>6}{record.drawn:>7}{record.lost:>6}   {_share(record)}"
                      for player, record in play.against.items()]
        return "\n".join(lines)


def _outcome(game: Game, name: str) -> tuple[str, int]:
    """The opponent, and 1, 0 or -1: won, drawn or lost."""
    difference = game.blue_goals - game.orange_goals
    if game.orange == name:
        return game.blue, (difference < 0) - (difference > 0)
    return game.orange, (difference > 0) - (difference < 0)


def _share(record: Against) -> str:
    if record.goal_share is None:
        return "no goals"
    low, high = record.interval
    return f"{100 * record.goal_share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
