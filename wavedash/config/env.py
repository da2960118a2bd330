"""Options of the environment."""
from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from wavedash.config.rocket import RocketConfig
from wavedash.config.section import AUTO, AutoPositive, Named, Positive, Section
from wavedash.config.walk import WalkConfig
from wavedash.envs.kinds import kind_of


class EnvConfig(Section):
    """Which environment, how many copies, where they run."""

    id: str | None = None
    """A Gymnasium id such as `CartPole-v1`."""
    factory: str | None = None
    """Your own environment instead of `id`: an import path `package.module:callable`, or `/folder/script.py:callable`, that
    returns a `gymnasium.Env`, an `rlgym.api.RLGym`, or an environment for rlgym-ppo; or, called once with the arguments `count`
    and `device`, a whole `VecEnv`. It may also name a subclass of `wavedash.envs.kinds.Kind`."""
    rocket: RocketConfig | None = None
    """Rocket League instead of `id`; `count` is then the number of arenas."""
    walk: WalkConfig | None = None
    """A walking robot instead of `id`; `count` is then the number of robots."""
    kwargs: dict[str, Any] = {}
    """Passed to the environment's constructor or factory; the options of a `Kind`."""
    wrappers: list[Named] = []
    """Gymnasium wrappers around each environment, the first one inside: names of gymnasium.wrappers, or import paths
    `module:Class`, with options as `{TimeLimit: {max_episode_steps: 200}}`."""
    frame_stack: Positive = 1
    """Latest observations that the policy sees together: vectors side by side, pictures as more channels. More: longer motion
    is visible, observations are larger. 1: only the newest."""
    count: AutoPositive = 8
    """Environments stepped side by side (by each process, where torchrun starts several). More: larger rollouts, better use of
    vectorised inference, staler data per update. auto: as many as suit this machine's memory and cores, chosen when the run
    begins (docs/memory.md)."""
    workers: Annotated[int, Field(ge=0)] = 0
    """Worker processes; 0 steps all environments in the learner's process, which is fastest when a step takes microseconds. The
    simulator `warp` needs none: it uses all cores by itself."""
    groups: Positive = 2
    """With workers, or the simulator `warp` on a CPU: shards, one of which steps while the policy acts for another. More: less
    waiting for slow workers, smaller batches. With several team sizes (`env.rocket.sizes`) each size is a shard instead."""
    worker_timeout: Annotated[float, Field(gt=0)] = 10.0
    """Seconds without a sign of life after which a worker counts as hung and is restarted. Raise it for very slow steps."""

    @property
    def title(self) -> str:
        """The environment's name, for people."""
        return kind_of(self).describe(self)

    @model_validator(mode="after")
    def _goes_together(self) -> EnvConfig:
        kind_of(self).check(self)
        if wrong := [named for named in self.wrappers if isinstance(named, dict) and len(named) != 1]:
            raise ValueError(f"env.wrappers: each entry is one wrapper, a name or {{name: options}}, not {wrong[0]}")
        if self.workers and self.groups > self.workers:
            raise ValueError(f"env.groups={self.groups} needs at least as many env.workers (got {self.workers})")
        if self.count != AUTO and self.workers > self.count:
            raise ValueError(f"env.workers={self.workers} leaves workers without an environment: env.count is {self.count}")
        return self
