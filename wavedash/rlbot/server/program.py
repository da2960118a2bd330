"""Program: one bot program of a match, the cars that it drives, and how it has behaved."""
from __future__ import annotations

import secrets
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavedash.errors import UserError
from wavedash.rlbot.server.bot_file import BotFile
from wavedash.rlbot.server.process import BotProcess


@dataclass(frozen=True)
class Patience:
    """How long a match waits for programs."""

    start: float = 60.0
    """Seconds until a program must be ready"""
    answer: float = 1.0
    """Seconds in which a packet must be answered, in lockstep"""
    in_a_row: int = 3
    """A program that has left so many packets unanswered hangs: the match goes on without it until it answers again"""
    in_all: float = 600.0
    """A program for which a match, or one game of several, has waited so many seconds in all is not waited for any more"""
    end: float = 3.0
    """Seconds in which programs may end by themselves after the match"""


USUAL_PATIENCE = Patience()


@dataclass
class Conduct:
    """How a program has behaved."""

    name: str
    team: int
    lost: str = ""
    """Why it takes no part any more: it ended, broke the protocol or was never ready"""
    hung: bool = False
    """It has left several packets in a row unanswered"""
    slow: bool = False
    """It has used up all the time that a match, or one game of several, waits for one program"""
    missed: int = 0
    """Packets that it did not answer in time"""
    ignored: int = 0
    """Messages of it that were not used: for cars of others, with NaN or infinity, or more talk than is passed on"""
    ready_after: float | None = None
    """Seconds from its start until it was ready"""
    answer_seconds: array[float] = field(default_factory=lambda: array("f"))
    """From a packet to its answer, for every packet that was answered"""

    @property
    def failed(self) -> bool:
        """Whether its cars stood still at some time."""
        return bool(self.lost) or self.hung or self.slow

    @property
    def faulty(self) -> bool:
        return self.failed or self.missed > 0

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "team": self.team, "failed": self.failed, "lost": self.lost, "hung": self.hung,
                "slow": self.slow, "missed": self.missed, "ignored": self.ignored, "ready_after": self.ready_after}

    def __str__(self) -> str:
        said = [self.lost] if self.lost else []
        said += ["hung"] if self.hung else []
        said += ["used up its time"] if self.slow else []
        said += [_count(self.missed, "packet") + " without an answer"] if self.missed else []
        said += [_count(self.ignored, "message") + " ignored"] if self.ignored else []
        if self.answer_seconds:
            p50, p99 = 1e3 * np.percentile(self.answer_seconds, (50, 99))
            said.append(f"answers after {p50:.1f} ms (p99 {p99:.1f} ms)")
        if self.ready_after is not None:
            said.append(f"ready after {self.ready_after:.1f} s")
        return f"{self.name}: {', '.join(said)}"


class Program:
    """It is recognised by its key: the agent id of the bot with a secret of this match, so that no other program can take its
    place. A bot that its user starts by hand has no secret."""

    def __init__(self, bot: BotFile, cars: Sequence[int], team: int, name: str) -> None:
        self.bot, self.cars, self.team, self.conduct = bot, tuple(cars), team, Conduct(name, team)
        self.key = f"{bot.agent_id}#{secrets.token_hex(8)}" if bot.command else bot.agent_id
        self.process: BotProcess | None = None
        self.connected = self.ready = self.dismissed = False
        self.owed = 0
        """Packets of the match since its last answer"""
        self.said = 0
        """Bytes that it has said to others since the last packet"""
        self._waited = 0.0
        self._unexplained = False
        self._answered: set[int] = set()
        self._asked_at = self._begun_at = time.monotonic()

    @property
    def lost(self) -> bool:
        return bool(self.conduct.lost)

    def start(self, address: tuple[str, int]) -> None:
        """UserError: it cannot be started, so a match would say nothing about the bot."""
        self._begun_at = time.monotonic()
        if not self.bot.command:
            return
        try:
            self.process = BotProcess(self.bot.command, self.bot.root, {
                "RLBOT_AGENT_ID": self.key, "RLBOT_SERVER_IP": address[0], "RLBOT_SERVER_PORT": str(address[1])})
        except OSError as error:
            raise UserError(f"cannot start {self.bot.path} in {self.bot.root}: {error.strerror or error}. Put the bot back "
                            "where it was, then run the same command again") from error

    def look(self) -> None:
        """Notices that its process has ended."""
        if self.process is None or ((self.lost or self.dismissed) and not self._unexplained):
            return
        code = self.process.exit_code()
        if code is not None:
            words = self.process.last_words()
            self.conduct.lost = f"its program ended with exit code {code}" + (f": {words}" if words else "")
            self._unexplained = False

    def leave(self, why: str) -> None:
        """Its connection is gone. If that is because its process has ended, this is noticed a moment later."""
        if not self.lost and not self.dismissed:
            self.conduct.lost, self._unexplained = f"it {why}", True

    def lose(self, why: str) -> None:
        """It takes no part any more, and its process is ended. After the match nobody minds."""
        if not self.lost and not self.dismissed:
            self.conduct.lost = why
            if self.process is not None:
                self.process.end()

    def is_ready(self) -> None:
        if not self.ready:
            self.ready, self.conduct.ready_after = True, time.monotonic() - self._begun_at

    def asks(self, patience: Patience, real_time: bool) -> bool:
        """The match comes to another packet. Returns whether it is sent to this program: in lockstep not while an answer is
        missing, because a late one would be taken for the answer to the next packet, but again once the program hangs."""
        self.said = 0
        send = real_time or not self.owed or self.owed >= patience.in_a_row
        self.owed += 1
        if send:
            self._answered.clear()
            self._asked_at = time.monotonic()
        return send

    def answer(self, car: int) -> None:
        """It has sent the input of a car."""
        self._answered.add(car)
        if self.owed and len(self._answered) == len(self.cars):
            self.owed = 0
            self.conduct.answer_seconds.append(time.monotonic() - self._asked_at)

    def awaited(self, patience: Patience) -> bool:
        """Whether the match waits for an answer of it."""
        return self.ready and not self.lost and 0 < self.owed <= patience.in_a_row and not self.conduct.slow

    def waited(self, seconds: float, patience: Patience) -> None:
        """The match has waited so long for its answer."""
        self._waited += seconds
        self.conduct.slow = self.conduct.slow or self._waited >= patience.in_all

    def begin_game(self) -> None:
        """The time that it may think in all begins anew: many games take long without any fault of its own."""
        self._waited = 0.0

    def miss(self, patience: Patience) -> None:
        """It has not answered the last packet."""
        self.conduct.missed += 1
        if self.owed >= patience.in_a_row:
            self.conduct.hung = True

    def stop(self, grace: float) -> None:
        """Waits so many seconds for its process to end, then ends it."""
        if self.process is not None:
            self.process.exit_code(within=grace)
            self.look()
            self.process.stop()


def make_programs(bots: Sequence[tuple[int, BotFile, str]], teams: Sequence[int]) -> list[Program]:
    """The programs of these bots: (car, bot, name of the car). The cars of one team that have the same hivemind share one."""
    programs: list[Program] = []
    hives: dict[tuple[int, str], list[tuple[int, BotFile, str]]] = {}
    for car, bot, name in bots:
        if bot.hivemind:
            hives.setdefault((teams[car], bot.agent_id), []).append((car, bot, name))
        else:
            programs.append(Program(bot, [car], teams[car], name))
    for (team, _), members in hives.items():
        programs.append(Program(members[0][1], [car for car, _, _ in members], team, members[0][2]))
    return programs


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
