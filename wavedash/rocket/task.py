"""A Rocket League task, made as a YAML file describes it."""
from __future__ import annotations

from typing import Any

from wavedash.config import Named, RocketConfig
from wavedash.envs.errors import EnvError
from wavedash.rocket import names
from wavedash.rocket.parts import Action, Observation
from wavedash.rocket.rewards import Rewards
from wavedash.tasks import task
from wavedash.tasks.starts import Mixture


class Task(task.Task):
    """The parts of a Rocket League task."""

    observation: Observation
    action: Action
    rewards: Rewards

    @classmethod
    def configured(cls, config: RocketConfig) -> Task:
        return cls(
            observation=_named("observation", config.observation),
            action=_named("action", config.action),
            rewards=Rewards.named(config.rewards, mode=config.reward_mode, dense_scale=config.dense_scale,
                                  team_spirit=config.team_spirit, zero_sum=config.zero_sum),
            start=Mixture.named(config.starts, names.PARTS),
            endings={name: names.make("ending", name, options) for name, options in config.endings.items()},
        )


def _named(kind: str, value: Named) -> Any:
    if isinstance(value, str):
        return names.make(kind, value)
    if len(value) != 1:
        raise EnvError(f"env.rocket.{kind} takes one name, or one name with its options; got {', '.join(value) or 'none'}")
    ((name, options),) = value.items()
    return names.make(kind, name, options)
