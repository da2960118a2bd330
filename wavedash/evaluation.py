"""Measures a trained policy over fresh episodes."""
from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.player import load_policy
from wavedash.runs.find import resolve_checkpoint
from wavedash.seeding import stream_seed

MOST_ENVIRONMENTS = 32


@dataclass(frozen=True)
class EvaluationResult:
    """Returns of whole episodes; `str()` is the table that `wavedash eval` prints."""

    checkpoint: Path
    returns: list[float]
    lengths: list[float]
    success: list[float]
    deterministic: bool

    @property
    def mean(self) -> float:
        return sum(self.returns) / len(self.returns)

    @property
    def std(self) -> float:
        return math.sqrt(sum((x - self.mean) ** 2 for x in self.returns) / max(1, len(self.returns) - 1))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the mean, by the normal approximation."""
        half = 1.96 * self.std / math.sqrt(len(self.returns))
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        low, high = self.interval
        lines = [
            ("policy", str(self.checkpoint)),
            ("episodes", f"{len(self.returns)} ({'deterministic' if self.deterministic else 'stochastic'})"),
            ("return", f"{self.mean:.2f}  (95 % interval {low:.2f} to {high:.2f}; deviation {self.std:.2f})"),
            ("length", f"{sum(self.lengths) / len(self.lengths):.1f}"),
        ]
        if self.success:
            lines.append(("success", f"{100 * sum(self.success) / len(self.success):.1f} %"))
        return "\n".join(f"{name:<10}{value}" for name, value in lines)


@torch.no_grad()
def evaluate(run: str | Path, episodes: int = 100, deterministic: bool = True, seed: int = 1) -> EvaluationResult:
    """Play `episodes` whole episodes. Every environment plays the same number, so short episodes are not favoured."""
    checkpoint = resolve_checkpoint(run)
    config = load_config(str(checkpoint.path.absolute().parent.parent / "config.yaml"), [])
    rounds = -(-episodes // min(episodes, MOST_ENVIRONMENTS))
    rows = -(-episodes // rounds)
    env = make_env(config.env.model_copy(update={"count": rows, "workers": 0}))
    try:
        player = load_policy(checkpoint.path)
        obs = env.reset(stream_seed(seed, "evaluation"))
        running = torch.zeros(2, rows)
        played = [0] * rows
        returns: list[float] = []
        lengths: list[float] = []
        success: list[float] = []
        while min(played) < rounds:
            step = env.step(player.step(obs, deterministic))
            obs = step.obs
            running += torch.stack([step.reward, torch.ones_like(step.reward)]) * step.active
            done = step.terminated | step.truncated
            player.reset(done)
            for row in done.nonzero().flatten().tolist():
                if played[row] < rounds and len(returns) < episodes:
                    returns.append(float(running[0, row]))
                    lengths.append(float(running[1, row]))
                    if "episode/success" in step.metrics:
                        success.append(float(step.metrics["episode/success"][row]))
                played[row] += 1
            running *= ~done
        return EvaluationResult(checkpoint.path, returns, lengths, success, deterministic)
    finally:
        env.close()
