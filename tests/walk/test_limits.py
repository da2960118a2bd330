"""Options and parts of one's own that cannot be right are refused with the name of the part, when a task is made or checked."""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

from tests.walk.robots import make_env
from wavedash.errors import UserError
from wavedash.walk.names import PARTS
from wavedash.walk.parts import Action, Command, Ending, Events, Observation, Randomization
from wavedash.walk.state import RobotState


class OneForAll(Observation):
    """Numbers that torch would spread over all robots."""

    def space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def build(self, state: RobotState) -> Tensor:
        return state.gravity[:1]


class SixLegs(Action):
    """Actions of another number than the state has."""

    space = gymnasium.spaces.Box(-1.0, 1.0, (6,), np.float32)

    def parse(self, action: Tensor, state: RobotState) -> Tensor:
        return action.repeat(1, 2)


class AllAlike(Action):
    space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float32)

    def parse(self, action: Tensor, state: RobotState) -> Tensor:
        return action[:1]


class March(Command):
    def draw(self, state: RobotState, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.ones(1), torch.zeros(1)


class Wind(Randomization):
    def push(self, state: RobotState, breadth: Tensor, generator: torch.Generator) -> Tensor:
        return torch.tensor([0.1, 0.0, 0.0])


class OneEnds(Ending):
    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return (state.yaw > 0)[:1]


class HowFar(Ending):
    def __call__(self, state: RobotState, previous: RobotState, events: Events) -> Tensor:
        return state.walked


@pytest.mark.parametrize(("kind", "part", "options"), [
    ("observation", "proprioception", {"noise": -1.0}), ("observation", "scandots", {"drift": float("nan")}),
    ("observation", "foot_scan", {"points": 1}), ("observation", "foot_scan", {"points": 0}),
    ("observation", "foot_scan", {"points": 2.5}), ("observation", "foot_scan", {"reach": -0.1}),
    ("observation", "depth", {"pitch": float("nan")}), ("action", "joint_targets", {"scale": float("inf")}),
    ("ending", "fallen", {"tilt": 500.0}), ("ending", "fallen", {"tilt": float("nan")}),
    ("ending", "off_tile", {"margin": -1.0}),
    ("start", "stand", {"joints": float("nan")}), ("start", "stand", {"turn": -10.0}),
    ("reward", "track_velocity", {"width": 0.0}), ("reward", "track_turning", {"width": -1.0}),
])
def test_numbers_that_mean_nothing_are_refused(kind: str, part: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{kind} {part!r} cannot be made with"):
        PARTS.make(kind, part, options)


def test_a_margin_in_which_robots_begin_is_refused_where_the_ground_has_an_edge() -> None:
    for layout, margin, edge in (("tile", 3.9, 4.0), ("track", 0.9, 1.0)):
        walk: dict[str, Any] = {"terrain": {"rough": 1}, "layout": layout, "resolution": 0.1, "levels": 1}
        make_env(1, **walk, endings={"off_tile": {"margin": margin}}).close()
        with pytest.raises(UserError, match=r"'off_tile' with a margin of .* m ends every episode at once"):
            make_env(1, **walk, endings={"off_tile": {"margin": edge}})
    make_env(1, endings={"off_tile": {"margin": 9.0}}).close()


@pytest.mark.parametrize(("kind", "part", "says"), [
    ("observation", "OneForAll", r"observation 'one_for_all' built has the shape \[1, 3\], and it must be \[4, 3\]"),
    ("commands", "March", r"command '.*:March' drew has the shape \[1\], and it must be \[4\]"),
    ("randomize", "Wind", r"push of randomization '.*:Wind' has the shape \[3\], and it must be \[4, 3\]"),
    ("action", "AllAlike", r"env.walk.action parsed has the shape \[1, 12\], and it must be \[4, 12\]"),
])
def test_what_parts_of_ones_own_compute_is_for_each_robot(kind: str, part: str, says: str) -> None:
    """Else one robot's numbers would be those of all."""
    env = make_env(4, **{kind: {f"{__name__}:{part}": {}}})

    def begin() -> None:
        env.reset(0)
        env.step(torch.zeros(4, 12))

    with pytest.raises(UserError, match=says):
        begin()
    env.close()


def test_an_action_of_ones_own_has_a_number_for_each_joint() -> None:
    with pytest.raises(UserError, match=r"env.walk.action needs a space of 12 numbers, .* not one of shape \[6\]"):
        make_env(2, action=f"{__name__}:SixLegs")


@pytest.mark.parametrize(("ending", "says"), [("OneEnds", r"\[1\] of torch.bool"), ("HowFar", r"\[4\] of torch.float32")])
def test_an_ending_of_ones_own_says_for_each_robot_whether_it_ends(ending: str, says: str) -> None:
    env = make_env(4, endings={f"{__name__}:{ending}": {}})
    env.reset(0)
    with pytest.raises(UserError, match=f"ending '{__name__}:{ending}' returned {says}, not one for each environment"):
        env.step(torch.zeros(4, 12))
    env.close()
