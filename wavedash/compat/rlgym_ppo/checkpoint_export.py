"""Checkpoints are also written as rlgym-ppo's: `<folder>/<timesteps>/` with `PPO_POLICY.pt`, `BOOK_KEEPING_VARS.json`, ...

`wavedash.json` beside them names our own checkpoint that was saved with them: a script that loads the folder goes on from that
one, exactly. The folder holds numbered folders and nothing else, because scripts read all its names as numbers.
"""
from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wavedash.compat.rlgym_ppo.folders import BOOK
from wavedash.compat.rlgym_ppo.ppo.network import own_copy
from wavedash.compat.rlgym_ppo.ppo.ppo_learner import layers_of
from wavedash.compat.rlgym_ppo.read_checkpoint import FILES
from wavedash.ppo.learner import Learner
from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.durable import sync_folder, write_durably
from wavedash.runs.pointer import POINTER, is_pointer, pointer_bytes, saved_at
from wavedash.runs.store import HIDDEN

StateTensors = Mapping[str, Mapping[str, Tensor]]


def write_folder(target: Path, checkpoint: Checkpoint, files: Mapping[str, bytes], book: Mapping[str, Any], keep: int) -> None:
    """Writes the folder, in one move where the disk allows it, and removes the oldest folders of ours but for `keep`."""
    staging = checkpoint.path.parent / f"{HIDDEN}{target.name}"  # beside the target there may be numbers only
    aside = staging.with_name(f"{staging.name}-old")
    try:
        for path in (staging, aside):
            shutil.rmtree(path, ignore_errors=True)
        staging.mkdir()
        pointer = pointer_bytes(target, checkpoint, dict(files))
        for name, data in {**files, BOOK: json.dumps(book, indent=4, default=str).encode(), POINTER: pointer}.items():
            write_durably(staging / name, data)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            _remove(target, aside)
        try:
            os.rename(staging, target)
        except OSError:  # the target is on another disk
            shutil.copytree(staging, target)
        sync_folder(target.parent)
    except OSError as error:
        raise CheckpointError(f"{target} was not written: {error.strerror or error}. The checkpoint itself is in "
                              f"{checkpoint.path}; make room on that disk, or lower n_checkpoints_to_keep") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    own = sorted((path for path in target.parent.glob("*") if path.name.isdecimal() and is_pointer(path)), key=saved_at)
    for old in own[: max(0, len(own) - keep)]:
        if old != target:
            _remove(old, aside)


def checkpoint_files(learner: Learner, tensors: StateTensors) -> dict[str, bytes]:
    """Returns networks and optimisers of a saved state of `learner` as files that rlgym-ppo reads with `torch.load`."""
    rates = learner.updater.optimizer.base_rates
    names = {id(p): name for name, p in learner.policy.named_parameters()}
    files = {}
    for network, side in (("policy", "actor"), ("value", "critic")):
        layers = layers_of(learner.policy, side)
        weights = {f"model.{2 * index}.{part}": tensors["policy"][names[id(p)]]
                   for index, layer in enumerate(layers) for part, p in layer.named_parameters()}
        parameters = [p for layer in layers for p in layer.parameters()]
        adam = _adam_state(parameters, tensors["optimizer"], side, rates[side], learner)
        files[FILES[network]] = _saved(weights)
        files[FILES[f"{network}_optimizer"]] = _saved(adam)
    return files


def book_keeping(tensors: StateTensors, state: Mapping[str, Any], learner: Learner) -> dict[str, Any]:
    """Returns counters and statistics of a saved state, under rlgym-ppo's names."""
    book = {"cumulative_timesteps": state["steps"], "epoch": state["iteration"],
            "cumulative_model_updates": int(tensors["optimizer"]["step.actor"]),
            "reward_running_stats": _statistics(tensors.get("learner", {}), "return_moments.")}
    if learner.policy.normalizer is not None:
        part = next(iter(learner.policy.normalizer.parts))
        book["obs_running_stats"] = _statistics(tensors["policy"], f"normalizer.parts.{part}.")
    return book


def _statistics(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    """Returns statistics as WelfordRunningStat writes them, with the sum of squares as `var`; they are empty where nothing is
    standardised."""
    if f"{prefix}count" not in tensors:
        return {"mean": [0.0], "var": [0.0], "shape": [1], "count": 0}
    count = int(tensors[f"{prefix}count"])
    mean, variance = (tensors[f"{prefix}{name}"].double().reshape(-1) for name in ("mean", "var"))
    return {"mean": mean.tolist(), "var": (variance * max(count - 1, 0)).tolist(), "shape": [len(mean)], "count": count}


def _adam_state(parameters: list[nn.Parameter], moments: Mapping[str, Tensor], side: str, rate: float, learner: Learner) -> Any:
    """Returns what `torch.optim.Adam.state_dict()` would return; its state is empty before the first step."""
    adam = torch.optim.Adam(parameters, lr=rate, betas=learner.updater.optimizer.betas, eps=learner.updater.optimizer.eps)
    content = adam.state_dict()
    step = moments[f"step.{side}"]
    if float(step) > 0:
        for index, p in enumerate(parameters):
            place = slice(p.storage_offset(), p.storage_offset() + p.numel())
            content["state"][index] = {"step": step.float().reshape(()),
                                       **{name: moments[name][place].view_as(p) for name in ("exp_avg", "exp_avg_sq")}}
    return content


def _saved(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(own_copy(content), buffer)
    return buffer.getvalue()


def _remove(folder: Path, aside: Path) -> None:
    """Removes a folder, hidden in one move where the disk allows it: a kill must not leave half of it."""
    try:
        os.rename(folder, aside)
        shutil.rmtree(aside)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
