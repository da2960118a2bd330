"""games.csv: what is added is read again; torn lines, foreign files and resumed runs."""
from __future__ import annotations

from pathlib import Path

import pytest

from wavedash.errors import UserError
from wavedash.league.games import Game, GamesFile


def some_games(count: int, first: int = 0) -> list[Game]:
    return [Game("2026-01-01T00:00:00Z", 1000 * i, "chaser", f'my "bot", the best@{i}', 1, i % 3, 1, 60.5, "rocketsim", i)
            for i in range(first, first + count)]


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    file = GamesFile(tmp_path / "games.csv")
    assert file.read() == []
    file.add(some_games(3))
    file.add(some_games(2, first=3))
    assert file.read() == some_games(5)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_is_cut_off_by_the_next_games(tmp_path: Path, cut: int) -> None:
    file = GamesFile(tmp_path / "games.csv")
    file.add(some_games(3))
    file.path.write_bytes(file.path.read_bytes()[:-cut])
    assert file.read() == some_games(2)
    file.add(some_games(1, first=7))
    assert file.read() == [*some_games(2), *some_games(1, first=7)]


def test_games_after_the_checkpoint_are_cut_off(tmp_path: Path) -> None:
    file = GamesFile(tmp_path / "games.csv")
    file.add(some_games(5))
    file.keep(3)
    assert file.read() == some_games(3)
    file.keep(3)
    with pytest.raises(UserError, match="has 3 games, and the checkpoint knew 4"):
        file.keep(4)


@pytest.mark.parametrize(("text", "message"), [
    ("a,b\n1,2\n", "is no file of games"), ("{header}\n2026,x,a,b,1,0,0,60,warp,1\n", "line 2, holds no game"),
    ("{header}\n1,2\n", r"line 2, holds no game \(2 columns instead of 10\): 1,2\. Correct the line or delete it"),
    ("{header}\n2026,0,a,a,1,0,0,60,warp,1\n", r"line 2, holds no game \(a played itself"),
    ("{header}\n2026,0,a,b,1,0,0,nan,warp,1\n", "line 2, holds no game"),
    ("{header}\n2026,0,a,b,1,-1,0,60,warp,1\n", "line 2, holds no game"),
])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: str, message: str) -> None:
    file = GamesFile(tmp_path / "games.csv")
    file.add([])
    text = text.replace("{header}", file.path.read_text().strip())
    file.path.write_text(text)
    with pytest.raises(UserError, match=message):
        file.read()
    with pytest.raises(UserError, match=message):
        file.keep(0)
    assert file.path.read_text() == text


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a"])
def test_games_are_not_added_to_another_file(tmp_path: Path, text: str) -> None:
    file = GamesFile(tmp_path / "games.csv")
    file.path.write_text(text)
    with pytest.raises(UserError, match="is no file of games"):
        file.add(some_games(1))
    assert file.path.read_text() == text


def test_a_folder_is_no_file_of_games(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*; name a games\.csv"):
        GamesFile(tmp_path).read()


def test_a_header_that_was_torn_is_written_again(tmp_path: Path) -> None:
    file = GamesFile(tmp_path / "games.csv")
    file.add([])
    file.path.write_bytes(file.path.read_bytes()[:-5])
    file.add(some_games(2))
    assert file.read() == some_games(2)


def test_a_game_against_oneself_is_refused() -> None:
    with pytest.raises(UserError, match="chaser played itself"):
        Game("2026-01-01T00:00:00Z", 0, "chaser", "chaser", 1, 0, 0, 60.0, "warp", 0)
