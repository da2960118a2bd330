"""Games of matches and evaluations are recorded as they were played, and are the same with and without a recorder."""
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests.league.commands import trained
from tests.recordings.made import read_by_the_page, small
from tests.web.test_stage_rocket import staged
from wavedash.cli import app
from wavedash.cli.recorded import tell_recorded
from wavedash.errors import UserError
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.evaluate.recorded import _in_turns
from wavedash.league.match import Terms, match_recorder, play
from wavedash.league.players import find_entrant
from wavedash.recordings import Recording, RecordingError, read
from wavedash.recordings.order import Order

pytest.importorskip("RocketSim")


def recordings(folder: Path) -> list[Recording]:
    return [read(path) for path in sorted(folder.glob("*.wdr"))]


def played(folder: Path | None, games: int | None = None, simulator: str = "rocketsim", seconds: float = 4.0,
           players: tuple[str, ...] = ("chaser", "random", "defender")) -> Any:
    terms = Terms(8, (simulator,), 1, seconds, seed=3)
    first, *others = (find_entrant(name) for name in players)
    return play(terms, simulator, first, others, record=None if folder is None else Order(games, folder))


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_the_same_games_are_played_with_and_without_recording(simulator, tmp_path):
    """Of each pair as many games as were asked for, from both sides; the score of each file is that of its game."""
    plain, recorded = played(None, simulator=simulator), played(tmp_path, 3, simulator)
    assert [result.played for result in recorded] == [result.played for result in plain]
    assert [result.score for result in recorded] == [result.score for result in plain]
    files = recordings(tmp_path)
    titles = [file.header["title"].partition(",")[0] for file in files]
    assert len(files) == 6 and len({file.header["title"] for file in files}) == 6
    for result, other in zip(recorded, ("random", "defender"), strict=True):
        mine = [file for file, title in zip(files, titles, strict=True) if other in title]
        assert sorted(file.header["players"][0]["name"] == "chaser" for file in mine) == [False, True, True]
        goals = {(game.side, game.scored, game.conceded, round(game.seconds, 2)) for game in result.played}
        for file in mine:
            side = [player["name"] for player in file.header["players"]].index("chaser")
            score, seconds = file.header["score"], file["tick"][-1] / 120
            assert (side, score[side], score[1 - side], round(float(seconds), 2)) in goals
            assert file["tick"][0] == 0 and file["score"][-1].tolist() == score
            assert file.header["events"][-1]["kind"] == "end" and file.header["scene"]["simulator"] == simulator
            assert file["goal"][-1] == (-1 if score == [0, 0] else score.index(1)) and file.header["source"] == "match"


def test_a_recorded_game_is_the_game_in_the_arena(tmp_path):
    """The independent reader finds, frame by frame, the states that were copied after every step of the arena."""
    order, copies = Order(1, tmp_path), list[torch.Tensor]()
    first, second = find_entrant("chaser"), find_entrant("idle")
    recorder = match_recorder(order, "match", first, [second], 1, "rocketsim")
    match = Match(arenas_of(1, "rocketsim"), first.player(), second.player(), 2, limit=3.0, recorder=recorder)
    task = match.env.tasks[0]
    own = task.ended

    def ended(state, previous, events):
        if not copies:
            copies.append(previous.memory[0].clone())
        copies.append(state.memory[0].clone())
        return own(state, previous, events)

    task.ended = ended
    match.play(1)
    match.close()
    (path,) = order.files
    header, frames = read_by_the_page(path.read_bytes())
    states = match.env.states[0].over(torch.stack(copies[:len(frames)]), 2)
    assert len(frames) == 46 and header["ticks_per_frame"] == 8
    positions = np.array([frame["cars.position"] for frame in frames]).reshape(-1, 2, 3)
    assert np.abs(positions - states.cars.position.numpy()).max() <= 0.1251
    assert np.abs(np.array([frame["ball.position"] for frame in frames]) - states.ball.position.numpy()).max() <= 0.1251
    assert np.abs(positions[0] - positions[-1]).max() > 500, "the control: it moved"


