"""`wavedash eval RUN`: a policy plays new episodes of its own task, if wanted with random play for comparison."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wavedash.envs.headline import Headline
from wavedash.envs.kinds import kind_of
from wavedash.envs.vec_env import VecEnv
from wavedash.evaluate.episodes import Games, Watcher, play
from wavedash.evaluate.measure import Measured
from wavedash.evaluate.random_play import RandomPlayer
from wavedash.evaluate.shares import Sample
from wavedash.loading import LoadedRun, load_run
from wavedash.seeding import stream_seed


def evaluate(
    run: str | Path, episodes: int | None = None, deterministic: bool = True, seed: int = 1, random: bool = False,
    trust: bool = False,
) -> EvaluationResult:
    """Plays `episodes` whole episodes, of every row of the environment, on the device of the run; without a number, as many as
    its kind says. `random`: then as many with random actions. `trust`: also run code that a run of another user names."""
    return play_own_task(load_run(run, trust=trust).to_run_device(), episodes, deterministic, seed, random)


def play_own_task(
    loaded: LoadedRun, episodes: int | None = None, deterministic: bool = True, seed: int = 1, random: bool = False,
    watch: Callable[[VecEnv, int], Watcher] | None = None,
) -> EvaluationResult:
    """Does what `evaluate` does, on the device of the policy. `watch`: makes a watcher of the policy's episodes, of which the
    environment plays so many one after another; it is made before the first step."""
    policy, config = loaded.policy, loaded.config.env
    defaults = kind_of(config).evaluation(config)
    episodes = episodes or defaults.episodes
    rounds = -(-episodes // min(episodes, defaults.environments))
    env = loaded.make_env(-(-episodes // rounds))
    try:
        seed = stream_seed(seed, "evaluation")
        watcher = None if watch is None else watch(env, rounds)
        games = play(env, lambda obs: policy.step(obs, deterministic), episodes, rounds, seed, policy.reset, watcher)
        baseline = play(env, RandomPlayer(env, seed), episodes, rounds, seed) if random else None
        return EvaluationResult(loaded.path, games, deterministic, baseline, env.headlines)
    finally:
        env.close()


@dataclass(frozen=True)
class EvaluationResult(Measured):
    """Statistics of whole episodes, if wanted beside those of random play; `str()` is the table that `wavedash eval` prints."""

    checkpoint: Path
    games: Games
    deterministic: bool
    random: Games | None = None
    headlines: Sequence[Headline] = ()
    """Metrics that the environment wants first"""

    @property
    def returns(self) -> list[float]:
        return self.games.returns

    @property
    def mean(self) -> float:
        return Sample(self.returns).mean

    @property
    def interval(self) -> tuple[float, float]:
        return Sample(self.returns).interval

    def plain(self) -> dict[str, Any]:
        """Everything that was measured, for JSON: a number for each episode."""
        return {"policy": str(self.checkpoint), "deterministic": self.deterministic, "episodes": len(self.returns),
                **asdict(self.games), "random": None if self.random is None else asdict(self.random)}

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
        lines += self._metrics()
        if self.random is not None:
            lines.append(("", ""))
            lines.append(("random play", f"{len(self.random.returns)} episodes"))
            lines.append(("return", _text(Sample(self.random.returns))))
            lines += [(name, self._compared(name, values)) for name, values in self.random.metrics.items()]
        width = max(10, *(len(name) + 2 for name, _ in lines))
        return "\n".join(f"{name:<{width}}{value}".rstrip() for name, value in lines)

    def _metrics(self) -> list[tuple[str, str]]:
        """Lines of all metrics, those of headlines first; amounts that are parts of a whole have their share."""
        metrics = self.games.metrics
        means = {name: Sample(values).mean for name, values in metrics.items()}
        headed = {name: x if headline.shares else None
                  for headline in self.headlines for name, x in headline.measured(means).items()}
        shares = {name: "" if share is None else f"; {100 * share:+.1f} % of all" for name, share in headed.items()}
        return [(name, _text(Sample(metrics[name])) + shares.get(name, "")) for name in {**headed, **metrics}]

    def _compared(self, name: str, values: list[float]) -> str:
        """The metric of random play, and the ratio of the policy's metric to it."""
        theirs = Sample(values)
        if not name.startswith("per_minute/"):
            return _text(theirs)
        ours = Sample(self.games.metrics[name])
        if theirs.mean <= 0 or ours.mean <= 0:
            return _text(theirs)
        ratio, low, high = ours.times(theirs)
        interval = "" if math.isnan(low) else f" (95 % interval {low:.1f} to {high:.1f})"
        return f"{_text(theirs)}; the policy: {ratio:.1f} times{interval}"


def _text(sample: Sample) -> str:
    low, high = sample.interval
    digits = 2 if abs(sample.mean) >= 1 or sample.mean == 0 else 4
    if math.isnan(low):
        return f"{sample.mean:.{digits}f}  (one episode: no interval)"
    return f"{sample.mean:.{digits}f}  (95 % interval {low:.{digits}f} to {high:.{digits}f})"
