"""Parts: state that lasts is declared, settings change only by name, and nothing here depends on Rocket League."""
from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.tasks.declared import refuse_undeclared
from wavedash.tasks.endings import Ending, TimeOut
from wavedash.tasks.part import Part, Parts


@dataclass
class Walk:
    """The state of an environment that is not Rocket League: E robots with one agent each, 50 ticks a second."""

    clock: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.int64))
    tick_rate: float = 50.0

    @property
    def device(self) -> torch.device:
        return self.clock.device

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.clock), 1


class Table:
    """A helper that a part may hold."""

    def __init__(self) -> None:
        self.numbers = torch.zeros(4)


class Keeper(Part):
    """It holds a tensor in every way, and changes the one that `changes` names."""

    def __init__(self, changes: str) -> None:  # users need not call super().__init__()
        self.changes = changes

    def bind(self, state: Any) -> None:
        self.register_buffer("remembered", torch.zeros(3))
        self.register_buffer("work", torch.zeros(3), persistent=False)
        self.plain, self.rebound = torch.zeros(3), torch.zeros(3)
        self.listed, self.helper = [torch.zeros(3)], Table()
        self.view = self.work[:2]
        self.of_state = state.clock[:1]

    def call(self) -> None:
        if self.changes == "late":
            self.late = torch.zeros(3)
        elif self.changes == "rebound":
            self.rebound = self.rebound + 1
        elif self.changes == "another buffer":
            self.remembered = torch.ones(3)
        elif self.changes == "listed":
            self.listed[0] += 1
        elif self.changes == "helper":
            self.helper.numbers.fill_(1.0)
        else:
            getattr(self, self.changes).add_(1)


def called(changes: str) -> None:
    part, state = Keeper(changes), Walk()
    part.bind(state)
    with refuse_undeclared(part, "reward 'mine'", [state.clock]):
        part.call()


@pytest.mark.parametrize(("changes", "path"), [
    ("plain", "plain"), ("rebound", "rebound"), ("late", "late"), ("listed", "listed.0"), ("helper", "helper.numbers"),
])
def test_a_tensor_that_changes_and_is_no_buffer_is_refused_by_name(changes: str, path: str) -> None:
    with pytest.raises(EnvError, match=rf"reward 'mine' changes its tensor '{path}', .* Keeper: .*register_buffer\('{path}'"):
        called(changes)


def test_a_buffer_must_be_changed_in_place() -> None:
    with pytest.raises(EnvError, match=r"in the place of its buffer 'remembered'.*self.remembered.copy_"):
        called("another buffer")


@pytest.mark.parametrize("changes", ["remembered", "work", "view", "of_state"])
def test_declared_state_and_tensors_of_others_may_change(changes: str) -> None:
    called(changes)


def test_only_declared_state_is_saved() -> None:
    part = Keeper("plain")
    part.bind(Walk())
    assert list(part.state_dict()) == ["remembered"]


def test_a_setting_counts_from_the_next_step_on_and_is_not_saved() -> None:
    state, ending = Walk(), TimeOut(seconds=2.0)
    ending.bind(state)
    ending.begin(state, torch.ones(3, dtype=torch.bool))
    state.clock += 60
    assert not ending(state, state, None).any(), "60 of 100 ticks have passed"
    ending.set(seconds=1.2)
    assert ending(state, state, None).all()
    assert ending.seconds == 1.2 and list(ending.state_dict()) == ["since"]


class Cautious(TimeOut):
    """It refuses negative times."""

    def write_settings(self) -> None:
        if self.seconds < 0:
            raise UserError("no negative times")
        super().write_settings()


def test_a_setting_that_is_refused_changes_nothing() -> None:
    ending = Cautious(seconds=2.0)
    ending.bind(Walk())
    with pytest.raises(UserError, match="no negative"):
        ending.set(seconds=-1.0)
    with pytest.raises(UserError, match=r"no setting 'second' .*these may change: seconds"):
        ending.set(second=1.0)
    assert ending.seconds == 2.0 and ending.limit == 100


def test_parts_are_saved_under_any_name_that_a_configuration_can_have() -> None:
    endings: dict[str, Ending] = {name: TimeOut() for name in ("type", "keys", "my.module:Mine", "time_out")}
    parts = Parts(endings)
    for part in parts.values():
        part.bind(Walk())
    assert list(parts.state_dict()) == ["type.since", "keys.since", "my/module:Mine.since", "time_out.since"]
    assert parts["my.module:Mine"] is endings["my.module:Mine"] and dict(parts.items()) == endings


@pytest.mark.slow
def test_tasks_do_not_import_rocket_league() -> None:
    modules = ("declared", "endings", "lookup", "part", "rewards", "starts", "task")
    code = "import sys\n" + "".join(f"import wavedash.tasks.{name}\n" for name in modules)
    code += "print([name for name in sys.modules if name.startswith('wavedash.rocket')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
