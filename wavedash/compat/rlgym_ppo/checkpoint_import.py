"""Networks, optimisers, statistics and counters are imported from a checkpoint that rlgym-ppo saved."""
from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from wavedash.compat.rlgym_ppo.folders import BOOK
from wavedash.compat.rlgym_ppo.ppo.ppo_learner import layers_of
from wavedash.compat.rlgym_ppo.read_checkpoint import FILES
from wavedash.import_path import child_environment
from wavedash.policy.normalizer import RunningMoments
from wavedash.ppo.learner import Learner
from wavedash.ppo.optimizer import FlatAdamW
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.pointer import is_pointer

log = logging.getLogger(__name__)

LARGEST_BOOK = 64 * 2**20
READING_SECONDS = 300.0

Layers = list[nn.Linear]
Tensors = Mapping[str, Tensor]


class Statistics(NamedTuple):
    """Mean and variance of `number` returns or observations."""

    mean: list[float]
    variance: list[float]
    number: int


class Book(NamedTuple):
    """The content of rlgym-ppo's BOOK_KEEPING_VARS.json."""

    steps: int
    iterations: int
    average_reward: float | None
    returns: Statistics
    observations: Statistics | None
    written: Mapping[str, Any]


def read_in_subprocess(folder: Path) -> dict[str, Tensor]:
    """Returns the tensors of all files of a checkpoint, see `read_checkpoint.py`."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "tensors.safetensors"
        command = [sys.executable, "-P", "-m", "wavedash.compat.rlgym_ppo.read_checkpoint", str(folder), str(output)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=READING_SECONDS, env=child_environment())
        except subprocess.TimeoutExpired:
            raise CheckpointError(f"{folder} was not read within {READING_SECONDS:.0f} s; use another checkpoint") from None
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise CheckpointError(f"{folder} cannot be imported: {reason}. Only tensors are read from its files ("
                                  f"{', '.join(FILES.values())}); whatever else is in them is refused")
        return load_file(output)


def import_checkpoint(folder: Path, learner: Learner, read: Callable[[Path], Tensors] = read_in_subprocess) -> Book:
    """Fills a learner whose networks have the same layers. CheckpointError: the learner is unchanged."""
    book, tensors = _read_book(folder), read(folder)
    networks = {name: layers_of(learner.policy, side) for name, side in (("policy", "actor"), ("value", "critic"))}
    for name, argument in (("policy", "policy_layer_sizes"), ("value", "critic_layer_sizes")):
        _check_layers(folder, name, tensors, networks[name], argument)
    for name, group in (("policy", "actor"), ("value", "critic")):
        _fill_network(name, tensors, networks[name])
        _fill_optimizer(f"{name}_optimizer", tensors, networks[name], learner.updater.optimizer, group)
    learner.steps, learner.iteration = book.steps, book.iterations
    if learner.return_moments is not None:
        _fill_moments(learner.return_moments, book.returns)
    if learner.policy.normalizer is not None:
        if book.observations is None:
            log.warning("%s was trained without standardize_obs: pass standardize_obs=False, or its policy gets observations "
                        "unlike those it was trained with", folder)
        else:
            for moments in learner.policy.normalizer.parts.values():
                _fill_moments(moments, book.observations)  # type: ignore[arg-type]
    return book


def _read_book(folder: Path) -> Book:
    try:
        with open(folder / BOOK, "rb") as file:
            written = json.loads(file.read(LARGEST_BOOK))
        average = written["policy_average_reward"]
        of_observations, every = written.get("obs_running_stats"), is_pointer(folder)
        return Book(
            steps=int(written["cumulative_timesteps"]),
            iterations=int(written["epoch"]),
            average_reward=float(average) if average is not None and math.isfinite(average) else None,
            returns=_statistics(written["reward_running_stats"]),
            observations=None if of_observations is None else _statistics(of_observations, every),
            written=written,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise CheckpointError(f"{folder / BOOK} is not what rlgym-ppo writes ({type(error).__name__}: {error}); use another "
                              "checkpoint") from error


def _statistics(written: Mapping[str, Any], every: bool = False) -> Statistics:
    """Returns the first entry, by which rlgym-ppo scales all returns, and also all numbers of an observation. With `every`,
    Wavedash has written them, and each number has its own."""
    number = len(written["mean"]) if every else 1
    means, squares = ([float(x) for x in written[name][:number]] for name in ("mean", "var"))
    count = int(written["count"])
    if count < 2:
        return Statistics([0.0], [1.0], count)
    variances = [x / (count - 1) for x in squares]  # rlgym-ppo saves the sum of squares as `var`
    if not all(math.isfinite(x) for x in (*means, *variances)) or min(variances) < 0.0:
        raise ValueError(f"mean {means} and variance {variances} are no statistics")
    return Statistics(means, [x or 1.0 for x in variances], count)


def _names(name: str, layers: Layers) -> list[str]:
    """Returns the names of the linear layers: rlgym-ppo's networks are a Sequential of Linear and ReLU in turns."""
    return [f"{name}.model.{2 * index}" for index in range(len(layers))]


