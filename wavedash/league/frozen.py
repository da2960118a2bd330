"""A frozen policy as a player: it observes, acts and remembers as in its own run, whatever the task of the arenas is."""
from __future__ import annotations

import torch
from gymnasium.spaces import Dict
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.obs import ACTION_MASK, Obs
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.parts import Player
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task


class FrozenPolicy(Player):
    """A policy with the observation and the action parser of the task that it was trained in. Its weights are no part of the
    arenas' state that a checkpoint holds: who makes the player knows where they come from."""

    noise: Tensor
    """[E, C, F, A]: the noise matrices of a policy that samples by gSDE"""
    noise_age: Tensor
    """[E]: decisions since they were drawn"""

    def __init__(self, policy: ActorCritic, task: RocketConfig, name: str, deterministic: bool = True, seed: int = 0) -> None:
        """`policy` is copied. `name`: for messages; `deterministic`: takes the most likely action instead of sampling as in
        training; `seed`: of the samples."""
        self._policy = (frozen_copy(policy),)  # in a tuple, so that its weights are not among those of the part
        self.name, self.deterministic, self.seed = name, deterministic, seed
        self._explores = not deterministic and getattr(policy.head, "gsde", None) is not None
        self._remembered: dict[str, str] = {}  # the buffer of each part of the policy's memory
        made = Task.configured(task)
        self.observation, self.action = made.observation, made.action
        self.ticks, self.delay = self.action.ticks, self.action.delay

    @classmethod
    def of_run(cls, run: LoadedRun, deterministic: bool = True, seed: int = 0) -> FrozenPolicy:
        return cls(run.policy.policy, rocket_task(run.config.env, run.path), f"the policy of {run.path}", deterministic, seed)

    @property
    def policy(self) -> ActorCritic:
        return self._policy[0]

    def __str__(self) -> str:
        return self.name

    def play_as(self, policy: ActorCritic) -> None:
        """Takes over the weights of another policy with networks of the same shape, from the next decision on, also in the
        middle of episodes. They are copied in place, so captured CUDA graphs see them; the memory of the network is cleared.
        There is no host sync if both are on one device."""
        own, others = self.policy.state_dict(), policy.state_dict()
        if {name: x.shape for name, x in own.items()} != {name: x.shape for name, x in others.items()}:
            raise UserError(f"{self} cannot take over the weights of a policy with other networks: the two differ in their "
                            "configuration (policy, observation or actions). Make another player for it")
        for name, x in own.items():
            x.copy_(others[name])
        for x in self._memory().values():
            x.zero_()

    def bind(self, state: GameState) -> None:
        for part in (self.observation, self.action):
            part.bind(state)
        self._policy = (self.policy.to(state.device),)
        self._check_spaces(state)
        self.generator = torch.Generator(state.device).manual_seed(self.seed)
        rows = state.arenas * state.seats
        for name, x in self.policy.initial_memory(rows).items():
            self.register_buffer(_buffer(name), x.view(*state.shape, *x.shape[1:]))
            self._remembered[name] = _buffer(name)
        if self._explores:
            self.register_buffer("noise", self._draw_noise(state))
            self.register_buffer("noise_age", torch.zeros(state.arenas, dtype=torch.int64, device=state.device))

    def begin(self, state: GameState, mask: Tensor) -> None:
        for part in (self.observation, self.action):
            part.begin(state, mask)
        for x in self._memory().values():
            x.masked_fill_(_of_arenas(mask), 0.0)
        if self._explores:
            self._renew_noise(state, mask)

    def generators(self) -> list[torch.Generator]:
        return [] if self.deterministic else [self.generator]

    @torch.no_grad()
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        policy, memory = self.policy, {name: x.flatten(0, 1) for name, x in self._memory().items()}
        noise = self._explore(state) if self._explores else None
        decision = policy.act(policy.normalize(self._observe(state, chosen)), memory, self.generator, self.deterministic, noise)
        for name, x in decision.memory.items():
            memory[name].copy_(x)
        action = policy.head.env_action(decision.action)
        return self.action.parse(action.view(*state.shape, *action.shape[1:]), state)

    def _observe(self, state: GameState, chosen: Tensor) -> Obs:
        seen, mask = self.observation.build(state, chosen).flatten(0, 1), self.action.mask(state)
        return seen if mask is None else {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}

    def _memory(self) -> dict[str, Tensor]:
        """[E, C, layers, size] by name. They stay the same tensors, as a CUDA graph and a checkpoint need it."""
        return {name: self.get_buffer(buffer) for name, buffer in self._remembered.items()}

    def _explore(self, state: GameState) -> Tensor:
        """The noise matrices of this decision, by row."""
        every = self.policy.head.gsde.sample_every
        if every is not None:
            self._renew_noise(state, self.noise_age >= every)
        self.noise_age += 1
        return self.noise.flatten(0, 1)

    def _renew_noise(self, state: GameState, mask: Tensor) -> None:
        self.noise.copy_(torch.where(_of_arenas(mask), self._draw_noise(state), self.noise))
        self.noise_age.masked_fill_(mask, 0)

    def _draw_noise(self, state: GameState) -> Tensor:
        drawn = self.policy.head.draw_noise(state.arenas * state.seats, self.generator)
        assert isinstance(drawn, Tensor)
        return drawn.view(*state.shape, *drawn.shape[1:])

    def _check_spaces(self, state: GameState) -> None:
        space = self.policy.observation_space
        its, here = (space["obs"] if isinstance(space, Dict) else space).shape, (self.observation.size(state.seats),)
        if its != here:
            blue, orange = ((state.cars.team[0] == team).sum().item() for team in (0, 1))
            raise UserError(f"{self} cannot play Rocket League {blue}v{orange}: a car observes {here} numbers there, in its "
                            f"own task {its}. Train it with an observation that has room for as many cars (advanced_obs_plus: "
                            "team_size), or let it play in teams of its own size")
        if space_to_json(self.policy.action_space) != space_to_json(self.action.space):
            raise UserError(f"{self} was trained with other actions than its config.yaml has: "
                            f"{self.policy.action_space}, not {self.action.space}. Use the config.yaml of its training")


def frozen_copy(policy: ActorCritic) -> ActorCritic:
    """The same weights and statistics in tensors of their own, which nothing is learned by."""
    clip = None if policy.normalizer is None else policy.normalizer.clip
    with torch.random.fork_rng(devices=[]):
        copy = ActorCritic(policy.observation_space, policy.action_space, policy.config, clip)
    copy.load_state_dict(policy.state_dict())
    copy.precision = policy.precision
    return copy.to(next(policy.parameters()).device).eval().requires_grad_(False)


def _buffer(name: str) -> str:
    return f"memory {name}".replace(".", " ")


def _of_arenas(mask: Tensor) -> Tensor:
    """[E] as a mask over [E, C, x, y]."""
    return mask.view(-1, 1, 1, 1)
