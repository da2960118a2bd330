"""The teacher: a frozen policy that says at every step of a rollout what it would do there.

It sees the environment's observations as the environment gives them, standardised by statistics of its own, and remembers on
its own: rows carry its memory from step to step, and it is zeroed where an episode ends. Only its actor is computed.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import ACTION_MASK, Obs, action_mask, map_obs, sensed, sensed_spaces
from wavedash.envs.row_spec import choice_sizes
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.distributions import Categorical, Distribution, MultiCategorical
from wavedash.policy.memory import State
from wavedash.ppo.loss import Labeller

LABEL = "teacher"


class PolicyLabeller(Labeller):
    """Labels each step with something of what a frozen policy would do there."""

    def __init__(self, policy: ActorCritic) -> None:
        self.policy = policy.eval().requires_grad_(False)
        self.keys = policy.trunks["actor"].encoders.keys

    def initial_memory(self, rows: int) -> State:
        state = self.policy.trunks["actor"].initial_state(rows)
        return {f"actor.{part}": x for part, x in state.items()}

    def distribution(self, obs: Obs, memory: State) -> tuple[Distribution, State]:
        """Returns its action distribution for observations as the environment gave them, and its memory after them."""
        # An infinite number becomes NaN, or clipping and squashing would hide it from `ppo/faults.py`.
        everything = sensed(obs)
        seen: Obs = self.policy.normalize(map_obs(_infinite_as_nan, {key: everything[key] for key in self.keys}))
        assert isinstance(seen, dict)
        if (mask := action_mask(obs)) is not None:  # what is forbidden here cannot be asked of the student
            seen = {**seen, ACTION_MASK: mask}
        return self.policy.step_actor(seen, memory)


class Teacher(PolicyLabeller):
    """Labels each step with the likeliest action of a policy, in units where the action range is [-1, 1], or with its
    probabilities of discrete actions."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__(policy)
        self.shapes = {LABEL: label_shape(policy.action_space)}

    def label(self, obs: Obs, memory: State) -> tuple[Mapping[str, Tensor], State]:
        distribution, after = self.distribution(obs, memory)
        return {LABEL: label_of(self.policy.head, distribution)}, after


def label_shape(space: gymnasium.Space[Any]) -> tuple[int, ...]:
    """Returns the shape of what `label_of` returns of one row."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return (int(space.n),)
    if sizes := choice_sizes(space):
        return len(sizes), max(sizes)
    return (math.prod(space.shape or ()),)


def label_of(head: Any, distribution: Distribution) -> Tensor:
    """Returns probabilities of discrete actions, [N, n] or [N, K, most] of K choices; else the likeliest action [N, A] as the
    environment would receive it, in units where its range is [-1, 1]."""
    if isinstance(distribution, Categorical):
        return distribution.probs
    if isinstance(distribution, MultiCategorical):
        return distribution.choices.probs
    return torch.clamp(likeliest(head, distribution), *head.unit_bounds)


def likeliest(head: Any, distribution: Distribution) -> Tensor:
    """Returns the likeliest continuous action in units where the range is [-1, 1]: squashed, but not clipped, because a clipped
    one has no gradient."""
    unit: Tensor = head.unit(distribution.mode())
    return unit


def check_fits(policy: ActorCritic, spaces: Spaces, asked: str) -> None:
    """Raises UserError unless a teacher can label what an environment with these spaces gives."""
    name = f"distill.teacher={asked}"
    if space_to_json(policy.action_space) != space_to_json(spaces.action_space):
        raise UserError(f"{name} has other actions than this environment, {policy.action_space} and not {spaces.action_space}: "
                        "a student learns to do what its teacher does. Name a teacher that was trained with these actions")
    its, here = sensed_spaces(policy.observation_space), sensed_spaces(spaces.observation_space)
    keys = policy.trunks["actor"].encoders.keys
    masked = isinstance(policy.observation_space, gymnasium.spaces.Dict) and ACTION_MASK in policy.observation_space.spaces
    given = isinstance(spaces.observation_space, gymnasium.spaces.Dict) and ACTION_MASK in spaces.observation_space.spaces
    missing = [f"{key} {_described(its[key])}" for key in keys if key not in here]
    missing += [ACTION_MASK] if masked and not given else []
    if missing:
        raise UserError(f"{name} sees {', '.join(missing)}, which the observation of this environment does not have; it has "
                        f"{', '.join(here)}. Let the environment give a dictionary with the keys of teacher and student (an "
                        "observation that is no dictionary has the one key obs), and set policy.actor_keys to the student's")
    for key in keys:
        if (its[key].shape, its[key].dtype) != (here[key].shape, here[key].dtype):
            raise UserError(f"{name} sees {key} as {_described(its[key])}, but in this environment it is "
                            f"{_described(here[key])}: give it as the teacher was trained with it, under another key than the "
                            "student's if both differ")


def _described(space: gymnasium.spaces.Box) -> str:
    return f"{list(space.shape)} of {space.dtype}"


def _infinite_as_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(torch.nan, torch.nan, torch.nan) if x.is_floating_point() else x
