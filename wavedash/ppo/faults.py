"""Faults are numbers of an environment that cannot be learned from: rewards or observations that are not finite, empty masks.

In every iteration the device computes one flag: may anything be wrong? It is read with the metrics. Only where it is set is the
rollout searched, on the host, for what is wrong and where.
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
    """Something that is wrong in step `t` of the rollout."""

    t: int
    message: str


def may_be_faulty(rollout: Rollout, env: VecEnv) -> Tensor:
    """Returns a flag on the device: something in this rollout may be wrong. Inactive rows may hold anything."""
    active, truncated = rollout.active, rollout.active & rollout.truncated
    # A sum is finite only if every number is. (It may also overflow: `explain` looks at each number.)
    total = (rollout.reward * active).sum() + rollout.final_value.masked_fill(~truncated, 0.0).sum()
    for x in (*_floats(rollout.obs).values(), *rollout.labels.values()):
        total = total + x.sum()
    faulty = ~total.isfinite()
    mask = action_mask(rollout.obs)
    if mask is not None:
        faulty = faulty | (active & ~allows_something(mask, env.action_space)).any()
    return faulty if env.fault is None else faulty | env.fault


def explain(rollout: Rollout, length: Tensor, env: VecEnv) -> str | None:
    """Returns a message about the first fault of a rollout, or None if the environment is not to blame.

    `length` [T, N] is the number of steps of each row's episode, this step included."""
    looks = (_observation, _label, _mask, _reward, _last_observation)
    found = [finding for finding in (look(rollout, length, env) for look in looks) if finding]
    first = min(found, key=lambda finding: finding.t, default=None)
    if first is not None and _diverged_at(rollout) <= first.t:
        return None  # the policy diverged before: what the environment made of its actions is not the cause
    own_message = env.explain_fault()
    if own_message is not None:
        return f"{own_message}. {ADVICE}"
    return None if first is None else first.message


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


def _label(rollout: Rollout, length: Tensor, env: VecEnv) -> Finding | None:
    """Finds a label that is not finite. What a teacher sees is not stored, but what it says is."""
    findings = []
    for name, x in rollout.labels.items():
        place = _first(~x.isfinite())
        if place:
            t, row = place[:2]
            findings.append(Finding(t, f"the label {name!r} of {env.name_row(row)} is {float(x[tuple(place)])} "
                                       f"{_before(length[t, row])}: something that only the teacher sees is not finite. "
                                       f"{ADVICE}"))
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
    """The last observation itself is not stored, but its value is."""
    place = _first(~rollout.final_value.isfinite() & rollout.active & rollout.truncated)
    if not place:
        return None
    t, row = place
    return Finding(t, f"the last observation (final_obs) of {env.name_row(row)} is not finite: its value is "
                      f"{float(rollout.final_value[t, row])}. The episode was cut after step {int(length[t, row])}. {ADVICE}")


def _diverged_at(rollout: Rollout) -> float:
    """Returns the first step in which the output of the policy is not finite though its observation is."""
    finite_obs = torch.ones_like(rollout.active)
    for x in _floats(rollout.obs).values():
        finite_obs &= x.isfinite().reshape(*finite_obs.shape, -1).all(-1)
    place = _first(finite_obs & rollout.active & ~(rollout.value.isfinite() & rollout.log_prob.isfinite()))
    return place[0] if place else torch.inf


def _before(length: Tensor) -> str:
    return f"before step {int(length)} of its episode"


def _floats(obs: Obs) -> dict[str, Tensor]:
    return {key: x for key, x in sensed(obs).items() if x.is_floating_point()}


def _first(wrong: Tensor) -> list[Any]:
    """Returns the index of the first true element of [T, ...] in the order of time; empty if there is none."""
    places = wrong.nonzero()
    return places[0].tolist() if len(places) else []
