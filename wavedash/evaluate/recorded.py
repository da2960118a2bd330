"""Episodes of `wavedash eval RUN` as recordings: a policy in its own task, in all cars."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from wavedash.envs.vec_env import VecEnv
from wavedash.league.players import Entrant
from wavedash.loading import LoadedRun
from wavedash.recordings.order import Order
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.recorder import GameRecorder, Pairing
from wavedash.runs.folder import RunFolder


def episode_recorder(order: Order, run: LoadedRun) -> Callable[[VecEnv, int], GameRecorder]:
    """A function that attaches a recorder to the environment, before its first step; every arena plays so many episodes one
    after another."""
    def watch(env: VecEnv, rounds: int) -> GameRecorder:
        assert isinstance(env, RocketEnv)
        name, task = Entrant(str(run.path), run).name, run.config.env.rocket
        assert task is not None
        seats = task.largest.blue + task.largest.orange
        recorder = GameRecorder(order, "eval", lambda block, arena: Pairing(name, [name] * seats, [True] * seats),
                                {"simulator": task.simulator, "start": "task"}, step=run.source.step, run=run_title(run))
        recorder.attach(env, [_in_turns([state.arenas for state in env.states])], rounds)
        return recorder

    return watch


def _in_turns(arenas: Sequence[int]) -> list[int]:
    """The numbers of all arenas, one of each shard after another, so that every team size is recorded; `arenas`: of each
    shard."""
    shards = [(sum(arenas[:shard]), count) for shard, count in enumerate(arenas)]
    return [first + number for number in range(max(arenas)) for first, count in shards if number < count]


def run_title(run: LoadedRun) -> str | None:
    """Returns what recordings call the run: its name and folder; None: the policy is in no run."""
    home = run.source.home
    return "/".join(home.parts[-2:]) if RunFolder.is_run(home) else None
