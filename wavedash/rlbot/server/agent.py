"""Agent: one connection, and what its messages mean. What a program sends is never believed before it is checked."""
from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from wavedash.rlbot.package import flat
from wavedash.rlbot.server.channel import Channel, Closed
from wavedash.rlbot.server.program import Program

Controls = tuple[float, ...]
"""The eight controls of a car in the order of CONTROLS: sticks from -1 to 1, buttons 0 or 1"""
STICKS = ("throttle", "steer", "pitch", "yaw", "roll")
BUTTONS = ("jump", "boost", "handbrake")


class Mail(NamedTuple):
    """What an agent does with messages that concern others."""

    claim: Callable[[Agent, str], bool]
    """Somebody connects with this key: returns whether it is a program that is still missing, which the agent then is"""
    drive: Callable[[int, Controls], None]
    """A car has an input"""
    talk: Callable[[Agent, Any], None]
    """A `MatchComm` for others"""


class Agent:
    """A connected program, once it has said which one it is."""

    def __init__(self, channel: Channel, mail: Mail) -> None:
        self.channel, self.mail, self.flat = channel, mail, flat()
        self.program: Program | None = None
        self.wants_predictions = self.wants_talk = False
        self.connected_at = time.monotonic()

    def read(self) -> None:
        """Handles what has arrived. Closed: it is gone, or has sent what is no message."""
        for message in self.channel.receive():
            try:
                content = self.flat.InterfacePacket.unpack(message).message
            except ValueError as error:
                raise Closed(f"sent {len(message)} bytes that are no message of RLBot v5") from error
            self._handle(content)

    def send(self, message: bytes) -> None:
        self.channel.send(message)

    def _handle(self, content: Any) -> None:
        fb, program = self.flat, self.program
        if isinstance(content, fb.DisconnectSignal):
            raise Closed("has left the match")
        if isinstance(content, fb.ConnectionSettings):
            self._introduce(content)
        elif program is None:
            raise Closed("sent something else before it said who it is")
        elif isinstance(content, fb.PlayerInput):
            self._drive(program, content)
        elif isinstance(content, fb.InitComplete):
            program.is_ready()
        elif isinstance(content, fb.MatchComm):
            self.mail.talk(self, content)

    def _introduce(self, settings: Any) -> None:
        if self.program is not None:
            return
        self.wants_predictions, self.wants_talk = settings.wants_ball_predictions, settings.wants_comms
        if not self.mail.claim(self, settings.agent_id):
            raise Closed("is no program of this match")

    def _drive(self, program: Program, content: Any) -> None:
        controls = controls_of(content.controller_state)
        if content.player_index not in program.cars or controls is None:
            program.conduct.ignored += 1
            return
        self.mail.drive(content.player_index, controls)
        program.answer(content.player_index)


def controls_of(state: Any) -> Controls | None:
    """Controls within their bounds; None: a stick is no number."""
    sticks = [getattr(state, name) for name in STICKS]
    if not all(map(math.isfinite, sticks)):
        return None
    return (*(min(1.0, max(-1.0, stick)) for stick in sticks), *(float(getattr(state, name)) for name in BUTTONS))
