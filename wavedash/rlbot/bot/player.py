"""Player: packets in, controls out. It decides as in training, and a game begins wherever play begins anew."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .brain import Brain
from .car import inputs_of
from .game import Game
from .pace import IDLE, Pace

Array = NDArray[Any]
COUNTDOWN, PLAYING, PAUSED = 1, (2, 3), 6
"""Numbers of RLBot's match phases. Cars move in Kickoff and Active, and a pause has no frames"""


class Player:
    """Plays one car of a match with the policy of `folder`. `pads`: those of the field info."""

    def __init__(self, folder: Path, pads: Any) -> None:
        self.brain = Brain(folder)
        self.game = Game(pads, self.brain.field)
        self.pace = Pace(self.brain.actions.ticks, self.brain.actions.delay)
        self.games = 0
        """Games of this episode that have begun"""
        self.met: list[tuple[int, int, int]] = []
        """Who plays in it"""

    def controls(self, packet: Any, index: int) -> Array:
        """The eight controls to answer this packet with; idle while nobody may move."""
        phase, frame = int(packet.match_info.match_phase), packet.match_info.frame_num
        if phase == PAUSED:
            return self.pace.controls
        if index >= len(packet.players):
            return IDLE
        own = packet.players[index]
        self.pace.seen(frame, inputs_of(own))
        if phase not in PLAYING or not packet.balls or own.team not in (0, 1):
            self.game.forget()
            return self.pace.nudge(frame) if phase == COUNTDOWN else IDLE
        if self.game.update(packet):
            self._begin_game()
            self.pace.begin(frame)
        me = self.game.seats.index(index)
        if self.pace.decides(frame):
            self.pace.decide(frame, self.brain.decide(self.game.arrays, me))
        return self.pace.send(frame)

    def _begin_game(self) -> None:
        """As many games are one episode as in training, if all of them are against the same players."""
        next_one = self.game.who == self.met and self.games < self.brain.games
        self.games, self.met = self.games + 1 if next_one else 1, self.game.who
        if next_one:
            self.brain.next_game()
        else:
            self.brain.begin()
