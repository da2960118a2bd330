"""`wavedash ladder`: all versions of runs rated together, and the chart of their ratings."""
from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.league.commands import drawn_games
from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.league.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, Scale, draw
from wavedash.league.games import GamesFile
from wavedash.league.ladder import Ladder, read_ladder
from wavedash.report.svg import in_short, round_numbers
from wavedash.runs.folder import RunFolder

FIXED = {"chaser": 1000.0, "defender": 1080.0, "rung": 1600.0}
SVG = "{http://www.w3.org/2000/svg}"


def wavedash(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def rated_run(folder: Path, name: str, gain: float, versions: int = 6, seed: int = 0) -> Path:
    """A run folder with the games of versions that get better by `gain` points each, against fixed players."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.yaml").write_text(f"name: {name}\n")
    rng, file = np.random.default_rng(seed), GamesFile(folder / "games.csv")
    for version in range(1, versions + 1):
        step = 50_000_000 * version
        me = f"{name}@{step}"
        file.add(drawn_games({**FIXED, me: 1000 + gain * version}, [(me, other) for other in FIXED], 100, rng, step=step))
    return folder


def test_versions_are_rated_together_and_rise_with_their_steps(tmp_path) -> None:
    fast, slow = rated_run(tmp_path / "a" / "1", "fast", 150.0), rated_run(tmp_path / "b" / "1", "slow", 60.0, seed=1)
    ladder = read_ladder([fast / "games.csv", slow / "games.csv"])
    assert list(ladder.runs) == ["fast", "slow"] and set(ladder.fixed) == set(FIXED)
    for run, gain in (("fast", 150.0), ("slow", 60.0)):
        for steps, rating in ladder.runs[run].items():
            true = 1000 + gain * steps / 50_000_000
            assert abs(rating.value - true) < 2 * (rating.high - rating.value), "four standard errors"
    assert ladder.runs["fast"][300_000_000].value > ladder.runs["slow"][300_000_000].value + 200
    assert ladder.ratings["rung"].games == 1200, "both runs have met the same rung"


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path) -> None:
    one, other = (rated_run(tmp_path / "bot" / name, "bot", gain) for name, gain in (("1-aa", 150.0), ("2-bb", 20.0)))
    ladder = read_ladder([one / "games.csv", other / "games.csv"])
    assert list(ladder.runs) == ["1-aa", "2-bb"]
    assert ladder.runs["1-aa"][300_000_000].low > ladder.runs["2-bb"][300_000_000].high


def test_a_policy_of_which_one_version_played_is_a_fixed_player(tmp_path) -> None:
    games = drawn_games({"chaser": 1000, "old@7": 1100, "bot@1": 1200, "bot@2": 1300},
                        [("bot@1", "old@7"), ("bot@2", "old@7"), ("old@7", "chaser")], 50, np.random.default_rng(0))
    ladder = Ladder(games)
    assert set(ladder.fixed) == {"chaser", "old@7"} and list(ladder.runs) == ["bot"]


def test_games_of_a_file_that_is_named_twice_count_once(tmp_path) -> None:
    run = rated_run(tmp_path / "bot" / "1-aa", "bot", 150.0, versions=2)
    once, twice = (read_ladder([run / "games.csv"] * times) for times in (1, 2))
    assert twice.ratings == once.ratings


def test_teams_of_different_sizes_have_no_common_ratings(tmp_path) -> None:
    one, two = (rated_run(tmp_path / name / "1", name, 150.0, versions=2) / "games.csv" for name in ("one", "two"))
    games = [replace(game, size=2) for game in GamesFile(two).read()]
    two.unlink()
    GamesFile(two).add(games)
    assert list(read_ladder([two]).runs) == ["two"]
    with pytest.raises(UserError, match="no common ratings of games in 1v1 and 2v2"):
        read_ladder([one, two])


# The command


def test_the_newest_run_is_rated_without_a_name(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    run = rated_run(tmp_path / "bot" / "20260101-000000-aaaa", "bot", 100.0)
    wavedash("ladder")
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["1800 games: 1800 in warp", "ratings: the chaser has 1000 by definition"]
    assert told[2].endswith("reference games between players that never change count too")
    assert told[5].split()[:2] in (["1", "bot@300000000"], ["1", "rung"]) and told[-1] == f"chart: {run / 'ladder.svg'}"
    ET.parse(run / "ladder.svg")


def test_json_and_a_file_of_ones_own(tmp_path, capsys) -> None:
    run, out = rated_run(tmp_path / "bot" / "1", "bot", 100.0), tmp_path / "chart.svg"
    wavedash("ladder", run, "--json", "--out", out)
    told = json.loads(capsys.readouterr().out)
    assert [row["steps"] for row in told["runs"]["bot"]] == [50_000_000 * i for i in range(1, 7)] and out.exists()
    assert not (run / "ladder.svg").exists()
    wavedash("ladder", run / "games.csv", "--out", out)


def test_mistakes_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"there is no file or folder .*none; name a run folder, or a file of games"):
        wavedash("ladder")
    run = tmp_path / "bot" / "1"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text("name: bot\n")
    with pytest.raises(UserError, match=r"no rated games at .*\n  .*: no games\.csv\nA run rates itself while it trains if its "
                                        "configuration has a section `rating`"):
        wavedash("ladder", run)
    GamesFile(run / "games.csv").add([])
    with pytest.raises(UserError, match=r"games\.csv holds no games yet: wait until the run has rated itself"):
        wavedash("ladder", run)
    rated = rated_run(tmp_path / "bot" / "2", "bot", 100.0, versions=2)
    with pytest.raises(UserError, match=r"cannot write .*: No such file or directory; name another file with --out"):
        wavedash("ladder", rated, "--out", tmp_path / "nowhere" / "chart.svg")


# The chart


def test_a_chart_has_a_line_with_a_band_for_each_run_and_labels_that_do_not_overlap(tmp_path) -> None:
    files = [rated_run(tmp_path / name / "1", name, gain) / "games.csv" for name, gain in (("<a&b>", 150.0), ("c", 145.0))]
    ladder = read_ladder(files)
    root = ET.fromstring(draw(ladder))
    lines, bands = root.findall(f".//{SVG}polyline"), root.findall(f".//{SVG}polygon")
    assert len(lines) == len(bands) == 2 and len(root.findall(f".//{SVG}circle")) == 12
    assert len([line for line in root.iter(f"{SVG}line") if line.get("class") == "fixed"]) == 3
    for line, run in zip(lines, ladder.runs, strict=True):
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert all(LEFT <= x <= RIGHT and TOP <= y <= HEIGHT - BOTTOM for x, y in points)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        heights, ratings = [-y for _, y in points], [rating.value for rating in ladder.runs[run].values()]
        assert np.argsort(heights).tolist() == np.argsort(ratings).tolist(), "a higher rating is higher up"
    labels = [text for text in root.iter(f"{SVG}text") if "label" in text.get("class")]
    assert {text.text.rsplit(" ", 1)[0] for text in labels} == {"<a&b>", "c", *FIXED}
    places = sorted(float(text.get("y")) for text in labels)
    assert all(below - above >= 13.9 for above, below in pairwise(places)) and places[-1] < HEIGHT


def test_changes_and_milestones_of_a_run_are_thin_lines_with_a_title(tmp_path) -> None:
    run, plain = rated_run(tmp_path / "a" / "1", "bot", 150.0), rated_run(tmp_path / "b" / "2", "bot", 60.0, seed=1)
    rows = [{"step": 100_000_000, "key": "ppo.clip_range", "old": 0.2, "new": 0.1}, {"step": 1, "key": "x", "refused": "no"},
            {"step": 5, "key": "ppo.gamma", "old": 1, "new": 1}, {"step": 200_000_000, "key": "milestone", "argument": "<x>"},
            {"step": 250_000_000, "key": "phase", "argument": "<Gold>"}, {"step": 900_000_000, "key": "late"}]
    (run / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"torn')
    store = RunFolder(run).milestones
    store.label, store.every = "x", 10_000_000
    store.save(200_000_000, {"policy": {"x": torch.zeros(1)}}, {}, {})
    ladder = read_ladder([run / "games.csv", plain / "games.csv"])
    assert {mark.run for mark in ladder.marks} == {"1"}
    lines = [line for line in ET.fromstring(draw(ladder)).iter(f"{SVG}line") if "mark" in line.get("class", "")]
    assert [line[0].text for line in lines] == ["100M: ppo.clip_range: 0.2 -> 0.1", "200M: milestone 200M-x",
                                                "250M: phase: <Gold>"]
    third = LEFT + (RIGHT - LEFT) / 3
    assert abs(float(lines[0].get("x1", 0)) - third) < 0.1 and lines[0].get("class") == "c0 mark"


def test_players_of_one_version_stand_side_by_side_with_their_intervals() -> None:
    """The games of a tournament have no steps: a line against them would show nothing."""
    ladder = Ladder(drawn_games(FIXED, [*combinations(FIXED, 2)], 40, np.random.default_rng(0)))
    root = ET.fromstring(draw(ladder))
    assert "steps" not in [text.text for text in root.iter(f"{SVG}text")] and root.find(f".//{SVG}polyline") is None
    dots, bars = root.findall(f".//{SVG}circle"), [bar for bar in root.iter(f"{SVG}rect") if "band" in bar.get("class", "")]
    assert len(dots) == len(bars) == len(FIXED) == len({dot.get("cx") for dot in dots})
    scale = Scale(ladder)
    for (player, rating), dot, bar in zip(ladder.ratings.items(), dots, bars, strict=True):
        top, height = float(bar.get("y")), float(bar.get("height"))
        assert abs(scale.y(rating.high) - top) < 0.1 and abs(scale.y(rating.low) - (top + height)) < 0.2, player
        assert top - 0.1 <= float(dot.get("cy")) <= top + height + 0.1 and float(dot.get("cx")) < RIGHT


def test_labels_have_room_and_are_short(tmp_path) -> None:
    """A letter of a common font (DejaVu Sans, 12 px) is at most 7.7 wide on average in names of players."""
    games = drawn_games({"chaser": 1000, "champion-1v1@3543107584": 2000, "a-bot-with-a-very-long-name-000000000000@1": 1200},
                        [("chaser", "champion-1v1@3543107584"), ("chaser", "a-bot-with-a-very-long-name-000000000000@1")], 40,
                        np.random.default_rng(0))
    root = ET.fromstring(draw(Ladder(games)))
    labels = [text for text in root.iter(f"{SVG}text") if "label" in text.get("class")]
    assert {text.text.rsplit(" ", 1)[0] for text in labels} == {"chaser", "champion-1v1",
                                                               "a-bot-with-a-very-long-name-000000000000"}
    ends = [float(text.get("x")) + 7.7 * len(text.text) for text in labels]
    assert max(ends) <= float(root.get("width"))


def test_a_wide_interval_does_not_hide_the_rest() -> None:
    """A version that lost all of its few games has an interval of a thousand points."""
    games = [*drawn_games({"chaser": 1000, "bot@2": 1050}, [("bot@2", "chaser")], 400, np.random.default_rng(0)),
             *drawn_games({"chaser": 1000, "bot@1": -9000}, [("bot@1", "chaser")], 4, np.random.default_rng(0), nu=0.0)]
    ladder = Ladder(games)
    weak = ladder.runs["bot"][1]
    assert weak.high - weak.low > 1000
    root = ET.fromstring(draw(ladder))
    ((_, low), (_, high)) = (map(float, point.split(",")) for point in root.find(f".//{SVG}polyline").get("points").split())
    assert low - high > 0.4 * (HEIGHT - TOP - BOTTOM)


@pytest.mark.parametrize(("low", "high"), [(0, 300_000_000), (0, 7), (-340, 2210), (990.5, 1011.0), (0, 1)])
def test_axes_have_round_numbers(low, high) -> None:
    numbers = round_numbers(low, high)
    assert 2 <= len(numbers) <= 7 and all(low <= number <= high for number in numbers)
    steps = np.diff(numbers)
    assert np.allclose(steps, steps[0]) and f"{steps[0]:e}"[0] in "125"


def test_steps_in_short() -> None:
    assert [in_short(x) for x in (0, 500, 20_000, 1_500_000, 200_000_000, 2e9)] == ["0", "500", "20k", "1.5M", "200M", "2B"]
