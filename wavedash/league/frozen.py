"""Frozen policies as players: they observe, act and remember as in their own run, whatever the task of the arenas is.

`FrozenPolicies` are several of one signature, each in a slot of a line-up. Their actors alone are inferred, in one batched call
for the cars that they drive. A `FrozenPolicy` is one of them in a slot of its own.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium.spaces import Dict
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.envs.obs import ACTION_MASK, Obs, empty_obs, map_obs
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.loading import LoadedRun
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.stacked import StackedActors, actor_signature
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.parts import Action, Observation, Player
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.rocket.team_sizes import team_size_of


class FrozenPolicies(Player):
    """Several frozen policies of one signature, each in a slot of a line-up. They have the observation and the action parser of
    the task that they were trained in. They are inferred for the cars of their own slots alone, and have no answer for all
    other cars. Their weights are no part of the arenas' state that a checkpoint holds: who makes the player knows where they
    come from."""

    rows: Tensor
    """[K, R]: the cars of each slot, as arena * C + seat"""
    noise: Tensor
    """[E, C, F, A]: standard normal numbers, of which policies that sample by gSDE make their noise matrices"""
    noise_age: Tensor
    """[E]: decisions since they were drawn"""

    def __init__(self, actors: StackedActors, task: RocketConfig, name: str, deterministic: bool = False,
                 seed: int = 0) -> None:
        """`actors` may be shared with the players of other shards. `name`: for messages; `deterministic`: takes the most likely
        action instead of sampling as in training; `seed`: of the samples."""
        self.name, self.deterministic, self.seed = name, deterministic, seed
        self._actors = (actors,)  # in a tuple, so that their weights are not among those of the part
        self.slots = actors.slots
        self._remembered: dict[str, str] = {}  # the buffer of each part of the policies' memory
        self._view: Obs | None = None  # what the cars of all slots see, [K, R, ...], if somebody else observes it
        # Rewards, starts and endings are not needed to play, and may be code that is not installed here.
        made = Task.configured(RocketConfig(observation=task.observation, action=task.action))
        self.observation, self.action = made.observation, made.action
        self.ticks, self.delay = self.action.ticks, self.action.delay
        self.view = self.observation, self.action

    @staticmethod
    def of(policies: Sequence[ActorCritic], task: RocketConfig, name: str = "frozen policies", deterministic: bool = False,
           seed: int = 0) -> FrozenPolicies:
        """A player of as many slots as there are policies."""
        actors = StackedActors(policies[0], len(policies))
        for slot, policy in enumerate(policies):
            actors.load(slot, policy)
        return FrozenPolicies(actors, task, name, deterministic, seed)

    def __str__(self) -> str:
        return self.name

    @property
    def actors(self) -> StackedActors:
        return self._actors[0]

    @property
    def explores(self) -> Any:
        """The settings of its gSDE; None: it does not sample by gSDE."""
        return None if self.deterministic else self.actors.gsde

    def bind(self, state: GameState) -> None:
        try:
            for part in (self.observation, self.action):
                part.bind(state)
        except UserError as error:  # an observation without room for so many cars
            raise UserError(f"{self} cannot play Rocket League {team_size_of(state)}, its observation has no room for so many "
                            f"cars: let it play in teams of its own size ({error})") from error
        self.actors.to(state.device)
        self._check_spaces(state)
        self.generator = torch.Generator(state.device).manual_seed(self.seed)
        cars = state.arenas * state.seats
        self.rows = torch.arange(cars, device=state.device).unsqueeze(0)  # all cars, until a line-up says which
        for name, x in self.actors.initial_memory(cars).items():
            self.register_buffer(_buffer(name), x.view(*state.shape, *x.shape[1:]))
            self._remembered[name] = _buffer(name)
        if self.explores is not None:
            self.register_buffer("noise", self._drawn_noise(state))
            self.register_buffer("noise_age", torch.zeros(state.arenas, dtype=torch.int64, device=state.device))

    def take_slots(self, rows: Tensor) -> None:
        self.rows = rows
        if self._view is not None:
            self._view = self._empty_view()

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.next_game(state, mask)
        for x in self._memory().values():
            x.masked_fill_(_of_arenas(mask), 0.0)

    def next_game(self, state: GameState, mask: Tensor) -> None:
        for part in (self.observation, self.action):
            part.begin(state, mask)
        if self.explores is not None:
            self._renew_noise(state, mask)

    def generators(self) -> list[torch.Generator]:
        return [] if self.deterministic else [self.generator]

    def exchange(self, slot: int, policy: ActorCritic | Mapping[str, Tensor]) -> None:
        self.actors.load(slot, policy)
        for x in self._memory().values():
            x.flatten(0, 1).index_fill_(0, self.rows[slot], 0.0)

    @torch.no_grad()
    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        rows = self.rows.flatten()
        memory = {name: x.flatten(0, 1) for name, x in self._memory().items()}
        before = {name: self._of_slots(x) for name, x in memory.items()}
        obs = map_obs(self._of_slots, self.observe(state, chosen)) if self._view is None else self._view
        noise = None if self.explores is None else self._of_slots(self._explore(state))
        action, after = self.actors.act(obs, before, self.generator, self.deterministic, noise)
        for name, x in after.items():
            memory[name].index_copy_(0, rows, x.flatten(0, 1))
        action = action.flatten(0, 1)
        everywhere = action.new_zeros(state.arenas * state.seats, *action.shape[1:]).index_copy_(0, rows, action)
        return self.action.parse(everywhere.view(*state.shape, *action.shape[1:]), state)

    def shares_view(self, observation: Observation, action: Action) -> bool:
        own, theirs = ((a.origin, b.origin) for a, b in ((self.observation, self.action), (observation, action)))
        if not all(own) or own != theirs:
            return False
        self._view = self._empty_view()
        return True

    def see(self, seen: Obs) -> None:
        assert self._view is not None
        map_obs(lambda x, out: torch.index_select(x, 0, self.rows.flatten(), out=out.flatten(0, 1)), seen, self._view)

    def observe(self, state: GameState, chosen: Tensor) -> Obs:
        seen, mask = self.observation.build(state, chosen).flatten(0, 1), self.action.mask(state)
        return seen if mask is None else {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}

    def _empty_view(self) -> Obs:
        return empty_obs(self.actors.observation_space, *self.rows.shape, device=self.rows.device)

    def _of_slots(self, x: Tensor) -> Tensor:
        """The rows [E * C, ...] of the slots, [K, R, ...]."""
        return x.index_select(0, self.rows.flatten()).view(*self.rows.shape, *x.shape[1:])

    def _memory(self) -> dict[str, Tensor]:
        """[E, C, layers, size] by name. They stay the same tensors, as a CUDA graph and a checkpoint need it."""
        return {name: self.get_buffer(buffer) for name, buffer in self._remembered.items()}

    def _explore(self, state: GameState) -> Tensor:
        """The noise of this decision, by row."""
        every = self.explores.sample_every
        if every is not None:
            self._renew_noise(state, self.noise_age >= every)
        self.noise_age += 1
        return self.noise.flatten(0, 1)

    def _renew_noise(self, state: GameState, mask: Tensor) -> None:
        self.noise.copy_(torch.where(_of_arenas(mask), self._drawn_noise(state), self.noise))
        self.noise_age.masked_fill_(mask, 0)

    def _drawn_noise(self, state: GameState) -> Tensor:
        return torch.empty(*state.shape, *self.actors.noise_shape, device=state.device).normal_(generator=self.generator)

    def _check_spaces(self, state: GameState) -> None:
        space, actions = self.actors.observation_space, self.actors.action_space
        its, here = (space["obs"] if isinstance(space, Dict) else space).shape, (self.observation.size(state.seats),)
        if its != here:
            raise UserError(f"{self} cannot play Rocket League {team_size_of(state)}: a car observes {here} numbers there, in "
                            f"its own task {its}. Train it with an observation that has room for as many cars "
                            "(advanced_obs_plus: team_size), or let it play in teams of its own size")
        if space_to_json(actions) != space_to_json(self.action.space):
            raise UserError(f"{self} was trained with other actions than its config.yaml has: "
                            f"{actions}, not {self.action.space}. Use the config.yaml of its training")


class FrozenPolicy(FrozenPolicies):
    """One frozen policy, in one slot. Without a line-up that says which cars are its own, it answers for all of them."""

    def __init__(self, policy: ActorCritic, task: RocketConfig, name: str, deterministic: bool = True, seed: int = 0) -> None:
        """The weights of `policy` are copied."""
        super().__init__(StackedActors(policy, 1), task, name, deterministic, seed)

    @classmethod
    def of_run(cls, run: LoadedRun, deterministic: bool = True, seed: int = 0) -> FrozenPolicy:
        return cls(run.policy.policy, rocket_task(run.config.env, run.path), f"the policy of {run.path}", deterministic, seed)

    def play_as(self, policy: ActorCritic | Mapping[str, Tensor]) -> None:
        """Takes over the weights of another policy of the same signature, or of a `state_dict` of one, from the next decision
        on, also in the middle of episodes. They are copied in place, so captured CUDA graphs see them; the memory of the
        network is cleared. There is no host sync if both are on one device."""
        self.exchange(0, policy)


def signature(policy: ActorCritic, task: RocketConfig) -> str:
    """Describes what policies must share to play as one `FrozenPolicies`: networks, observation, action parser, precision."""
    return json.dumps([actor_signature(policy), task.observation, task.action], sort_keys=True)


def _buffer(name: str) -> str:
    return f"memory {name}".replace(".", " ")


def _of_arenas(mask: Tensor) -> Tensor:
    """[E] as a mask over [E, C, x, y]."""
    return mask.view(-1, 1, 1, 1)
