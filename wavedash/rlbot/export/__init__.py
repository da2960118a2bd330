"""Export of a policy as a bot that RLBot v5 starts: a folder, and the same as a zip."""
from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from wavedash import __version__
from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.export.actor import Actor
from wavedash.loading import load_run
from wavedash.rlbot.export.check import BotAgreement, compare_with_trainer
from wavedash.rlbot.export.field import quarter
from wavedash.rlbot.export.logo import logo
from wavedash.rlbot.export.network import network_of
from wavedash.rlbot.export.task import Arrays, Settings, action_settings, observation_settings, trained_parts
from wavedash.rlbot.export.texts import PACKAGE, Bot, texts
from wavedash.rocket.kind import rocket_task

MARK = "settings.json"
"""The file by which the folder of a bot is recognised, so that an export replaces nothing else"""
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of all files in a zip: the same bot gives the same bytes"""


@dataclass(frozen=True)
class ExportedBot:
    """The result; `str()` of it is what `wavedash export rlbot` prints."""

    policy: Path
    folder: Path
    zip: Path
    agreement: BotAgreement

    def __str__(self) -> str:
        found = self.agreement
        lines = [("policy", str(self.policy)), ("bot", str(self.folder / "bot.toml")),
                 ("zip", f"{self.zip} ({self.zip.stat().st_size:,} bytes)"),
                 ("checked", f"{found.decisions:,} decisions on random states beside the trainer: largest difference "
                             f"{found.observation:.1g} of what it sees, {found.choice:.1g} of what it chooses"),
                 ("next", f"python -m pip install -r {self.folder / 'requirements.txt'}, then add the folder to RLBot's GUI; "
                          "docs/rlbot.md")]
        return "\n".join(f"{name:<10}{value}" for name, value in lines)


def export_bot(run: str | Path, out: str | Path, name: str | None = None, developer: str = "Wavedash",
               description: str | None = None, trust: bool = False) -> ExportedBot:
    """Writes the policy of a run as a bot into the folder `out`, and as `out`.zip beside it. `name`: that of the run."""
    loaded, folder = load_run(run, trust=trust), Path(out)
    config = rocket_task(loaded.config.env, loaded.path)
    _refuse_foreign(folder)
    observation, action, state = trained_parts(config)
    actor = Actor(loaded.policy.policy)
    parser, tables = action_settings(action)
    network, weights = network_of(actor)
    settings = {"wavedash": __version__, "checkpoint": "/".join(loaded.path.absolute().parts[-4:]), "hitbox": config.hitbox,
                "observation": observation_settings(observation, state.seats), "action": parser, "policy": network}
    about = description or f"Trained with Wavedash for {', '.join(map(str, config.team_sizes))}."
    bot = Bot(name or loaded.config.name, developer, about, config.hitbox, _tags(config))
    content = _content(bot, settings, weights | tables | {"field.triangles": quarter()})
    written = folder.with_name(f".{folder.name}.tmp")
    try:
        _write(written, content)
        agreement = compare_with_trainer(written, observation, action, actor, state)
        shutil.rmtree(folder, ignore_errors=True)
        written.rename(folder)
        archive = folder.with_name(f"{folder.name}.zip")
        archive.write_bytes(_zipped(folder.name, content))
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; choose another place") from error
    finally:
        shutil.rmtree(written, ignore_errors=True)
    return ExportedBot(loaded.path, folder, archive, agreement)


def _refuse_foreign(folder: Path) -> None:
    """An export replaces the folder of an earlier one and nothing else."""
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an exported bot: name a new folder, or remove this one")


def _content(bot: Bot, settings: Settings, arrays: Arrays) -> dict[str, bytes]:
    """All files of the bot by their names in its folder."""
    source = f"the policy {settings['checkpoint']}"
    weights = io.BytesIO()
    np.savez(weights, **arrays)  # type: ignore[arg-type]
    code = {f"{PACKAGE}/{file.name}": file.read_bytes() for file in files("wavedash.rlbot.bot").iterdir()
            if file.name.endswith(".py")}
    written = {name: text.encode() for name, text in texts(bot, source).items()}
    return dict(sorted({**written, **code, "logo.png": logo(bot.name), "weights.npz": weights.getvalue(),
                        MARK: json.dumps(settings, indent=1, allow_nan=False).encode()}.items()))


def _write(folder: Path, content: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _zipped(name: str, content: Mapping[str, bytes]) -> bytes:
    """The folder as a zip, in which all files are in a folder of its name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in content.items():
            archive.writestr(zipfile.ZipInfo(f"{name}/{file}", FIXED_TIME), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _tags(config: RocketConfig) -> tuple[str, ...]:
    """The words of RLBot's GUI for the team sizes that the policy was trained in."""
    largest = {size.larger for size in config.team_sizes}
    return tuple(tag for tag, plays in (("1v1", 1 in largest), ("teamplay", max(largest) > 1)) if plays)
