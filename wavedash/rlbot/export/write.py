"""Writes the folder of a bot and its zip. A bot that does not decide as the trainer is not written."""
from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from wavedash import __version__
from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.export.actor import Actor
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rlbot.export.check import BotAgreement, compare_with_trainer
from wavedash.rlbot.export.field import quarter
from wavedash.rlbot.export.logo import logo
from wavedash.rlbot.export.network import network_of
from wavedash.rlbot.export.task import Arrays, Settings, action_settings, observation_settings, trained_parts
from wavedash.rlbot.export.texts import PACKAGE, Bot, texts

MARK = "settings.json"
"""The file by which the folder of a bot is recognised, so that an export replaces nothing else"""
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of all files in a zip: the same bot gives the same bytes"""


def write_bot(policy: ActorCritic, task: RocketConfig, bot: Bot, folder: Path, source: str) -> BotAgreement:
    """Writes a policy that was trained in `task` as a bot into a folder, and as a zip of the same name beside it. `source`:
    which policy it is, for its user."""
    _refuse_foreign(folder)
    observation, action, state = trained_parts(task)
    actor = Actor(policy)
    parser, tables = action_settings(action)
    network, weights = network_of(actor)
    settings = {"wavedash": __version__, "source": source, "hitbox": task.hitbox, "games": task.games, "action": parser,
                "policy": network, "observation": observation_settings(observation, state.seats)}
    content = _content(bot, settings, {**weights, **tables, "field.triangles": quarter()})
    written = folder.with_name(f".{folder.name}.tmp")
    try:
        _write(written, content)
        agreement = compare_with_trainer(written, observation, action, actor, state)
        _replace(folder, written)
        zip_of(folder).write_bytes(_zipped(folder.name, content))
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; choose another place") from error
    finally:
        shutil.rmtree(written, ignore_errors=True)
    return agreement


def zip_of(folder: Path) -> Path:
    """The zip of a bot's folder."""
    return folder.with_name(f"{folder.name}.zip")


def _refuse_foreign(folder: Path) -> None:
    """An export replaces the folder of an earlier one and nothing else."""
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an exported bot: name a new folder, or remove this one")


def _content(bot: Bot, settings: Settings, arrays: Arrays) -> dict[str, bytes]:
    """All files of the bot by their names in its folder."""
    weights = io.BytesIO()
    np.savez(weights, **arrays)
    code = {f"{PACKAGE}/{file.name}": file.read_bytes() for file in files("wavedash.rlbot.bot").iterdir()
            if file.name.endswith(".py")}
    written = {name: text.encode() for name, text in texts(bot, settings["source"]).items()}
    return dict(sorted({**written, **code, "logo.png": logo(bot.name), "weights.npz": weights.getvalue(),
                        MARK: json.dumps(settings, indent=1, allow_nan=False).encode()}.items()))


def _write(folder: Path, content: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _replace(folder: Path, written: Path) -> None:
    """Moves all files of a bot into its folder, in place of those of an earlier one. The folder stays, because somebody may be
    in it; its mark comes first and stays too, so that an export that was interrupted can be made again."""
    folder.mkdir(exist_ok=True)
    os.replace(written / MARK, folder / MARK)
    for old in folder.iterdir():
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        elif old.name != MARK:
            old.unlink()
    for new in written.iterdir():
        new.rename(folder / new.name)


def _zipped(name: str, content: Mapping[str, bytes]) -> bytes:
    """The folder as a zip, in which all files are in a folder of its name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in content.items():
            archive.writestr(zipfile.ZipInfo(f"{name}/{file}", FIXED_TIME), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
