"""Measures a trained policy over fresh episodes."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.headline import Headline
from wavedash.envs.make import make_env
from wavedash.envs.obs import action_mask
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import EnvError, Obs, VecEnv
from wavedash.errors import UserError
from wavedash.player import Player, load_policy
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.trust import run_config
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads, set_torch_threads

MOST_ENVIRONMENTS = 32


@dataclass(frozen=True)
class Sample:
    """Numbers of which the mean is asked."""

    values: list[float]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def std(self) -> float:
        return math.sqrt(sum((x - self.mean) ** 2 for x in self.values) / max(1, len(self.values) - 1))

    @property
    def error(self) -> float:
        """Of the mean"""
        return self.std / math.sqrt(len(self.values))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the mean, by the normal approximation."""
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error

    def times(self, other: Sample) -> tuple[float, float, float]:
        """How many times the mean of `other`, with the interval (by the logarithm: a ratio is not symmetric)."""
        ratio = self.mean / other.mean
        spread = math.exp(1.96 * math.hypot(self.error / self.mean, other.error / other.mean))
        return ratio, ratio / spread, ratio * spread


@dataclass(frozen=True)
class Share:
    """Of so many cases, those that turned out one way."""

    hits: int
    cases: int

    @property
    def value(self) -> float:
        return self.hits / self.cases if self.cases else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by Wilson's score: holds for few cases and near 0 and 1 too. Anything is possible without a case."""
        if not self.cases:
            return 0.0, 1.0
        z2 = 1.959964**2
        middle = (self.hits + z2 / 2) / (self.cases + z2)
        half = math.sqrt(z2 * (self.hits * (self.cases - self.hits) / self.cases + z2 / 4)) / (self.cases + z2)
        return max(0.0, middle - half), min(1.0, middle + half)

    def minus(self, other: Share) -> tuple[float, float, float]:
        """The difference with its 95 % interval (Newcombe 1998, method 10: from Wilson's of the two); both need a case."""
        (low, high), (other_low, other_high) = self.interval, other.interval
        difference = self.value - other.value
        return (difference, difference - math.hypot(self.value - low, other_high - other.value),
                difference + math.hypot(high - self.value, other.value - other_low))


@dataclass(frozen=True)
class Games:
    """Whole episodes of one player."""

    returns: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    success: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    """What the world tells about every step, such as touches per minute: means of episodes"""


@dataclass(frozen=True)
class EvaluationResult:
    """Whole episodes, and perhaps those of random play for comparison; `str()` is the table that `wavedash eval` prints."""

    checkpoint: Path
    games: Games
    deterministic: bool
    random: Games | None = None
    headlines: Sequence[Headline] = ()
    """What the environment wants to have said first."""

    @property
    def returns(self) -> list[float]:
        return self.games.returns

    @property
    def mean(self) -> float:
        return Sample(self.returns).mean

    @property
    def interval(self) -> tuple[float, float]:
        return Sample(self.returns).interval

    def __str__(self) -> str:
        games, whole = self.games, Sample(self.returns)
        lines = [
            ("policy", str(self.checkpoint)),
            ("episodes", f"{len(self.returns)} ({'deterministic' if self.deterministic else 'stochastic'})"),
            ("return", f"{_text(whole)[:-1]}; deviation {whole.std:.2f})"),
            ("length", f"{Sample(games.lengths).mean:.1f}"),
        ]
        if games.success:
            lines.append(("success", f"{100 * Sample(games.success).mean:.1f} %"))
        lines += self._figures()
        if self.random is not None:
            lines.append(("", ""))
            lines.append(("random play", f"{len(self.random.returns)} episodes"))
            lines.append(("return", _text(Sample(self.random.returns))))
            lines += [(name, self._beside(name, values)) for name, values in self.random.figures.items()]
        width = max(10, *(len(name) + 2 for name, _ in lines))
        return "\n".join(f"{name:<{width}}{value}".rstrip() for name, value in lines)

    def _figures(self) -> list[tuple[str, str]]:
        """Those of headlines first; amounts that are parts of a whole with their share."""
        figures = self.games.figures
        means = {name: Sample(values).mean for name, values in figures.items()}
        headed = {name: x if headline.shares else None
                  for headline in self.headlines for name, x in headline.measured(means).items()}
        shares = {name: "" if share is None else f"; {100 * share:+.1f} % of all" for name, share in headed.items()}
        return [(name, _text(Sample(figures[name])) + shares.get(name, "")) for name in {**headed, **figures}]

    def _beside(self, name: str, values: list[float]) -> str:
        """Random play's figure, and how many times it is reached."""
        theirs, ours = Sample(values), Sample(self.games.figures[name])
        if theirs.mean <= 0 or ours.mean <= 0 or not name.startswith("per_minute/"):
            return _text(theirs)
        ratio, low, high = ours.times(theirs)
        return f"{_text(theirs)}; the policy: {ratio:.1f} times (95 % interval {low:.1f} to {high:.1f})"


