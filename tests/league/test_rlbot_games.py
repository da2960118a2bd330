"""Matches and tournaments with RLBot bots: real programs, of which one crashes and one hangs, and a process that is killed."""
from __future__ import annotations

import csv
import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import prepared
from tests.rlbot.server.bots import CHASES, CRASHES, HANGS, write_bot, write_bot_file
from wavedash.cli import app
from wavedash.cli.progress import Shown
from wavedash.errors import UserError
from wavedash.evaluate.results import MatchResult
from wavedash.league.event import play_event
from wavedash.league.event_folder import FAULTS, GAMES, MATCHES, PICTURE, RESULTS, EventFolder
from wavedash.league.formats import make_format
from wavedash.league.games import GamesFile
from wavedash.league.match import Terms, compare
from wavedash.league.players import find_entrant
from wavedash.league.rlbot_games import needs_server, play_through_server
from wavedash.league.served import Serving, report_of, serve_matches
from wavedash.rlbot.server.program import Patience
from wavedash.rlbot.server.referee import Round, WholeMatch
from wavedash.rlbot.server.serving import Outcome

pytest.importorskip("rlbot")

BOTS = {"Chase": CHASES, "Still": "return flat.ControllerState()", "Crash": CRASHES, "Hang": HANGS,
        "Boost": "return self.chase(packet, me, boost=False)"}


