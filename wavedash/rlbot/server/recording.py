"""Recordings of matches for the page: one file for a whole match, or for every game up to its first goal."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from wavedash.recordings.file import Recording
from wavedash.recordings.header import Event, event
from wavedash.recordings.order import Order
from wavedash.rlbot.server.arena import Seat
from wavedash.rlbot.server.referee import Referee, Round
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.recording.events import TEAMS, Narrator, happened_in
from wavedash.rocket.recording.frames import RocketFrames, players_of
from wavedash.rocket.recording.make import USUAL_TICKS
from wavedash.rocket.state import GameState


class MatchRecorder:
    """Keeps every eighth tick that is played, those with which play stops, and what happened, until the referee has decided a
    result."""

    def __init__(self, order: Order, seats: Sequence[Seat], state: GameState) -> None:
        self.order, self.state = order, state
        self.title = " vs ".join("+".join(dict.fromkeys(seat.name for seat in seats if seat.team == team)) for team in (0, 1))
        self.frames = RocketFrames.of(state)
        self.players = players_of(state, 0, [seat.name for seat in seats])
        self._begin()

    def _begin(self) -> None:
        self.ticks = 0
        self.records: list[Any] = []
        self.events: list[Event] = []
        self.narrator = Narrator(self.players, 1 / TICK_RATE)

    def tick(self, referee: Referee) -> None:
        """A tick was played. Ticks count on over all kick-offs."""
        told = self.narrator.tell(happened_in(self.state, self.frames), self.ticks)
        if self.ticks % USUAL_TICKS == 0 or not referee.playing:
            moment = self.state.clone()
            moment.game.score.copy_(torch.tensor([referee.score]))
            moment.game.tick.fill_(self.ticks)
            self.records.append(self.frames.record(moment))
        self.events += [{**one, "frame": len(self.records) - 1} for one in told]
        self.ticks += 1

    def decided(self, result: Round) -> None:
        """A result ends the recording."""
        goals = result.goals
        if self.records and (self.order.games is None or len(self.order.files) < self.order.games):
            words = f"the end: {goals[0]}-{goals[1]}" if goals[0] == goals[1] else (
                f"{TEAMS[goals[1] > goals[0]]} wins {max(goals)}-{min(goals)}")
            records = np.concatenate(self.records)
            events = [*self.events, event(len(records) - 1, "end", None, words)]
            size = f"{len([p for p in self.players if p['team'] == 0])}v{len([p for p in self.players if p['team'] == 1])}"
            header = self.frames.header(f"{self.title}, game {self.order.next_number}", "match", USUAL_TICKS, self.players,
                                        events=events, score=[int(x) for x in records["score"][-1]],
                                        scene={"size": size, "simulator": "rocketsim", "start": "kickoff"})
            self.order.write(Recording(header, self.frames.layout, records), self.title)
        self._begin()
