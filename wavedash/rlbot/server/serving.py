"""Serving: a whole match, from the start of the bots' programs to its results.

The server sends a packet of every tick to all programs. In lockstep it waits until all have answered, so a match is as fast as
its bots; in real time it sends 120 packets a second, whatever they do. While programs think, the next tick is played: an answer
to packet n takes effect `latency` ticks after n, by default one, as in the real game and in training.
"""
from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from wavedash.errors import UserError
from wavedash.recordings.order import Order
from wavedash.rlbot.package import flat
from wavedash.rlbot.packets import Clock, PacketPlayer, PacketWriter, field_info
from wavedash.rlbot.server.agent import Controls
from wavedash.rlbot.server.arena import MatchArena, Seat
from wavedash.rlbot.server.bot_file import BotFile
from wavedash.rlbot.server.hub import Hub
from wavedash.rlbot.server.prediction import BallPredictor
from wavedash.rlbot.server.program import USUAL_PATIENCE, Conduct, Patience, Program, make_programs
from wavedash.rlbot.server.recording import MatchRecorder
from wavedash.rlbot.server.referee import Referee, Round, Seen
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Start

TO_SAY_GOODBYE = 0.5
"""Seconds in which programs may read that the match is over"""
LOOK_EVERY = 0.25
"""Seconds after which it is looked whether a program that does not answer still runs"""
LATEST = 0.25
"""Seconds by which real time may be missed before it is given up to catch up"""

REAL_TIME_SILENCE = TICK_RATE
"""Packets that may stay without an answer in real time; until then the last input counts"""


@dataclass(frozen=True)
class Outcome:
    """What came of a match."""

    results: Sequence[Round]
    conduct: Sequence[Conduct]
    """How each program behaved"""
    touches: tuple[int, int]
    """How often blue and orange touched the ball; contact in the same eight ticks is one touch"""
    ticks: int
    """How many packets there were, countdowns included"""
    wall_seconds: float
    """How long the match took, without the start of the programs"""

    @property
    def goals(self) -> tuple[int, int]:
        return sum(result.goals[0] for result in self.results), sum(result.goals[1] for result in self.results)


@dataclass(frozen=True)
class Manner:
    """How a match is served."""

    seed: int = 1
    """Another one, other kick-offs"""
    nudge: Start | None = None
    """Changes kick-offs a little"""
    latency: int = 1
    """Ticks from a packet to the effect of its answer"""
    real_time: bool = False
    port: int = 0
    """0: any free one"""
    patience: Patience = USUAL_PATIENCE
    record: Order | None = None


def play_match(seats: Sequence[Seat], referee: Referee, manner: Manner | None = None,
               progress: Callable[[Referee], None] | None = None) -> Outcome:
    """Plays a match. Seats of blue come first. What bots do wrong costs them their input and not the match. `progress` is
    called after every tick."""
    match = Match(seats, referee, manner or Manner())
    try:
        match.begin()
        while not referee.over:
            match.tick()
            if progress is not None:
                progress(referee)
        return match.outcome()
    finally:
        match.close()


