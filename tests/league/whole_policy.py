"""WholePolicy: the reference of frozen policies, which infers actor and critic for every car, whoever drives it."""
from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.obs import Obs
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.parts import Player
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task


class WholePolicy(Player):
    """A policy as a player, by the methods that a rollout calls. It ignores which cars it drives, and samples by gSDE only."""

    def __init__(self, policy: ActorCritic, task: RocketConfig, deterministic: bool = True, seed: int = 0) -> None:
        made = Task.configured(RocketConfig(observation=task.observation, action=task.action))
        self.observation, self.action = made.observation, made.action
        self.ticks, self.delay = self.action.ticks, self.action.delay
        self._policy, self.deterministic, self.seed = (policy,), deterministic, seed

    def bind(self, state: GameState) -> None:
        self.observation.bind(state)
        self.action.bind(state)
        self.generator = torch.Generator(state.device).manual_seed(self.seed)
        (policy,) = self._policy
        remembered = policy.to(state.device).initial_memory(state.arenas * state.seats)
        self.names = list(remembered)
        for name, x in remembered.items():
            self.register_buffer(name.replace(".", " "), x.view(*state.shape, *x.shape[1:]))
        if not self.deterministic:
            self.register_buffer("noise", self._drawn(state))
            self.register_buffer("age", torch.zeros(state.arenas, dtype=torch.int64, device=state.device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.observation.begin(state, mask)
        self.action.begin(state, mask)
        for x in self._memory().values():
            x.masked_fill_(mask.view(-1, 1, 1, 1), 0.0)
        if not self.deterministic:
            self._renew(state, mask)

    def exchange(self, slot: int, policy: ActorCritic | Mapping[str, Tensor]) -> None:
        self._policy[0].load_state_dict(policy.state_dict() if isinstance(policy, ActorCritic) else policy)
        for x in self._memory().values():
            x.zero_()

    @torch.no_grad()
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        (policy,), mask = self._policy, self.action.mask(state)
        obs: Obs = self.observation.build(state, chosen).flatten(0, 1)
        if mask is not None:
            obs = {"obs": obs, "action_mask": mask.flatten(0, 1).to(torch.int8)}  # type: ignore[dict-item]
        noise = None
        if not self.deterministic:
            self._renew(state, self.age >= policy.head.gsde.sample_every)
            self.age += 1
            noise = self.get_buffer("noise").flatten(0, 1)
        memory = {name: x.flatten(0, 1) for name, x in self._memory().items()}
        decision = policy.act(policy.normalize(obs), memory, deterministic=self.deterministic, noise=noise)
        for name, x in decision.memory.items():
            memory[name].copy_(x)
        action = policy.head.env_action(decision.action)
        return self.action.parse(action.view(*state.shape, *action.shape[1:]), state)

    def _memory(self) -> dict[str, Tensor]:
        return {name: self.get_buffer(name.replace(".", " ")) for name in self.names}

    def _drawn(self, state: GameState) -> Tensor:
        """The noise matrices of gSDE."""
        drawn = self._policy[0].head.draw_noise(state.arenas * state.seats, self.generator)
        assert isinstance(drawn, Tensor)
        return drawn.view(*state.shape, *drawn.shape[1:]).detach()

    def _renew(self, state: GameState, mask: Tensor) -> None:
        noise = self.get_buffer("noise")
        noise.copy_(torch.where(mask.view(-1, 1, 1, 1), self._drawn(state), noise))
        self.age.masked_fill_(mask, 0)
