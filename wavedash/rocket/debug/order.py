"""Whether the controls that an action parser makes are in the right order, and which of them each entry of an action moves."""
from __future__ import annotations

from collections.abc import Iterator

import gymnasium
import numpy as np
import torch
from torch import Tensor

from wavedash.rocket.parts import Action
from wavedash.rocket.state import BOOST, CONTROLS, HANDBRAKE, JUMP, PITCH, ROLL, STEER, STICKS, THROTTLE, YAW, GameState

ENOUGH = 4
"""So many combinations must show a pattern before it says anything"""
USUAL = ", ".join(CONTROLS)


def swapped(controls: Tensor) -> Iterator[str]:
    """Messages about controls [n, 8] that look exchanged. Whoever boosts also holds the throttle, and most parsers move steer
    and yaw together, as a gamepad does: where another control has these habits instead, two columns are exchanged."""
    forward = controls[:, THROTTLE] > 0
    boosting = controls[:, BOOST] > 0
    if int(boosting.sum()) >= ENOUGH:
        drives = bool(forward[boosting].all())
        for stick in (STEER, PITCH, YAW, ROLL):
            always, usual = (controls[boosting, stick] > 0).all(), (controls[:, stick] > 0).float().mean()
            if not drives and bool(always) and float(usual) < 1:
                yield _message(THROTTLE, stick, f"whenever boost is pressed, {CONTROLS[stick]} is positive, and throttle is "
                                                "not")
        for button in (JUMP, HANDBRAKE):
            pressed = controls[:, button] > 0
            if int(pressed.sum()) >= ENOUGH and not drives and bool(forward[pressed].all()) and not bool(forward.all()):
                yield _message(BOOST, button, f"whenever {CONTROLS[button]} is pressed, the throttle is held, and with boost "
                                              "it is not")
    if not torch.equal(controls[:, STEER], controls[:, YAW]):
        for stick in (THROTTLE, PITCH, ROLL):
            for partner, other in ((YAW, STEER), (STEER, YAW)):
                column = controls[:, stick]
                if torch.equal(column, controls[:, partner]) and bool((column != column[0]).any()):
                    yield _message(stick, other, f"{CONTROLS[stick]} is always the same as {CONTROLS[partner]}, as "
                                                 f"{CONTROLS[other]} is in most parsers")


def _message(one: int, other: int, because: str) -> str:
    first, second = (CONTROLS[i] for i in sorted((one, other)))
    return (f"{first} and {second} look swapped in the action parser: {because}. Controls must be in the order {USUAL}")


def moved_by(parser: Action) -> list[str]:
    """For an action of several entries, which controls each entry moves when the others stay in the middle."""
    space = parser.space
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        low, high = np.zeros(space.nvec.size), space.nvec.reshape(-1) - 1.0
        middle = high // 2
    elif isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
        low, high = (x.reshape(-1).astype(float) for x in (space.low, space.high))
        middle = (low + high) / 2
    else:
        return []
    alone = np.eye(len(middle), dtype=bool)
    ends = np.stack([np.where(entry, end, middle) for entry in alone for end in (low, high)])
    actions = torch.from_numpy(ends.reshape(-1, 1, *space.shape).astype(space.dtype))
    state = GameState.empty(len(actions), 1)
    parser.bind(state)
    parser.begin(state, torch.ones(len(actions), dtype=torch.bool))
    controls = parser.parse(actions, state).view(-1, 2, len(CONTROLS))
    lines = []
    for number, (least, most) in enumerate(controls.unbind(0)):
        names = [f"{name} ({float(a):g} to {float(b):g})" for name, a, b in zip(CONTROLS, least, most, strict=True) if a != b]
        lines.append(f"  action[{number}] moves {' and '.join(names) or 'nothing'}")
    return lines


def in_words(controls: Tensor) -> str:
    """The controls [8] that are used, by name: `throttle 1, boost`."""
    used = [CONTROLS[i] if i >= STICKS else f"{CONTROLS[i]} {x:g}" for i, x in enumerate(controls.tolist()) if x != 0]
    return ", ".join(used) or "nothing"
