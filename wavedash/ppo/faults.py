"""Numbers of an environment that cannot be learned from: a reward or observation that is not finite, a mask without an action.

Every iteration asks one question, on the device: is anything wrong? It is read with all the rest. Only where the answer is yes
is the rollout searched, on the host, for what it was and where.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from wavedash.envs.obs import Obs, action_mask, sensed
from wavedash.envs.vec_env import VecEnv
from wavedash.policy.masks import allows_something
from wavedash.ppo.rollout import Rollout

ADVICE = ("Values must be finite: look for a division by zero, the root or logarithm of a negative number, or a simulation "
          "that blew up. Nothing was learned from it: put it right, then resume or train anew")


class Finding(NamedTuple):
    """What is wrong, and in which step of the rollout."""

    t: int
    words: str


def suspicion(rollout: Rollout, env: VecEnv) -> Tensor:
    """A flag on the device: something in this rollout may be wrong. Rows that are not active may hold anything."""
    active, cut = rollout.active, rollout.active & rollout.truncated
    # A sum is finite only if every number is. (It overflows for huge numbers too: `explain` looks more closely.)
    total = (rollout.reward * active).sum() + rollout.final_value.masked_fill(~cut, 0.0).sum()
    for x in _floats(rollout.obs).values():
        total = total + x.sum()
    wrong = ~total.isfinite()
    mask = action_mask(rollout.obs)
    if mask is not None:
        wrong = wrong | (active & ~allows_something(mask, env.action_space)).any()
    return wrong if env.fault is None else wrong | env.fault


def explain(rollout: Rollout, length: Tensor, env: VecEnv) -> str | None:
    """Puts the first thing that is wrong with a rollout into words; None if it is not the environment's fault.

    `length` [T, N]: of each row's episode, with the step."""
    found = [finding for finding in (_observation(rollout, length, env), _mask(rollout, length, env),
                                     _reward(rollout, length, env), _last_observation(rollout, length, env)) if finding]
    first = min(found, key=lambda finding: finding.t, default=None)
    if first is not None and _diverged_at(rollout) <= first.t:
        return None  # the policy's own numbers went first: whatever it did there, the environment is not to blame
    own_words = env.explain_fault()
    if own_words is not None:
        return f"{own_words}. {ADVICE}"
    return None if first is None else first.words


def _observation(rollout: Rollout, length: Tensor, env: VecEnv) -> Finding | None:
    findings = []
    for key, x in _floats(rollout.obs).items():
        place = _first(~x.isfinite())
        if place:
            t, row, *index = place
            part = "observation" if isinstance(rollout.obs, Tensor) else f"observation {key!r}"
            findings.append(Finding(t, f"{part}{index} of {env.name_row(row)} is {float(x[tuple(place)])} "
                                       f"{_before(length[t, row])}. {ADVICE}"))
    return min(findings, key=lambda finding: finding.t, default=None)


def _mask(rollout: Rollout, length: Tensor, env: VecEnv) -> Finding | None:
    mask = action_mask(rollout.obs)
    place = _first(rollout.active & ~allows_something(mask, env.action_space)) if mask is not None else []
    if not place:
        return None
    t, row = place
    return Finding(t, f"the action mask of {env.name_row(row)} allows no action {_before(length[t, row])}: of every choice at "
                      "least one must be allowed. If nothing can be done there, end the episode, or allow an action that does "
                      "nothing")


def _reward(rollout: Rollout, length: Tensor, env: VecEnv) -> Finding | None:
    place = _first(~rollout.reward.isfinite() & rollout.active)
    if not place:
        return None
    t, row = place
    return Finding(t, f"the reward of {env.name_row(row)} is {float(rollout.reward[t, row])} in step {int(length[t, row])} of "
                      f"its episode. {ADVICE}")


def _last_observation(rollout: Rollout, length: Tensor, env: VecEnv) -> Finding | None:
    """It is not stored; that it was wrong is known by its value."""
    place = _first(~rollout.final_value.isfinite() & rollout.active & rollout.truncated)
    if not place:
        return None
    t, row = place
    return Finding(t, f"the last observation (final_obs) of {env.name_row(row)} is not finite: its value is "
                      f"{float(rollout.final_value[t, row])}. The episode was cut after step {int(length[t, row])}. {ADVICE}")


def _diverged_at(rollout: Rollout) -> float:
    """The first step in which the policy gave out something that is not finite though its observation was."""
    seen = torch.ones_like(rollout.active)
    for x in _floats(rollout.obs).values():
        seen &= x.isfinite().reshape(*seen.shape, -1).all(-1)
    place = _first(seen & rollout.active & ~(rollout.value.isfinite() & rollout.log_prob.isfinite()))
    return place[0] if place else torch.inf


def _before(length: Tensor) -> str:
    return f"before step {int(length)} of its episode"


def _floats(obs: Obs) -> dict[str, Tensor]:
    return {key: x for key, x in sensed(obs).items() if x.is_floating_point()}


def _first(wrong: Tensor) -> list[Any]:
    """The place of the first that is true, [T, ...] in the order of time; empty if none is."""
    places = wrong.nonzero()
    return places[0].tolist() if len(places) else []
