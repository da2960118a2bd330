"""A frozen policy as a player: it observes, acts and remembers as in its own run, whatever the task of the arenas is."""
from __future__ import annotations

import torch
from gymnasium.spaces import Dict
from torch import Tensor

from wavedash.envs.obs import ACTION_MASK, Obs
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.parts import Player
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.trained_policy import TrainedPolicy


class FrozenPolicy(Player):
    """The policy of a run with the observation and the action parser of that run's configuration."""

    def __init__(self, run: LoadedRun, deterministic: bool = True, seed: int = 0) -> None:
        """`deterministic`: takes the most likely action instead of sampling as in training; `seed`: of the samples."""
        self.run, self.deterministic = run, deterministic
        self.policy = TrainedPolicy(run.policy.policy, seed)
        task = Task.configured(rocket_task(run.config.env, run.path))
        self.observation, self.action = task.observation, task.action
        self.ticks, self.delay = self.action.ticks, self.action.delay

    def __str__(self) -> str:
        return f"the policy of {self.run.path}"

    def bind(self, state: GameState) -> None:
        for part in (self.observation, self.action):
            part.bind(state)
        self.policy = self.policy.to(state.device)
        self._check_spaces(state)
        rows = state.arenas * state.seats
        for name, x in self.policy.policy.initial_memory(rows).items():
            self.register_buffer(_buffer(name), x)
        self.policy.memory = self._memory()

    def begin(self, state: GameState, mask: Tensor) -> None:
        for part in (self.observation, self.action):
            part.begin(state, mask)
        self.policy.reset(mask.repeat_interleave(state.seats))
        self._keep_memory()

    def generators(self) -> list[torch.Generator]:
        return [] if self.deterministic else [self.policy.generator]

    @torch.no_grad()
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        action = self.policy.step(self._observe(state, chosen), self.deterministic)
        self._keep_memory()
        return self.action.parse(action.view(state.arenas, state.seats, *action.shape[1:]), state)

    def _observe(self, state: GameState, chosen: Tensor) -> Obs:
        seen, mask = self.observation.build(state, chosen).flatten(0, 1), self.action.mask(state)
        return seen if mask is None else {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}

    def _memory(self) -> dict[str, Tensor]:
        return {name: self.get_buffer(_buffer(name)) for name in self.policy.policy.initial_memory(1)}

    def _keep_memory(self) -> None:
        """Copies the policy's memory back into the buffers, which a CUDA graph and a checkpoint need to stay the same
        tensors."""
        kept = self._memory()
        for name, x in (self.policy.memory or {}).items():
            kept[name].copy_(x)
        self.policy.memory = kept

    def _check_spaces(self, state: GameState) -> None:
        space = self.policy.policy.observation_space
        its, here = (space["obs"] if isinstance(space, Dict) else space).shape, (self.observation.size(state.seats),)
        if its != here:
            blue, orange = ((state.cars.team[0] == team).sum().item() for team in (0, 1))
            raise UserError(f"{self} cannot play Rocket League {blue}v{orange}: a car observes {here} numbers there, in its "
                            f"own task {its}. Train it with an observation that has room for as many cars (advanced_obs_plus: "
                            "team_size), or let it play in teams of its own size")
        if space_to_json(self.policy.policy.action_space) != space_to_json(self.action.space):
            raise UserError(f"{self} was trained with other actions than its config.yaml has: "
                            f"{self.policy.policy.action_space}, not {self.action.space}. Use the config.yaml of its training")


def _buffer(name: str) -> str:
    return f"memory {name}".replace(".", " ")
