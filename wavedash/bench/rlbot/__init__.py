"""Exported bots beside the trainer: the same observations, masks and actions, the same games, and how long they take.

    wavedash bench rlbot [PLAYER ...] [--ticks N] [--seed N] [--fresh-venv]

Every PLAYER, a run or a champion or one of the small random policies that the bench knows, is exported. Then

- games of RocketSim are played by the trainer's parts, each tick becomes a packet, through bytes and back, and the bot's code
  looks on: what it knows of every car at every tick, and what it sees, is offered and chooses at every decision, is held beside
  the trainer;
- bots drive cars through packets, beside the same game as our evaluation plays it, until the first difference;
- times of answers, inside this process, and of the start of a bot's own process. `--fresh-venv` installs the bot's requirements
  into a new virtual environment and starts it there.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gymnasium.spaces import Box
from rich.console import Console

from wavedash.bench.rlbot import tables
from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.lockstep import Course, race
from wavedash.bench.rlbot.moments import Counts, watch
from wavedash.bench.rlbot.policies import KINDS, Exported, exported
from wavedash.bench.rlbot.times import fresh_python, packets_of, start_seconds, time_answers
from wavedash.league.frozen import FrozenPolicy
from wavedash.rocket import names
from wavedash.rocket.parts import Player
from wavedash.threads import give_torch

OPPONENTS = ("itself", "chaser", "random")
TIMED = 3000
"""Packets whose answers are timed"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench rlbot", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("players", nargs="*", default=["champion", *KINDS], metavar="PLAYER",
                        help=f"runs, champions, or {', '.join(KINDS)} (default: the champion and these)")
    parser.add_argument("--ticks", type=int, default=4000, help="of each game (default: 4000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other kick-offs")
    parser.add_argument("--fresh-venv", action="store_true", help="install the requirements of a bot and start it there")
    given = parser.parse_args(arguments)
    give_torch(1)
    console = Console(width=118, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        bots = {name: exported(name, Path(folder, f"bot-{i}")) for i, name in enumerate(given.players)}
        console.print(tables.decisions(looked_on := _look_on(bots, given.ticks, given.seed)))
        console.print(tables.quantities(list(looked_on.values())))
        console.print(tables.courses(_race(bots, given.ticks, given.seed)))
        fresh = fresh_python(next(iter(bots.values())).folder, Path(folder, "venv")) if given.fresh_venv else None
        answers = {name: time_answers(bot, packets_of(bot, TIMED)) for name, bot in bots.items()}
        starts = [{name: start_seconds(bot.folder, python) for name, bot in bots.items()}
                  for python in ([sys.executable] if fresh is None else [sys.executable, fresh])]
        console.print(tables.times(answers, *starts))


def _look_on(bots: dict[str, Exported], ticks: int, seed: int) -> dict[str, Counts]:
    """The comparisons of each policy's games against each opponent, by names."""
    counts = {}
    for name, bot in bots.items():
        for number, opponent in enumerate(OPPONENTS):
            counts[f"{name} vs {opponent}"] = found = Counts()
            arena = _arena(bot, seed + number)
            other = bot.trained() if opponent == "itself" else names.make("player", opponent)
            watch(arena, bot.trained(), other, ticks, found)
            arena.close()
    return counts


def _race(bots: dict[str, Exported], ticks: int, seed: int) -> dict[str, Course]:
    """Games with bots beside our evaluation's, by names; the answers are in force at once or a tick later. Policies that choose
    among actions play: continuous actions differ by rounding from the first tick on, and a game makes more of it."""
    courses = {}
    for name, bot in bots.items():
        if isinstance(bot.policy.action_space, Box):
            continue
        for latency in (0, 1):
            for number, opponent in enumerate(OPPONENTS):
                size, blue = bot.task.blue + bot.task.orange, range(bot.task.blue)
                seats = range(size) if opponent == "itself" else blue
                action = bot.trained()
                courses[f"{name} vs {opponent}, latency {latency}"] = race(
                    _arenas(bot, seed + number), _players(bot, opponent), {seat: bot.bot() for seat in seats}, ticks, latency,
                    action.ticks, action.delay)
    return courses


def _arena(bot: Exported, seed: int) -> Arena:
    return Arena(bot.task.blue, bot.task.orange, bot.task.hitbox, seed)


def _arenas(bot: Exported, seed: int) -> Callable[[], Arena]:
    return lambda: _arena(bot, seed)


def _players(bot: Exported, opponent: str) -> Callable[[], Sequence[Player]]:
    """Makes the player of every seat, as our evaluation has them."""
    def make() -> list[Player]:
        policy = FrozenPolicy(bot.policy, bot.task, "the policy")
        other = policy if opponent == "itself" else names.make("player", opponent)
        return [policy] * bot.task.blue + [other] * bot.task.orange

    return make
