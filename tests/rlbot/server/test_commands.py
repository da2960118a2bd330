"""The commands on the page about the match server, with bots of their names and games that are shorter."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests import prepared
from tests.rlbot.server.bots import CHASES, write_bot
from wavedash.league.games import GamesFile

pytest.importorskip("rlbot")
PAGE = Path(__file__).parents[3] / "docs" / "match-server.md"
SHORTER = {"--games": "2", "--matches": "2", "--minutes": "0.05"}


def shortened(command: str) -> list[str]:
    words = shlex.split(command)[1:]
    for option, value in SHORTER.items():
        if option in words:
            words[words.index(option) + 1] = value
    if words[0] == "rlbot":
        return [*words, "--overtime", "0.05", "--countdown", "0.1", *([] if "--minutes" in words else ["--minutes", "0.05"])]
    return [*words, "--seconds", "2"]


@pytest.mark.slow
def test_the_commands_on_the_page_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    (commands,) = re.findall(r"^```\n(wavedash rlbot serve.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for folder in set(re.findall(r"([\w-]+)/bot\.toml", commands)):
        write_bot(tmp_path / folder, folder.replace("-", "").capitalize(), CHASES)
    printed = []
    for command in commands.splitlines():
        found = prepared.run(["-m", "wavedash", *shortened(command)])
        assert found.returncode == 0, f"{command}\n{found.stdout}\n{found.stderr}"
        printed.append(found.stdout)
    assert len(printed) == 4
    games = GamesFile(tmp_path / "games.csv").read()
    assert [(game.blue, game.orange) for game in games] == [("Mybot", "Nexto")] + 2 * [("Mybot", games[1].orange)]
    assert re.search(r"^Mybot \d+ : \d+ Nexto", printed[0]) and "ready after" in printed[0]
    assert len(list((tmp_path / "runs" / "recordings").glob("*.wdr"))) == 2
    assert "programs of Mybot" in printed[2] and "swiss of 3, finished" in printed[3]
    assert (tmp_path / "cup" / "bracket.svg").exists()
