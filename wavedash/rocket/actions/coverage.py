"""The controls that an action parser can produce, and those that are missing: printed by `wavedash rocket actions`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.names import make
from wavedash.rocket.parts import Action
from wavedash.rocket.state import BOOST, CONTROLS, HANDBRAKE, JUMP, PITCH, ROLL, STEER, STICKS, THROTTLE, YAW, GameState
from wavedash.yaml_text import YamlError, read_yaml

MAX_COMBINATIONS = 100_000
"""Up to this many combinations all are examined; of more, a random sample of this size"""
SIDES = {THROTTLE: ("back", "forward"), STEER: ("left", "right"), PITCH: ("down", "up"), YAW: ("left", "right"),
         ROLL: ("left", "right")}


@dataclass(frozen=True)
class Coverage:
    """Statistics of all combinations of controls that a parser can produce."""

    name: str
    controls: Tensor
    """[n, 8]"""
    complete: bool
    """These are all combinations, not a sample, nor the ends and middles of continuous actions"""

    @classmethod
    def of(cls, parser: Action) -> Coverage:
        """Lets the parser parse everything that can be chosen."""
        choices, complete = _choices(parser.space)
        state = GameState.empty(len(choices), 1)
        parser.bind(state)
        parser.begin(state, torch.ones(len(choices), dtype=torch.bool))
        controls = parser.parse(choices.unsqueeze(1), state)
        if controls.shape != (len(choices), 1, len(CONTROLS)):
            raise UserError(f"{type(parser).__name__}.parse returned controls of shape {list(controls.shape)} for "
                            f"{len(choices)} arenas with one car; it must be [E, C, {len(CONTROLS)}]")
        return cls(type(parser).__name__, controls.squeeze(1).float(), complete)

    @property
    def distinct(self) -> int:
        return len(set(map(tuple, self.controls.tolist())))

    @property
    def idle(self) -> int | None:
        """The number of the combination without any control; None: there is none."""
        found = (self.controls == 0).all(1).nonzero()
        return int(found[0]) if len(found) else None

    def count(self, *controls: int) -> int:
        """Count the combinations that use any of these controls."""
        return int((self.controls[:, controls] != 0).any(1).sum())

    def sides(self, control: int) -> tuple[int, int, int]:
        """Count the combinations that have the control below, at and above zero."""
        column = self.controls[:, control]
        return int((column < 0).sum()), int((column == 0).sum()), int((column > 0).sum())

    def warnings(self) -> list[str]:
        """Messages about what a bot with this parser could not do."""
        found = []
        if not self.controls.isfinite().all() or self.controls.abs().max() > 1:
            found.append("some controls are outside -1 to 1, or NaN")
        buttons = self.controls[:, STICKS:]
        if not ((buttons == 0) | (buttons == 1)).all():
            found.append("some buttons are neither 0 nor 1")
        for control, (negative, positive) in SIDES.items():
            below, _, above = self.sides(control)
            if not below and not above:
                found.append(f"{CONTROLS[control]} is never used")
            elif not below or not above:
                found.append(f"{CONTROLS[control]} never goes {negative if above else positive}")
            elif below != above and control != THROTTLE:  # boost needs throttle: forward comes more often
                found.append(f"{CONTROLS[control]} is unbalanced: {below} {negative}, {above} {positive}")
        found += [f"{CONTROLS[button]} is never {what}" for button in (JUMP, BOOST, HANDBRAKE)
                  for what, missing in (("pressed", 0), ("let go", len(self.controls)))
                  if self.count(button) == missing]
        if self.idle is None:
            found.append("there is no combination without any control, so the car can never just roll or fall")
        if self.complete and self.distinct < len(self.controls):
            found.append(f"{len(self.controls) - self.distinct} combinations are duplicates of others")
        return found

    def show(self, console: Console) -> None:
        """Prints a table, counts and warnings."""
        total = len(self.controls)
        table = Table(title=f"{self.name}: {total:,} combinations of controls", title_justify="left")
        for heading in ("control", "-", "0", "+"):
            table.add_column(heading, justify="left" if heading == "control" else "right")
        for control, name in enumerate(CONTROLS):
            table.add_row(name, *(f"{count:,} ({count / total:.0%})" if count else "" for count in self.sides(control)))
        console.print(table)
        if not self.complete:
            sample = "ends and middles of continuous actions" if total < MAX_COMBINATIONS else f"{MAX_COMBINATIONS:,} of more"
            console.print(f"a sample: {sample}")
        console.print(f"turning on the ground: {self.count(STEER):,}; turning in the air: {self.count(PITCH, YAW, ROLL):,} "
                      f"(pitch {self.count(PITCH):,}, yaw {self.count(YAW):,}, roll {self.count(ROLL):,})")
        console.print(f"with jump: {self.count(JUMP):,}; with boost: {self.count(BOOST):,}; with handbrake: "
                      f"{self.count(HANDBRAKE):,}")
        console.print(f"distinct: {self.distinct:,}; without any control: "
                      + ("none" if self.idle is None else f"number {self.idle}"))
        for warning in self.warnings():
            console.print(f"warning: {warning}", style="yellow")


def _choices(space: gymnasium.Space[object]) -> tuple[Tensor, bool]:
    """Choices [n, ...], and whether they are all that there are."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return torch.arange(int(space.n)) + int(space.start), True
    if isinstance(space, spaces.MultiDiscrete):
        return _grid(space, [torch.arange(int(n)) for n in space.nvec.reshape(-1)], True)
    if isinstance(space, spaces.MultiBinary):
        return _grid(space, [torch.arange(2)] * int(np.prod(space.shape)), True)
    if isinstance(space, spaces.Box) and space.is_bounded():
        ends = zip(space.low.reshape(-1).tolist(), space.high.reshape(-1).tolist(), strict=True)
        return _grid(space, [torch.tensor([low, (low + high) / 2, high]) for low, high in ends], False)
    raise UserError(f"an action space {space} cannot be examined: use Discrete, MultiDiscrete, MultiBinary or a bounded Box")


def _grid(space: gymnasium.Space[object], values: list[Tensor], complete: bool) -> tuple[Tensor, bool]:
    if np.prod([float(len(v)) for v in values]) > MAX_COMBINATIONS:
        space.seed(0)
        return torch.stack([torch.as_tensor(space.sample()) for _ in range(MAX_COMBINATIONS)]), False
    return torch.cartesian_prod(*values).view(-1, *(space.shape or ())), complete


def show_coverage(parser: str, options: Sequence[str]) -> None:
    """Prints the coverage of a shipped parser or one's own (`module:Class`), made with options `key=value`."""
    Coverage.of(make("action", parser, dict(map(_option, options)))).show(Console(width=110, highlight=False))


def _option(text: str) -> tuple[str, object]:
    key, _, value = text.partition("=")
    try:
        return key, read_yaml(value)[0]
    except YamlError as error:
        raise UserError(f"option '{text}': {error.found[0][1]}") from None
