"""The benchmark of adaptation finds a player that adapts by construction, and finds nothing in one that cannot."""
from __future__ import annotations

from random import Random

import pytest
import torch

from wavedash.bench.adaptation import FEWEST, LATE_STARTER, Found, LateStarter, SeriesPlayed, main, measure, remembers, together
from wavedash.errors import UserError
from wavedash.evaluate.results import PlayedGame
from wavedash.league.match import Terms
from wavedash.league.players import find_entrant
from wavedash.rocket.players import Chaser
from wavedash.rocket.state import GameState

REPEATED = 3000


def series(*games: str) -> list[PlayedGame]:
    """The games of a series: won, drawn or lost."""
    return [PlayedGame(0, int(game == "won"), int(game == "lost"), 10.0) for game in games]


def test_gains_are_points_of_later_games_minus_those_of_the_first() -> None:
    played = SeriesPlayed([series("lost", "won", "drawn"), series("won", "won", "won"), series("drawn", "lost", "lost")])
    assert played.gains == [75.0, 0.0, -50.0]
    assert [(share.hits, share.cases) for share in map(played.goal_share, range(3))] == [(1, 2), (2, 3), (1, 2)]


@pytest.mark.parametrize(("kept", "cleared", "words"), [
    (("lost", "won"), ("lost", "lost"), "somebody adapts"),
    (("won", "lost"), ("won", "won"), "plays worse for what it remembers"),
    (("lost", "won"), ("lost", "won"), "is not seen to adapt"),
])
def test_a_verdict_needs_more_than_the_control(kept: tuple[str, str], cleared: tuple[str, str], words: str) -> None:
    """Also a player that scores more in later games does not adapt if it does so without memory."""
    one, other = ({"chaser": SeriesPlayed([series(*games)] * FEWEST)} for games in (kept, cleared))
    found = Found("somebody", True, one, other)
    assert found.adaptation.mean == together(one).gains[0] - together(other).gains[0]
    assert words in found.verdict


def test_a_few_series_that_agree_are_no_verdict() -> None:
    """Chance alone makes two of them agree: with no variance the interval would be a point."""
    kept, cleared = ({"chaser": SeriesPlayed([series(*games)] * (FEWEST - 1))} for games in (("lost", "won"), ("lost", "lost")))
    found = Found("somebody", True, kept, cleared)
    assert found.adaptation.interval == (100.0, 100.0) and found.verdict.startswith("no verdict about somebody: 23 series")


def test_chance_gives_a_verdict_as_often_as_a_95_percent_interval_says() -> None:
    """Of players that play alike both ways, with as few series as there may be."""
    random, results, verdicts = Random(0), ("lost", "drawn", "won"), 0
    for _ in range(REPEATED):
        ways = [{"chaser": SeriesPlayed([series(*random.choices(results, (9, 2, 9), k=5)) for _ in range(FEWEST)])}
                for _ in range(2)]
        verdicts += "is not seen" not in Found("somebody", True, *ways).verdict
    # 7 % and four standard deviations of as many throws. With 8 series it would be a tenth.
    assert verdicts / REPEATED < 0.07 + 4 * (0.07 * 0.93 / REPEATED) ** 0.5


def test_who_remembers() -> None:
    assert remembers(LateStarter()) and not remembers(Chaser())
    assert remembers(find_entrant(f"chaser+{LATE_STARTER}").player()) and not remembers(find_entrant("chaser+idle").player())
    assert not remembers(find_entrant("champion").player())


def test_the_late_starter_stands_still_until_a_game_that_it_remembers() -> None:
    player, state = LateStarter(), GameState.empty(3, 2)
    state.cars.rotation.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    player.bind(state)
    player.begin(state, torch.ones(3, dtype=torch.bool))
    player.next_game(state, torch.tensor([True, True, False]))
    player.begin(state, torch.tensor([True, False, False]))
    assert player.controls(state).abs().amax((1, 2)).gt(0).tolist() == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_the_controls_come_out_as_they_must(simulator: str) -> None:
    """Against a player that does nothing, who stands still cannot score, and who attacks nearly always does."""
    terms, opponents = Terms(8 * 3, (simulator,), seconds=20.0), [find_entrant("idle")]
    late, champion = (measure(find_entrant(name), opponents, terms, 3) for name in (LATE_STARTER, "champion"))
    kept, cleared = late.kept["idle"], late.cleared["idle"]
    assert [share.cases for share in map(cleared.goal_share, range(3))] == [0, 0, 0]
    assert kept.goal_share(0).cases == 0 and min(kept.goal_share(game).hits for game in (1, 2)) >= 4
    assert late.adaptation.interval[0] > 0 and late.verdict.startswith("no verdict about the late starter: 8")
    assert len(kept.series) == 8 and all(len(games) == 3 for games in kept.series)
    assert champion.kept == champion.cleared and champion.adaptation.interval == (0.0, 0.0)
    assert champion.verdict.endswith("has no memory that outlasts a game: all its games are the same both ways")
    assert sum(champion.kept["idle"].goal_share(game).hits for game in range(3)) >= 12


@pytest.mark.parametrize(("arguments", "words"), [
    (["--games", "1"], "two games or more"), (["--no-controls"], "nobody to play"), (["nobody-known"], "there is no player"),
    (["chaser", "--no-controls", "--against", "idle", "--against", "idle"], "takes part twice"),
])
def test_what_cannot_be_played_is_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        main(arguments)