class Match:
    """A match that is being played, tick by tick."""

    def __init__(self, seats: Sequence[Seat], referee: Referee, manner: Manner) -> None:
        teams = [seat.team for seat in seats]
        if teams != sorted(teams) or set(teams) != {0, 1}:
            raise UserError("a match needs cars in blue and in orange")
        self.referee, self.manner = referee, manner
        self._patience = replace(manner.patience, in_a_row=REAL_TIME_SILENCE) if manner.real_time else manner.patience
        self._flat = flat()
        self._players = [PacketPlayer(name, 1000 + car) for car, name in enumerate(_distinct([seat.name for seat in seats]))]
        self.programs = make_programs([(car, seat.driver, self._players[car].name) for car, seat in enumerate(seats)
                                       if isinstance(seat.driver, BotFile)], teams)
        self._seats = seats
        self._open = ExitStack()
        try:
            self._arena = MatchArena(seats, manner.seed, manner.nudge)
            self._open.callback(self._arena.close)
            self.hub = Hub(self.programs, self._welcome, manner.port)
            self._open.callback(self.hub.close)
            self._recorder = None if manner.record is None else MatchRecorder(manner.record, seats, self._arena.state)
        except BaseException:
            self._open.close()
            raise
        self._predictor: BallPredictor | None = None
        self._writer = PacketWriter(self._players)
        self._frame, self._moved = 0, False
        self._pipeline: deque[dict[int, Controls]] = deque([{}] * manner.latency)
        """Inputs that have not taken effect yet, the oldest first"""
        self._touches = [0, 0]
        self._touching: set[int] = set()
        self._begun_at = self._due = time.monotonic()

    def begin(self) -> None:
        """Starts the programs and waits until each is ready, or known not to become so."""
        for program in self.programs:
            program.start(self.hub.address)
        self.hub.poll_until(lambda: all(program.ready or program.lost for program in self.programs),
                            self.manner.patience.start)
        for program in self.programs:
            if not program.ready:
                program.lose(f"it was not ready after {self.manner.patience.start:g} s")
        self._begun_at = self._due = time.monotonic()

    def tick(self) -> None:
        """Sends the packet of this moment, plays the tick after it, and takes the answers."""
        referee = self.referee
        if referee.kickoff_due:
            self._arena.kick_off()
            self._moved = False
        self._send_packet()
        if not self.manner.latency:
            self._gather()
            self._pipeline.append(self._inputs())
        inputs, seen = self._pipeline.popleft(), Seen()
        self._moved = referee.playing
        if referee.playing:
            seen = self._arena.tick(inputs)
            self._count_touches()
        else:
            self._arena.hold(inputs)
        if self.manner.latency:
            self._gather()
            self._pipeline.append(self._inputs())
        decided = len(referee.results)
        referee.tick(seen)
        if self._recorder is not None and self._moved:
            self._recorder.tick(referee)
        if len(referee.results) > decided:
            for program in self.programs:
                program.begin_game()
            if self._recorder is not None:
                self._recorder.decided(referee.results[-1])
        self._frame += 1

    def outcome(self) -> Outcome:
        """Shows the end to all programs, and says what came of the match."""
        self._send_packet()
        self._gather()
        self._frame += 1
        return Outcome(self.referee.results, [program.conduct for program in self.programs],
                       (self._touches[0], self._touches[1]), self._frame, time.monotonic() - self._begun_at)

    def close(self) -> None:
        """Ends all programs."""
        with self._open:
            self.hub.say_goodbye()
            self.hub.poll_until(lambda: not any(agent.channel.behind for agent in self.hub.agents), TO_SAY_GOODBYE)
            end = time.monotonic() + self.manner.patience.end
            for program in self.programs:
                program.stop(max(0.0, end - time.monotonic()))
            if self._predictor is not None:
                self._predictor.close()

    def _send_packet(self) -> None:
        state, referee, fb = self._arena.state, self.referee, self._flat
        clock = Clock(self._frame / TICK_RATE, referee.left, referee.overtime, False, fb.MatchPhase(int(referee.phase)),
                      self._frame, (referee.score[0], referee.score[1]))
        packet = self._writer.write(state, clock, new=self._moved)
        self.hub.send_packet(fb.CorePacket(packet).pack(), self._prediction(), self._patience,
                             self.manner.real_time)

    def _prediction(self) -> bytes:
        """It follows the ball from the first packet on for which somebody wants it."""
        if not self.hub.predictions_wanted:
            return b""
        if self._predictor is None:
            self._predictor = BallPredictor()
        return self._predictor.message(self._arena.state, self._frame / TICK_RATE, self._moved)

    def _gather(self) -> None:
        """Takes the answers to the last packet: until all are there, or in real time until the tick is over."""
        patience = self._patience
        self.hub.poll(0.0)  # programs that are not waited for are heard too, and all if there is no time left
        if self.manner.real_time:
            self._due = max(self._due + 1 / TICK_RATE, time.monotonic() - LATEST)
            self.hub.poll_until(lambda: False, self._due - time.monotonic())
        else:
            self._wait_for_answers(patience)
        for program in self.programs:
            if not program.lost and program.owed > (patience.in_a_row if self.manner.real_time else 0):
                program.miss(patience)

    def _wait_for_answers(self, patience: Patience) -> None:
        """Waits until all programs have answered that are waited for, or have had their time."""
        begun, seconds = time.monotonic(), 0.0
        awaited = [program for program in self.programs if program.awaited(patience)]
        while awaited:
            self.hub.poll(min(patience.answer - seconds, LOOK_EVERY))
            seconds = time.monotonic() - begun
            for program in list(awaited):
                program.look()
                if not program.awaited(patience) or seconds >= patience.answer:
                    program.waited(seconds, patience)
                    awaited.remove(program)

    def _inputs(self) -> dict[int, Controls]:
        """The newest controls of all cars whose programs take part and do not hang."""
        return {car: controls for program in self.programs if not program.lost and program.owed <= self._patience.in_a_row
                for car in program.cars if (controls := self.hub.inputs.get(car)) is not None}

    def _count_touches(self) -> None:
        if self.referee.played % 8 == 0:
            self._touching.clear()
        for car, touches in enumerate(self._arena.touching()):
            if touches and car not in self._touching:
                self._touching.add(car)
                self._touches[self._seats[car].team] += 1

    def _welcome(self, program: Program) -> list[bytes]:
        fb = self._flat
        mine = [fb.ControllableInfo(car, self._players[car].player_id) for car in program.cars]
        return [fb.CorePacket(message).pack()
                for message in (self._configuration(), field_info(), fb.ControllableTeamInfo(program.team, mine))]

    def _configuration(self) -> Any:
        fb, players = self._flat, []
        for seat, player in zip(self._seats, self._players, strict=True):
            bot = seat.driver if isinstance(seat.driver, BotFile) else None
            variety = fb.CustomBot(player.name, agent_id=f"wavedash/{seat.name}") if bot is None else fb.CustomBot(
                player.name, str(bot.root), bot.command, bot.loadouts[seat.team], bot.agent_id, bot.hivemind)
            players.append(fb.PlayerConfiguration(variety, seat.team, player.player_id))
        return fb.MatchConfiguration(fb.Launcher.NoLaunch, player_configurations=players, wait_for_agents=True,
                                     skip_replays=True, mutators=fb.MutatorSettings(),
                                     enable_rendering=fb.DebugRendering.AlwaysOff)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names as RLBot makes them: the second `Bot` is `Bot (2)`."""
    before = [names[:car].count(name) for car, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, before, strict=True)]
