"""Player: packets in, controls out. It decides as in training, and clears what it remembers wherever play begins anew."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .brain import Brain
from .game import Game
from .pace import Pace

Array = NDArray[Any]
PLAYING = (2, 3)
"""Numbers of RLBot's match phases in which cars move: Kickoff and Active"""


class Player:
    """Plays one car of a match with the policy of `folder`. `pads`: those of the field info."""

    def __init__(self, folder: Path, pads: Any) -> None:
        self.brain, self.game = Brain(folder), Game(pads)
        self.pace = Pace(self.brain.actions.ticks, self.brain.actions.delay)
        self.playing = False

    def controls(self, packet: Any, index: int) -> Array:
        """The eight controls to answer this packet with; idle while nobody may move."""
        ticks = self.game.update(packet)
        frame = self.game.frame
        if int(packet.match_info.match_phase) not in PLAYING or index not in self.game.seats or not packet.balls:
            self.playing = False
            return self.pace.idle
        me = self.game.seats.index(index)
        if not self.playing or ticks > 120:
            self.begin(frame)
        self.pace.seen(frame, self.game.arrays["controls"][me])
        if self.pace.decides(frame):
            self.pace.decide(frame, self.brain.decide(self.game.arrays, me))
        return self.pace.send(frame)

    def begin(self, frame: int) -> None:
        """An episode begins, as in training."""
        self.playing = True
        self.brain.begin()
        self.pace.begin(frame)
