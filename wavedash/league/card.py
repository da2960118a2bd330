"""The card of a champion, card.yaml beside its weights: how it was trained, how strong it is, and how it plays against others.

It is written by `wavedash champion pack` and `wavedash champion card`, and shown by `wavedash champion show`. Ratings and
shares follow from the games of a tournament (games.csv) alone, so that the card can be made again from that file.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wavedash.errors import UserError
from wavedash.evaluate.shares import Share
from wavedash.league.games import Game
from wavedash.league.ratings import ANCHORS, Results, rate
from wavedash.runs.durable import replace_file
from wavedash.saved import first_problem
from wavedash.yaml_text import YamlError, read_yaml, write_yaml

CARD = "card.yaml"
Count = Annotated[int, Field(ge=0)]
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]
"""The bounds of a 95 % interval"""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stage(_Entry):
    """One run of the training; each but the first began with the policy of the one before."""

    command: str
    steps: Count
    gpu: str
    gpu_minutes: Annotated[float, Field(ge=0)]


class Against(_Entry):
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


class Play(_Entry):
    """How the champion plays in one simulator."""

    rating: float
    """On the scale of Elo, where the chaser has 1000"""
    interval: Interval
    against: dict[str, Against]
    """Results by opponent, the strongest first"""


class Card(_Entry):
    """Everything on the card."""

    name: str
    """The name under which games.csv has it: the champion and its steps"""
    mode: str
    parameters: Count
    """Weights of actor and critic together"""
    training: list[Stage]
    play: dict[str, Play] = {}
    """Results by simulator; empty until `wavedash champion card` was run"""
    deterministic: bool = True
    """Whether the policies in these games took their likeliest actions, instead of sampling as in training"""

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.training)

    @property
    def gpu_minutes(self) -> float:
        return sum(stage.gpu_minutes for stage in self.training)

    @classmethod
    def read(cls, folder: Path) -> Card:
        """UserError: there is no card, or it holds something else."""
        path = folder / CARD
        try:
            values, _ = read_yaml(path.read_text(encoding="utf-8"))
            return cls.model_validate(values)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; pack the champion again") from error
        except (YamlError, ValidationError) as error:
            wrong = first_problem(error) if isinstance(error, ValidationError) else error
            raise UserError(f"{path} is no card of a champion: {wrong}") from error

    def write(self, folder: Path) -> None:
        text = f"# {self.name}: written by `wavedash champion pack` and `wavedash champion card`, see docs/league.md\n"
        replace_file(folder / CARD, (text + write_yaml(self.model_dump())).encode())

    def with_games(self, games: Sequence[Game], deterministic: bool = True) -> Card:
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
        lines = [
            f"{self.name}: {self.parameters:,} weights, trained for {self.steps:,} steps in {self.gpu_minutes:.1f} GPU minutes",
            *(f"  {stage.command}\n    {stage.steps:,} steps, {stage.gpu_minutes:g} minutes on {stage.gpu}"
              for stage in self.training),
        ]
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
