"""StackedActors: several actors of one signature as one network, whose weights have a first dimension for the actor.

Matrix products become batched ones, and everything else broadcasts: K actors of R rows each cost about as much as one actor of
K * R rows. The modules are those of the policy (encoders, memory, hidden layers, head), in which every layer with weights is
replaced by its stacked counterpart; a module of another kind is refused. Critics are left out. (`torch.func.vmap` over the
policy itself took 1.3 to 2.2 times as long on a CPU, with 128 to 2 rows of each of 8 actors.)
"""
from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavedash.envs.obs import Obs, action_mask, sensed
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.encoders import Encoders, FlatEncoder, MlpEncoder
from wavedash.policy.heads import (
    BetaHead,
    ConfinedGaussianHead,
    DiscreteHead,
    GaussianHead,
    MultiDiscreteHead,
    TanhGaussianHead,
)
from wavedash.policy.memory import Memory, RecurrentLayer, State
from wavedash.policy.mlp import ACTIVATIONS, MLP
from wavedash.policy.normalizer import ObsNormalizer, RunningMoments
from wavedash.policy.recurrence import gru_cell, lstm_cell

CRITIC_OR_TRAINING = {"critic_keys", "critic_hidden", "shared", "orthogonal", "initial_std"}
"""Settings of a policy that do not change how its actor acts"""
HEADS = (DiscreteHead, MultiDiscreteHead, GaussianHead, TanhGaussianHead, ConfinedGaussianHead, BetaHead)
SEVERAL = (Encoders, MlpEncoder, nn.ModuleDict, nn.ModuleList)
"""Modules that only hold others"""


class StackedLinear(nn.Module):
    """Linear layers [K, N, in] -> [K, N, out]."""

    def __init__(self, layer: nn.Linear, slots: int) -> None:
        super().__init__()
        self.weight, self.bias = _stacked_matrix(layer.weight, slots), _stacked(layer.bias, slots, rows=True)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight.mT)


class StackedLayerNorm(nn.Module):
    """Layer normalisation, each actor with a gain and a shift of its own."""

    def __init__(self, layer: nn.LayerNorm, slots: int) -> None:
        super().__init__()
        self.shape, self.eps = layer.normalized_shape, layer.eps
        self.weight, self.bias = (_stacked(x, slots, rows=True) for x in (layer.weight, layer.bias))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.bias, F.layer_norm(x, self.shape, eps=self.eps), self.weight)


class StackedMLP(nn.Module):
    """Hidden layers, each followed by its normalisation, if there is one, and the activation."""

    def __init__(self, mlp: MLP, slots: int) -> None:
        super().__init__()
        self.outputs, self.activation = mlp.outputs, ACTIVATIONS[mlp.activation]
        self.layers = nn.ModuleList(StackedLinear(cast("nn.Linear", layer), slots) for layer in mlp.layers)
        self.norms = nn.ModuleList(StackedLayerNorm(cast("nn.LayerNorm", norm), slots) for norm in mlp.norms)

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x)
            x = self.activation(self.norms[index](x) if self.norms else x)
        return x


