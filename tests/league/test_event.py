"""Tournaments in folders: a killed one goes on and ends like one that was not; folders of others are refused."""
from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests import prepared
from wavedash.errors import UserError
from wavedash.league.event import Event, play_event
from wavedash.league.event_folder import GAMES, MATCHES, PICTURE, RESULTS, EventFolder
from wavedash.league.formats import make_format
from wavedash.league.match import Terms
from wavedash.league.players import find_entrant

NAMES = ("chaser", "defender", "idle")
TERMS = Terms(games=2, seconds=3.0)
DESCRIPTION = {"format": "round-robin", "players": list(NAMES), "games": 2}


def played(path: Path, folder: EventFolder | None = None) -> Event:
    folder = folder or EventFolder(path)
    folder.begin(DESCRIPTION)
    return play_event([find_entrant(name) for name in NAMES], NAMES, make_format("round-robin", 3, None), TERMS, folder)


def results_of(path: Path) -> list[object]:
    """Everything but the times at which games were played; a match that is played again has another row in matches.csv."""
    rows, games = EventFolder(path).read()
    return [[replace(game, time="") for game in games], rows, *((path / name).read_bytes() for name in (RESULTS, PICTURE))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tournament") / "whole"
    assert played(path).next is None
    return path


@pytest.mark.slow
@pytest.mark.parametrize("torn", [0, 30])
def test_a_tournament_that_stops_anywhere_ends_like_one_that_does_not(tmp_path: Path, whole: Path, torn: int) -> None:
    """It stops after the second match; of the files' ends, `torn` bytes are lost too."""
    class Stopping(EventFolder):
        matches = 0

        def add(self, *match) -> None:
            super().add(*match)
            self.matches += 1
            if self.matches == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played(tmp_path, Stopping(tmp_path))
    games = tmp_path / GAMES
    games.write_bytes(games.read_bytes()[: len(games.read_bytes()) - torn])
    assert results_of(tmp_path)[0] != results_of(whole)[0]
    played(tmp_path)
    assert results_of(tmp_path) == results_of(whole)


@pytest.mark.slow
def test_a_killed_process_goes_on_from_its_folder_alone(tmp_path: Path) -> None:
    command = ["-m", "wavedash", "tournament"]
    terms = ["--format", "round-robin", "--games", "2", "--seconds", "3", "--folder"]

    def run(*arguments: str) -> None:
        done = prepared.run([*command, *arguments])
        assert done.returncode == 0, done.stderr

    run(*NAMES, *terms, str(tmp_path / "whole"))
    process = prepared.popen([*command, *NAMES, *terms, str(tmp_path / "cut")], stdout=prepared.DEVNULL,
                             stderr=prepared.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "cut" / MATCHES).exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    process.kill()
    process.wait()
    run("--folder", str(tmp_path / "cut"))
    assert results_of(tmp_path / "cut") == results_of(tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_do_not_play_the_same_tournament(tmp_path: Path) -> None:
    """Each would play what is left, and the games would count twice."""
    command = ["-m", "wavedash", "tournament", *NAMES, "--format", "round-robin", "--games", "2", "--seconds", "3", "--folder",
               str(tmp_path)]
    folder = EventFolder(tmp_path)
    with folder.locked():
        refused = prepared.run(command)
    assert refused.returncode and "another process plays the tournament" in refused.stderr and not folder.read()[1]
    assert prepared.run(command).returncode == 0
    assert len(folder.read()[1]) == 6


def test_the_folder_of_another_tournament_is_refused_with_what_differs(tmp_path: Path) -> None:
    EventFolder(tmp_path).begin(DESCRIPTION)
    EventFolder(tmp_path).begin(DESCRIPTION)
    with pytest.raises(UserError, match="games: there 2, here 4"):
        EventFolder(tmp_path).begin(DESCRIPTION | {"games": 4})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / GAMES).write_text("")
    with pytest.raises(UserError, match=r"exists, but no tournament\.yaml"):
        EventFolder(tmp_path / "other").begin(DESCRIPTION)
