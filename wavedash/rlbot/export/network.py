"""The actor of a policy as settings and arrays of float32, by the names that the bot knows."""
from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from wavedash.envs.obs import module_name
from wavedash.errors import UserError
from wavedash.export.actor import Actor
from wavedash.policy.encoders import FlatEncoder, MlpEncoder
from wavedash.policy.heads import (
    BetaHead,
    ConfinedGaussianHead,
    ContinuousHead,
    DiscreteHead,
    GaussianHead,
    MultiDiscreteHead,
    TanhGaussianHead,
)
from wavedash.policy.mlp import MLP
from wavedash.rlbot.export.task import Arrays, Settings

HEADS = {DiscreteHead: ("discrete", "logits"), MultiDiscreteHead: ("multi_discrete", "logits"),
         GaussianHead: ("gaussian", "mean"), TanhGaussianHead: ("tanh", "mean"), ConfinedGaussianHead: ("confined", "outputs"),
         BetaHead: ("beta", "shape")}
"""The bot's name of each head, and the layer whose outputs decide the most likely action"""


def network_of(actor: Actor) -> tuple[Settings, Arrays]:
    """Settings and weights of the bot's policy. UserError: the network has a part for which a bot has no code."""
    trunk, head = actor.trunk, actor.head
    if trunk.encoders.keys != ["obs"]:
        raise UserError(f"the policy sees {', '.join(trunk.encoders.keys)}, but a bot has one observation of numbers: train it "
                        "with policy.actor_keys=null")
    encoder, body = trunk.encoders.parts[module_name("obs")], trunk.body
    if not isinstance(encoder, FlatEncoder | MlpEncoder):
        raise UserError(f"the policy begins with a {type(encoder).__name__}, for which a bot has no code: train it with the "
                        "encoders auto, flat or mlp")
    kind, layer = HEADS[type(head)]
    settings: Settings = {"head": kind, "activation": body.activation, "clip": None,
                          "memory": "none" if trunk.memory is None else trunk.memory.kind}
    arrays = {**_mlp("body", body), **_linear("head", getattr(head, layer))}
    if isinstance(encoder, MlpEncoder):
        arrays |= _mlp("encoder", encoder.layers)
    if trunk.memory is not None:
        arrays |= {f"memory.{i}.{name}": _array(x) for i, part in enumerate(trunk.memory.layers)
                   for name, x in part.named_parameters()}
    if actor.normalizer is not None:
        moments: Any = actor.normalizer.parts[module_name("obs")]
        settings["clip"] = actor.normalizer.clip
        arrays |= {"normalizer.shift": _array(moments.shift), "normalizer.scale": _array(moments.scale)}
    if isinstance(head, MultiDiscreteHead):
        settings["sizes"] = [int((row < head.num_masked).sum()) for row in head.layout]
    if isinstance(head, ContinuousHead):
        arrays |= {f"head.{name}": _array(getattr(head, name)) for name in ("centre", "half_range", "low", "high")}
    return settings, arrays


def _mlp(name: str, layers: MLP) -> Arrays:
    arrays: Arrays = {}
    for i, layer in enumerate(layers.layers):
        arrays |= _linear(f"{name}.{i}", layer)
    for i, norm in enumerate(layers.norms):
        arrays |= {f"{name}.{i}.gain": _array(norm.weight), f"{name}.{i}.shift": _array(norm.bias)}
    return arrays


def _linear(name: str, layer: nn.Module) -> Arrays:
    return {f"{name}.weight": _array(layer.weight), f"{name}.bias": _array(layer.bias)}


def _array(x: Any) -> Any:
    assert isinstance(x, Tensor)
    return np.ascontiguousarray(x.detach().float().numpy())
