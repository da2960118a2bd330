"""Options of opponents and ratings."""
from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from wavedash.config.section import Fraction, NonNegative, Positive, Section


class OpponentsConfig(Section):
    """The league of a run: in a share of the arenas the policy plays against others than its newest self."""

    share: Fraction = 0.2
    """The share of arenas in which one team is an opponent. More: forgets less of how to beat its past, learns from fewer
    cars, because nothing is learned from an opponent's. With `most`, phases and `wavedash set` may change it while the run
    runs, for the episodes that begin from then on. 0: none for now."""
    most: Annotated[float, Field(gt=0, le=1)] | None = None
    """The largest share that opponents may get while the run runs: so many arenas are set aside for them, and the policy plays
    itself in those that they do not use. More: more room to raise `share`; on a GPU, more time per step, because opponents are
    inferred for all of these arenas. Not set: `share` stays as it is."""
    slots: Positive = 8
    """Different opponents at the same time. Each has as many arenas as any other; they are inferred in one call. More: more
    variety, smaller batches for each."""
    members: list[str] = []
    """Opponents from elsewhere beside snapshots of this run: scripts (`chaser`), a class of your own as `module:Class`, a run,
    a checkpoint, a milestone (`RUN@40M`) or a folder with a policy. Those with the networks and the task of this run take turns
    with its snapshots; all others get one slot for each script and for each kind of network."""
    snapshot_every: Positive = 25_000_000
    """Steps after which the policy is frozen as another opponent. After so many steps, a game counts half as much in the win
    rates. More: opponents differ more from each other."""
    pool: Annotated[int, Field(ge=2)] = 32
    """The most snapshots that are kept; they are thinned so that they span the whole run. Milestones are members besides, and
    stay. More: a closer record of the past, more disk."""
    refresh_every: Positive = 20
    """Iterations after which it is drawn anew who has which slot. More: longer series of games against the same opponents."""
    strategy: Literal["uniform", "recent", "rating", "target_win_rate", "pfsp"] = "pfsp"
    """Whom to play against. uniform: all alike; recent: newer ones more often; rating: those of about the policy's rating;
    target_win_rate: those that it beats in about a `target` share of the games; pfsp: by the win rate x, either x (1 - x), or
    (1 - x)^power, the hardest most often."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Above 1 the strategy's preferences are evened out, below 1 they are sharpened."""
    decay: Annotated[float, Field(gt=0, le=1)] = 0.8
    """recent: how likely an opponent is compared with the next newer one. Higher: older ones more often."""
    window: Annotated[float, Field(gt=0)] = 200.0
    """rating: an opponent so many Elo points away is 0.6 times as likely as an equal one. Higher: a wider choice."""
    target: Fraction = 0.6
    """target_win_rate: the share of points against the opponents that are preferred. Higher: easier ones."""
    width: Annotated[float, Field(gt=0)] = 0.15
    """target_win_rate: an opponent whose share is so far off is 0.6 times as likely. Higher: a wider choice."""
    power: NonNegative | None = None
    """pfsp: the power of (1 - x)^power; x (1 - x) when not set. Higher: the hardest opponents more often."""
    deterministic: bool = False
    """Opponents take their most likely action instead of sampling as in training."""
    prune_above: Fraction = 0.98
    """A snapshot is dropped once the policy takes more than this share of the points from it. Lower: fewer easy games, and a
    pool that forgets the early run. 1: none is dropped."""
    prune_games: Positive = 500
    """The fewest recent games before a snapshot is dropped. More: fewer mistakes."""

    @model_validator(mode="after")
    def _has_room(self) -> OpponentsConfig:
        if self.most is not None and self.share > self.most:
            raise ValueError(f"opponents.share={self.share:g} is above opponents.most={self.most:g}, the arenas that are set "
                             f"aside for opponents: set opponents.most={self.share:g} or more. A run that runs already must be "
                             f"stopped and resumed for that: wavedash resume RUN opponents.most={self.share:g} "
                             f"opponents.share={self.share:g}")
        return self

    @property
    def room(self) -> float:
        """The share of the arenas that are set aside for opponents."""
        return self.share if self.most is None else self.most


class RatingConfig(Section):
    """Rating while training: now and then the policy plays a panel of players that never change. Every game is a row of
    `games.csv` in the run folder. The training itself is the same with and without it, bit for bit."""

    every: Positive = 1_000_000
    """Steps between ratings. The last one is at the end of the run, unless that is shorter than this. More: fewer points of the
    curve, less time."""
    panel: list[str] = ["chaser", "defender"]
    """The players, as after `wavedash match`: scripts, a run, a checkpoint, a folder with a policy, `module:Class`. The chaser
    must be one of them: by definition it has 1000 Elo points, which makes ratings of all runs comparable. A player that always
    loses, or always wins, tells little: add trained policies as the bot gets better."""
    size: Literal["1v1", "2v2", "3v3", "4v4"] | None = None
    """The team size that is played; the largest of the task when not set. Ratings of different sizes cannot be compared: set
    it where sizes change during a run (`env.rocket.sizes`)."""
    snapshots: bool = True
    """With opponents: play also against the oldest and the newest snapshot of the run's league."""
    games: Annotated[int, Field(ge=2)] = 32
    """Games against each of them, half of them as blue. Four times as many: half the uncertainty, up to four times the time on
    a CPU, little more on a GPU."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """A game without a goal ends as a draw after so many seconds. More: fewer draws, more time."""
    reference: list[str] = ["shipped"]
    """Games between players of the panel that count for the rating too, so that it is known better. shipped: those of the
    scripts, the champions and other fixed players that come with the package (games of 60 seconds); else the path of a
    games.csv. More: narrower intervals. []: only the games of this run."""
    simulator: Literal["warp", "rocketsim"] | None = None
    """The simulator that is played in; the one of the training when not set."""
    most: Annotated[float, Field(gt=0, le=1)] = 0.03
    """The largest share of the run's time that ratings may take. Where they would take more, the steps between them become
    more than `every`; the last rating is played in any case. 1: no limit."""

    @model_validator(mode="after")
    def _anchored(self) -> RatingConfig:
        if "chaser" not in [name.lower() for name in self.panel]:
            raise ValueError("rating.panel needs chaser, whose 1000 points fix the scale of all ratings")
        return self
