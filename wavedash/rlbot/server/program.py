"""Program: one bot program of a match, the cars that it drives, and how it has behaved."""
from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavedash.rlbot.server.bot_file import BotFile
from wavedash.rlbot.server.process import BotProcess


@dataclass(frozen=True)
class Patience:
    """How long a match waits for programs."""

    start: float = 60.0
    """Seconds until a program must be ready"""
    answer: float = 1.0
    """Seconds in which a packet must be answered"""
    in_a_row: int = 3
    """A program that has left so many packets unanswered hangs: the match goes on without it until it answers again"""
    in_all: int = 30
    """A program for which the match has waited so often in vain is not waited for any more"""
    end: float = 3.0
    """Seconds in which programs may end by themselves after the match"""


USUAL_PATIENCE = Patience()


@dataclass
class Conduct:
    """How a program has behaved."""

    name: str
    team: int
    lost: str = ""
    """Why it takes no part any more: it crashed, broke the protocol or was never ready"""
    hung: bool = False
    """It has left several packets in a row unanswered"""
    missed: int = 0
    """Packets that it did not answer in time"""
    ignored: int = 0
    """Messages of it that had no meaning: of others' cars, or with numbers that are none"""
    ready_after: float | None = None
    """Seconds from its start until it was ready"""
    answer_seconds: list[float] = field(default_factory=list)
    """From a packet to its answer, of all packets that were answered"""

    @property
    def faulty(self) -> bool:
        return bool(self.lost) or self.hung or self.missed > 0

    def __str__(self) -> str:
        said = [self.lost] if self.lost else []
        said += ["hung"] if self.hung else []
        said += [f"{self.missed} inputs missing"] if self.missed else []
        said += [f"{self.ignored} messages without meaning"] if self.ignored else []
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
        """Packets since its last answer"""
        self._vain = 0
        self._answered: set[int] = set()
        self._asked_at = self._begun_at = time.monotonic()

    @property
    def lost(self) -> bool:
        return bool(self.conduct.lost)

    def start(self, address: tuple[str, int]) -> None:
        self._begun_at = time.monotonic()
        if self.bot.command:
            self.process = BotProcess(self.bot.command, self.bot.root, {
                "RLBOT_AGENT_ID": self.key, "RLBOT_SERVER_IP": address[0], "RLBOT_SERVER_PORT": str(address[1])})

    def look(self, within: float = 0.0) -> None:
        """Notices that its process has ended, or ends within so many seconds."""
        if not self.lost and self.process is not None and (code := self.process.exit_code(within)) is not None:
            words = self.process.last_words()
            self.lose(f"its program ended with exit code {code}" + (f": {words}" if words else ""))

    def lose(self, why: str) -> None:
        """It takes no part any more. After the match nobody minds."""
        if not self.lost and not self.dismissed:
            self.conduct.lost = why

    def is_ready(self) -> None:
        if not self.ready:
            self.ready, self.conduct.ready_after = True, time.monotonic() - self._begun_at

    def ask(self) -> None:
        """It is sent a packet."""
        self._answered.clear()
        self._asked_at = time.monotonic()
        self.owed += 1

    def answer(self, car: int) -> None:
        """It has sent the input of a car."""
        self._answered.add(car)
        if self.owed and len(self._answered) == len(self.cars):
            self.owed = 0
            self.conduct.answer_seconds.append(time.monotonic() - self._asked_at)

    def awaited(self, patience: Patience) -> bool:
        """Whether the match waits for an answer of it."""
        return self.ready and not self.lost and 0 < self.owed <= patience.in_a_row and self._vain < patience.in_all

    def miss(self, patience: Patience) -> None:
        """It has not answered the last packet."""
        self._vain += self.awaited(patience)
        self.conduct.missed += 1
        if self.owed >= patience.in_a_row:
            self.conduct.hung = True

    def stop(self, grace: float) -> None:
        if self.process is not None:
            self.process.stop(grace)


def make_programs(bots: Sequence[tuple[int, BotFile, str]], teams: Sequence[int]) -> list[Program]:
    """The programs of these bots: (car, bot, name of the car). The cars of one team that have the same hivemind share one."""
    programs: list[Program] = []
    hives: dict[tuple[int, str], list[Any]] = {}
    for car, bot, name in bots:
        if bot.hivemind:
            hives.setdefault((teams[car], bot.agent_id), []).append((car, bot, name))
        else:
            programs.append(Program(bot, [car], teams[car], name))
    for (team, _), members in hives.items():
        programs.append(Program(members[0][1], [car for car, _, _ in members], team, members[0][2]))
    return programs
