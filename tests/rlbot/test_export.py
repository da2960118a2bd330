"""`wavedash export rlbot`: the files of a bot, what is refused, and the bot in a process of its own."""
from __future__ import annotations

import json
import re
import struct
import sys
import tomllib
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

from tests.rlbot.bots import bot_of
from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.host import Host
from wavedash.bench.rlbot.policies import KINDS, random_policy
from wavedash.cli.app import app
from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.export.agreement import DisagreementError
from wavedash.rlbot.bot.brain import Brain
from wavedash.rlbot.car_bodies import BODY_OF_HITBOX
from wavedash.rlbot.export import export_bot, write
from wavedash.rlbot.export.task import action_settings, observation_settings
from wavedash.rlbot.export.texts import REQUIREMENTS, Bot
from wavedash.rlbot.export.write import write_bot
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.observations import AdvancedObsPlus
from wavedash.rocket.state import CONTROLS

config = pytest.importorskip("rlbot.config")
ODD = 'Ünïcode "quoted" \\ bot'


@pytest.fixture(scope="module")
def champion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bots") / "bot"
    print(export_bot("champion", folder, name=ODD, developer="Some One", description="It\nplays."))
    return folder


@pytest.mark.parametrize("team", [0, 1])
def test_rlbots_own_parser_reads_the_files(champion: Path, team: int) -> None:
    bot = config.load_player_config(champion / "bot.toml", team).variety
    assert (bot.name, bot.agent_id, bot.hivemind) == (ODD, "some-one/n-code-quoted-bot", False)
    assert Path(bot.root_dir) == champion and bot.run_command.endswith("python run.py" if sys.platform == "win32" else "run.py")
    assert bot.loadout.car_id == BODY_OF_HITBOX["octane"]
    details = tomllib.loads((champion / "bot.toml").read_text(encoding="utf-8"))
    assert details["details"]["description"] == "It\nplays." and details["details"]["tags"] == ["1v1"]


