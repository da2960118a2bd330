"""Whom a user names in the terminal, whom a client names by id, and who may not play."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.web.serving import make_run
from wavedash.config_file import dump_config, load_config
from wavedash.errors import UserError
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.store import CheckpointStore
from wavedash.web.games import Wanted, read_game
from wavedash.web.library import Library, UnknownError
from wavedash.web.players import Players


def saved(run: Path, step: int, store: str = "checkpoints") -> Checkpoint:
    """A checkpoint without any tensors."""
    return Checkpoint.open(CheckpointStore(run / store, keep=1).save(step, {}, {"steps": step}, {}))


def test_words_name_players(tmp_path: Path) -> None:
    players = Players(Library(tmp_path))
    assert Wanted(players, ["champion", "VS", "Chaser"]).game().who == {"blue": "champion-1v1", "orange": "chaser"}
    assert Wanted(players, ["champion"]).game().who == {"blue": "champion-1v1", "orange": "champion-1v1"}
    assert Wanted(players, []).game().who == {"blue": "champion-1v1", "orange": "champion-1v1"}, "there is no run"
    for words, why in ((["chasr"], "did you mean 'chaser'"), (["a", "b", "c"], "one or two players"),
                       (["champion-7v7"], "no champion for 7v7")):
        with pytest.raises(UserError, match=why):
            Wanted(players, words)
    for chosen in ({"size": 4}, {"simulator": "bullet"}, {"start": "../kickoff"}):
        with pytest.raises(UserError):
            Wanted(players, ["champion"], **chosen)
    own = Wanted(players, ["my.module:Bot"]).game().blue
    assert players.find(own.id) == own, "who was named in the terminal can be chosen on the page"


def test_a_run_is_named_by_its_folder_wherever_it_is(tmp_path: Path) -> None:
    run = make_run(tmp_path / "elsewhere")
    players = Players(Library(tmp_path / "runs"))
    assert players.library.runs() == []
    for word in (run, run.parent):
        wanted = Wanted(players, [str(word)])
        (found,) = players.library.runs()
        assert wanted.run() == found.id and wanted.title == "cartpole/20261118-090000-abcd"
        with pytest.raises(UserError, match="has no checkpoint yet"):
            wanted.game()
    saved(run, 100)
    assert wanted.game().blue.step == 100


def test_the_newest_player_keeps_its_id_and_others_name_what_they_are(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    players = Players(Library(tmp_path))
    saved(run, 100)
    saved(run, 100, "best")
    game = Wanted(players, [str(run)]).game()
    ids = {player.name: player.id for player in players.all() if player.run is not None}
    assert set(ids) == {"cartpole newest", "cartpole best"}
    newer = saved(run, 200)
    renewed = game.renewed(players)
    assert (game.blue.step, renewed.blue.step) == (100, 200) and game.blue.id == renewed.blue.id == ids["cartpole newest"]
    assert renewed == renewed.renewed(players) != game
    shutil.rmtree(newer.path)  # there is none for a moment
    assert renewed.renewed(players) == renewed
    saved(run, 300, "best")
    assert players.find(ids["cartpole best"]).step == 300
    with pytest.raises(UnknownError):
        players.find("0" * 12)
    with pytest.raises(UserError, match="ids of players"):
        read_game(players, {"blue": None, "orange": ids["cartpole best"]})


def test_code_of_somebody_else_plays_only_with_trust(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    config = load_config("cartpole", ["env.id=null", "env.factory=my_module:make"])
    (run / "config.yaml").write_text(dump_config(config))
    saved(run, 100)
    players = Players(Library(tmp_path))
    (player,) = [player for player in players.all() if player.run is not None]
    assert "names code that would be run here" in player.refused and player.as_json()["refused"] == player.refused
    for look in (lambda: players.find(player.id), Wanted(players, [str(run)]).game):
        with pytest.raises(UserError, match="names code"):
            look()
    assert Wanted(Players(Library(tmp_path, trust=True)), [str(run)]).game().blue.refused is None


def test_nothing_outside_of_the_root_is_found(tmp_path: Path) -> None:
    make_run(tmp_path / "other")
    (tmp_path / "runs" / "linked").mkdir(parents=True)
    (tmp_path / "runs" / "linked" / "a").symlink_to(next((tmp_path / "other").glob("*/*")))
    (tmp_path / "runs" / "b").symlink_to(tmp_path / "other" / "cartpole")
    assert Library(tmp_path / "runs").runs() == []