def test_a_match_can_be_recorded_again_and_all_of_it(tmp_path):
    order = Order(None, tmp_path)
    first, second = find_entrant("chaser"), find_entrant("idle")
    match = Match(arenas_of(1, "rocketsim"), first.player(), second.player(), 6, limit=1.0,
                  recorder=match_recorder(order, "match", first, [second], 1, "rocketsim"))
    match.warm_up()
    for seed in (1, 2, 1):
        match.play(seed)
    match.close()
    assert len(order.files) == 18 and str(order) == f"wrote 18 recordings into {tmp_path}"
    games = [read(path) for path in order.files]
    for one, again in zip(games[:6], games[12:], strict=True):
        assert np.array_equal(one.records, again.records)
    assert not np.array_equal(games[0].records, games[6].records)


@pytest.mark.slow
def test_more_rounds_than_arenas(tmp_path, monkeypatch):
    """Where an arena plays several games, later ones are recorded too, and none that the match does not count."""
    monkeypatch.setattr("wavedash.evaluate.matches.MOST_ON_CPU", 4)
    monkeypatch.setattr("wavedash.rocket.recording.recorder.MOST_ARENAS", 2)
    played(tmp_path, 3, seconds=1.0, players=("chaser", "idle"))
    assert len(recordings(tmp_path)) == 3
    shutil.rmtree(tmp_path)
    played(tmp_path, None, seconds=1.0, players=("chaser", "idle"))
    assert len(recordings(tmp_path)) == 4, "two of four arenas, each two games"


def test_teams_of_different_players_are_named_car_by_car(tmp_path):
    order = Order(2, tmp_path)
    first, second = find_entrant("chaser+defender"), find_entrant("idle+random")
    play(Terms(2, ("rocketsim",), 2, 1.0), "rocketsim", first, [second], record=order)
    names = [[player["name"] for player in file.header["players"]] for file in recordings(tmp_path)]
    assert sorted(names) == [["chaser", "defender", "idle", "random"], ["idle", "random", "chaser", "defender"]]
    assert [player["team"] for player in recordings(tmp_path)[0].header["players"]] == [0, 0, 1, 1]


def test_frames_are_fifteen_a_second_also_where_arenas_step_more_often(tmp_path):
    """Players of different paces play in arenas with shorter steps. No event is lost with the frames that are left out."""
    order = Order(2, tmp_path)
    first, second = find_entrant("chaser"), find_entrant("chaser")
    for entrant, ticks in ((first, 8), (second, 2)):
        made = entrant.player

        def player(*args, made=made, ticks=ticks):
            found = made(*args)
            found.ticks, found.delay = ticks, 0
            return found

        object.__setattr__(entrant, "player", player)
    play(Terms(2, ("rocketsim",), 1, 6.0), "rocketsim", first, [second], record=order)
    for file in recordings(tmp_path):
        assert file.header["ticks_per_frame"] == 8
        steps = np.diff(file["tick"])
        assert (steps[:-1] == 8).all() and 0 < steps[-1] <= 8
        touches = [event["frame"] for event in file.header["events"] if event["kind"] == "touch"]
        assert touches and all(frame < file.frames for frame in touches)


def test_a_disk_that_fails_costs_recordings_and_no_results(tmp_path):
    folder = tmp_path / "recordings"
    order = Order.read("4", folder, tmp_path)
    assert order is not None
    folder.rmdir()
    folder.write_text("in the way")
    first, second = find_entrant("chaser"), find_entrant("idle")
    (result,) = play(Terms(4, ("rocketsim",), 1, 1.0), "rocketsim", first, [second], record=order)
    assert len(result.played) == 4 and order.files == []
    with pytest.raises(RecordingError, match="cannot write"):
        tell_recorded(order)


@pytest.mark.parametrize(("record", "folder", "why"), [
    ("0", None, "a number of games, or all, not '0'"), ("-1", None, "not '-1'"), ("many", None, "not 'many'"),
    ("9999999999", None, "not"), ("²", None, "not"), (None, Path("x"), "goes with --record"),
    ("1", Path("file"), "cannot make"),
])
def test_an_order_that_makes_no_sense_is_refused(record, folder, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=why):
        Order.read(record, folder, tmp_path / "default")
    assert not (tmp_path / "default").exists()


