"""The kind of environments that `env.rocket` configures: Rocket League tasks. It imports warp and torch only to make one."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavedash.config.section import AUTO
from wavedash.envs.kinds import Kind, Spaces
from wavedash.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import torch

    from wavedash.config import EnvConfig, Named, RecordingsConfig, RocketConfig
    from wavedash.envs.vec_env import VecEnv
    from wavedash.evaluate.measure import Measured
    from wavedash.findings import Findings
    from wavedash.imitate.demonstrations import Demonstrations
    from wavedash.loading import LoadedRun
    from wavedash.ppo.listener import Listener
    from wavedash.recordings.order import Order
    from wavedash.rocket.line_up import LineUp
    from wavedash.rocket.task import Task
    from wavedash.runs.folder import RunFolder
    from wavedash.trained_policy import TrainedPolicy


FEWEST_CARS, MOST_CARS = 1_024, 32_768
"""Cars that `env.count: auto` may choose on a GPU: with fewer it is not busy, with more a rollout is older than it is larger"""
CARS_PER_CORE = 128


class RocketKind(Kind):
    """Rocket League arenas in one of two simulators."""

    about = "a Rocket League task"
    plural = "arenas"
    meaning_options = ("rocket.observation", "rocket.action")
    eval_options = ("random", "record")

    def describe(self, config: EnvConfig) -> str:
        return f"Rocket League {', '.join(map(str, _task(config).team_sizes))}"

    def check(self, config: EnvConfig) -> None:
        if config.wrappers or config.frame_stack > 1:
            raise ValueError("env.wrappers and env.frame_stack are not for env.rocket: a Rocket League task is changed by its "
                             "parts, and sees velocities; policy.memory.kind=gru remembers more")
        if config.workers and not self.takes_workers(config):
            raise ValueError(f"env.workers={config.workers} is for env.rocket.simulator=rocketsim: the simulator warp steps "
                             "all arenas in one process, on all cores; leave env.workers at 0")
        sizes = _task(config).team_sizes
        named = f"the team sizes {', '.join(map(str, sizes))}, each of which needs"
        if AUTO < config.count < len(sizes):
            raise ValueError(f"env.count={config.count} is too few for {named} an arena of its own: set env.count="
                             f"{len(sizes)} or more")
        if 0 < config.workers < len(sizes):
            raise ValueError(f"env.workers={config.workers} is too few for {named} a worker of its own: set env.workers="
                             f"{len(sizes)} or more, or 0")

    def check_rating(self, config: EnvConfig, size: str | None = None) -> None:
        largest = _task(config).largest
        if size is None and not largest.is_even:
            raise ValueError("rating is by games in which the policy is now blue and now orange, so both teams need equally "
                             f"many cars, but {_where(config)} {largest}: set rating.size to one such as 1v1, or turn it off "
                             "with rating=null")

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        from wavedash.rocket.env import RocketEnv

        return RocketEnv.configured(config, device)

    def check_opponents(self, config: EnvConfig) -> None:
        if uneven := next((size for size in _task(config).team_sizes if not size.is_even), None):
            advice = "set blue and orange to the same number" if _task(config).sizes is None else "leave it out of the sizes"
            raise ValueError(f"opponents drive a whole team, now blue and now orange, so both teams need equally many cars, "
                             f"but {_where(config)} {uneven}: {advice}, or turn it off with opponents=null")

    def make_against(self, config: EnvConfig, device: torch.device, line_up: Callable[[Task], LineUp]) -> VecEnv:
        from wavedash.rocket.env import RocketEnv
        from wavedash.rocket.task import Task

        def task() -> Task:
            made = Task.configured(_task(config))
            made.line_up = line_up(made)
            return made

        return RocketEnv.configured(config, device, task)

    def spaces(self, config: EnvConfig, device: torch.device) -> Spaces:
        """The spaces of the task, found by a rehearsal, which needs no simulator."""
        from wavedash.rocket.env import check_simulator
        from wavedash.rocket.team_sizes import rehearse_sizes

        rocket = _task(config)
        check_simulator(rocket)
        return rehearse_sizes(rocket, rocket.team_sizes)._replace(rows=seats_of(rocket))

    def memory(self, config: EnvConfig, device: torch.device) -> Mapping[str, int]:
        from wavedash.rocket.memory import arena_memory

        return arena_memory(config, device)

    def counts(self, config: EnvConfig, device: torch.device) -> tuple[int, int]:
        """Arenas of larger teams are fewer, so that there are as many cars. With RocketSim, or on a CPU, 64 arenas of two cars
        for each core."""
        from wavedash.threads import cores

        rocket = _task(config)
        on_gpu = device.type == "cuda" and rocket.simulator == "warp"
        busy = config.workers if rocket.simulator == "rocketsim" and config.workers else cores()
        most = MOST_CARS if on_gpu else min(MOST_CARS, CARS_PER_CORE << (busy - 1).bit_length())
        least = FEWEST_CARS if on_gpu else CARS_PER_CORE
        cars = 1 << (seats_of(rocket) - 1).bit_length()
        return max(1, least // cars), max(1, most // cars)

    def live_keys(self, config: EnvConfig) -> list[tuple[str, ...]]:
        from wavedash.rocket.live import live_keys

        return [("rocket", *key) for key in live_keys(_task(config))]

    def change(self, env: VecEnv, config: EnvConfig) -> None:
        from wavedash.rocket.live import change_tasks

        change_tasks(env.tasks, _task(config))

    def few(self, config: EnvConfig, count: int) -> EnvConfig:
        """Without lanes, if these would take more than half of so few arenas: each has at least one."""
        rocket = _task(config)
        taken = sum(max(1, round(lane.room * count)) for lane in rocket.lanes.values())
        task = rocket.model_copy(update={"lanes": {}}) if 2 * taken > count else rocket
        return super().few(config, count).model_copy(update={"rocket": task})

    def measured(self, config: EnvConfig) -> list[str]:
        from wavedash.tasks.rewards import label

        def names(measures: Sequence[Named]) -> list[str]:
            return [label(named if isinstance(named, str) else next(iter(named))) for named in measures]

        rocket = _task(config)
        of_lanes = [f"{lane}/{name}" for lane, options in rocket.lanes.items() for name in names(options.measures)]
        return names(rocket.measures) + of_lanes

    def united(self, config: EnvConfig, others: Sequence[EnvConfig]) -> EnvConfig:
        from wavedash.rocket.united import united

        return config.model_copy(update={"rocket": united(_task(config), [_task(other) for other in others])})

    def evaluate(self, run: LoadedRun, episodes: int | None = None, deterministic: bool = True, seed: int = 1,
                 progress: Callable[[float], None] | None = None, *, record: Order | None = None, **options: Any) -> Measured:
        """`record`: the first episodes are recorded."""
        from wavedash.evaluate.own_task import play_own_task
        from wavedash.evaluate.recorded import episode_recorder

        watch = None if record is None else episode_recorder(record, run)
        return play_own_task(run, episodes, deterministic, seed, watch=watch, **options)

    def demonstrated(self, config: EnvConfig, states: Demonstrations) -> Demonstrations:
        from wavedash.rocket.demonstrated import samples_of_states

        return samples_of_states(_task(config), states)

    def highlights(self, config: RecordingsConfig, run: RunFolder) -> Listener:
        from wavedash.rocket.recording.highlights import Highlights

        return Highlights(config, run)

    def stage(self, config: EnvConfig) -> str:
        return "wavedash.web.stage.rocket:RocketStage"

    def team_size(self, config: EnvConfig) -> int:
        return _task(config).largest.larger

    def takes_workers(self, config: EnvConfig) -> bool:
        """Whether worker processes help: the simulator warp uses all cores by itself."""
        return _task(config).simulator != "warp"

    def debug_report(self, switch: str, config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings | None:
        from wavedash.rocket.debug import REPORTS

        return REPORTS[switch](config, device, policy) if switch in REPORTS else None


def seats_of(rocket: RocketConfig) -> int:
    """Seats of an arena: those of the largest teams, where there are several sizes."""
    return rocket.largest.blue + rocket.largest.orange


def rocket_task(config: EnvConfig, run: Path) -> RocketConfig:
    """The task that a run was trained in. Raises UserError if it is not a Rocket League task."""
    if config.rocket is None:
        raise UserError(f"{run} was trained in {config.title}; only runs of a Rocket League task (env.rocket) can do this")
    return config.rocket


def _task(config: EnvConfig) -> RocketConfig:
    assert config.rocket is not None
    return config.rocket


def _where(config: EnvConfig) -> str:
    return "env.rocket is" if _task(config).sizes is None else "env.rocket.sizes has"
