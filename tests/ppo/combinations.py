"""Every combination of memory, kind of action, masks, observations and precision in a small learner that is measured."""
from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from tests.ppo.learners import run_config
from tests.roundings import gamma
from tests.toy_vec_envs import ScrambledEnv
from wavedash.assembly import make_policy
from wavedash.policy.evaluation import OutputGradients
from wavedash.ppo.learner import Learner
from wavedash.runs.store import CheckpointStore

BOUNDED = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32))
ACTIONS: dict[str, tuple[gymnasium.Space[Any], dict[str, Any]]] = {
    "discrete": (spaces.Discrete(5), {}),
    "multi-discrete": (spaces.MultiDiscrete([3, 2, 4]), {}),
    "gaussian": (BOUNDED, {}),
    "gaussian-state": (BOUNDED, {"std": "state"}),
    "gsde": (BOUNDED, {"std": "gsde", "gsde": {"sample_every": 3}, "initial_std": 0.3}),
    "tanh": (BOUNDED, {"distribution": "tanh"}),
    "beta": (BOUNDED, {"distribution": "beta"}),
}
MEMORIES: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "gru": {"kind": "gru", "size": 6, "sequence": 4},
    "lstm": {"kind": "lstm", "size": 6, "sequence": 4, "layers": 2},
}
SENSES = {  # a picture and a vector for both, the truth for the critic alone
    "actor_keys": ["camera", "joints"], "encoders": {"camera": {"channels": [4], "features": 6}, "joints": {"hidden": [5]}},
}
PRECISIONS = ("fp32", "bf16", "fp16")
ROWS, STEPS = 4, 8
CLOSE = 4 * gamma(100)
"""The bound on ratios and values in every precision: acting and learning round in the same places, so only the order of float32
sums differs, which add fewer than 100 numbers below 4 over all layers. One rounding to bf16 more or less would be a thousand
times as much (see `furthest`)."""


class Combination(NamedTuple):
    memory: str
    action: str
    masked: bool
    senses: bool
    precision: str

    def __str__(self) -> str:
        mask, obs = "masked" if self.masked else "free", "dict" if self.senses else "box"
        return f"{self.memory}-{self.action}-{mask}-{obs}-{self.precision}"


def combinations(precisions=PRECISIONS, memories=tuple(MEMORIES)) -> list[Combination]:
    """All combinations that exist: only discrete choices have masks."""
    kinds = [(action, masked) for action in ACTIONS for masked in (False, True) if not masked or action.endswith("discrete")]
    return [Combination(memory, *kind, senses, precision)
            for memory, kind, senses, precision in itertools.product(memories, kinds, (False, True), precisions)]


def learner_of(combo: Combination, started: bool = True, device: str = "cpu", policy: dict[str, Any] | None = None,
               ppo: dict[str, Any] | None = None, **run: Any) -> Learner:
    """Its weights are as after some training: the last layer of a fresh policy is so small that it hides mistakes."""
    space, options = ACTIONS[combo.action]
    env = ScrambledEnv(space, ROWS, combo.masked, combo.senses, device)
    options = {"hidden": [8], "memory": MEMORIES[combo.memory], **options, **(SENSES if combo.senses else {}), **(policy or {})}
    settings = {"rollout_steps": STEPS, "epochs": 2, "minibatch_size": 20, "learning_rate": 0.01,
                "normalize_obs": combo.senses}
    config = run_config({**settings, **(ppo or {})}, options, precision=combo.precision, seed=3, **run)
    made = make_policy(env, config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in made.parameters():
            if p.requires_grad:
                p.add_(0.4 * torch.randn(p.shape, generator=generator))
    learner = Learner(env, made, config)
    if started:
        learner.start()
    return learner


class Furthest(NamedTuple):
    """The largest distances between the newest rollout and what the policy says of it now (but see `furthest`)."""

    ratio: float
    value: float


def furthest(learner: Learner) -> Furthest:
    """Samples or sequences are drawn as the update draws them; inactive rows do not count.

    In low precision the steps of one sequence may be further off: a sum halfway between two bf16 numbers may be rounded up in
    one order of its terms and down in another. If every sum were rounded differently, all sequences would be off.
    """
    experience = learner.updater.experience_of(learner.buffer)
    experience.refresh()
    batch = experience.take(torch.arange(experience.size, device=learner.env.device))
    with torch.no_grad():
        new = learner.policy.evaluate(batch.obs, batch.action, batch.memory, batch.fresh)
    log_prob, value, _, _, weight = batch.flat
    counted = weight > 0
    ties = 0 if learner.policy.precision is None else learner.policy.sequence_length or 1
    errors = ((new.log_prob - log_prob).exp() - 1, new.value - value)
    return Furthest(*(float(x.abs()[counted].sort().values[-1 - ties]) for x in errors))


class Watched:
    """A learner whose updates are measured, each before it begins (with the weights that collected) and after it."""

    def __init__(self, learner: Learner):
        self.learner, self._update = learner, learner.updater.update
        self.before: list[Furthest] = []
        self.after: list[Furthest] = []
        self.ended = self.sat_out = False
        learner.updater.update = self._measured

    def _measured(self, *args: Any) -> Any:
        rollout = self.learner.rollout
        self.ended |= bool(rollout.done.any())
        self.sat_out |= not bool(rollout.active.all())
        self.before.append(furthest(self.learner))
        table = self._update(*args)
        self.after.append(furthest(self.learner))
        return table


@torch.no_grad()
def judged_and_gradient(learner: Learner, compiled: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities, entropies and values of the newest rollout, [3, B], and the gradient of a number made of all."""
    policy, batch = learner.policy, learner.updater.experience_of(learner.buffer).all
    evaluate_outputs = policy._evaluate_outputs
    policy._evaluate_outputs = evaluate_outputs if compiled else policy.evaluate_outputs
    try:
        learner.updater.optimizer.zero_grad()
        new = policy.evaluate(batch.obs, batch.action, batch.memory, batch.fresh)
        new.backward(OutputGradients(torch.cos(new.log_prob), new.entropy, new.value))
        return torch.stack(new[:3]), learner.updater.optimizer.gradient.clone()
    finally:
        policy._evaluate_outputs = evaluate_outputs


def saved_and_loaded(learner: Learner, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The learner's state, written to disk and read back by the store of real runs."""
    store = CheckpointStore(folder)
    store.save(learner.steps, *learner.state(), {})
    checkpoint = store.newest()
    assert checkpoint is not None
    return checkpoint.load()


def differences(a: Learner, b: Learner) -> set[str]:
    """Names of everything in which two learners differ by one bit."""
    (a_tensors, a_plain), (b_tensors, b_plain) = a.state(), b.state()
    flat = [{f"{group}/{name}": x for group, part in tensors.items() for name, x in part.items()}
            for tensors in (a_tensors, b_tensors)]
    assert flat[0].keys() == flat[1].keys()
    unequal = {name for name, x in flat[0].items() if not torch.equal(x, flat[1][name])}
    return unequal | (set() if json.dumps(a_plain) == json.dumps(b_plain) else {"plain"})
