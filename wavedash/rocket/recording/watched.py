"""Watched: arenas of a training whose steps are kept on a tape, and how their episodes become recordings."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from wavedash.recordings.file import Recording
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.episodes import Episode, Episodes
from wavedash.rocket.recording.frames import RocketFrames, players_of
from wavedash.rocket.recording.make import recording_of
from wavedash.rocket.recording.tape import make_tape
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.rocket.team_sizes import team_size_of

LONGEST_EPISODE = 60.0
"""Seconds of an episode that are looked at, the last ones"""


class Watched:
    """The watched arenas of one shard."""

    def __init__(self, state: GameState, task: Task, first: int, arenas: Sequence[int], steps: int, simulator: str) -> None:
        """`first`: the number of the shard's first arena; `steps`: of a rollout."""
        self.state, self.first, self.ticks = state, first, task.action.ticks
        self.frame_seconds = self.ticks / TICK_RATE
        self.measures = measured(task)
        self.tape = make_tape(state, arenas, steps, self.measures)
        self.frames = RocketFrames.of(state)
        self.episodes = Episodes(self.tape, first, round(LONGEST_EPISODE / self.frame_seconds))
        self.nobody = players_of(state, 0, [""] * state.seats)
        self.teams = [player["team"] for player in self.nobody]
        self.scene = {"size": str(team_size_of(state)), "simulator": simulator, "start": "task"}

    def plays(self, state: GameState) -> bool:
        """Whether as many cars play in another state."""
        return str(team_size_of(state)) == self.scene["size"]

    def recording(self, episode: Episode, name: str, title: str, source: str, **more: Any) -> Recording:
        """`name`: of the policy; players of other cars are opponents."""
        players = [{**player, "name": name if mine else "opponent", "policy": True}
                   for player, mine in zip(self.nobody, episode.policy.tolist(), strict=True)]
        return recording_of(episode, players, self.frames, title, source, self.ticks, measures=self.measures, scene=self.scene,
                            **more)


def measured(task: Task) -> list[str]:
    """The names of all measures of a task and its lanes, as in metrics."""
    of_lanes = (name for own in task.measures.of_lanes.values() for name, _ in own.parts.items())
    return list(dict.fromkeys([*(name for name, _ in task.measures.parts.items()), *of_lanes]))


def watch(env: RocketEnv, count: int, steps: int, simulator: str) -> list[Watched]:
    """Watches so many arenas, spread evenly over the first shard of each team size. Lanes have the first arenas of a shard and
    opponents the last, so both are among them. `steps`: of a rollout. It must be called before a step is captured."""
    states, firsts = env.states, [0, *accumulate(state.arenas for state in env.states)]
    sizes = [team_size_of(state) for state in states]
    chosen = [sizes.index(size) for size in dict.fromkeys(sizes)]
    found: dict[int, Watched] = {}
    for place, shard in enumerate(chosen):
        total = states[shard].arenas
        mine = min(total, count // len(chosen) + (place < count % len(chosen)))
        if mine:
            between = total // mine
            arenas = [between // 2 + number * between for number in range(mine)]
            found[shard] = Watched(states[shard], env.tasks[shard], firsts[shard], arenas, steps, simulator)
    env.attach([found[shard].tape if shard in found else None for shard in range(len(states))])
    return list(found.values())
