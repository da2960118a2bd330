"""`wavedash eval RUN --against PLAYER`: the share of goals that a policy scores, in one simulator or in both.

A policy that was trained in one simulator and has the same share in the other has learned the game, not the simulator.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from wavedash.config import EnvConfig, TeamSize
from wavedash.envs.kinds import kind_of
from wavedash.evaluate import columns
from wavedash.evaluate.matches import SECONDS, Progress
from wavedash.evaluate.recorded import run_title
from wavedash.evaluate.results import Score
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.match import SIMULATORS, match_recorder, play_players
from wavedash.league.players import Entrant, find_entrant
from wavedash.loading import load_run
from wavedash.recordings.order import Order
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.parts import Player
from wavedash.rocket.recording.recorder import GameRecorder
from wavedash.threads import decide_threads


@dataclass(frozen=True)
class AgainstResult:
    """One match in each simulator; `str()` is what `wavedash eval --against` prints."""

    checkpoint: Path
    opponent: str
    deterministic: bool
    own_starts: bool
    scores: dict[str, Score]
    """Scores by simulator; the one that the policy was trained in comes first"""

    @property
    def difference(self) -> tuple[float, float, float] | None:
        """Goal share in the second simulator minus that in the first, with its 95 % interval; None if it is undefined."""
        return columns.difference(self.scores)

    def __str__(self) -> str:
        starts = "the task's starts" if self.own_starts else "kick-offs"
        rows = {**columns.GAMES, **columns.GOALS, **columns.GOALLESS, **columns.SHARE, **columns.TOUCHES}
        return "\n".join([
            f"policy          {self.checkpoint} ({'deterministic' if self.deterministic else 'stochastic'})",
            f"against         {self.opponent}, from {starts} to the first goal or {SECONDS:.0f} s, half of the games as orange",
            "",
            *columns.table(self.scores, rows),
        ])


def play_against(run: str | Path, opponent: str, simulator: str | None = None, games: int | None = None,
                 deterministic: bool = True, own_starts: bool = False, seed: int = 1, trust: bool = False,
                 progress: Callable[[str], Progress] | None = None, record: Order | None = None) -> AgainstResult:
    """Plays the policy of `run` against `opponent`: a script such as chaser, a user's own as `module:Class`, or another trained
    policy (a run, a checkpoint, a folder with a policy). `simulator`: warp, rocketsim, both, or None for the one that the run
    was trained in. Both begin from the same starts. `trust`: also run code that a run of another user names. `progress`: makes
    a Progress for a line of text. `record`: games to record in each simulator."""
    loaded = load_run(run, trust=trust)
    games = games or kind_of(loaded.config.env).evaluation(loaded.config.env).episodes
    own = rocket_task(loaded.config.env, loaded.path).simulator
    decide_threads(loaded.config.threads)
    chosen = sorted(SIMULATORS, key=lambda name: name != own) if simulator == "both" else [simulator or own]
    scores = {}
    size = kind_of(loaded.config.env).team_size(loaded.config.env)
    for name in chosen:
        other = find_entrant(opponent, trust, size)
        first, second = FrozenPolicy.of_run(loaded, deterministic), other.player(deterministic, 1)
        shown = progress(f"{run} against {opponent} in {name}") if progress else None
        recorder = None if record is None else match_recorder(
            record, "eval", Entrant(str(run), loaded), [other], size or 1, name, "task" if own_starts else "kickoff",
            step=loaded.source.step, run=run_title(loaded))
        scores[name] = play_match(_duel(loaded.config.env, name), first, second, games, own_starts, seed, loaded.device, shown,
                                  recorder)
    return AgainstResult(loaded.path, opponent, deterministic, own_starts, scores)


def play_match(config: EnvConfig, first: Player, second: Player, games: int = 100, own_starts: bool = False, seed: int = 1,
               device: torch.device | str = "cpu", progress: Progress | None = None,
               recorder: GameRecorder | None = None) -> Score:
    """Plays one match in arenas of `config`. Players cannot be used again: each is bound to these arenas."""
    (result,) = play_players(config, first, [second], games, own_starts, seed, device, progress=progress,
                             recorder=recorder)
    return result.score


def _duel(config: EnvConfig, simulator: str) -> EnvConfig:
    """The configuration with this simulator, and as many cars on both sides: those of its largest team."""
    assert config.rocket is not None
    size = config.rocket.largest.larger
    rocket = config.rocket.of_size(TeamSize(size, size)).model_copy(update={"simulator": simulator})
    return config.model_copy(update={"rocket": rocket})
