"""How much memory a run takes, term by term.

Each term follows from the configuration and from the sizes of observations and networks; tests compare them with what is really
allocated. `programs` alone is a constant: what CUDA, its libraries, kernels and graphs take before there is any data.
"""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from wavedash.config import RunConfig
from wavedash.envs.kinds import kind_of
from wavedash.memory.hardware import GIB
from wavedash.memory.shapes import Shapes
from wavedash.ppo.split import Split

GPU_PROGRAMS, CPU_PROGRAMS = int(1.25 * GIB), int(0.5 * GIB)
"""The context of CUDA, workspaces of its libraries, kernels and their stacks, graphs; on a CPU, Python with its packages"""
NUMBERS, FLAGS = 6 * 4, 3
"""A step of a row in a rollout, besides observation and action: log-probability, value, reward, final value, advantage and
return; terminated, truncated and active"""
LEARNING = 5 * 4 + 1
"""A step of a row in `Experience`: the columns of `Stored`, and whether an episode begins"""
COUNTED = 4 + 1
"""A step of a row in `Collector`, where the environment tells: whether its episode was a success, and its lane"""
WORK = 64 + 32
"""Work memory for a step of a row: following episodes and estimating advantages, and then shuffling and normalising"""
COPIES = 4 + 3
"""Weights, gradient and two moments; and the copies of weights and moments from before the update"""
VIEWS = 4
"""Observations of a row while it steps: of the current step, the final one, the next one, and a normalised one"""
MUON = 3
"""Muon's own copies of the weights: as they were, mean gradients, orthogonal matrices"""


def memory_of(config: RunConfig, shapes: Shapes, device: torch.device) -> dict[str, int]:
    """Bytes by what they are for. All options of the configuration are numbers here, none is `auto`."""
    ppo, kind = config.ppo, kind_of(config.env)
    rows = config.env.count * shapes.rows
    steps = rows * ppo.rollout_steps
    stored = steps * ppo.buffer_rollouts
    minibatch = min(ppo.minibatch_size, stored)
    low = config.precision != "fp32"
    sample = _observed(config, shapes) + shapes.action
    sequence = shapes.memory / config.policy.memory.sequence  # of a step
    graphs = _graphs(config, minibatch, stored, device)
    # The gradient of an activation is as large as the activation, and two layers are at work at the same time. Probabilities,
    # their logarithms and the gradients of both are as large as the outputs.
    backward = 2 * shapes.widest + 4 * shapes.outputs
    terms: dict[str, float] = {
        **kind.memory(config.env, device),
        "rollouts": stored * (sample + NUMBERS + FLAGS + sequence),
        "learning": stored * (LEARNING + COUNTED) + steps * WORK,
        "weights": shapes.weights * (COPIES + (MUON if ppo.optimizer == "muon" else 0) + (0.5 if low else 0)),
        "minibatch": graphs * minibatch * (sample + LEARNING + 8 + sequence),  # 8: its number
        "activations": graphs * Split(ppo).at_once(minibatch) * (shapes.activations + backward),
        "inference": rows * _inference(shapes),
        **_guides(config, shapes, rows),
        **_demonstrations(config),
        **_opponents(config, shapes, rows, low),
        **_rating(config, shapes, device),
        "programs": GPU_PROGRAMS if device.type == "cuda" else CPU_PROGRAMS,
    }
    return {name: round(size) for name, size in terms.items() if size}


def _graphs(config: RunConfig, minibatch: int, stored: int, device: torch.device) -> int:
    """How often the memory of a minibatch is taken: each CUDA graph has its own, and minibatches of two sizes have two."""
    chosen = max(1, round(stored * config.ppo.keep_samples))
    uneven = chosen % -(-chosen // minibatch) != 0
    return 2 if uneven and config.graphs and device.type == "cuda" else 1


def _inference(shapes: Shapes) -> int:
    """A row: its observations, its memory before and after, and the input and output of a layer of each network."""
    return VIEWS * shapes.observation + 2 * shapes.memory + 2 * shapes.networks * shapes.widest


def _observed(config: RunConfig, shapes: Shapes) -> int:
    """Returns what is stored of an observation, with what is said of it: all of it, or what a student needs and its teacher
    says."""
    if config.imitate is not None:
        return shapes.by_actor + shapes.action
    if config.prior is not None:
        return shapes.observation + 2 * shapes.label  # of a continuous action two numbers
    if config.distill is None:
        return shapes.observation
    return (shapes.by_both if config.distill.critic else shapes.by_actor) + shapes.label


def _guides(config: RunConfig, shapes: Shapes, rows: int) -> Mapping[str, float]:
    """The teacher or prior, which is not read for an estimate: taken to be as large as the policy."""
    name = "teacher" if config.distill is not None else "prior" if config.prior is not None else None
    return {} if name is None else {name: shapes.actor_weights + rows * _inference(shapes)}


def _demonstrations(config: RunConfig) -> Mapping[str, float]:
    """The file of demonstrations, all of which is on the device."""
    if config.imitate is None:
        return {}
    path = Path(config.imitate.data)
    return {"demonstrations": path.stat().st_size if path.is_file() else 0}


def _opponents(config: RunConfig, shapes: Shapes, rows: int, low: bool) -> Mapping[str, float]:
    """The stacked weights of all slots, and inference for half of the cars in the arenas that are set aside for them."""
    if config.opponents is None:
        return {}
    share = config.opponents.share if config.opponents.most is None else config.opponents.most
    weights = config.opponents.slots * shapes.actor_weights * (0.5 if low else 1)
    return {"opponents": weights + share / 2 * rows * _inference(shapes)}


def _rating(config: RunConfig, shapes: Shapes, device: torch.device) -> Mapping[str, float]:
    """The arenas of all games of a rating at once, with the players in them."""
    if config.rating is None:
        return {}
    players = len(config.rating.panel) + (2 if config.rating.snapshots and config.opponents is not None else 0)
    arenas = config.env.model_copy(update={"count": players * config.rating.games, "workers": 0})
    own = sum(kind_of(arenas).memory(arenas, device).values())
    return {"rating": own + (1 + players) * shapes.actor_weights + arenas.count * shapes.rows * _inference(shapes)}
