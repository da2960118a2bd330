"""Traces of environments, to compare two of them."""
from __future__ import annotations

import numpy as np
import torch

from wavedash.envs.obs import named_tensors


def random_actions(env, steps, seed):
    env.action_space.seed(seed)
    return [torch.from_numpy(np.stack([env.action_space.sample() for _ in range(env.num_rows)])) for _ in range(steps)]


def record(env, actions):
    """Everything that the steps return, as flat copies."""
    trace = []
    for action in actions:
        step = env.step(action)
        flat = {**named_tensors(step.obs, "obs"), **named_tensors(step.final_obs, "final"), **step._asdict()}
        trace.append({k: v.clone() for k, v in flat.items() if isinstance(v, torch.Tensor)})
    return trace


def same(a, b):
    return all(x.keys() == y.keys() and all(torch.equal(x[k], y[k]) for k in x) for x, y in zip(a, b, strict=True))
