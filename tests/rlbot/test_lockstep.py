"""Exported bots drive cars through packets, and the games are those of our evaluation, bit for bit."""
from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.rlbot.bots import bot_of
from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.lockstep import Course, race
from wavedash.league.frozen import FrozenPolicy
from wavedash.rlbot.bot.pace import Pace
from wavedash.rocket import names
from wavedash.rocket.parts import Player

pytest.importorskip("rlbot.flat")


def played(name: str, opponent: str | None, ticks: int, latency: int, seed: int = 0) -> Course:
    bot = bot_of(name)
    task, trained = bot.task, bot.trained()

    def players() -> Sequence[Player]:
        policy = FrozenPolicy(bot.policy, task, name)
        other: Player = policy if opponent is None else names.make("player", opponent)
        return [policy] * task.blue + [other] * task.orange

    seats = range(task.blue + (task.orange if opponent is None else 0))
    return race(lambda: Arena(task.blue, task.orange, task.hitbox, seed), players, {seat: bot.bot() for seat in seats}, ticks,
                latency, trained.ticks, trained.delay)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "opponent", "ticks", "latency"), [
    ("champion", "chaser", 2400, 1), ("champion", None, 1600, 0), ("gru-2v2", None, 1000, 1), ("lstm-3v3", "chaser", 500, 0),
    ("frames-2v2", None, 600, 1),
])
def test_games_of_bots_are_those_of_the_evaluation(name: str, opponent: str | None, ticks: int, latency: int) -> None:
    """The answers of bots are in force at once, or a tick later as in the real game: they measure it."""
    course = played(name, opponent, ticks, latency)
    assert course.ticks >= ticks and course.same == course.ticks, course.difference


@pytest.mark.parametrize(("wrong", "latency"), [({"delay": 0}, 0), ({"delay": 2}, 1), ({"ticks": 9}, 1)])
def test_another_rhythm_is_noticed(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int], latency: int) -> None:
    assert not played("champion", "chaser", 120, latency).difference, "with the right one there is none"
    make = Pace.__init__

    def other(self: Pace, ticks: int, delay: int) -> None:
        make(self, **({"ticks": ticks, "delay": delay} | wrong))

    monkeypatch.setattr(Pace, "__init__", other)
    course = played("champion", "chaser", 120, latency)
    assert "has other controls" in course.difference