def _check_layers(folder: Path, name: str, tensors: Tensors, layers: Layers, argument: str) -> None:
    there = {key: tuple(x.shape) for key, x in tensors.items() if key.startswith(f"{name}.")}
    here = {f"{key}.{part}": tuple(x.shape) for key, layer in zip(_names(name, layers), layers, strict=True)
            for part, x in layer.named_parameters()}
    if there == here:
        return
    weights = [shape for key, shape in there.items() if key.endswith(".weight") and len(shape) == 2]
    if not weights:
        raise CheckpointError(f"{folder} does not hold a {name} network of rlgym-ppo; use another checkpoint")
    hidden, outputs = tuple(shape[0] for shape in weights[:-1]), weights[-1][0]
    raise CheckpointError(
        f"{folder} does not fit: its {name} network takes {weights[0][1]} numbers, has hidden layers {hidden} and {outputs} "
        f"outputs; here it takes {layers[0].in_features}, has {tuple(layer.out_features for layer in layers[:-1])} and "
        f"{layers[-1].out_features}. Pass {argument}={hidden} and the environment that it was trained in, or "
        "checkpoint_load_folder=None to start afresh")


@torch.no_grad()
def _fill_network(name: str, tensors: Tensors, layers: Layers) -> None:
    for key, layer in zip(_names(name, layers), layers, strict=True):
        layer.weight.copy_(tensors[f"{key}.weight"])
        layer.bias.copy_(tensors[f"{key}.bias"])


def _fill_optimizer(name: str, tensors: Tensors, layers: Layers, optimizer: FlatAdamW, group: str) -> None:
    """Fills Adam's moments, parameter by parameter. Nothing is filled where they were not saved, or no step was made."""
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    for index, p in enumerate(parameters):
        place = slice(p.storage_offset(), p.storage_offset() + p.numel())
        for part, target in (("exp_avg", optimizer.exp_avg), ("exp_avg_sq", optimizer.exp_avg_sq)):
            moment = tensors.get(f"{name}.state.{index}.{part}")
            if moment is not None and moment.shape == p.shape:
                target[place].view_as(p).copy_(moment)
    if (step := tensors.get(f"{name}.state.0.step")) is not None:
        optimizer.steps[group].copy_(step)


def _fill_moments(moments: RunningMoments, statistics: Statistics) -> None:
    for target, values in ((moments.mean, statistics.mean), (moments.var, statistics.variance)):
        numbers = target.new_tensor(values)
        target.copy_(numbers.reshape(target.shape) if len(values) == target.numel() else numbers[0].expand_as(target))
    moments.count.fill_(statistics.number)
    moments.shift.copy_(moments.mean)
    moments.scale.copy_(moments.var.rsqrt())
