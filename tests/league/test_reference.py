"""Reference results: ratings become sharper by games between players that never change, and nobody is taken for another."""
from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.league import test_panel
from tests.league.commands import drawn_games, policy_folder, trained
from wavedash import champions
from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.league import reference
from wavedash.league.games import GamesFile
from wavedash.league.ladder import Ladder
from wavedash.league.make_reference import make_reference
from wavedash.league.match import Terms
from wavedash.league.players import distinct_names, find_entrant
from wavedash.league.ratings import ANCHORS, Results, rate
from wavedash.league.reference import Reference, Row, count, rate_among, results_of, shipped
from wavedash.league.tournament import Tournament
from wavedash.runs.policy_folder import PolicyFolder

FIXED = {"chaser": 1000.0, "low": 1350.0, "middle": 1700.0, "high": 1750.0}
"""Players between whom reference games were played; the bot below is as strong as the middle one"""
NEIGHBOURS = [("chaser", "low"), ("low", "middle"), ("middle", "high")]
ANCHOR = dict(ANCHORS)


def wavedash(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def widths(seed: int, bot: float = 1700.0) -> tuple[bool, float, float]:
    """Whether the interval with reference results holds the truth, and the intervals' widths with and without."""
    rng = np.random.default_rng(seed)
    known = Reference(count(drawn_games(FIXED, NEIGHBOURS, 400, rng)))
    games = drawn_games({**FIXED, "bot@1": bot}, [("bot@1", other) for other in ("chaser", "middle", "high")], 64, rng)
    results = Results.of(games)
    plain = rate(results)["bot@1"]
    sharp = rate_among(results, known.among_games(games), ANCHOR)["bot@1"]
    assert sharp.games == plain.games == 3 * 64, "games of its own"
    return sharp.low <= bot <= sharp.high, sharp.high - sharp.low, plain.high - plain.low


def test_intervals_become_several_times_narrower_and_still_hold_the_truth() -> None:
    """The anchor loses nearly every game, so that only reference games tell how far above it the others are."""
    covered, sharp, plain = zip(*(widths(seed) for seed in range(40)), strict=True)
    assert np.median(sharp) < 0.5 * np.median(plain)
    assert np.mean(covered) > 0.95 - 3 * (0.95 * 0.05 / 40) ** 0.5, "40 independent intervals of 95 %, three standard errors"
    assert np.median(sharp) < 250 < np.median(plain)


def test_reference_results_of_others_would_be_noticed() -> None:
    """The negative control of the test above: results of another player under the name of the middle one."""
    rng, covered = np.random.default_rng(1), []
    wrong = {**FIXED, "middle": 1400.0, "high": 1450.0}
    for _ in range(20):
        games = drawn_games({**FIXED, "bot@1": 1700.0}, [("bot@1", other) for other in ("chaser", "middle", "high")], 64, rng)
        known = Reference(count(drawn_games(wrong, NEIGHBOURS, 400, rng)))
        rating = rate_among(Results.of(games), known.among_games(games), ANCHOR)["bot@1"]
        covered.append(rating.low <= 1700.0 <= rating.high)
    assert np.mean(covered) < 0.5


def test_counts_are_those_of_the_games() -> None:
    games = drawn_games(FIXED, list(combinations(FIXED, 2)), 30, np.random.default_rng(0))
    ours, theirs = results_of(count(games)), Results.of(games)
    assert ours.players == theirs.players and ours.games == len(games)
    assert (ours.wins == theirs.wins).all() and (ours.draws == theirs.draws).all()


# Which results count


ROWS = [Row("chaser", "low", 40, 10, 350, "warp", 1, 60.0), Row("low", "rung:x", 90, 20, 90, "warp", 1, 60.0),
        Row("lone", "lonely", 5, 5, 5, "warp", 1, 60.0), Row("chaser", "low", 1, 1, 1, "rocketsim", 1, 60.0),
        Row("chaser", "low", 1, 1, 1, "warp", 2, 60.0)]


@pytest.mark.parametrize(("players", "where", "limit", "games"), [
    (["bot@1", "low"], ("warp", 1), 60.0, 600),
    (["bot@1", "rung:x"], ("warp", 1), 60.0, 600),
    (["bot@1", "chaser"], ("warp", 1), 60.0, 0),  # its rating is known anyway
    (["bot@1", "x"], ("warp", 1), 60.0, 0),  # a folder of the user, who calls it as a rung is called
    (["bot@1", "rung:y"], ("warp", 1), 60.0, 0),
    (["bot@1", "low"], ("warp", 3), 60.0, 0),
    (["bot@1", "low"], ("rocketsim", 1), 60.0, 3),
    (["bot@1", "low"], ("warp", 2), 60.0, 3),
    (["bot@1", "low"], ("warp", 1), 20.0, 0),  # games that end earlier have more draws
])
def test_only_results_of_the_same_players_under_the_same_terms_count(players, where, limit, games) -> None:
    found = Reference(ROWS).among(players, [where], [limit])
    assert found.games == games and "lone" not in found.players
    because_of_time = "reference games do not count: without a goal they end after 60 s, those at hand after 20 s"
    assert Reference(ROWS).left_out(players, [where], [limit]) == (because_of_time if limit == 20.0 else None)


def test_a_tournament_without_the_chaser_has_its_scale_if_there_is_a_chain_to_it() -> None:
    games = drawn_games({"bot": 1700.0, "low": 1350.0}, [("bot", "low")], 100, np.random.default_rng(0))
    without, known = Tournament(games), Tournament(games, reference=Reference(ROWS))
    assert without.anchors == {} and known.anchors == ANCHOR
    assert list(known.standings["warp"]) == ["bot", "low"], "nobody is in the table who did not play"
    assert 1250 < known.standings["warp"]["low"].value < 1500
    assert known.standings["warp"]["low"].games == 100 and known.as_json()["reference_games"] == 600
    assert "600 reference games between players that never change count too" in str(known)
    assert "reference" not in str(without)


def test_a_ladder_counts_them_too() -> None:
    strengths = {"chaser": 1000.0, "low": 1350.0, "bot@1": 1900.0}
    games = drawn_games(strengths, [("bot@1", "chaser"), ("bot@1", "low")], 64, np.random.default_rng(2))
    plain, known = Ladder(games), Ladder(games, Reference(ROWS))
    assert set(plain.ratings) == set(known.ratings) == set(strengths)
    assert known.ratings["low"].high - known.ratings["low"].low < plain.ratings["low"].high - plain.ratings["low"].low
    assert "600 reference games" in str(known)


def test_a_run_that_rates_itself_counts_them_too(tmp_path) -> None:
    drawn = drawn_games({"chaser": 1000.0, "random": 700.0}, [("chaser", "random")], 200, np.random.default_rng(0))
    known, file = [replace(game, seconds=6.0) for game in drawn], tmp_path / "known.csv"
    GamesFile(file).add(known)
    run = test_panel.trained(tmp_path / "runs", test_panel.RATING, f"rating.reference=[{json.dumps(str(file))}]")
    games, found = test_panel.games_of(run), [line for line in test_panel.ratings_of(run) if line]
    assert len(games) == 24, "reference games are not among those of the run"
    for step, line in zip(sorted({game.step for game in games}), found, strict=True):
        known_by_then = rate(Results.of([*(game for game in games if game.step <= step), *known]))[f"rocket-1v1@{step}"]
        assert [line[f"rating/{end}"] for end in ("elo", "low", "high")] == pytest.approx(list(known_by_then[:3]))
    assert "200 reference games between players that never change count" in (run / "log.txt").read_text(encoding="utf-8")


# Names


@pytest.fixture(scope="module")
def rung(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("rung")
    return policy_folder(trained(root / "runs"), root / "mid")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Files of reference results of the test's own, without rungs."""
    monkeypatch.setattr(reference, "RUNGS", tmp_path / "rungs.csv")
    monkeypatch.setattr(reference, "FILE", tmp_path / "reference.csv")
    (tmp_path / "rungs.csv").write_text("name,sha256\n")
    return tmp_path


def test_a_policy_with_the_checksum_of_a_rung_is_that_rung_and_no_other_is(rung, folder) -> None:
    (folder / "rungs.csv").write_text(f"name,sha256\nrung:strong,{PolicyFolder(rung).sha256}\n")
    assert find_entrant(str(rung)).name == "rung:strong"
    weights = bytearray((rung / "policy.safetensors").read_bytes())
    weights[-1] ^= 1
    taken = ["chaser", *(["rung:strong"] if os.name != "nt" else [])]
    for name in ("strong", *taken):
        other = folder / name
        other.mkdir()
        for file in ("config.yaml", "state.json"):
            (other / file).write_bytes((rung / file).read_bytes())
        (other / "policy.safetensors").write_bytes(weights)
    assert find_entrant(str(folder / "strong")).name == "strong"
    for name in taken:
        entrants = [find_entrant(str(folder / name)), find_entrant("chaser")]
        assert list(distinct_names(entrants).values()) == [str(folder / name), "chaser"]


# The files


def test_the_files_that_ship_are_sound() -> None:
    rows = shipped().rows
    assert {row.simulator for row in rows} == {"warp", "rocketsim"} and {row.size for row in rows} == {1}
    players = {player for row in rows for player in (row.player, row.opponent)}
    checked = {*reference.rungs().values(), "idle", "random", "chaser", "defender"}
    assert all(player in checked or player.startswith(champions.NAME) for player in players)
    for simulator in ("warp", "rocketsim"):
        assert rate(results_of([row for row in rows if row.simulator == simulator])), "everybody has a chain to the chaser"


@pytest.mark.parametrize(("text", "words"), [
    ("", "its first line is not player,opponent"), ("a,b\n", "its first line is not"),
    ("chaser,x,1,2\n", "line 2, holds no results"), ("chaser,x,1,two,3,warp,1,60.0\n", "line 2, holds no results"),
    ("chaser,x,1,-2,3,warp,1,60.0\n", "a count is negative"), ("x,x,1,2,3,warp,1,60.0\n", "a player plays itself"),
])
def test_a_damaged_file_is_named(tmp_path, text, words) -> None:
    header = "" if "first line" in words else ",".join(reference.HEADER) + "\n"
    file = tmp_path / "reference.csv"
    file.write_text(header + text)
    with pytest.raises(UserError, match=words):
        shipped(file)
    with pytest.raises(UserError, match=r"cannot read .*missing\.csv.* leave reference results out"):
        shipped(tmp_path / "missing.csv")


def test_the_command_counts_games_of_fixed_players_alone(rung, folder) -> None:
    games = drawn_games({"chaser": 1000, "mid": 1400, "bot@7": 1500}, [("chaser", "mid"), ("mid", "bot@7")], 50,
                        np.random.default_rng(0))
    games += drawn_games({"idle": 500, "random": 500}, [("idle", "random")], 50, np.random.default_rng(0), nu=1000.0)
    rows, left_out = make_reference(games, [rung], folder)
    assert [(row.player, row.opponent, row.games) for row in rows] == [("chaser", "rung:mid", 50)], "and hardly any draws"
    assert left_out == ["bot@7"]
    assert shipped(folder / "reference.csv").rows == rows
    assert reference.rungs(folder / "rungs.csv") == {PolicyFolder(rung).sha256: "rung:mid"}
    renamed = [game for game in games if "bot@7" not in (game.blue, game.orange)]
    assert make_reference(renamed, [rung], folder)[0] == rows, "made again"


@pytest.mark.parametrize(("change", "words"), [
    ({"seconds": 20.0}, "drawn after 20 s"), ({"seed": Terms().stream}, "default seed"),
    ({"blue": "bot@1"}, "no games between players that never change"),
])
def test_games_that_cannot_be_references_are_refused(folder, change, words) -> None:
    games = drawn_games({"chaser": 1000, "defender": 1000}, [("chaser", "defender")], 20, np.random.default_rng(0))
    with pytest.raises(UserError, match=words):
        make_reference([replace(game, **{"blue": "chaser", "orange": "defender", **change}) for game in games], [], folder)
    assert not (folder / "reference.csv").exists()


# Commands


def test_the_ladder_takes_games_of_ones_own(tmp_path, capsys) -> None:
    rng = np.random.default_rng(3)
    pairs = [("bot@1", "chaser"), ("bot@1", "middle")]
    GamesFile(tmp_path / "own.csv").add(drawn_games({**FIXED, "bot@1": 1700.0}, pairs, 64, rng))
    GamesFile(tmp_path / "fixed.csv").add(drawn_games(FIXED, NEIGHBOURS, 400, rng))
    found = []
    for options in ([], ["--with", tmp_path / "fixed.csv"]):
        wavedash("ladder", tmp_path / "own.csv", "--json", *options)
        found.append(json.loads(capsys.readouterr().out))
    (plain, sharp) = ({row["player"]: row for row in ladder["ratings"]}["bot@1"] for ladder in found)
    assert [ladder["reference_games"] for ladder in found] == [0, 1200]
    assert sharp["high"] - sharp["low"] < 0.6 * (plain["high"] - plain["low"])
    with pytest.raises(UserError, match="its games would count twice"):
        wavedash("ladder", tmp_path / "own.csv", "--with", tmp_path / "own.csv")
    with pytest.raises(UserError, match=r"does not exist: name a games\.csv"):
        wavedash("ladder", tmp_path / "own.csv", "--with", tmp_path / "missing.csv")


def test_a_tournament_uses_what_ships_unless_it_is_told_not_to(capsys) -> None:
    line = "reference games between players that never change count too"
    for options, told in (([], True), (["--no-reference"], False)):
        wavedash("tournament", "chaser", "defender", "--games", 2, "--simulator", "warp", "--device", "cpu", *options)
        assert (line in capsys.readouterr().out) == told


def test_a_missing_file_of_games_is_named_and_not_made(tmp_path) -> None:
    missing = tmp_path / "missing.csv"
    with pytest.raises(UserError, match=r"missing\.csv does not exist: name a games\.csv"):
        wavedash("tournament", "chaser", "idle", "--with", missing)
    assert not missing.exists()
