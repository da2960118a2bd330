"""RLViser: the viewer of RLGym (github.com/VirxEC/rlviser), fed by the package `rlviser-py`, which speaks its protocol.

That package starts `./rlviser` from the working directory unless a process of that name runs, and listens on a fixed port. If
the port is taken it ends the whole process, so we check the port first.
"""
from __future__ import annotations

import socket
from typing import Any, ClassVar

from wavedash.errors import UserError
from wavedash.rocket.bridges.viewer import Viewer, on_host
from wavedash.rocket.constants import PADS, TICK_RATE
from wavedash.rocket.rocketsim.fields import BODY, FLAGS, SCALARS, VECTORS
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.state import CONTROLS, Ball, Cars, GameState

OWN_PORT = 34254
"""UDP port on which the package listens to the window"""
PAD_LOCATIONS = [(pad.x, pad.y, pad.z) for pad in PADS]


class RLViser(Viewer):
    """A window of RLViser. The first state opens it, `close` closes it."""

    _opened: ClassVar[bool] = False
    """This process has opened a window before"""

    def __init__(self) -> None:
        self._viser, self._rs = _package(), rocketsim()
        if RLViser._opened:
            self._viser.launch()
        else:
            _check_port()

    def show(self, state: GameState, arena: int = 0) -> None:
        one = on_host(state, arena)
        cars = [self._car(one.cars, seat) for seat, present in enumerate(one.cars.present[0].tolist()) if present]
        self._viser.set_boost_pad_locations(PAD_LOCATIONS)  # the package keeps them per thread
        self._viser.render(int(one.game.tick[0]), float(TICK_RATE), self._rs.GameMode.SOCCAR, one.pads.active[0].tolist(),
                           self._ball(one.ball), cars)
        RLViser._opened = True

    def close(self) -> None:
        self._viser.quit()

    def _ball(self, ball: Ball) -> Any:
        return self._fill(self._rs.BallState(), ball, (0,), BODY)

    def _car(self, cars: Cars, seat: int) -> tuple[int, int, Any, Any]:
        """A car as RLViser takes it: number, team, body, state."""
        index = (0, seat)
        car = self._fill(self._rs.CarState(), cars, index, VECTORS)
        for ours, theirs in (SCALARS | FLAGS).items():
            setattr(car, theirs, getattr(cars, ours)[index].item())
        car.wheels_with_contact = cars.wheel_contact[index].tolist()
        *sticks, jump, boost, handbrake = cars.controls[index].tolist()
        car.last_controls = self._rs.CarControls(
            **dict(zip(CONTROLS, sticks, strict=False)), jump=jump > 0.5, boost=boost > 0.5, handbrake=handbrake > 0.5)
        return seat + 1, int(cars.team[index]), self._rs.CarConfig(int(cars.hitbox[index])), car

    def _fill(self, target: Any, source: Ball | Cars, index: tuple[int, ...], vectors: dict[str, str]) -> Any:
        for ours, theirs in vectors.items():
            setattr(target, theirs, self._rs.Vec(*getattr(source, ours)[index].tolist()))
        target.rot_mat = self._rs.RotMat(*source.rotation[index].T.flatten().tolist())
        return target


def _package() -> Any:
    try:
        import rlviser_py
    except ImportError as error:
        raise UserError(f"the package that speaks with RLViser is not installed ({error}). Install it with: "
                        "pip install rlviser-py") from error
    return rlviser_py


def _check_port() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("0.0.0.0", OWN_PORT))
        except OSError as error:
            raise UserError(f"RLViser's package needs UDP port {OWN_PORT} ({error}); most likely another program is showing a "
                            "game in RLViser: end it first") from error
