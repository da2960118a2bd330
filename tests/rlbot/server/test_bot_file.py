"""Bot files: what is read from them, and what is refused."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.rlbot.server.bots import write_bot_file
from wavedash.errors import UserError
from wavedash.rlbot.car_bodies import BODY_OF_HITBOX, HITBOX_OF_BODY
from wavedash.rlbot.server.bot_file import find_bot_file, read_bot_file
from wavedash.rocket.constants import HITBOXES

pytest.importorskip("rlbot")


def test_names_of_files(tmp_path: Path) -> None:
    for name in ("bot.toml", "a/b/bot.toml", "nexto.bot.toml"):
        assert find_bot_file(name) == Path(name)
    assert not any(map(find_bot_file, ["robot.toml", "chaser", "runs/bot", "bot.toml/x", "match.toml", str(tmp_path)]))
    path = write_bot_file(tmp_path, "A", "python run.py")
    assert find_bot_file(str(tmp_path)) == path, "the folder of a bot is enough"


def test_a_bot_with_a_loadout(tmp_path: Path) -> None:
    (tmp_path / "loadout.toml").write_text("[blue_loadout]\ncar_id = 403\n[orange_loadout]\ncar_id = 22\n")
    (tmp_path / "src").mkdir()
    bot = read_bot_file(write_bot_file(tmp_path, "Dom", "python run.py",
                                       'loadout_file = "loadout.toml"\nroot_dir = "src"\nhivemind = true'))
    assert (bot.name, bot.agent_id, bot.command, bot.root, bot.hivemind) == (
        "Dom", "tests/Dom", "python run.py", tmp_path / "src", True)
    assert (bot.hitbox(0), bot.hitbox(1)) == ("dominus", "breakout")


def test_names_are_one_printable_line(tmp_path: Path) -> None:
    assert read_bot_file(write_bot_file(tmp_path, "a\\n\\u001b[31mb  c", "python run.py")).name == "a [31mb c"


def test_every_hitbox_has_a_body() -> None:
    assert set(BODY_OF_HITBOX) == {box.name for box in HITBOXES} == set(HITBOX_OF_BODY.values())
    assert all(HITBOX_OF_BODY[body] == hitbox for hitbox, body in BODY_OF_HITBOX.items())


@pytest.mark.parametrize(("text", "says"), [
    (None, "No such file"), ("[settings", "cannot read"), ("[settings]\nname = 3", "Expected a string"),
    ('[settings]\nname = "a"', "no agent_id"), ('[settings]\nagent_id = "a/b"\nroot_dir = "nowhere"', "root_dir"),
    ('[settings]\nagent_id = "a/b"\nloadout_file = "none.toml"', "none.toml"), (b"\xff\xfe", "cannot read"),
    ('[settings]\nagent_id = "a/b"\nloadout_file = "\\u0000"', "cannot read"),
    ('[settings]\nagent_id = "a/b"\nrun_command = "a\\u0000b"', "zero byte"),
])
def test_what_is_no_bot_is_refused_by_name(tmp_path: Path, text: str | bytes | None, says: str) -> None:
    path = tmp_path / "bot.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=says) as refused:
        read_bot_file(path)
    assert str(path) in str(refused.value)