class StackedMemory(nn.Module):
    """The recurrent layers of all actors, which take one step."""

    def __init__(self, memory: Memory, slots: int) -> None:
        super().__init__()
        self.parts, self.size = memory.parts, memory.size
        self.cell: Callable[..., tuple[Tensor, ...]] = gru_cell if memory.kind == "gru" else lstm_cell
        self.layers = nn.ModuleList(StackedRecurrentLayer(cast("RecurrentLayer", layer), slots) for layer in memory.layers)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Features [K, N, size] and the state after it; states are [K, N, layers, size]."""
        after: list[tuple[Tensor, ...]] = []
        for index, layer in enumerate(cast("list[StackedRecurrentLayer]", list(self.layers))):
            before = [state[part][:, :, index] for part in self.parts]
            after.append(self.cell(layer.project(x), *before, layer.weight_rec, layer.bias_rec))
            x = after[-1][0]
        return x, {part: torch.stack(layers, 2) for part, layers in zip(self.parts, zip(*after, strict=True), strict=True)}


class StackedRecurrentLayer(nn.Module):
    """The weights of one recurrent layer of all actors."""

    def __init__(self, layer: RecurrentLayer, slots: int) -> None:
        super().__init__()
        self.weight_in, self.weight_rec = (_stacked_matrix(x, slots) for x in (layer.weight_in, layer.weight_rec))
        self.bias_in, self.bias_rec = _stacked(layer.bias_in, slots, rows=True), _stacked(layer.bias_rec, slots)

    def project(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias_in, x, self.weight_in.mT)


STACKED: dict[type[nn.Module], Callable[[Any, int], nn.Module]] = {
    nn.Linear: StackedLinear, MLP: StackedMLP, Memory: StackedMemory,
}


class StackedActors(nn.Module):
    """K actors in K slots. At first all of them are `policy`; `load` gives a slot other weights. Weights are changed in place,
    so that captured CUDA graphs see them; several shards of an environment may share one object of this class."""

    def __init__(self, policy: ActorCritic, slots: int) -> None:
        super().__init__()
        if slots < 1:
            raise UserError(f"stacked actors need at least one slot, not {slots}")
        self.slots, self.signature, self.config = slots, actor_signature(policy), policy.config
        self.observation_space, self.action_space, self.precision = (
            policy.observation_space, policy.action_space, policy.precision)
        trunk = policy.trunks["actor"]
        self.encoders = _stack(trunk.encoders, slots)
        self.memory = None if trunk.memory is None else StackedMemory(trunk.memory, slots)
        self.body = StackedMLP(trunk.body, slots)
        self.head: Any = _stack(policy.head, slots)
        self.normalizer = None if policy.normalizer is None else _stack_normalizer(policy.normalizer, slots)
        self._lower_precision()
        self.requires_grad_(False)
        for slot in range(slots):
            self.load(slot, policy)

    @property
    def gsde(self) -> Any:
        """The settings of its exploration by gSDE; None: it has none."""
        return getattr(self.head, "gsde", None)

    @property
    def noise_shape(self) -> tuple[int, int]:
        """The shape of a row's noise matrix of gSDE."""
        _, features, actions = self.head.log_std.shape
        return features, actions

    def load(self, slot: int, policy: ActorCritic | Mapping[str, Tensor]) -> None:
        """Copies weights and statistics of a policy, or of a `state_dict` of one, into a slot. There is no host sync if both
        are on one device."""
        if not 0 <= slot < self.slots:
            raise UserError(f"there is no slot {slot}: {self.slots} are counted from 0")
        if isinstance(policy, ActorCritic) and actor_signature(policy) != self.signature:
            raise UserError("a policy with another signature cannot be stacked with these: the two differ in their "
                            "configuration (policy, precision, observation or actions). Make another player for it")
        given = policy.state_dict() if isinstance(policy, ActorCritic) else policy
        own = dict(self._places(slot))
        wrong = [name for name, x in own.items() if name not in given or _shape(given[name]) != _shape(x)]
        if wrong:
            raise UserError(f"these weights are not those of a policy of this signature: {wrong[0]} is missing or has another "
                            "shape. Make another player for it")
        for name, x in own.items():
            x.copy_(given[name])

    def initial_memory(self, rows: int) -> State:
        """The memory of so many rows [N, layers, size] by part, where an episode begins."""
        if self.memory is None:
            return {}
        shape, like = (rows, len(self.memory.layers), self.memory.size), self._any_weight()
        return {f"actor.{part}": torch.zeros(shape, dtype=like.dtype, device=like.device) for part in self.memory.parts}

    def act(self, obs: Obs, memory: State, generator: torch.Generator | None = None, deterministic: bool = False,
            noise: Tensor | None = None) -> tuple[Tensor, State]:
        """Actions [K, R, ...] as the environment takes them, and the memory after them. Observations and memory are [K, R, ...]
        too. `noise` [K, R, F, A]: standard normal numbers, of which gSDE makes its noise matrices."""
        if self.normalizer is not None:
            obs = self.normalizer(obs)
        with self._autocast():
            features = self.encoders(sensed(obs))
            if self.memory is not None:
                before = {part: memory[f"actor.{part}"] for part in self.memory.parts}
                features, after = self.memory.step(features, before)
                memory = {f"actor.{part}": x for part, x in after.items()}
            features = self.body(features)
        if self.precision is not None:
            features = features.float()  # heads are computed in full precision, as in training
        distribution = self.head(features, action_mask(obs))
        if deterministic:
            action = distribution.mode()
        elif noise is None:
            action = distribution.sample(generator)
        else:
            matrices = self.head.noise_std().unsqueeze(1) * noise
            action = distribution.mode() + torch.einsum("krf,krfa->kra", features, matrices)
        return self.head.env_action(action), memory

    def _places(self, slot: int) -> Iterator[tuple[str, Tensor]]:
        """The tensors of one slot by their names in the `state_dict` of a policy."""
        for name, x in self.state_dict().items():
            part, _, rest = name.partition(".")
            prefix = {"normalizer": "normalizer.", "head": "actor.head."}.get(part, f"actor.trunk.{part}.")
            yield prefix + rest, x[slot]

    def _lower_precision(self) -> None:
        """Keeps the weights of matrix products in the precision of the products, so that no step has to convert them."""
        if self.precision is None:
            return
        for part in (self.encoders, self.memory, self.body):
            for module in part.modules() if part is not None else ():
                if isinstance(module, StackedLinear):
                    module.to(self.precision)
                elif isinstance(module, StackedRecurrentLayer):
                    for x in (module.weight_in, module.weight_rec, module.bias_in):
                        x.data = x.data.to(self.precision)

    def _any_weight(self) -> Tensor:
        return next(self.head.parameters())

    def _autocast(self) -> AbstractContextManager[None]:
        return nullcontext() if self.precision is None else torch.autocast(self._any_weight().device.type, self.precision)


