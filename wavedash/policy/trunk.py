"""A trunk turns an observation into the features that heads read: encoders, memory, hidden layers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import gymnasium
from torch import Tensor, nn

from wavedash.config import PolicyConfig
from wavedash.policy import memory
from wavedash.policy.encoders import Encoders, FlatEncoder
from wavedash.policy.memory import Memory, State
from wavedash.policy.mlp import MLP

Trunks = Mapping[str, "Trunk"]


class Trunk(nn.Module):
    """The trunk of the actor, of the critic, or one shared by both."""

    def __init__(
        self,
        spaces: Mapping[str, gymnasium.spaces.Box],
        keys: Sequence[str] | None,
        hidden: Sequence[int],
        config: PolicyConfig,
    ):
        super().__init__()
        self.encoders = Encoders(spaces, keys, config.encoders, config.activation)
        inputs, recurrent = self.encoders.outputs, config.memory
        self.memory = None if recurrent.kind == "none" else Memory(recurrent.kind, inputs, recurrent.size, recurrent.layers)
        self.body = MLP(inputs if self.memory is None else self.memory.size, hidden, config.activation,
                        config.layer_norm)
        self.outputs = self.body.outputs

    @property
    def is_plain(self) -> bool:
        """Whether its encoders only flatten numbers, so that its gradients are written out in `explicit.py`."""
        return all(type(part) is FlatEncoder for part in self.encoders.parts.values()) and type(self.body) is MLP

    def initial_state(self, rows: int) -> State:
        return {} if self.memory is None else self.memory.initial(rows)


def step(trunks: Trunks, sensed: Mapping[str, Tensor], state: State) -> tuple[dict[str, Tensor], State]:
    """Returns features of one step [N, ...] of every trunk, and the state after it."""
    features = {name: trunk.encoders.forward(sensed) for name, trunk in trunks.items()}
    memories = memories_of(trunks)
    if memories:
        remembered, states = memory.step(list(memories.values()), list(features.values()), parts_of(state, memories))
        features = dict(zip(features, remembered, strict=True))
        state = {f"{name}.{part}": x for name, s in zip(memories, states, strict=True) for part, x in s.items()}
    return {name: trunk.body(features[name]) for name, trunk in trunks.items()}, state


def sequence(trunks: Trunks, sensed: Mapping[str, Tensor], state: State, fresh: Tensor | None) -> dict[str, Tensor]:
    """Returns features of whole sequences [L, B, ...]. Without memory any batch of steps will do, and `fresh` is not needed."""
    features = {name: trunk.encoders(sensed) for name, trunk in trunks.items()}
    memories = memories_of(trunks)
    if memories:
        assert fresh is not None
        remembered = memory.sequence(list(memories.values()), list(features.values()), parts_of(state, memories), fresh)
        features = dict(zip(features, remembered, strict=True))
    return {name: trunk.body(features[name]) for name, trunk in trunks.items()}


def memories_of(trunks: Trunks) -> dict[str, Memory]:
    """Returns the memory of every trunk. All trunks have one, or none has."""
    return {name: trunk.memory for name, trunk in trunks.items() if trunk.memory is not None}


def parts_of(state: State, memories: Mapping[str, Memory]) -> list[State]:
    """Splits the state `actor.h`, `critic.h`, ... into one of `h`, ... for each memory."""
    return [{part: state[f"{name}.{part}"] for part in memory.parts} for name, memory in memories.items()]
