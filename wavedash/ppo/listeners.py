"""`Listeners` calls the listeners of a learner in order, and saves and restores their state.

State is data only: numbers, strings, lists, dicts and tensors. A checkpoint holds it under the name of its listener. A listener
that is not in the checkpoint begins fresh; the state of one that is no longer there is dropped.
"""
from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.saved import SavedError

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

NAME = "listeners"
"""The name of the listeners' state in a checkpoint: of the file of tensors, and of the key in the plain values"""
States = dict[str, dict[str, Any]]
"""The state of each listener, by its name"""


class ListenerError(UserError):
    """A listener cannot be used as it is; the message names it."""


class Listeners(Sequence[Listener]):
    """A sequence of listeners. They are called in this order, and at the end of the run in reverse."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._members: list[Listener] = []
        self._waiting: States = {}
        self.set(listeners)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, index: Any) -> Any:
        return self._members[index]

    def add(self, *listeners: Listener) -> None:
        """Appends listeners."""
        self.set([*self._members, *listeners])

    def set(self, listeners: Iterable[Listener]) -> None:
        """Replaces all listeners. New ones get the state that was loaded for their name, if nobody has taken it yet."""
        members = list(listeners)
        names = [name_of(listener) for listener in members if _keeps_state(listener)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ListenerError(f"two listeners keep their state under the name {twice[0]!r}: set the attribute `saved_as` of "
                                "one of them to another name")
        new = [listener for listener in members if not any(listener is before for before in self._members)]
        self._members = members
        for listener in new:
            self._restore(listener)

    def start(self, learner: Learner) -> None:
        for name in self._waiting:
            log.info("the state of the listener %s is dropped: this run does not have it", name)
        self._waiting = {}
        for listener in self._members:
            listener.on_start(learner)

    def tell(self, learner: Learner, report: IterationReport) -> None:
        """Tells every listener about an iteration. Each sees the metrics that those before it have returned."""
        for listener in self._members:
            metrics = listener.on_iteration(learner, report)
            if metrics:
                if taken := sorted(metrics.keys() & report.metrics.keys()):
                    raise ListenerError(f"the listener {name_of(listener)} returns a metric {taken[0]!r}, which is there "
                                        "already: choose another name")
                report = report.with_metrics(metrics)

    def settle(self, learner: Learner) -> None:
        """Tells every listener that the iteration is over for good."""
        for listener in self._members:
            listener.between_iterations(learner)

    def stop(self, learner: Learner, error: BaseException | None) -> list[Exception]:
        """Tells every listener that the run ends, the last one first, even if some fail. Returns what they raised."""
        failures: list[Exception] = []
        for listener in reversed(self._members):
            try:
                listener.on_stop(learner, error)
            except Exception as failure:
                log.error("%s failed while the run was ending: %s", type(listener).__name__, failure)
                failures.append(failure)
        return failures

    # --- state -------------------------------------------------------------------------------------------------------

    def states(self) -> States:
        """Returns copies of the state of every listener that has any. ListenerError: a state holds something else than data."""
        states = {name_of(listener): _copied(name_of(listener), listener.state_dict())
                  for listener in self._members if _keeps_state(listener)}
        return {name: state for name, state in states.items() if state}

    def load(self, states: States) -> None:
        """Hands each listener its state. What nobody takes is kept for listeners that are set before the run starts."""
        self._waiting = dict(states)
        for listener in self._members:
            self._restore(listener)

    def _restore(self, listener: Listener) -> None:
        if not _keeps_state(listener) or (name := name_of(listener)) not in self._waiting:
            return
        try:
            listener.load_state_dict(self._waiting.pop(name))
        except Exception as error:  # a user's code may raise anything, and the state may be from an older version of it
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            raise ListenerError(f"the listener {name} does not take the state that was saved for it ({reason}): mend its "
                                "load_state_dict, or let it begin fresh under another name (attribute `saved_as`)") from error


def name_of(listener: Listener) -> str:
    """Returns the name under which the state of a listener is saved."""
    name = listener.saved_as or type(listener).__name__
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ListenerError(f"saved_as={name!r} of {type(listener).__name__} cannot name saved state: use letters, digits, "
                            "'_', '.' and '-'")
    return name


def split(states: States) -> tuple[dict[str, Tensor], States]:
    """Splits states into tensors by `listener/key` and the plain values of each listener."""
    tensors = {f"{name}/{key}": x for name, state in states.items() for key, x in state.items() if isinstance(x, Tensor)}
    plain = {name: {key: x for key, x in state.items() if not isinstance(x, Tensor)} for name, state in states.items()}
    return tensors, plain


def joined(tensors: Mapping[str, Tensor], plain: Mapping[str, Mapping[str, Any]]) -> States:
    """Reverses `split`. SavedError: a tensor belongs to no listener."""
    states = {name: dict(state) for name, state in plain.items()}
    for place, x in tensors.items():
        name, _, key = place.partition("/")
        if name not in states:
            raise SavedError(f"{NAME}.safetensors", f"{place} belongs to no listener in state.json")
        states[name][key] = x
    return states


def _keeps_state(listener: Listener) -> bool:
    return type(listener).state_dict is not Listener.state_dict


def _copied(name: str, state: Any) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise ListenerError(f"the listener {name}: state_dict() returned a {type(state).__name__}, not a dict")
    return {_key(name, key): value.detach().clone() if isinstance(value, Tensor) else _plain(f"{name}.{key}", value)
            for key, value in state.items()}


def _plain(where: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {_key(where, key): _plain(f"{where}.{key}", item) for key, item in value.items()}
    raise ListenerError(f"the state of a listener, {where}, is a {type(value).__name__}: state_dict() may hold tensors, and "
                        "numbers, strings, lists and dicts of these (tensors inside lists or dicts cannot be saved)")


def _key(where: str, key: Any) -> str:
    if not isinstance(key, str):
        raise ListenerError(f"the state of a listener, {where}, has the key {key!r}: keys must be strings")
    return key
