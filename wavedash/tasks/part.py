"""Part: one small batched module of a task, such as a reward, a start or an ending.

A part sees all environments at once: tensors [E, ...] of E environments, [E, C, ...] where each of C agents has its own value.
Environments begin episodes at different times: a part that remembers something about an episode clears it in `begin`, for the
environments that are true in its mask. Python must not read the content of a tensor (no `if tensor`, no `.item()`), so that the
same task runs on a GPU without a host sync, and inside a CUDA graph.

A part is an `nn.Module`, which declares what lasts:

- what it remembers from step to step is a buffer, `self.register_buffer("done", ...)` in `bind`, changed in place. It is saved
  with a checkpoint and comes back on resume;
- tables and work memory are buffers with `persistent=False`, or plain attributes if they never change. They are not saved;
- settings always come from the configuration, also on resume. Those that may change during a run are named in `settings`; CUDA
  graphs read them from tensors, which `write_settings` fills.
"""
from __future__ import annotations

from abc import ABC
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.tasks.direct import DirectModule


class State(Protocol):
    """What the state of every environment has. The rest of it is known only to the parts of that environment."""

    @property
    def shape(self) -> tuple[int, int]:
        """E environments, C agents in each."""

    @property
    def device(self) -> torch.device: ...

    @property
    def clock(self) -> Tensor:
        """[E]: integer ticks, which increase within an episode."""

    @property
    def tick_rate(self) -> float:
        """Ticks per second."""


class Part(DirectModule, ABC):
    """The base of all parts."""

    settings: tuple[str, ...] = ()
    """Attributes that `set` may change during a run"""
    holds_parts: bool = False
    """Whether the parts inside of it stand side by side, so that on resume those that are new begin, and the others go on"""
    origin: str = ""
    """Its name and options, if it was made by name"""
    given: Mapping[str, Any] = MappingProxyType({})
    """Its options, if it was made by name"""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        part = super().__new__(cls)
        nn.Module.__init__(part)  # here, so that a part with an `__init__` of its own need not call it
        return part

    def __init__(self) -> None:
        """`__new__` does everything; a part need not call this."""

    def bind(self, state: Any) -> None:
        """Is called once before everything else, when sizes and device are known."""
        self.to(state.device)

    def begin(self, state: Any, mask: Tensor) -> None:
        """Is called when episodes begin in the environments of `mask` [E]; `state` is that of their first observation."""

    def set(self, **settings: Any) -> None:
        """Changes settings from the next step on, without a host sync: `ending.set(seconds=20)`. The part must be bound."""
        for name in settings:
            if name not in self.settings:
                has = f"these may change: {', '.join(self.settings)}" if self.settings else "it has none that may change"
                raise UserError(f"{type(self).__name__} has no setting {name!r} that may change during a run; {has}")
        before = {name: getattr(self, name) for name in settings}
        try:
            self._assign(settings)
            self.write_settings()
        except BaseException:
            self._assign(before)
            raise

    def write_settings(self) -> None:
        """Writes the settings into the tensors that CUDA graphs read. Raises UserError, and writes none, if one is invalid."""

    def _assign(self, settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)


P = TypeVar("P", bound=Part)
Faster = Callable[[Any, Any, Any], Mapping[str, Tensor]]
"""Another way to compute some parts of one kind: it is called as each of them is, and returns what they do by their names"""


class Parts(nn.Module, Generic[P]):
    """Parts by their names in the configuration. What they remember is saved under these names, not by position, so that a run
    can be resumed with other parts beside them."""

    def __init__(self, parts: Mapping[str, P] | Parts[P]) -> None:
        super().__init__()
        self._parts = {name: parts[name] for name in parts.keys()}  # noqa: SIM118 (a module is no iterable)
        for name, part in self._parts.items():
            # `add_module` would refuse names of methods ("type") and the dots of import paths.
            self._modules[name.replace(".", "/")] = part

    def __getitem__(self, name: str) -> P:
        return self._parts[name]

    def __len__(self) -> int:
        return len(self._parts)

    def keys(self) -> KeysView[str]:
        return self._parts.keys()

    def values(self) -> ValuesView[P]:
        return self._parts.values()

    def items(self) -> ItemsView[str, P]:
        return self._parts.items()
