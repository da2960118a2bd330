"""A walking task, made as a YAML file describes it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from torch import Tensor

from wavedash.config import Named, WalkConfig
from wavedash.envs.errors import EnvError
from wavedash.tasks import task
from wavedash.tasks.endings import Endings
from wavedash.tasks.part import Part, Parts
from wavedash.tasks.rewards import label
from wavedash.tasks.starts import Mixture
from wavedash.walk.commands import Commands
from wavedash.walk.levels import Levels
from wavedash.walk.limits import shaped
from wavedash.walk.names import PARTS
from wavedash.walk.parts import Action, Context, Ending, Observation, Randomization, Reward, Start
from wavedash.walk.physics import Physics
from wavedash.walk.rewards import Rewards
from wavedash.walk.state import RobotState
from wavedash.walk.terrain.ground import Ground


class Observations(Part):
    """Everything that a robot sees, by key."""

    holds_parts = True

    def __init__(self, observations: Mapping[str, Observation]) -> None:
        if not observations:
            raise EnvError("env.walk.observation needs at least one key, such as {proprioception: {}, commands: {}}")
        self.parts = Parts(observations)

    def bind(self, state: RobotState) -> None:
        for part in self.parts.values():
            part.bind(state)
        self._shapes = {key: (*state.shape, *part.space().shape) for key, part in self.parts.items()}

    def begin(self, state: RobotState, mask: Tensor) -> None:
        for part in self.parts.values():
            part.begin(state, mask)

    @property
    def space(self) -> gymnasium.spaces.Dict:
        return gymnasium.spaces.Dict({key: part.space() for key, part in self.parts.items()})

    def renew(self, state: RobotState) -> None:
        for part in self.parts.values():
            part.renew(state)

    def build(self, state: RobotState) -> dict[str, Tensor]:
        return {key: shaped(f"what observation {key!r} built", part.build(state), *self._shapes[key])
                for key, part in self.parts.items()}


class Randomizations(Part):
    """Everything that differs between robots."""

    holds_parts = True

    def __init__(self, parts: Mapping[str, Randomization], progressive: bool) -> None:
        self.parts, self.progressive = Parts(parts), progressive

    def bind(self, state: RobotState) -> None:
        self.everything = torch.ones(state.shape, device=state.device)
        for part in self.parts.values():
            part.bind(state)

    @property
    def description(self) -> str:
        """A text that changes with everything that is drawn, and from which range."""
        return repr([part.origin for part in self.parts.values()])

    def breadth(self, levels: Levels) -> Tensor:
        """[E]: how much of every range the robots get."""
        return levels.breadth if self.progressive else self.everything

    def draw(self, physics: Physics, breadth: Tensor, generator: torch.Generator, of_bodies: bool) -> None:
        for part in self.parts.values():
            if part.of_bodies == of_bodies:
                part.draw(physics, self.everything if of_bodies else breadth, generator)

    def push(self, state: RobotState, breadth: Tensor, generator: torch.Generator) -> Tensor | None:
        """[E, 3]: the sum of all pushes; None: there are none."""
        pushes = [shaped(f"the push of randomization {name!r}", push, *state.shape, 3) for name, part in self.parts.items()
                  if (push := part.push(state, breadth, generator)) is not None]
        return None if not pushes else pushes[0] if len(pushes) == 1 else torch.stack(pushes).sum(0)


class Task(task.Task):
    """The parts of a walking task."""

    observation: Observations
    action: Action
    rewards: Rewards

    def __init__(self, observation: Observations, action: Action, rewards: Rewards, start: Start, endings: Endings,
                 commands: Commands, levels: Levels, randomizations: Randomizations) -> None:
        super().__init__(observation, action, rewards, start, endings)
        self.commands, self.levels, self.randomizations = commands, levels, randomizations

    @classmethod
    def configured(cls, config: WalkConfig, ground: Ground) -> Task:
        return cls(
            observation=Observations({label(name): PARTS.make("observation", name, options)
                                      for name, options in config.observation.items()}),
            action=_named("action", config.action),
            rewards=Rewards.named(config.rewards, PARTS, floor=config.reward_floor),  # type: ignore[arg-type]
            start=Mixture.named(config.starts, PARTS),  # type: ignore[arg-type]
            endings=Endings.named(config.endings, PARTS),
            commands=Commands.named(config.commands, PARTS, seconds=config.command_seconds),
            levels=Levels(ground, config.first_level, config.curriculum),
            randomizations=Randomizations({name: PARTS.make("randomization", name, options)
                                           for name, options in config.randomize.items() if options is not None},
                                          config.progressive),
        )

    @property
    def played(self) -> list[Part | Endings]:
        return [*super().played, self.commands, self.levels, self.randomizations]

    def meet(self, context: Context) -> None:
        """Tells parts about the ground, before they are bound."""
        for part in self.modules():
            if isinstance(part, (Observation, Reward, Start, Ending)):
                part.meet(context)


def _named(kind: str, value: Named) -> Any:
    if isinstance(value, str):
        return PARTS.make(kind, value)
    if len(value) != 1:
        raise EnvError(f"env.walk.{kind} takes one name, or one name with its options; got {', '.join(value) or 'none'}")
    ((name, options),) = value.items()
    return PARTS.make(kind, name, options)