def test_orders(tmp_path):
    assert Order.read(None, None, tmp_path) is None
    every, some = Order.read("all", None, tmp_path / "a" / "b"), Order.read("3", tmp_path / "c", tmp_path / "d")
    assert every is not None and (every.games, every.folder) == (None, tmp_path / "a" / "b") and every.folder.is_dir()
    assert some is not None and (some.games, some.folder) == (3, tmp_path / "c") and not (tmp_path / "d").exists()
    some.write(small(), "who vs whom / ../ x")
    assert next(some.folder.iterdir()).name.endswith("-001-who-vs-whom-..-x.wdr")


def test_arenas_of_all_shards_take_turns():
    assert _in_turns([3]) == [0, 1, 2] and _in_turns([2, 4, 1]) == [0, 2, 6, 1, 3, 4, 5]


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("runs"), "rocket-1v1", "env.rocket.simulator=rocketsim",
                   "env.rocket.endings={goal: {}, time_out: {seconds: 5}}")


def command(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.slow
def test_commands_record_where_they_say(run, tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    plain = command("match", "chaser", "idle", "--games", "4", "--seconds", "2", "--json")
    done = command("match", "chaser", "idle", "--games", "4", "--seconds", "2", "--json", "--record", "2")
    assert done.exit_code == 0 and done.stdout == plain.stdout and json.loads(done.stdout)
    assert done.stderr.splitlines()[-1] == f"wrote 2 recordings into {tmp_path / 'recordings'}"
    assert len(recordings(tmp_path / "recordings")) == 2
    done = command("tournament", "chaser", "idle", "random", "--games", "2", "--seconds", "1", "--record", "all",
                   "--recordings", str(tmp_path / "all"))
    assert done.exit_code == 0 and len(recordings(tmp_path / "all")) == 6


@pytest.mark.slow
def test_evaluations_of_a_run_are_recorded_in_its_folder(run, monkeypatch):
    plain = command("eval", str(run), "--games", "4", "--against", "idle")
    done = command("eval", str(run), "--games", "4", "--against", "idle", "--record", "1")
    assert done.exit_code == 0 and done.stdout == plain.stdout
    (file,) = recordings(run / "recordings")
    assert file.header["source"] == "eval" and file.header["run"] == f"{run.parent.name}/{run.name}"
    assert file.header["players"][0]["policy"] and not file.header["players"][1]["policy"]
    shutil.rmtree(run / "recordings")
    plain = command("eval", str(run), "--episodes", "6")
    done = command("eval", str(run), "--episodes", "6", "--record", "2", "--random")
    assert done.exit_code == 0 and done.stdout.startswith(plain.stdout)
    files = recordings(run / "recordings")
    assert len(files) == 2 and all(player["policy"] for file in files for player in file.header["players"])
    assert all(file.header["scene"]["start"] == "task" and file["tick"][0] == 0 for file in files)


def test_kinds_that_cannot_be_recorded_say_so(tmp_path):
    cartpole = trained(tmp_path, "cartpole")
    with pytest.raises(UserError, match="--record is not for CartPole"):
        CliRunner().invoke(app, ["eval", str(cartpole), "--record", "1"], catch_exceptions=False)


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_minute_of_the_champion_takes_less_than_200_kilobytes(tmp_path):
    """Real games of 1v1, with and without heads: what docs/recordings.md says."""
    order = Order(4, tmp_path)
    champion = find_entrant("champion", size=1)
    play(Terms(4, ("rocketsim",), 1, 15.0), "rocketsim", champion, [champion], record=order)
    seconds = sum(read(path).seconds for path in order.files)
    without = sum(path.stat().st_size for path in order.files) / seconds * 60
    assert seconds > 20 and 30_000 < without < 90_000
    stage, _ = staged(tmp_path, orange="champion", seconds=60.0)
    for _ in range(1800):
        stage.step()
        if stage.over:
            stage.step()
    path = stage.record()
    stage.close()
    recording = read(path)
    assert recording.header["reward_terms"] and "cars.reward" in recording
    assert recording.seconds > 5 and path.stat().st_size / recording.seconds * 60 < 200_000