def wavedash(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bot.toml of every bot by name."""
    folder = tmp_path_factory.mktemp("bots")
    return {name: str(write_bot(folder / name, name, choose)) for name, choose in BOTS.items()}


def test_what_cannot_be_played_is_refused(bots: dict[str, str]) -> None:
    chase, chaser = find_entrant(bots["Chase"]), find_entrant("chaser")
    assert needs_server(Terms(), chase, chaser) and not needs_server(Terms(), chaser, chaser)
    assert needs_server(Terms(minutes=5.0), chaser, chaser)
    with pytest.raises(UserError, match="RocketSim"):
        needs_server(Terms(simulators=("warp",)), chase, chaser)
    with pytest.raises(UserError, match="rlbot serve"):
        chase.player()


def test_a_bot_that_is_started_by_hand_plays_where_it_can_find_the_server(tmp_path: Path) -> None:
    by_hand = find_entrant(str(write_bot_file(tmp_path, "Hand", "")))
    with pytest.raises(UserError, match="no run_command"):
        needs_server(Terms(), by_hand, find_entrant("chaser"))
    with pytest.raises(UserError, match="--port 23234"):
        next(serve_matches([by_hand, find_entrant("idle")], None, Serving(), tmp_path / "games.csv"))


def test_the_speed_of_a_match_counts_countdowns() -> None:
    """In real time, 288 packets take 2.4 seconds, of which half are a countdown here."""
    outcome = Outcome([Round((0, 0), 1.2)], [], (0, 0), ticks=288, wall_seconds=2.4)
    assert "at 1.0 times real time" in report_of(("idle", "chaser"), outcome, WholeMatch())


@pytest.mark.slow
def test_who_starts_a_bot_by_hand_is_told_when_and_where_it_connects(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_bot_file(tmp_path, "Hand", "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wavedash("rlbot", "serve", path, "idle", "--port", port, "--start", "1", "--minutes", "0.05", "--overtime", "0", "--out",
             tmp_path / "games.csv")
    told = capsys.readouterr()
    assert "Hand has no run_command: start it yourself within 1 s" in told.err
    assert f"RLBOT_SERVER_PORT is {port}" in told.err and "Hand: it was not ready after 1 s" in told.out


@pytest.mark.parametrize("name", ["chaser", "rung:preset-20min", "champion-1v1@5994970112"])
def test_a_bot_cannot_take_the_name_of_a_known_player(tmp_path: Path, name: str) -> None:
    """Its games would count for that one in ratings."""
    assert find_entrant(str(write_bot_file(tmp_path, name, "python run.py"))).name == f"bot:{name}"


def test_a_folder_with_a_bot_does_not_hide_a_known_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`wavedash export rlbot champion champion` writes such a folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("champion", "chaser", "mine"):
        write_bot_file(Path(name), f"the bot {name}", "python run.py")
    assert find_entrant("champion").name.startswith("champion-1v1@") and find_entrant("chaser").name == "chaser"
    for name in ("./champion", "champion/bot.toml", "./chaser", "mine"):
        assert find_entrant(name).name == f"the bot {Path(name.removesuffix('/bot.toml'))}"


@pytest.mark.slow
def test_the_same_match_is_not_written_twice(tmp_path: Path) -> None:
    serving, out = Serving(minutes=0.02, overtime=0.0, countdown=0.0), tmp_path / "games.csv"
    sides = [find_entrant("idle"), find_entrant("chaser")]
    assert len(list(serve_matches(sides, None, serving, out))) == 1
    with pytest.raises(UserError, match="another --seed"):
        next(serve_matches(sides, None, serving, out))
    assert len(list(serve_matches(sides, None, replace(serving, seed=2), out))) == 1 and len(GamesFile(out).read()) == 2


@pytest.mark.slow
def test_the_result_of_a_match_is_told_also_where_it_cannot_be_written(tmp_path: Path) -> None:
    out = tmp_path / "games.csv"

    class Blocking(Shown):
        def __call__(self, *texts: str) -> Callable[[float], None]:
            out.unlink()
            out.mkdir()
            return lambda share: None

    serving = Serving(minutes=0.02, overtime=0.0, countdown=0.0)
    matches = serve_matches([find_entrant("idle"), find_entrant("chaser")], None, serving, out, Blocking())
    assert next(matches).startswith("idle 0 : 0 chaser")
    with pytest.raises(UserError, match=r"cannot write .*games\.csv"):
        next(matches)


@pytest.mark.slow
def test_a_match_is_played_from_both_sides_and_says_how_its_programs_did(bots: dict[str, str]) -> None:
    terms = Terms(games=5, seconds=4.0)
    found = compare(find_entrant("idle"), find_entrant(bots["Crash"]), terms)
    result: MatchResult = found.results["rocketsim"]
    assert [game.side for game in result.played] == [0, 0, 0, 1, 1]
    assert {(game.blue, game.orange) for game in found.games} == {("idle", "Crash"), ("Crash", "idle")}
    assert str(found).splitlines()[1] == "But Crash stood still at times: see the programs below"
    told = json.loads(json.dumps(found.as_json()))["programs"]
    assert [(one["player"], one["team"], one["failed"], "exit code 3" in one["lost"]) for one in told] == [
        ("Crash", 1, True, True), ("Crash", 0, True, True)]
    assert str(found).count("exit code 3") == 2 and result.score.opponent_touches >= 0
    match = play_through_server(find_entrant("idle"), find_entrant(bots["Crash"]), terms)
    assert match.faults[0].crashes == 0 and match.faults[1].crashes == 2
    assert match.result.played == result.played, "the same seed plays the same games"


@pytest.mark.slow
def test_of_two_bots_of_the_same_name_it_is_told_which_one_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a match the one in blue has the name and the other has it with a number, and then they change sides."""
    monkeypatch.chdir(tmp_path)
    good, bad = (str(write_bot(Path(folder), "Same", choose)) for folder, choose in (("good", CHASES), ("bad", CRASHES)))
    terms = Terms(games=2, seconds=2.0, patience=Patience(end=0.2))
    found = compare(find_entrant(good), find_entrant(bad), terms)
    assert [(one["player"], one["failed"]) for one in found.as_json()["programs"]] == [
        (good, False), (good, False), (bad, True), (bad, True)]
    assert str(found).splitlines()[1] == f"But {bad} stood still at times: see the programs below"
    assert f"programs of {bad}\n  orange, Same (2): its program ended" in str(found)
    held = EventFolder(tmp_path / "cup")
    held.begin({})
    play_event([find_entrant(good), find_entrant(bad)], [good, bad], make_format("round-robin", 2), terms, held)
    told = [line.split(":")[0] for line in (tmp_path / "cup" / FAULTS).read_text().splitlines() if line.startswith("R1")]
    assert told == [f"R1.1 {bad} against {good}, as {team}" for team in ("orange", "blue")]


@pytest.mark.slow
def test_whole_matches_have_a_winner_and_count_all_goals() -> None:
    """Without any bot: the champion against one that does nothing, through the same server."""
    terms = Terms(games=2, seconds=4.0, minutes=0.5)
    match = play_through_server(find_entrant("idle"), find_entrant("champion"), replace(terms, hitbox="octane"))
    assert [game.side for game in match.result.played] == [0, 1] and match.conduct == ([], [])
    assert all(game.scored == 0 and game.conceded >= 2 and game.seconds >= 30.0 for game in match.result.played)


@pytest.mark.slow
def test_a_bot_whose_folder_is_gone_is_named_and_what_was_played_stays(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that has another place or name when the tournament goes on."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        write_bot(Path(name), name.upper())
    entrants = [find_entrant(name) for name in ("a", "b", "c")]
    terms = Terms(games=2, seconds=1.0, patience=Patience(end=0.2))
    description = {"format": "round-robin", "rounds": None, "players": ["a", "b", "c"], "names": ["A", "B", "C"], "games": 2,
                   "size": 1, "simulator": "rocketsim", "seconds": 1.0, "minutes": None, "deterministic": True, "seed": 1}
    held = EventFolder(Path("cup"))
    held.begin(description)
    Path("a").rename("moved")  # everybody is known already: B and C play, then A is to be started
    with pytest.raises(UserError, match=r"cannot start a/bot\.toml in .*Put the bot back"):
        play_event(entrants, ["A", "B", "C"], make_format("round-robin", 3), terms, held)
    assert [row.meeting for row in held.read()[0]] == ["R1.2"]

    with pytest.raises(UserError, match=r"no player 'a'(.|\n)*cup/tournament\.yaml names this player"):
        wavedash("tournament", "--folder", "cup")
    Path("moved").rename("a")
    bot_file = Path("a/bot.toml")
    text = bot_file.read_text()
    bot_file.write_text(text.replace('name = "A"', 'name = "D"'))
    with pytest.raises(UserError, match=r"other names than when it began:\n  names: there \['A', 'B', 'C'\], here \['D'"):
        wavedash("tournament", "--folder", "cup")
    bot_file.write_text(text)
    wavedash("tournament", "--folder", "cup")
    assert "round-robin of 3, finished" in capsys.readouterr().out
    assert {row.meeting for row in held.read()[0]} == {"R1.2", "R2.1", "R3.1"}


TOURNAMENT = """
import sys
from pathlib import Path
from wavedash.league.event import play_event
from wavedash.league.event_folder import EventFolder
from wavedash.league.formats import make_format
from wavedash.league.match import Terms
from wavedash.league.players import find_entrant
from wavedash.rlbot.server.program import Patience
from wavedash.rlbot.server.referee import Round, WholeMatch
from wavedash.rlbot.server.serving import Outcome
folder, *bots = sys.argv[1:]
held = EventFolder(Path(folder))
held.begin({"format": "swiss"})
entrants = [find_entrant(bot) for bot in bots]
terms = Terms(games=2, seconds=2.0, patience=Patience(answer=0.2, end=0.2))
print(play_event(entrants, [entrant.name for entrant in entrants], make_format("swiss", len(bots), 2), terms, held))
"""


@pytest.mark.slow
def test_a_tournament_of_five_bots_survives_a_crash_a_hang_and_a_kill(tmp_path: Path, bots: dict[str, str]) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    def command(folder: Path) -> list[str]:
        return ["-c", TOURNAMENT, str(folder), *bots.values()]

    printed = prepared.run(command(whole)).stdout
    assert "crashed or hung" in printed and "finished" in printed
    with open(whole / MATCHES) as file:
        rows = list(csv.DictReader(file))
    crashes = {name: sum(int(row[f"{side}_crashes"]) for row in rows for side in ("first", "second") if row[side] == name)
               for name in BOTS}
    assert crashes["Crash"] and crashes["Hang"] and not any(crashes[name] for name in ("Chase", "Still", "Boost"))
    told = (whole / FAULTS).read_text().splitlines()
    assert sum("Crash: its program ended with exit code 3" in line for line in told) == crashes["Crash"]
    assert sum("out of fuel" in line for line in told) == crashes["Crash"]
    assert sum("Hang: hung" in line for line in told) == crashes["Hang"] and FAULTS in printed
    assert not any(f"{name}: " in line for line in told for name in ("Chase", "Still", "Boost"))
    assert (whole / PICTURE).read_text().startswith("<svg") and "Chase" in (whole / RESULTS).read_text()

    process = prepared.popen(command(cut), stdout=prepared.DEVNULL, stderr=prepared.DEVNULL)
    deadline = time.monotonic() + 100
    while not (cut / MATCHES).exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = len(GamesFile(cut / GAMES).read())
    assert before < len(GamesFile(whole / GAMES).read())
    assert prepared.run(command(cut)).returncode == 0
    games = [[replace(game, time="") for game in EventFolder(folder).read()[1]] for folder in (cut, whole)]
    assert games[0] == games[1], "it ends like one that was never killed"
