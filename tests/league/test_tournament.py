"""`wavedash tournament`: players of known strength are ordered right, and the two simulators' orders are compared."""
from __future__ import annotations

import json
import sys
from itertools import combinations, permutations

import numpy as np
import pytest
import torch

from tests.league.commands import drawn_games
from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.evaluate.results import MatchResult
from wavedash.league.games import Game, GamesFile
from wavedash.league.match import Terms
from wavedash.league.players import Entrant, find_entrant
from wavedash.league.teams import Team, rate_line_ups
from wavedash.league.tournament import Tournament, play_tournament
from wavedash.rocket.driver import Pace
from wavedash.rocket.players import Chaser, Idle
from wavedash.rocket.state import GameState

STRENGTHS = {"idle": 300.0, "chaser": 1000.0, "bot@1": 1250.0, "bot@2": 1500.0, "bot@3": 1750.0}
PAIRS = list(combinations(STRENGTHS, 2))


def wavedash(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def simulated(strengths: dict[str, float], simulator: str, seed: int, games: int = 100) -> list[Game]:
    return drawn_games(strengths, list(combinations(strengths, 2)), games, np.random.default_rng(seed), simulator)


# The table


@pytest.mark.parametrize("seed", range(3))
def test_players_of_known_strength_are_ordered_right_in_both_simulators(seed) -> None:
    found = Tournament([*simulated(STRENGTHS, "warp", seed), *simulated(STRENGTHS, "rocketsim", seed + 100)])
    for simulator in ("warp", "rocketsim"):
        assert list(found.standings[simulator]) == ["bot@3", "bot@2", "bot@1", "chaser", "idle"]
        assert found.standings[simulator]["chaser"].value == pytest.approx(1000.0)
    assert found.tau == 1.0
    assert str(found).endswith("Kendall's tau between the orders of warp and rocketsim: 1.00\nThe orders agree.")


def test_another_order_in_the_other_simulator_is_told() -> None:
    """The negative control: a bot that has learned the simulator instead of the game."""
    fooled = {**STRENGTHS, "bot@3": 700.0}
    found = Tournament([*simulated(STRENGTHS, "warp", 1), *simulated(fooled, "rocketsim", 2)])
    assert found.tau == pytest.approx(1 - 2 * 3 / 10), "three of ten pairs are in another order"
    assert "bot@3 is above chaser in warp and below it in rocketsim: by more than noise." in str(found)


def test_a_different_order_of_equal_players_is_called_a_tie() -> None:
    equal = {"chaser": 1000.0, "a": 1500.0, "b": 1500.0}
    for seed in range(20):  # until chance puts them in different orders
        found = Tournament([*simulated(equal, "warp", seed, 40), *simulated(equal, "rocketsim", seed + 50, 40)])
        if found.disagreements:
            break
    ((first, second, overlap),) = found.disagreements
    assert {first, second} == {"a", "b"} and overlap and found.tau == pytest.approx(1 / 3)
    assert (f"{first} is above {second} in warp and below it in rocketsim: their intervals overlap, so these games do not tell "
            "them apart.") in str(found)


def test_tau_is_that_of_the_definition() -> None:
    """Concordant pairs minus discordant ones, counted from the ranks."""
    rng = np.random.default_rng(0)
    names = ["chaser", *(f"bot@{i}" for i in range(6))]
    truths = [dict(zip(names, rng.permutation(7) * 150.0, strict=True)) for _ in range(2)]
    found = Tournament([*simulated(truths[0], "warp", 1, 30), *simulated(truths[1], "rocketsim", 2, 30)])
    warp, rocketsim = (list(found.standings[name]) for name in ("warp", "rocketsim"))
    signs = [np.sign((warp.index(a) - warp.index(b)) * (rocketsim.index(a) - rocketsim.index(b)))
             for a, b in combinations(names, 2)]
    assert found.tau == pytest.approx(np.mean(signs)) and -1 < found.tau < 1


def test_the_cross_table_has_the_goal_shares() -> None:
    games = [Game("t", 0, *pair, 1, *goals, 60.0, "warp", 0) for pair, goals in (
        (("a", "b"), (1, 0)), (("b", "a"), (1, 0)), (("a", "b"), (1, 0)), (("b", "chaser"), (1, 0)), (("chaser", "a"), (0, 1)),
        (("chaser", "c"), (0, 0)))]
    found = Tournament(games, "for a test")
    assert found.goal_share("warp", "a", "b").value == pytest.approx(2 / 3)
    assert found.goal_share("warp", "b", "a").value == pytest.approx(1 / 3)
    lines = str(found).splitlines()
    assert lines[:2] == ["6 games, for a test", "ratings: the chaser has 1000 by definition"]
    assert lines[3].split() == ["warp", "rating", "95", "%", "interval", "games", "won", "drawn", "lost"]
    assert lines[4].split()[:3] == ["1", "a", f"{found.standings['warp']['a'].value:.0f}"]
    assert lines[4].split()[-4:] == ["4", "3", "0", "1"], "games, won, drawn, lost"
    assert lines[9:12] == ["goals of the row's player in % of those between the two, warp",
                           "                 1      2      3      4", " 1  a                66.7      -  100.0"]
    told = json.loads(json.dumps(found.as_json()))
    assert told["kendall_tau"] is None and told["simulators"]["warp"]["goal_shares"]["a"]["b"]["goals"] == 2


def test_without_a_chaser_ratings_are_said_to_be_relative() -> None:
    without = {name: strength for name, strength in STRENGTHS.items() if name != "chaser"}
    found = Tournament(simulated(without, "warp", 3))
    assert np.mean([rating.value for rating in found.standings["warp"].values()]) == pytest.approx(1000)
    assert "relative: their mean is 1000, because no chaser played" in str(found)


# The games


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_on_a_gpu_everybody_plays_everybody_too(simulator) -> None:
    if simulator == "rocketsim":
        pytest.importorskip("RocketSim")
    entrants = [find_entrant(name) for name in ("idle", "chaser", "defender")]
    found = play_tournament(entrants, Terms(4, (simulator,), seconds=5, device="cuda"))
    played = [(game.blue, game.orange) for game in found.games]
    assert {pair: played.count(pair) for pair in played} == dict.fromkeys(permutations(("idle", "chaser", "defender"), 2), 2)


@pytest.mark.slow
def test_everybody_plays_everybody_from_both_sides_and_the_better_one_is_first(tmp_path, capsys) -> None:
    out = tmp_path / "games.csv"
    wavedash("tournament", "idle", "chaser", "tests.league.test_match:Shooter", "--games", 8, "--seconds", 12, "--simulator",
             "warp", "--out", out)
    games, told = GamesFile(out).read(), capsys.readouterr().out
    for a, b in combinations(("idle", "chaser", "tests.league.test_match:Shooter"), 2):
        assert sum((game.blue, game.orange) == (a, b) for game in games) == 4
        assert sum((game.blue, game.orange) == (b, a) for game in games) == 4
    assert list(Tournament(games).standings["warp"])[-1] == "idle" and told.startswith("24 games, 1v1, from kick-offs")
    assert "reference games do not count: without a goal they end after 60 s, those at hand after 12 s" in told
    assert str(Tournament(games)).split("\n\n")[1:] == told.rstrip().split("\n\n")[1:], "the tables follow from the file"


def test_on_a_gpu_all_opponents_of_a_player_are_one_match(monkeypatch) -> None:
    """On a CPU they are played one by one. What a match does is replaced here: it needs a GPU."""
    matches: list[tuple[str, list[str]]] = []

    def play(terms: Terms, simulator: str, first: Entrant, seconds: list[Entrant], *others: object) -> list[MatchResult]:
        matches.append((first.name, [second.name for second in seconds]))
        return []

    monkeypatch.setattr("wavedash.league.tournament.play", play)
    entrants = [find_entrant(name) for name in ("idle", "random", "chaser")]
    for device in ("cuda", "cpu"):
        with pytest.raises(ValueError, match="zip"):
            play_tournament(entrants, Terms(simulators=("warp",), device=device))
    assert matches == [("idle", ["random", "chaser"]), ("idle", ["random"])]


@pytest.mark.parametrize(("arguments", "message"), [
    (["chaser"], "a tournament needs at least two players"),
    (["chaser", "idle", "Chaser"], "chaser takes part twice, as chaser and as Chaser: name every player once"),
    (["chaser", "idle", "randm"], "there is no player 'randm'; did you mean 'random'"),
])
def test_mistakes_are_named_before_anything_is_played(arguments, message) -> None:
    with pytest.raises(UserError, match=message):
        wavedash("tournament", *arguments)


# Mixed teams


def test_players_of_known_skill_in_mixed_teams_are_ordered_right() -> None:
    """Line-ups are drawn anew for every game; a team is as strong as its players together."""
    rng, taus = np.random.default_rng(0), []
    names = [f"p{i}" for i in range(6)]
    for _ in range(5):
        skill = dict(zip(names, rng.permutation(6) * 0.7, strict=True))
        games = []
        for _ in range(400):
            a, b, c, d = rng.choice(names, 4, replace=False)
            ahead = skill[a] + skill[b] - skill[c] - skill[d]
            won = rng.random() < 1 / (1 + np.exp(-ahead))
            games.append(Game("t", 0, f"{a}+{b}", f"{c}+{d}", 2, int(won), int(not won), 60.0, "warp", 0))
        found = rate_line_ups(games)
        taus.append(np.mean([np.sign((skill[a] - skill[b]) * (found[a].mean - found[b].mean))
                             for a, b in combinations(names, 2)]))
        assert sum(skill.games for skill in found.values()) == 4 * 400
        assert list(found) == sorted(found, key=lambda player: -found[player].mean)
    assert np.mean(taus) > 0.8


def test_draws_leave_equal_players_where_they_are_and_a_seat_counts_once() -> None:
    drawn = [Game("t", 0, "a+b", "c+d", 2, 1, 1, 60.0, "warp", 0)] * 10
    assert {skill.mean for skill in rate_line_ups(drawn).values()} == {25.0}
    twice = rate_line_ups([Game("t", 0, "a+a", "b+c", 2, 1, 0, 60.0, "warp", 0)])
    assert twice["a"].games == 1 and twice["a"].mean > 25 > twice["b"].mean


def test_a_name_with_the_sign_in_it_is_no_team() -> None:
    one = [Game("t", 0, "C++ Bot", "other", 1, 1, 0, 60.0, "rocketsim", 0)]
    assert not Tournament(one).skills
    teams = [Game("t", 0, "C++ Bot", "a+b", 2, 1, 0, 60.0, "rocketsim", 0)]
    assert set(Tournament(teams).skills["rocketsim"]) == {"C++ Bot", "a", "b"}


def test_a_tournament_of_mixed_teams_rates_their_players(capsys) -> None:
    wavedash("tournament", "chaser+idle", "chaser+chaser", "--games", 2, "--seconds", 1, "--simulator", "warp")
    told = capsys.readouterr().out
    assert "players of the teams by openskill, warp" in told and "2v2, from kick-offs" in told


def test_without_openskill_the_message_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "openskill.models", None)
    with pytest.raises(UserError, match=r"need openskill: pip install -e \"\.\[teams\]\""):
        rate_line_ups([])


def test_each_player_of_a_team_drives_its_own_car_on_either_side() -> None:
    state = GameState.empty(3, 4)
    state.cars.team[:, 2:] = 1
    state.cars.rotation.copy_(torch.eye(3).expand_as(state.cars.rotation))
    team = Team([Idle(), Chaser()])
    team.bind(state)
    controls = team.drive(state, torch.zeros(3, 4, 8))
    assert (controls.abs().amax(-1) > 0).tolist() == [[False, True, False, True]] * 3


class Slow(Idle):
    ticks, delay = 12, 1


class Fast(Idle):
    ticks, delay = 4, 1


def test_players_of_different_paces_are_refused_in_one_team() -> None:
    with pytest.raises(UserError, match="cannot play in one team: their action parsers have different ticks and delays"):
        Team([Slow(), Fast()])
    assert Pace(8, 1).of(Team([Slow(), Idle()])) == Pace(12, 1)
    with pytest.raises(UserError, match="a team of 2 players cannot play with 1 cars per team"):
        Team([Idle(), Idle()]).bind(GameState.empty(2, 2))
    with pytest.raises(UserError, match="a team of different players cannot play 4v0: both sides need equally many cars"):
        Team([Idle(), Idle()]).bind(GameState.empty(2, 4))
