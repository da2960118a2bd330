"""What came of controls, on average over many steps: how a car moved that had a control to one side, and to the other."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wavedash.rocket.state import BOOST, CONTROLS, JUMP, PITCH, ROLL, STEER, THROTTLE, YAW, Cars

if TYPE_CHECKING:
    from wavedash.rocket.debug.actions import Stepped

ROLLING = 200.0
"""uu/s: a car that stands does not turn, whatever its wheels do"""


def effects(stepped: Sequence[Stepped], seconds: float) -> list[str]:
    """A text for every control. `seconds`: the length of a step."""
    return [_text(control, stepped, seconds) for control in range(len(CONTROLS))]


def _on_wheels(before: Cars, after: Cars) -> Tensor:
    return before.on_ground & after.on_ground & before.alive & after.alive


def _flying(before: Cars, after: Cars) -> Tensor:
    return ~(before.on_ground | after.on_ground | before.has_contact | before.is_flipping | after.is_flipping) & after.alive


def _toward(nose: Callable[[Cars], Tensor], axis: Callable[[Cars], Tensor]) -> Callable[[Cars, Cars, float], Tensor]:
    """Degrees per second by which one axis of the car turns toward another one of its axes before the step."""
    return lambda before, after, seconds: (nose(after) * axis(before)).sum(-1).clamp(-1, 1).asin() * (180 / pi / seconds)


def _gained(before: Cars, after: Cars, seconds: float) -> Tensor:
    return ((after.velocity * after.forward).sum(-1) - (before.velocity * before.forward).sum(-1)) / seconds


Effect = tuple[str, Callable[[Cars, Cars], Tensor], Callable[[Cars, Cars, float], Tensor]]
EFFECTS: dict[int, Effect] = {
    THROTTLE: ("uu/s faster forward per second, on wheels", _on_wheels, _gained),
    STEER: ("degrees to the right per second, rolling forward",
            lambda before, after: _on_wheels(before, after) & ((before.velocity * before.forward).sum(-1) > ROLLING),
            _toward(lambda cars: cars.forward, lambda cars: cars.right)),
    PITCH: ("degrees nose up per second, in the air", _flying, _toward(lambda cars: cars.forward, lambda cars: cars.up)),
    YAW: ("degrees to the right per second, in the air", _flying, _toward(lambda cars: cars.forward, lambda cars: cars.right)),
    ROLL: ("degrees to the right per second, in the air", _flying, _toward(lambda cars: cars.up, lambda cars: cars.right)),
    JUMP: ("uu/s faster upward, from the wheels", lambda before, after: before.on_ground & after.alive,
           lambda before, after, seconds: ((after.velocity - before.velocity) * before.up).sum(-1)),
    BOOST: ("uu/s faster forward per second, with boost left", lambda before, after: (before.boost > 0) & after.alive, _gained),
}
"""For a control: what is measured, the cars for which it means something, and the measurement"""


def _text(control: int, stepped: Sequence[Stepped], seconds: float) -> str:
    if control not in EFFECTS:
        return ""
    unit, applies, measure = EFFECTS[control]
    values, used = [], []
    for before, after, _, controls, _, goes_on in stepped:
        cars = goes_on & applies(before.cars, after.cars)
        values.append(measure(before.cars, after.cars, seconds)[cars])
        used.append(controls[..., control][cars])
    value, column = torch.cat(values), torch.cat(used)
    sides = {"-": column < 0, "0": column == 0, "+": column > 0}
    means = [f"{sign}: {float(value[mask].mean()):+.0f}" for sign, mask in sides.items() if bool(mask.any())]
    return f"{', '.join(means)} {unit}" if means else "no car could use it"