def test_the_match_of_the_readme_is_one(champion: Path) -> None:
    readme = (champion / "README.md").read_text(encoding="utf-8")
    match = champion / "match.toml"
    match.write_text(readme.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    players = config.load_match_config(match).player_configurations
    match.unlink()
    assert [player.team for player in players] == [0, 1] and players[0].variety.name == ODD


def test_the_folder_has_all_files_and_the_zip_the_same(champion: Path) -> None:
    written = {str(file.relative_to(champion)).replace("\\", "/"): file.read_bytes() for file in champion.rglob("*")
               if file.is_file() and "__pycache__" not in file.parts}
    assert {"bot.toml", "loadout.toml", "run.py", "settings.json", "weights.npz", "logo.png", "requirements.txt", "bob.toml",
            "n-code-quoted-bot.spec", "README.md", "wavedash_bot/player.py"} <= written.keys()
    with zipfile.ZipFile(champion.with_name("bot.zip")) as archive:
        assert {name.removeprefix("bot/"): archive.read(name) for name in archive.namelist()} == written
    build = tomllib.loads(written["bob.toml"].decode())["config"][0]
    assert build["builder_config"]["entry_file"] in written and build["bot_configs"] == ["bot.toml"]
    compile(written["n-code-quoted-bot.spec"], "spec", "exec")
    assert written["requirements.txt"].decode().split() == list(REQUIREMENTS)
    with np.load(champion / "weights.npz", allow_pickle=False) as weights:
        assert all(weights[name].dtype == np.float32 for name in weights.files if name.startswith(("body", "head", "memory")))
    text = b"".join(content for name, content in written.items() if not name.endswith((".npz", ".png")))
    assert str(Path.home()).encode() not in text and str(Path.cwd()).encode() not in text


def test_the_logo_is_a_png_of_the_size_that_rlbot_wants(champion: Path) -> None:
    data = (champion / "logo.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">2I", data[16:24]) == (400, 300)
    at, kinds, pixels = 8, [], b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(data[at + 4:at + 8 + length])
        kinds.append(kind)
        pixels += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    assert kinds == [b"IHDR", b"IDAT", b"IEND"] and len(zlib.decompress(pixels)) == 300 * (1 + 3 * 400)


def test_an_export_replaces_an_exported_bot_and_nothing_else(champion: Path, tmp_path: Path) -> None:
    before = champion.with_name("bot.zip").read_bytes()
    export_bot("champion", champion, name=ODD, developer="Some One", description="It\nplays.")
    assert champion.with_name("bot.zip").read_bytes() == before, "the same bot gives the same bytes"
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UserError, match="is not an exported bot: name a new folder"):
        export_bot("champion", tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.parametrize("out", [".", "../bot"])
def test_the_current_folder_can_be_exported_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    """It stays the same folder, so whoever is in it sees the bot; Windows could not remove it either."""
    folder = tmp_path / "bot"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for _ in range(2):
        export_bot("champion", out)
        assert Path("bot.toml").is_file() and Path("wavedash_bot", "player.py").is_file(), "the current folder is still there"
        assert {path.name for path in tmp_path.iterdir()} == {"bot", "bot.zip"}
        assert not Path("old.txt").exists()
        Path("old.txt").write_text("of an earlier export")
    with zipfile.ZipFile(tmp_path / "bot.zip") as archive:
        assert all(name.startswith("bot/") for name in archive.namelist())


def test_what_a_bot_has_no_code_for_is_refused_by_its_name() -> None:
    class Mine(AdvancedObsPlus):
        def build(self, *args: Any, **kwargs: Any) -> Any:
            return super().build(*args, **kwargs)

    class Wild(LookupTable):
        def controls(self, action: Any) -> Any:
            return -super().controls(action)

    class More(AdvancedObsPlus):
        more = ("height",)

    for refused, name in ((lambda: observation_settings(Mine(), 2), "Mine"), (lambda: action_settings(Wild()), "Wild"),
                          (lambda: observation_settings(More(), 2), "height")):
        with pytest.raises(UserError, match=rf"{name}.*wavedash export RUN"):
            refused()


def test_a_list_of_names_of_ones_own_and_rows_of_ones_own_can_be_exported() -> None:
    class Few(AdvancedObsPlus):
        def sees(self) -> list[str]:
            return ["own.position.x", "ball.position.y"]

    class Two(LookupTable):
        def rows(self) -> list[list[float]]:
            return [[0.0] * 8, [1.0] + [0.0] * 7]

    from wavedash.rocket.rehearsal import empty_arenas

    state = empty_arenas(1, RocketConfig())
    few, two = Few(), Two()
    few.bind(state)
    two.bind(state)
    assert len(observation_settings(few, 2)["rows"]) == 2 and action_settings(two)[1]["action.table"].shape == (2, 8)


@pytest.mark.parametrize("fault", ["head.bias", "field of view", "table"])
def test_a_bot_that_decides_otherwise_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str) -> None:
    policy, task = random_policy(KINDS["gru-2v2"])
    content = write._content

    def faulty(bot: Bot, settings: dict[str, Any], arrays: dict[str, Any]) -> dict[str, bytes]:
        if fault == "head.bias":
            arrays["head.bias"] = arrays["head.bias"] + np.linspace(0, 1, len(arrays["head.bias"]), dtype=np.float32)
        elif fault == "table":
            arrays["action.table"] = arrays["action.table"][::-1]
        else:
            settings["observation"]["rows"][0] += 1
        return content(bot, settings, arrays)

    monkeypatch.setattr(write, "_content", faulty)
    with pytest.raises(DisagreementError, match="differs from the trainer"):
        write_bot(policy, task, Bot("x", "y", "z", "dominus", ()), tmp_path / "bot", "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("games", [1, 3])
def test_the_bot_knows_how_many_games_an_episode_had(tmp_path: Path, games: int) -> None:
    policy, task = random_policy(KINDS["gru-2v2"])
    write_bot(policy, task.model_copy(update={"games": games}), Bot("a", "b", "c", task.hitbox, ()), tmp_path / "bot", "a")
    assert Brain(tmp_path / "bot").games == games


def test_the_page_of_docs_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command writes a bot, and its match.toml is one that RLBot's parser reads."""
    page = (Path(__file__).parents[2] / "docs" / "rlbot.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command = page.split("```bash\nwavedash ")[1].split("\n```")[0]
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    Path("match.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    blue, orange = config.load_match_config("match.toml").player_configurations
    assert blue.variety.name == "champion-1v1" and orange.team == 1
    listed = set(re.findall(r"`([\w/]+\.?\w*)`", page.split("| file | for |")[1].split("\n\n")[0]))
    named = {name.rstrip("/") for name in listed} - {"NAME.spec"}
    assert all((tmp_path / "my-bot" / name).exists() for name in named if name not in ("bob", "pyinstaller")), named


def test_the_command_says_what_was_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", "rlbot", "champion", str(tmp_path / "bot"), "--name", "Champ"])
    assert done.exit_code == 0, done.output
    assert "400 decisions on random states beside the trainer" in done.output and "bot.toml" in done.output
    assert json.loads((tmp_path / "bot" / "settings.json").read_text())["source"].startswith("champion-1v1@")
    assert yaml.safe_load((tmp_path / "bot" / "settings.json").read_text())["hitbox"] == "octane"


BLOCKED = """
import sys
for name in ("torch", "wavedash", "gymnasium", "warp", "RocketSim", "rlgym", "onnxruntime"):
    sys.modules[name] = None
import runpy
sys.path.insert(0, ".")
runpy.run_path("run.py", run_name="__main__")
"""


@pytest.mark.parametrize(("name", "command"), [("lstm-3v3", [sys.executable, "-c", BLOCKED]), ("frames-2v2", None)])
def test_rlbots_own_client_plays_it_in_a_process_without_torch_and_wavedash(name: str, command: list[str] | None) -> None:
    bot = bot_of(name)
    arena, beside = Arena(bot.task.blue, bot.task.orange, bot.task.hitbox), bot.bot()
    seat = arena.state.seats - 1
    with Host(bot.folder / "bot.toml", seat, team=1, command=command) as host:
        controls = torch.zeros(1, arena.state.seats, 8)
        for _ in range(120):
            packet = arena.packet()
            answer = host.answer(packet)
            controls[0, seat] = torch.tensor([float(getattr(answer, control)) for control in CONTROLS])
            assert controls[0, seat].numpy().tolist() == beside.controls(packet, seat).tolist()
            arena.tick(controls)
        assert host.end() == 0, host.output
    assert controls[0, seat].abs().sum() > 0
    arena.close()
