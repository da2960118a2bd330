"""Matches of one player against others, in either simulator: many arenas at once, and in half of them the first player is
orange.

A game ends with the first goal, or without one when its time is over. So every game has at most one goal, games are independent
of each other unless they are a series, and the interval of the goal share is valid.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import gymnasium
import torch
from torch import Tensor

from wavedash.config import EnvConfig
from wavedash.evaluate.results import MatchResult, PlayedGame, Score
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.rocket.constants import BOOST_START, TICK_RATE
from wavedash.rocket.driver import Pace, common_pace
from wavedash.rocket.endings import Goal, TimeOut
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Duel
from wavedash.rocket.parts import Action, Observation, Player
from wavedash.rocket.recording.recorder import STEPS, GameRecorder
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.starts import FuzzedKickoff
from wavedash.rocket.state import CONTROLS, Events, GameState
from wavedash.rocket.task import Task

MOST_ON_CPU = 64
"""Arenas of each second player, where they are stepped by a CPU"""
MOST_ON_GPU = 16_384
"""Arenas of all second players together"""
SECONDS = 60.0
"""A game without a goal ends after so many seconds"""


Progress = Callable[[float], None]


class Match:
    """Arenas in which `first` plays against each of `seconds`, in a block of arenas of its own. Arenas come in pairs: in one
    the first player is blue, in the other orange. A match can be played again, with another seed or other weights of its
    players (`FrozenPolicy.play_as`); nothing is made or captured anew."""

    def __init__(self, config: EnvConfig, first: Player, seconds: Player | Sequence[Player], games: int = 100,
                 own_starts: bool = False, device: torch.device | str = "cpu", limit: float = SECONDS, workers: int = 0,
                 graphs: bool = True, recorder: GameRecorder | None = None, series: int = 1) -> None:
        """`config` describes the arenas, which are of one team size (see `arenas_of`); its observation, actions, rewards and
        endings do not matter. `games`: against each second player at least so many are played. `own_starts`: those of the
        configured task instead of kick-offs. `limit`: a game without a goal ends after so many seconds. `workers`: processes
        that step RocketSim's arenas; `graphs`: on CUDA, capture a step in a CUDA graph where the simulator allows it.
        `recorder`: records games, which are the same with and without it. `series`: so many games in a row are one episode of
        the arena, in which players keep their memory; `games` is rounded up to whole series.

        Each player has the ticks and delay of its own task. A script has those of the first player, or of `config` if that is
        a script too; as the first player it decides at every step of the arenas, whose steps suit all others."""
        rocket = config.rocket
        assert rocket is not None
        seconds = [seconds] if isinstance(seconds, Player) else list(seconds)
        pairs, device = -(-games // (2 * series)), torch.device(device)
        rounds = -(-2 * pairs // _most_arenas(rocket.simulator, device, len(seconds), workers))
        self.block = 2 * -(-pairs // rounds)
        """Arenas of each second player"""
        self.arenas = self.block * len(seconds)
        self.rounds = rounds * series
        """Games of each arena"""
        self.size, self.simulator = rocket.largest.larger, rocket.simulator
        task = Task.configured(rocket)
        configured = Pace(task.action.ticks, task.action.delay)
        if first.ticks is not None:
            for script in (second for second in seconds if second.ticks is None):
                script.ticks, script.delay = configured.of(first)
        players = [first, *seconds]
        pace = common_pace([configured.of(player) for player in players if player.ticks is not None] or [configured])
        self.line_up = Duel(pace, *players)
        self.watch = Watch([max(pace.of(first).ticks, pace.of(second).ticks) // pace.ticks for second in seconds])
        task = Task(
            observation=Unobserved(),
            action=NoAction(pace),
            rewards=Rewards.named({"goal": 1.0}),
            start=task.start if own_starts else nudged_kickoff(),
            endings={"goal": self.watch, "time_out": TimeOut(limit)},
            line_up=self.line_up,
            games=series,
        )
        self.series = task.series
        here = {"count": self.arenas, "workers": min(workers, self.arenas), "groups": 1}
        self.env = RocketEnv.configured(config.model_copy(update=here), device, task=lambda: task)
        self.tally = Tally(self.env, self.line_up.sides(), self.rounds)
        self.rows = self.env.num_rows // 2
        """The cars of the first player: no network takes more rows at once"""
        self._nothing = torch.zeros(self.env.num_rows, dtype=torch.int64, device=self.env.device)
        self._streams = [(stream, stream.get_state()) for stream in self.env.generators]
        captures = graphs and self.env.capturable
        self._advance = CapturedCall(self._step, "a step of a match", self.env.generators) if captures else self._step
        self._resting = torch.zeros(self.arenas, dtype=torch.bool, device=self.env.device)
        self._steps_between_looks = 1 if self.env.device.type == "cpu" else round(1.0 / self.env.step_seconds)
        self.recorder = recorder
        if recorder is not None:
            blocks = [range(start, start + self.block) for start in range(0, self.arenas, self.block)]
            recorder.attach(self.env, blocks, self.rounds, max(STEPS, self._steps_between_looks))

    @torch.no_grad()
    def warm_up(self) -> None:
        """Does what is done once, so that the first match takes no longer than the next: kernels are loaded, and on CUDA a step
        is captured. It has no effect on results, because every match begins afresh."""
        self.env.reset(0)
        for _ in range(WARM_UP + 1):
            self._advance()
        self.env.prepare()
        self.tally.share()  # the host sync: nothing of this is still running when the clock starts

    def play(self, seed: int) -> Score:
        """Plays all games of a match with one second player."""
        (result,) = self.play_all(seed)
        return result.score

    @torch.no_grad()
    def play_all(self, seed: int, progress: Progress | None = None) -> list[MatchResult]:
        """Plays all games, and returns a result for each second player. The same seed and weights give the same games. Every
        arena plays equally many games, so that short ones are not favoured. On a GPU there is one host sync per second of the
        game. `progress` is told now and then which share of the games has been played."""
        for stream, beginning in self._streams:
            stream.set_state(beginning)
        self.env.reset(seed)
        self.tally.clear()
        if self.recorder is not None:
            self.recorder.begin()
        while (share := self.tally.share()) < 1.0:
            if progress is not None:
                progress(share)
            self._rest()
            for _ in range(self._steps_between_looks):
                self._advance()
            self.env.prepare()
            if self.recorder is not None:
                self.recorder.stepped(self._steps_between_looks)
        if self.recorder is not None:
            self.recorder.look()
        if progress is not None:
            progress(1.0)
        return [MatchResult(*self.tally.of(slice(start, start + self.block)), self.size, self.simulator, seed)
                for start in range(0, self.arenas, self.block)]

    def _rest(self) -> None:
        """Spares what arenas that have played their games would cost, where a step is in no CUDA graph, whose shapes are fixed.
        It does not change the games of others."""
        over = self.tally.over()
        if not self.env.capturable and not torch.equal(over, self._resting):
            self._resting = over
            self.line_up.rest(over)
            self.env.rest(over)

    def _step(self) -> None:
        step = self.env.step(self._nothing)
        episode_over = (step.terminated | step.truncated).view(self.arenas, -1)[:, 0]
        self.tally.count(self.watch, episode_over if self.series is None else self.series.over)

    def close(self) -> None:
        self.env.close()


class Tally:
    """Counts what happens in E arenas that play R games each, in tensors at fixed addresses and without a host sync."""

    def __init__(self, env: RocketEnv, side: Tensor, rounds: int) -> None:
        """`side` [E]: the team of the first player."""
        arenas, device = len(side), env.device
        self.side, self.rounds = side, rounds
        self.played, self.ticks, *touches = torch.zeros(4, arenas, dtype=torch.int64, device=device).unbind(0)
        """[E]: whole games so far, and ticks of the current one"""
        self.touches: list[Tensor] = touches
        """[E] each: of the first player and of the second"""
        self.goal = torch.full((rounds, arenas), -1, dtype=torch.int64, device=device)
        """[R, E]: the team that scored, or -1"""
        self.length = torch.zeros(rounds, arenas, dtype=torch.int64, device=device)
        """[R, E]: ticks of each game"""

    def clear(self) -> None:
        self.goal.fill_(-1)
        for x in (self.played, self.ticks, self.length, *self.touches):
            x.zero_()

    def share(self) -> float:
        """The share of all games that are over. This is a host sync."""
        return int(self.played.sum()) / (self.rounds * len(self.played))

    def over(self) -> Tensor:
        """[E]: the arenas that have played their games."""
        return self.played >= self.rounds

    def count(self, watch: Watch, ended: Tensor) -> None:
        """Counts one step; `ended` [E]: the arenas whose game it has ended. An arena that has played its games rests or goes
        on, and is not counted any more."""
        counts = ~self.over()
        own = watch.touches.gather(1, self.side.unsqueeze(-1)).squeeze(-1)
        for touches, new in zip(self.touches, (own, watch.touches.sum(-1) - own), strict=True):
            touches += counts * new
        self.ticks += watch.ticks
        current = self.played.clamp(max=self.rounds - 1).unsqueeze(0)  # [1, E]
        for record, value in ((self.goal, watch.goal), (self.length, self.ticks)):
            record.scatter_(0, current, torch.where(counts & ended, value, record.gather(0, current)))
        self.ticks.masked_fill_(ended, 0)
        self.played += counts & ended

    def of(self, arenas: slice) -> tuple[Score, list[PlayedGame]]:
        """The score and the games of these arenas. This is a host sync."""
        side, goal, length = (x[..., arenas].cpu() for x in (self.side, self.goal, self.length))
        touches = [int(x[arenas].sum()) for x in self.touches]
        scored, conceded = (goal == side).long(), (goal == 1 - side).long()
        minutes = float(length.sum()) / TICK_RATE / 60
        score = Score(length.numel(), int(scored.sum()), int(conceded.sum()), touches[0] / minutes, touches[1] / minutes,
                      minutes)
        columns = (x.t().flatten().tolist() for x in (side.expand_as(goal), scored, conceded, length.double() / TICK_RATE))
        return score, [PlayedGame(*row) for row in zip(*columns, strict=True)]


def arenas_of(size: int, simulator: str = "warp", hitbox: str = "octane") -> EnvConfig:
    """A description of arenas for matches: `size` cars per team, all with this hitbox."""
    return EnvConfig.model_validate(
        {"rocket": {"blue": size, "orange": size, "simulator": simulator, "hitbox": hitbox}})


def _most_arenas(simulator: str, device: torch.device, blocks: int, workers: int) -> int:
    """The most arenas of one block. More arenas than that save no time: on a CPU because few of them play the last games,
    while the others rest, on a GPU because it is busy. Where policies act on a GPU, each worker of RocketSim takes as many as a
    CPU."""
    if simulator == "warp" and device.type == "cuda":
        return max(2, MOST_ON_GPU // blocks // 2 * 2)
    return MOST_ON_CPU * (max(1, workers) if device.type == "cuda" else 1)


def nudged_kickoff() -> FuzzedKickoff:
    """Kick-offs with small random changes, so that no game is a copy of another: from exactly the same start, deterministic
    players would play the same game again."""
    return FuzzedKickoff(distance=30.0, angle=0.05, speed=0.0, boost=(BOOST_START, BOOST_START))


class Unobserved(Observation):
    """An observation without content: players observe the state themselves."""

    def size(self, seats: int) -> int:
        return 1

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        return torch.zeros(state.arenas, state.seats, 1, device=state.device)


class NoAction(Action):
    """The action parser of arenas in which players drive all cars: it has one action, which does nothing."""

    space = gymnasium.spaces.Discrete(1)

    def __init__(self, pace: Pace) -> None:
        self.ticks, self.delay = pace

    def parse(self, action: Tensor, state: GameState) -> Tensor:
        return torch.zeros(*state.shape, len(CONTROLS), device=state.device)


class Watch(Goal):
    """A goal ends the game. What happened in the last step is kept here, because the arena itself has begun another game
    already. `intervals`: for every block of arenas, contacts of a car with the ball in so many steps, those between decisions,
    are one touch."""

    goal: Tensor
    ticks: Tensor
    touches: Tensor
    """[E, 2]: cars of each team that touched the ball"""
    steps: Tensor
    touching: Tensor
    """[E, C]: cars whose touch in this interval was counted"""

    def __init__(self, intervals: Sequence[int]) -> None:
        self.intervals = list(intervals)

    def bind(self, state: GameState) -> None:
        blocks = torch.tensor(self.intervals, device=state.device)
        self.interval = blocks.repeat_interleave(state.arenas // len(blocks), output_size=state.arenas)  # [E]
        self.register_buffer("steps", torch.zeros_like(state.game.tick))
        self.register_buffer("touching", torch.zeros_like(state.cars.present))
        self.register_buffer("goal", state.game.goal.clone())
        self.register_buffer("ticks", state.game.tick.clone())
        self.register_buffer("touches", torch.zeros_like(state.game.score))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        self.goal.copy_(state.game.goal)
        self.ticks.copy_(state.game.tick - previous.game.tick)
        touching = events.touches > 0
        for team in (0, 1):
            self.touches[:, team] = (touching & ~self.touching & (state.cars.team == team)).sum(-1)
        self.steps += 1
        over = self.steps % self.interval == 0
        self.touching.logical_or_(touching).masked_fill_(over.unsqueeze(-1), False)
        return super().__call__(state, previous, events)

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.steps.masked_fill_(mask, 0)
        self.touching.masked_fill_(mask.unsqueeze(-1), False)
