"""A trunk: encoders, memory and hidden layers, from what is sensed to the features that heads read."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import gymnasium
from torch import Tensor, nn

from wavedash.config import PolicyConfig
from wavedash.policy.encoders import Encoders, FlatEncoder
from wavedash.policy.memory import Memory, State
from wavedash.policy.mlp import MLP


class Trunk(nn.Module):
    """Of the actor, of the critic, or shared by both."""

    def __init__(
        self,
        spaces: Mapping[str, gymnasium.spaces.Box],
        keys: Sequence[str] | None,
        hidden: Sequence[int],
        config: PolicyConfig,
    ):
        super().__init__()
        self.encoders = Encoders(spaces, keys, config.encoders, config.activation)
        inputs, remembered = self.encoders.outputs, config.memory
        self.memory = None if remembered.kind == "none" else Memory(remembered.kind, inputs, remembered.size, remembered.layers)
        self.body = MLP(inputs if self.memory is None else self.memory.size, hidden, config.activation)
        self.outputs = self.body.outputs

    @property
    def is_plain(self) -> bool:
        """Nothing but hidden layers on numbers as they are."""
        flat = all(type(part) is FlatEncoder for part in self.encoders.parts.values())
        return flat and self.memory is None and type(self.body) is MLP

    def initial_state(self, rows: int) -> State:
        return {} if self.memory is None else self.memory.initial(rows)

    def step(self, sensed: Mapping[str, Tensor], state: State) -> tuple[Tensor, State]:
        """Features of one step [N, ...], and the state after it."""
        x = self.encoders.forward(sensed)
        if self.memory is not None:
            x, state = self.memory.step(x, state)
        return self.body(x), state

    def sequence(self, sensed: Mapping[str, Tensor], state: State, fresh: Tensor | None) -> Tensor:
        """Features of whole sequences [L, B, ...]; without memory of any batch of steps, and `fresh` is not needed."""
        x = self.encoders(sensed)
        if self.memory is not None:
            assert fresh is not None
            x = self.memory.sequence(x, state, fresh)
        return self.body(x)