def _text(sample: Sample) -> str:
    low, high = sample.interval
    digits = 2 if abs(sample.mean) >= 1 or sample.mean == 0 else 4
    return f"{sample.mean:.{digits}f}  (95 % interval {low:.{digits}f} to {high:.{digits}f})"


def evaluate(
    run: str | Path, episodes: int = 100, deterministic: bool = True, seed: int = 1, random: bool = False, trust: bool = False
) -> EvaluationResult:
    """Play `episodes` whole episodes, of every row of the world. `random`: then as many with random actions. `trust`: also run
    code that a run of somebody else names."""
    checkpoint = resolve_checkpoint(run)
    config = run_config(checkpoint.run_config, trust=trust)
    rounds = -(-episodes // min(episodes, MOST_ENVIRONMENTS))
    player = load_policy(checkpoint.path)
    decide_threads(config.threads)
    env = make_env(config.env.model_copy(update={"count": -(-episodes // rounds), "workers": 0}))
    try:
        check_plays(player, env, checkpoint.path)
        set_torch_threads(env.num_rows, config.policy)
        seed = stream_seed(seed, "evaluation")
        games = play(env, lambda obs: player.step(obs, deterministic), episodes, rounds, seed, player.reset)
        baseline = play(env, RandomPlayer(env, seed), episodes, rounds, seed) if random else None
        return EvaluationResult(checkpoint.path, games, deterministic, baseline, env.headlines)
    finally:
        env.close()


def check_plays(player: Player, env: VecEnv, checkpoint: Path) -> None:
    """UserError: the policy senses or does something else than this environment has."""
    for what, its, here in (("observations", player.policy.observation_space, env.observation_space),
                            ("actions", player.policy.action_space, env.action_space)):
        if space_to_json(its) != space_to_json(here):
            raise UserError(f"the policy of {checkpoint} was trained with other {what} than this environment has: {its} there, "
                            f"{here} here. Use the config.yaml that it was trained with, or another checkpoint")


class RandomPlayer:
    """Any action that the space and the mask allow, all equally likely."""

    def __init__(self, env: VecEnv, seed: int):
        self.space, self.rows = env.action_space, env.num_rows
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, obs: Obs) -> Tensor:
        space, mask = self.space, action_mask(obs)
        if isinstance(space, gymnasium.spaces.Box):
            low, high = (torch.from_numpy(x.clip(-1e6, 1e6)) for x in (space.low, space.high))
            return low + (high - low) * torch.rand(self.rows, *low.shape, generator=self.generator)
        if isinstance(space, gymnasium.spaces.Discrete):
            return self._draw(mask, int(space.n))
        sizes: list[int] = space.nvec.tolist() if isinstance(space, gymnasium.spaces.MultiDiscrete) else [2] * space.shape[0]  # type: ignore[index]
        masks = [None] * len(sizes) if mask is None else mask.split(sizes, -1)  # type: ignore[no-untyped-call]
        return torch.stack([self._draw(part, n) for part, n in zip(masks, sizes, strict=True)], -1)

    def _draw(self, mask: Tensor | None, n: int) -> Tensor:
        allowed = torch.ones(self.rows, n) if mask is None else mask.float()
        return torch.multinomial(allowed, 1, generator=self.generator).squeeze(-1)


@torch.no_grad()
def play(env: VecEnv, act: Callable[[Obs], Tensor], episodes: int, rounds: int, seed: int,
         forget: Callable[[Tensor], None] = lambda rows: None) -> Games:
    """Every row plays `rounds` episodes, so short ones are not favoured; `episodes` environments' worth of them count."""
    obs, rows = env.reset(seed), env.num_rows
    sums: dict[str, Tensor] = {name: torch.zeros(rows) for name in ("return", "length")}
    played, games = [0] * rows, Games()
    most = episodes * rows // max(1, -(-episodes // rounds))
    forget(torch.ones(rows, dtype=torch.bool))
    while min(played) < rounds:
        step = env.step(act(obs))
        if env.fault is not None and bool(env.fault) and (words := env.explain_fault()):
            raise EnvError(words)
        obs, active = step.obs, step.active.float()
        sums["return"] += torch.where(step.active, step.reward, 0.0)
        sums["length"] += active
        for name, x in step.metrics.items():
            if not name.startswith("episode/"):
                sums.setdefault(name, torch.zeros(rows)).add_(torch.where(step.active, x, 0.0))
        done = step.terminated | step.truncated
        forget(done)
        for row in done.nonzero().flatten().tolist():
            if played[row] < rounds and len(games.returns) < most and sums["length"][row] > 0:
                _count(games, row, sums, step.metrics)
            played[row] += 1
        for total in sums.values():
            total.masked_fill_(done, 0.0)
    return games


def _count(games: Games, row: int, sums: dict[str, Tensor], metrics: dict[str, Tensor]) -> None:
    """The episode that this row has just finished."""
    length = float(sums["length"][row])
    games.returns.append(float(sums["return"][row]))
    games.lengths.append(length)
    if "episode/success" in metrics:
        games.success.append(float(metrics["episode/success"][row]))
    for name, total in sums.items():
        if name not in ("return", "length"):
            games.figures.setdefault(name, []).append(float(total[row]) / length)
