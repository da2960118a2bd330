"""What a run that imitates is made of: the file of its configuration as samples, played back, with loss and measurement."""
from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from wavedash.config import RunConfig
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import read
from wavedash.imitate.held_out import HeldOut
from wavedash.imitate.loss import ImitationLoss
from wavedash.imitate.playback import Playback
from wavedash.imitate.samples import Samples, samples_of
from wavedash.imitate.split import Split, split_episodes
from wavedash.ppo.listener import Listener
from wavedash.ppo.ranks import ALONE, Ranks


def imitation(config: RunConfig, device: torch.device, ranks: Ranks = ALONE) -> tuple[Playback, ImitationLoss, list[Listener]]:
    """Reads the demonstrations of a configuration, and makes what rollouts are collected from, the loss, and the listener that
    measures it. UserError: they cannot be read, or do not fit the environment."""
    assert config.imitate is not None
    path = Path(config.imitate.data)
    spaces = kind_of(config.env).spaces(config.env, device)
    samples, split = _read(path, config, spaces)
    samples, learned, held_out = samples.to(device), split.learned.to(device), split.held_out.to(device)
    env = Playback(samples, learned, spaces, config.env.count * spaces.rows, ranks)
    loss = ImitationLoss(env, not env.samples.action.is_floating_point())
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return env, loss, [HeldOut(samples, held_out, config.imitate.every, sha256)]


def check_demonstrations(config: RunConfig, spaces: Spaces) -> None:
    """Raises UserError if the demonstrations of a run cannot be read, or do not fit its environment."""
    if config.imitate is not None:
        _read(Path(config.imitate.data), config, spaces)


def _read(path: Path, config: RunConfig, spaces: Spaces) -> tuple[Samples, Split]:
    assert config.imitate is not None
    try:
        found = read(path)
        if found.kind == "states":
            found = kind_of(config.env).demonstrated(config.env, found)
        samples = samples_of(found, spaces)
        return samples, split_episodes(path, samples, config.imitate.held_out, config.seed)
    except UserError as error:
        raise UserError(f"imitate.data: {error}") from error
