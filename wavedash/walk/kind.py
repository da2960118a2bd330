"""The kind of environments that `env.walk` configures: robots that walk. It imports MuJoCo and torch only to make one."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavedash.envs.kinds import Evaluation, Kind
from wavedash.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import torch

    from wavedash.config import EnvConfig, WalkConfig
    from wavedash.envs.vec_env import VecEnv
    from wavedash.loading import LoadedRun
    from wavedash.recordings.order import Order
    from wavedash.walk.evaluate.results import WalkingResult

ROBOTS_PER_CORE = 128
FEWEST, MOST = 1_024, 8_192
"""Robots that `env.count: auto` may choose on a GPU"""


class WalkKind(Kind):
    """Four-legged robots on terrain."""

    about = "a walking robot"
    plural = "robots"
    meaning_options = ("walk.observation", "walk.action")
    eval_options = ("terrain", "levels", "noisy", "pushes", "speed", "seconds", "record")

    def describe(self, config: EnvConfig) -> str:
        return f"robots on {', '.join(name.rpartition(':')[2] for name in _task(config).terrain)}"

    def check(self, config: EnvConfig) -> None:
        super().check(config)
        if config.frame_stack > 1:
            raise ValueError("env.frame_stack is not for env.walk: policy.memory.kind=gru remembers more")

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        check_package()
        from wavedash.walk.env import WalkEnv

        return WalkEnv.configured(config, device)

    def counts(self, config: EnvConfig, device: torch.device) -> tuple[int, int]:
        from wavedash.threads import cores

        if device.type == "cuda":
            return FEWEST, MOST
        return ROBOTS_PER_CORE, min(MOST, ROBOTS_PER_CORE << (cores() - 1).bit_length())

    def live_keys(self, config: EnvConfig) -> list[tuple[str, ...]]:
        from wavedash.walk.live import live_keys

        return [("walk", *key) for key in live_keys(_task(config))]

    def change(self, env: VecEnv, config: EnvConfig) -> None:
        from wavedash.walk.live import change_tasks

        change_tasks(env.tasks, _task(config))

    def united(self, config: EnvConfig, others: Sequence[EnvConfig]) -> EnvConfig:
        from wavedash.tasks.united import united_endings, united_weights

        walk, tasks = _task(config), [_task(other) for other in (*others, config)]
        return config.model_copy(update={"walk": walk.model_copy(update={
            "rewards": united_weights(walk.rewards, [task.rewards for task in tasks]),
            "starts": united_weights(walk.starts, [task.starts for task in tasks]),
            "endings": united_endings(walk.endings, [task.endings for task in tasks]),
        })})

    def evaluation(self, config: EnvConfig) -> Evaluation:
        return Evaluation(episodes=128, environments=128)

    def evaluate(self, run: LoadedRun, episodes: int | None = None, deterministic: bool = True, seed: int = 1,
                 progress: Callable[[float], None] | None = None, *, record: Order | None = None,
                 **options: Any) -> WalkingResult:
        """Robots walk tracks of all kinds and levels of terrain; `episodes` is how many walk each. `record`: afterwards so many
        robots walk alone and are recorded, on the hardest tracks first."""
        check_package()
        from wavedash.walk.evaluate.walking import evaluate_walking
        from wavedash.walk.recording import record_walks

        result = evaluate_walking(run, episodes, deterministic, seed, progress=progress, **options)
        if record is not None:
            record_walks(run, record, [(tile.terrain, tile.level) for tile in result.tiles], options.get("seconds"), seed)
        return result

    def files_beside_export(self, run: LoadedRun, description: Mapping[str, Any],
                            policies: Mapping[str, str]) -> Mapping[str, bytes]:
        check_package()
        from wavedash.walk.deployment import files

        return files(_task(run.config.env), description, policies)

    def stage(self, config: EnvConfig) -> str:
        check_package()
        return "wavedash.web.stage.walk:WalkStage"

    def film(self, run: LoadedRun, video: Path | None, *, recording: bool = False, **options: Any) -> str:
        """Writes a video, or with `recording` a recording."""
        if recording:
            check_package()
            from wavedash.walk.recording import record_to_file

            assert video is not None
            return record_to_file(run, video, **options)
        from wavedash.walk.render.film import film

        return film(run, video, **options)


def check_package() -> None:
    """Raises UserError if MuJoCo is not installed, or too old to have batches."""
    try:
        import mujoco.batch  # noqa: F401
    except ImportError:
        raise UserError("a walking robot needs MuJoCo 4.0 or later: pip install \"wavedash[walk]\"") from None


def walk_task(config: EnvConfig, run: Path) -> WalkConfig:
    """The task that a run was trained in. Raises UserError if it is not a walking task."""
    if config.walk is None:
        raise UserError(f"{run} was trained in {config.title}; only runs of a walking task (env.walk) can do this")
    return config.walk


def _task(config: EnvConfig) -> WalkConfig:
    assert config.walk is not None
    return config.walk
