"""A task of an environment that is not Rocket League, made of the same parts: points that walk along a line."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.saved import Saved, SavedError
from wavedash.tasks.endings import Ending, Endings, TimeOut
from wavedash.tasks.lookup import Lookup
from wavedash.tasks.part import Part
from wavedash.tasks.rewards import Reward, Rewards
from wavedash.tasks.starts import Mixture, Start
from wavedash.tasks.task import Task

E, C = 4, 2


@dataclass
class Points:
    """E lines with C points each, ten ticks a second."""

    place: Tensor
    clock: Tensor
    tick_rate: float = 10.0

    @classmethod
    def at_zero(cls, lines: int = E) -> Points:
        return cls(torch.zeros(lines, C), torch.zeros(lines, dtype=torch.int32))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.clock), C

    @property
    def device(self) -> torch.device:
        return self.clock.device

    def clone(self) -> Points:
        return Points(self.place.clone(), self.clock.clone())

    def copy_(self, other: Points, mask: Tensor) -> None:
        self.place.copy_(torch.where(mask.unsqueeze(-1), other.place, self.place))


class Forward(Reward):
    """The reward is the distance moved in the step."""

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return state.place - previous.place


class Farthest(Reward):
    """The reward is 1 where a point is farther than ever in this episode."""

    sparse = True
    most: Tensor

    def bind(self, state: Any) -> None:
        self.register_buffer("most", state.place.clone())

    def begin(self, state: Any, mask: Tensor) -> None:
        self.most.copy_(torch.where(mask.unsqueeze(-1), state.place, self.most))

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        farther = state.place > self.most
        torch.maximum(self.most, state.place, out=self.most)
        return farther


class Zero(Start):
    def write(self, state: Any, generator: torch.Generator) -> None:
        state.place.zero_()


class Shifted(Start):
    def __init__(self, by: float = 5.0) -> None:
        self.by = by

    def write(self, state: Any, generator: torch.Generator) -> None:
        state.place.fill_(self.by)


class Off(Ending):
    """A point has left the line."""

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return (state.place > 100.0).any(-1)


LOOKUP = Lookup(__name__, {"reward": (Reward, __name__), "start": (Start, __name__), "ending": (Ending, __name__)})


def toy_task(rewards: dict[str, Any] | None = None, **endings: float) -> Task:
    return Task(
        observation=Part(), action=Part(),
        rewards=Rewards.named(rewards or {"forward": 2.0, "farthest": 10.0}, LOOKUP),
        start=Mixture.named({"zero": 1.0, "shifted": {"weight": 3.0, "by": 7.0}}, LOOKUP),
        endings={"off": Off(), **{name: TimeOut(seconds) for name, seconds in (endings or {"time_out": 2.0}).items()}},
    )


def bound(task: Task, state: Points) -> Task:
    task.bind(state, Points.at_zero(1000))
    task.begin(state, torch.ones(E, dtype=torch.bool))
    return task


def step(task: Task, state: Points, way: float) -> Tensor:
    previous = state.clone()
    state.place += way * torch.arange(1.0, E * C + 1).view(E, C)
    state.clock += 5
    return task.rewards(state, previous, None)


def test_rewards_are_weighted_and_summed() -> None:
    state = Points.at_zero()
    task = bound(toy_task(), state)
    way = torch.arange(1.0, E * C + 1).view(E, C)
    torch.testing.assert_close(step(task, state, 0.5), 2.0 * 0.5 * way + 10.0)
    torch.testing.assert_close(step(task, state, -0.5), -2.0 * 0.5 * way)
    task.rewards.set(mode="sparse")
    task.rewards.set_weights({"farthest": 3.0})
    assert step(task, state, 0.5).tolist() == [[0.0] * C] * E, "no farther than before"
    assert step(task, state, 0.5).tolist() == [[3.0] * C] * E
    with pytest.raises(UserError, match="modes are"):
        task.rewards.set(mode="loud")
    assert task.rewards.mode == "sparse"


def test_starts_are_mixed_by_their_weights() -> None:
    task, store = bound(toy_task(), Points.at_zero()), Points.at_zero(1000)
    task.start.write(store, torch.Generator().manual_seed(0))
    assert set(store.place.flatten().tolist()) == {0.0, 7.0}
    assert 0.7 < (store.place[:, 0] == 7.0).float().mean() < 0.8


def test_a_terminal_ending_and_one_that_cuts_off_are_told_apart() -> None:
    state = Points.at_zero()
    task = bound(toy_task(), state)
    state.place[1] = 101.0
    state.clock[2] = 20
    terminated, truncated = task.ended(state, state, None)
    assert terminated.tolist() == [False, True, False, False] and truncated.tolist() == [False, False, True, False]


class Patient(TimeOut):
    """Its time begins anew wherever the first agent is at 1."""

    def restarts(self, state: Points, previous: Points, events: None) -> Tensor:
        return state.place[:, 0] == 1.0


class Late(TimeOut):
    """It decides by itself."""

    def __call__(self, state: Points, previous: Points, events: None) -> Tensor:
        return state.clock - self.since >= 2 * self.limit


def test_time_limits_together_decide_and_remember_what_each_does_alone() -> None:
    def limits() -> dict[str, Ending]:
        return {"short": TimeOut(0.5), "off": Off(), "patient": Patient(1.0), "late": Late(0.4), "long": TimeOut(3.0)}

    state, alone = Points.at_zero(), limits()
    together = Endings(limits())
    together.bind(state)
    for ending in alone.values():
        ending.bind(state)
    everywhere = torch.ones(E, dtype=torch.bool)
    random = torch.Generator().manual_seed(0)
    seen = set()
    for step in range(60):
        if step == 30:
            for endings in (alone, together):
                endings["long"].set(seconds=0.7)
        state.clock += 2
        state.place.copy_(torch.randint(0, 3, (E, C), generator=random).float())
        expected = {name: ending(state, state, None) for name, ending in alone.items()}
        terminated, truncated = together(state, state, None)
        assert torch.equal(terminated, expected["off"])
        assert torch.equal(truncated, torch.stack([expected[name] for name in alone if name != "off"]).any(0))
        seen |= {name for name, happened in expected.items() if happened.any()}
        mask = everywhere if step == 0 else (torch.rand(E, generator=random) < 0.1)
        together.begin(state, mask)
        for ending in alone.values():
            ending.begin(state, mask)
        saved = together.state_dict()
        assert set(saved) == {"short.since", "patient.since", "late.since", "long.since"}
        assert all(torch.equal(x, alone[name.partition(".")[0]].since) for name, x in saved.items())
    assert {"short", "patient", "late", "long"} <= seen


def test_a_restored_task_goes_on_from_the_memory_of_its_parts() -> None:
    state = Points.at_zero()
    task = bound(toy_task(), state)
    step(task, state, 0.5)
    saved = Saved("env", {name: x.clone() for name, x in task.state_dict().items()})
    assert set(saved.tensors) == {"rewards.parts.farthest.most", "start.drawn", "endings.time_out.since"}
    other = toy_task({"farthest": 1.0}, rest=9.0, time_out=3.0)
    other.bind(state, Points.at_zero(1000))
    remembered = other.compare(saved)
    other.restore(remembered, saved, state)
    assert torch.equal(other.rewards.rewards[0].most, task.rewards.rewards[1].most)
    assert other.endings["rest"].since.tolist() == state.clock.tolist(), "it is new, and begins now"
    assert other.endings["time_out"].since.tolist() == [0] * E
    assert str(remembered) == "new, with a memory that begins now: endings.rest"


def test_memory_of_another_type_is_refused() -> None:
    state = Points.at_zero()
    task = bound(toy_task(), state)
    tensors = {name: x.clone() for name, x in task.state_dict().items()}
    with pytest.raises(SavedError, match=r"rewards\.parts\.farthest\.most is float64"):
        task.compare(Saved("env", {**tensors, "rewards.parts.farthest.most": tensors["rewards.parts.farthest.most"].double()}))
