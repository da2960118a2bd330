"""An exported bot over the real protocol plays the very games that its policy plays in this process."""
from __future__ import annotations

import pytest

from wavedash.evaluate.matches import nudged_kickoff
from wavedash.league.players import find_entrant
from wavedash.rlbot.export import export_bot
from wavedash.rlbot.server.arena import Seat
from wavedash.rlbot.server.bot_file import BotFile, read_bot_file
from wavedash.rlbot.server.program import Patience
from wavedash.rlbot.server.referee import FirstGoals
from wavedash.rlbot.server.serving import Manner, Outcome, play_match

pytest.importorskip("rlbot")
GAMES = 2


@pytest.fixture(scope="module")
def champion(tmp_path_factory: pytest.TempPathFactory) -> BotFile:
    folder = tmp_path_factory.mktemp("exported") / "champion"
    export_bot("champion", folder)
    return read_bot_file(folder / "bot.toml")


def games(driver: BotFile | None, side: int, latency: int = 1) -> Outcome:
    """The champion, as this bot or in this process, against the chaser."""
    one = Seat(side, "champion", driver or find_entrant("champion").player())
    seats = sorted([one, Seat(1 - side, "chaser", find_entrant("chaser").player())], key=lambda seat: seat.team)
    return play_match(seats, FirstGoals(GAMES, 60.0), Manner(
        seed=11, nudge=nudged_kickoff(), latency=latency, patience=Patience(answer=10.0)))


@pytest.mark.slow
@pytest.mark.parametrize("side", [0, 1])
def test_the_exported_champion_plays_the_same_games(champion: BotFile, side: int) -> None:
    here, there = games(None, side), games(champion, side)
    assert not there.conduct[0].faulty and there.ticks == here.ticks
    assert there.results == here.results and there.touches == here.touches
    assert sum(here.goals) and here.touches[side], "the games are decided; by whom may depend on how a CPU rounds"


@pytest.mark.slow
def test_a_latency_that_training_did_not_have_makes_other_games(champion: BotFile) -> None:
    """The negative control. A server without latency is made up for by the bot, three ticks cannot be."""
    here = games(None, 0).results
    assert games(champion, 0, latency=0).results == here
    assert games(champion, 0, latency=3).results != here