def actor_signature(policy: ActorCritic) -> str:
    """Returns what actors must share to be stacked: spaces, networks, kind of normalisation and precision."""
    settings = policy.config.model_dump(mode="json", exclude=CRITIC_OR_TRAINING)
    settings["memory"].pop("sequence")
    clip = None if policy.normalizer is None else policy.normalizer.clip
    return json.dumps([space_to_json(policy.observation_space), space_to_json(policy.action_space), settings, clip,
                       str(policy.precision)], sort_keys=True)


def _stacked(x: Tensor, slots: int, rows: bool = False) -> nn.Parameter:
    """[K, ...], or [K, 1, ...] if all rows of an actor share it."""
    shape = (slots, 1, *x.shape) if rows else (slots, *x.shape)
    return nn.Parameter(torch.zeros(shape, dtype=x.dtype, device=x.device), requires_grad=False)


def _stacked_matrix(x: Tensor, slots: int) -> nn.Parameter:
    """[K, out, in], which lies in memory as [K, in, out]: with few rows of each actor, products on a CPU take a quarter less
    time."""
    rows, columns = x.shape
    return nn.Parameter(torch.zeros(slots, columns, rows, dtype=x.dtype, device=x.device).mT, requires_grad=False)


def _stack(module: nn.Module, slots: int) -> nn.Module:
    """A copy of the module in which everything that has weights is stacked."""
    if type(module) in STACKED:
        return STACKED[type(module)](module, slots)
    if type(module) not in (FlatEncoder, *SEVERAL, *HEADS):
        raise UserError(f"a policy with a {type(module).__name__} cannot be stacked with others: let it play as a player of "
                        "its own")
    copied = copy.copy(module)
    copied._modules = {name: None if child is None else _stack(child, slots) for name, child in module._modules.items()}
    copied._parameters = {}
    if isinstance(module, GaussianHead):
        copied.register_parameter("log_std", _stacked(module.log_std, slots, rows=module.gsde is None))
    copied._buffers = {name: None if x is None else x.clone() for name, x in module._buffers.items()}
    return copied


def _stack_normalizer(normalizer: ObsNormalizer, slots: int) -> ObsNormalizer:
    """A copy of it that knows shift and scale only, of all actors."""
    copied = copy.deepcopy(normalizer)
    for module in cast("list[RunningMoments]", list(copied.parts.values())):
        for name in ("count", "mean", "var", "sums"):
            delattr(module, name)
        for name in ("shift", "scale"):
            setattr(module, name, _stacked(getattr(module, name), slots, rows=True).data)
    return copied


def _shape(x: Tensor) -> tuple[int, ...]:
    """Its shape without dimensions of size 1, which are where rows are."""
    return tuple(size for size in x.shape if size != 1)
