"""A policy that walks is packed as a champion, with a card of how far it comes, and is found by its name."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

import wavedash
from wavedash import champions
from wavedash.champions.pack import card_of, pack
from wavedash.cli.app import app
from wavedash.errors import UserError
from wavedash.league.players import find_entrant
from wavedash.runs.find import resolve_policy
from wavedash.walk.evaluate.card import WalkingCard
from wavedash.walk.evaluate.walking import evaluate_walking
from wavedash.web.library import Library
from wavedash.web.players import Players

WALKER = Path(__file__).parent / "walker"
STAGES = "- {command: wavedash train walk-flat, steps: 700, gpu: two CPU cores, gpu_minutes: 0}\n"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of champions, in which the walker of these tests is the champion that walks."""
    (tmp_path / "training.yaml").write_text(STAGES * 2)
    folder = tmp_path / "champions"
    monkeypatch.setattr(champions, "FOLDER", folder)
    pack(str(WALKER), "walk", tmp_path / "training.yaml", folder)
    return folder


def test_it_is_found_by_its_name_and_walks_as_what_was_packed(shipped: Path) -> None:
    assert champions.walkers() == ["walk"] and champions.modes() == []
    assert resolve_policy("champion-walk").path == shipped / "walk"
    course = {"robots": 2, "levels": [0], "seconds": 2.0}
    found, expected = (evaluate_walking(name, **course) for name in ("champion-walk", WALKER))
    for mine, theirs in zip(found.tiles, expected.tiles, strict=True):
        # Weights in 16 bits: not the same to the bit, but nothing that a robot shows within two seconds.
        assert mine.distance == pytest.approx(theirs.distance, abs=0.05) and theirs.distance[0] > 0.5
    with pytest.raises(UserError, match=r"no champion for walk-see ships with this version; there is champion-walk$"):
        wavedash.load_run("champion-walk-see")


def test_its_card_has_what_the_evaluation_wrote(shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "walk.json"
    app(["eval", "champion-walk", "--episodes", "3", "--seconds", "1", "--json", str(file)], standalone_mode=False)
    app(["champion", "card", "walk", "--walked", str(file)], standalone_mode=False)
    written = json.loads(file.read_text())
    card = WalkingCard.read(shipped / "walk")
    assert card == card_of("walk").read(shipped / "walk") and card.name == "champion-walk@1400"
    (kind,), (walk,) = card.walks.keys(), card.walks.values()
    assert (kind, walk.robots) == ("flat", 3)
    assert walk.distance == pytest.approx(written["terrains"][0]["distance"], abs=0.005)
    assert walk.by_level == {0: walk.distance}
    capsys.readouterr()
    app(["champion", "show", "walk"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "trained for 1,400 steps\n" in shown and "700 steps, two CPU cores" in shown, "no GPU minutes where there was no GPU"
    assert f"{walk.distance:.2f} ± " in shown and "at most 1.0 s; sensors are exact, robots are not pushed" in shown


@pytest.mark.parametrize(("text", "message"), [
    ('{"policy": "runs/other/best", "terrains": [], "tiles": [], "way": 1, "speed": 1, "seconds": 1, "noisy": 0, "pushes": 0}',
     "holds the results of runs/other/best, not of champion-walk"),
    ("[]", "holds no results of one walking policy"), ("{", "holds no results"), ("{}", "holds no results"),
])
def test_results_of_others_make_no_card(text: str, message: str, shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "walk.json").write_text(text)
    before = (shipped / "walk" / "card.yaml").read_bytes()
    with pytest.raises(UserError, match=message):
        app(["champion", "card", "walk", "--walked", str(tmp_path / "walk.json")], standalone_mode=False)
    with pytest.raises(UserError, match=r"--walked FILE$"):
        app(["champion", "card", "walk", "--games", str(tmp_path / "walk.json")], standalone_mode=False)
    assert (shipped / "walk" / "card.yaml").read_bytes() == before


def test_a_bot_is_no_walker_and_a_walker_no_bot(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"only runs of a walking task"):
        pack(str(Path(champions.__file__).parent / "1v1"), "walk", tmp_path / "training.yaml", tmp_path / "more")
    with pytest.raises(UserError, match=r"only runs of a Rocket League task"):
        pack(str(WALKER), "1v1", tmp_path / "training.yaml", tmp_path / "more")
    with pytest.raises(UserError, match="none of walk, walk-see"):
        pack(str(WALKER), "run", tmp_path / "training.yaml", tmp_path / "more")
    assert not (tmp_path / "more").exists()
    with pytest.raises(UserError, match="only runs of a Rocket League task"):
        print(find_entrant("champion-walk").task)


def test_the_page_offers_it_among_the_walkers(shipped: Path, tmp_path: Path) -> None:
    players = Players(Library(tmp_path / "runs"))
    (found,) = (player for player in players.all() if player.name == "champion-walk")
    assert (found.kind, found.size, found.step) == ("walk", None, 1400) and found == players.named("champion-walk")
