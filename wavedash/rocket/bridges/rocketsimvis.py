"""RocketSimVis: a small viewer in Python that takes states as JSON over UDP (github.com/ZealanL/RocketSimVis).

Its networking-format.md describes a packet. Its code differs from that in two places, and we follow the code: boost goes from 0
to 100, and the control is called `steer`.
"""
from __future__ import annotations

import json
import logging
import socket
from typing import Any

from wavedash.rocket.bridges.viewer import Viewer, on_host
from wavedash.rocket.constants import PADS
from wavedash.rocket.state import CONTROLS, Ball, Cars, GameState

log = logging.getLogger(__name__)

PORT = 9273
"""UDP port on which RocketSimVis listens, to its own machine only"""
BUTTONS = ("jump", "boost", "handbrake")
PAD_LOCATIONS = [[pad.x, pad.y, pad.z] for pad in PADS]


class RocketSimVis(Viewer):
    """A window of RocketSimVis, which may be started before or after; states that it does not receive are lost without harm."""

    def __init__(self, port: int = PORT):
        self.port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(("127.0.0.1", port))  # sends nothing, but makes the system report that nothing listens there
        self._silent = False

    def show(self, state: GameState, arena: int = 0) -> None:
        message = json.dumps(packet(state, arena), separators=(",", ":")).encode()
        try:
            self._socket.send(message)
        except OSError as error:
            if not self._silent:
                log.warning("RocketSimVis does not receive what is sent to port %d (%s): is it started? The game goes on, "
                            "and is shown as soon as it is", self.port, error)
            self._silent = True

    def close(self) -> None:
        self._socket.close()


def packet(state: GameState, arena: int) -> dict[str, Any]:
    """A packet as RocketSimVis reads it. Empty seats are left out, and the rotation of the ball, which the viewer computes from
    the spin."""
    one = on_host(state, arena)
    return {
        "gamemode": "soccar",
        "ball_phys": _motion(one.ball, (0,)),
        "cars": [_car(one.cars, seat) for seat, present in enumerate(one.cars.present[0].tolist()) if present],
        "boost_pad_locations": PAD_LOCATIONS,
        "boost_pad_states": one.pads.active[0].tolist(),
    }


def _motion(body: Ball | Cars, index: tuple[int, ...]) -> dict[str, list[float]]:
    return {"pos": body.position[index].tolist(), "vel": body.velocity[index].tolist(),
            "ang_vel": body.angular_velocity[index].tolist()}


def _car(cars: Cars, seat: int) -> dict[str, Any]:
    index = (0, seat)
    controls = dict(zip(CONTROLS, cars.controls[index].tolist(), strict=True))
    return {
        "team_num": int(cars.team[index]),
        "phys": _motion(cars, index) | {"forward": cars.forward[index].tolist(), "up": cars.up[index].tolist()},
        "controls": controls | {name: controls[name] > 0.5 for name in BUTTONS},
        "boost_amount": float(cars.boost[index]),
        "on_ground": bool(cars.on_ground[index]),
        "has_flipped_or_double_jumped": bool(cars.has_flipped[index] | cars.has_double_jumped[index]),
        "is_demoed": bool(cars.is_demoed[index]),
    }
