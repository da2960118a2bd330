"""What `auto` means: environments, minibatches and precision that suit a machine.

`resolved` is called once, before anything of a run is built; everything after it sees numbers, and these are recorded in the
run's configuration. A run that is resumed, here or elsewhere, goes on with them.

The choice changes the speed of a run and not its recipe. Numbers are powers of two between bounds that the kind of environment
sets, and minibatches have one size wherever a rollout has enough samples for several of them. On a GPU memory is also the
measure of its speed: it has ROWS_PER_MIB rows at most for each MiB, so that a small card does not collect for minutes before it
learns.
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from wavedash.config import AUTO, RunConfig
from wavedash.config_file import changed_config
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.errors import UserError
from wavedash.memory.estimate import memory_of
from wavedash.memory.hardware import GIB, Hardware, hardware_of
from wavedash.memory.shapes import Shapes
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import PRECISIONS
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.threads import decide_threads
from wavedash.yaml_text import Key

log = logging.getLogger(__name__)

ROWS_PER_MIB = 2
NAMED = 1.06
"""A card that is called 8 GB reports up to 6 % less"""
LARGEST_MINIBATCH_GPU, LARGEST_MINIBATCH_CPU = 16_384, 2_048
SMALLEST_MINIBATCH = 64
MINIBATCHES = 8
"""An epoch has at least so many, where the rollouts are large enough for that"""
SMALLEST_PART = 1_024
"""A GPU is not full with fewer samples at once"""
MUCH = 0.2
"""Other programs that use more than this share of a GPU are worth a warning"""


@dataclass(frozen=True)
class Choice:
    """A configuration without `auto`, and what it is expected to take."""

    config: RunConfig
    memory: Mapping[str, int]
    """Bytes by what they are for"""
    fits: bool

    @property
    def total(self) -> int:
        return sum(self.memory.values())


def resolved(config: RunConfig, device: torch.device, ranks: Ranks = ALONE, resumed: bool = False) -> RunConfig:
    """Returns the configuration with numbers instead of `auto`. For a new run on a GPU it also has `ppo.microbatch_size` where
    a whole minibatch is not expected to fit; one that is `resumed` keeps the split that it had, because another one rounds
    differently. A run that is not expected to fit at all is told so.

    Where nothing is `auto`, no environment is made for this, and an estimate that fails is done without: the update finds out
    by itself what fits."""
    if not config.undecided and (resumed or device.type != "cuda" or config.ppo.microbatch_size is not None
                                 or kind_of(config.env).makes_one_for_spaces(config.env)):
        return config
    decide_threads(config.threads, ranks.local_size)  # environments on a CPU are chosen by its cores
    hardware = hardware_of(device, ranks)
    choice: Choice | None = None
    try:
        choice = choose(config, hardware, shapes_for(config, device))
    except Exception:
        if config.undecided:
            raise
        log.debug("the memory of this run cannot be estimated", exc_info=True)
    if not config.undecided and ranks.any(choice is None):  # all ranks must have the same configuration
        return config
    assert choice is not None
    if hardware.taken > MUCH * hardware.total:
        log.warning("other programs use %.1f of %s, and the run is fitted into the rest: for more environments, close them and "
                    "start again", hardware.taken / GIB, hardware.memory)
    if not choice.fits:
        largest = sorted(choice.memory.items(), key=lambda term: -term[1])[:3]
        log.warning("this run is expected to need %.1f GB, and %.1f of %s can be used. It needs most for %s. If it runs out of "
                    "memory, set fewer environments (env.count) or smaller networks (policy.hidden), or close other programs",
                    choice.total / GIB, hardware.usable / GIB, hardware.memory,
                    ", ".join(f"{name} ({size / GIB:.1f} GB)" for name, size in largest))
    return choice.config


def chosen(asked: RunConfig, made: RunConfig, device: torch.device) -> str:
    """Says what was decided and why: `8 GB of GPU memory: 8,192 arenas, minibatches of 16,384, bf16`. Empty: nothing was."""
    parts = {"env.count": f"{made.env.count:,} {kind_of(made.env).plural}",
             "ppo.minibatch_size": f"minibatches of {made.ppo.minibatch_size:,}", "precision": made.precision}
    said = [parts[name] for name in asked.undecided]
    if made.ppo.microbatch_size != asked.ppo.microbatch_size:
        said.append(f"a minibatch is computed in parts of {made.ppo.microbatch_size:,} samples, whose gradients add up to the "
                    "same, because it would not fit as a whole")
    return f"{hardware_of(device).memory}: {', '.join(said)}" if said else ""


def shapes_for(config: RunConfig, device: torch.device) -> Callable[[str], Shapes]:
    """A function that returns the sizes of a run's observations and networks in a precision."""
    from wavedash.assembly import make_policy

    one = config.env.model_copy(update={"count": 1, "workers": 0})
    spaces: Spaces = kind_of(one).spaces(one, device)
    policy: ActorCritic = make_policy(spaces, config)

    def shapes(precision: str) -> Shapes:
        policy.precision = PRECISIONS.get(precision)
        return Shapes.of(spaces, policy)

    return shapes


def choose(config: RunConfig, hardware: Hardware, shapes: Callable[[str], Shapes]) -> Choice:
    """The most environments for which everything fits, where a minibatch may be computed in parts; then the largest parts. If
    nothing fits, it is the smallest choice."""
    precision = hardware.precision if config.precision == "auto" else config.precision
    sizes = shapes(precision)

    def tried(count: int, microbatch: int | None) -> Choice:
        values: dict[Key, Any] = {("precision",): precision, ("env", "count"): count, ("ppo", "microbatch_size"): microbatch}
        if config.ppo.minibatch_size == AUTO:
            stored = count * sizes.rows * config.ppo.rollout_steps * config.ppo.buffer_rollouts
            values["ppo", "minibatch_size"] = _minibatch(round(stored * config.ppo.keep_samples), hardware)
        made = changed_config(config, values)
        memory = memory_of(made, sizes, hardware.device)
        return Choice(made, memory, sum(memory.values()) <= hardware.usable)

    def best(count: int) -> Choice:
        """With the largest parts that fit, or the smallest."""
        choice = tried(count, config.ppo.microbatch_size)
        part = choice.config.ppo.minibatch_size
        while not choice.fits and config.ppo.microbatch_size is None and hardware.device.type == "cuda":
            if part <= SMALLEST_PART:
                break
            part //= 2
            choice = tried(count, part)
        return choice

    choices = [best(count) for count in _counts(config, hardware, sizes.rows)]
    return next((choice for choice in choices if choice.fits), choices[-1])


def _counts(config: RunConfig, hardware: Hardware, rows: int) -> list[int]:
    """The numbers of environments to choose from, the largest first."""
    if config.env.count != AUTO:
        return [config.env.count]
    least, most = kind_of(config.env).counts(config.env, hardware.device)
    if hardware.device.type == "cuda":
        most = min(most, _power_of_two(NAMED * hardware.total / 2**20 * ROWS_PER_MIB / rows))
    least = max(least, config.env.workers)
    counts = [max(most, least)]
    while counts[-1] // 2 >= least:
        counts.append(counts[-1] // 2)
    return counts


def _minibatch(samples: int, hardware: Hardware) -> int:
    largest = LARGEST_MINIBATCH_GPU if hardware.device.type == "cuda" else LARGEST_MINIBATCH_CPU
    return max(SMALLEST_MINIBATCH, min(largest, _power_of_two(samples / MINIBATCHES)))


def _power_of_two(number: float) -> int:
    """The largest that is not above `number`."""
    return 1 << max(0, int(number).bit_length() - 1)


@contextmanager
def explained_shortage(config: RunConfig, device: torch.device) -> Iterator[None]:
    """Turns a lack of memory into a message that says how many environments would fit."""
    try:
        yield
    except Exception as error:
        shortage = _shortage(error)
        if shortage is None:
            raise
        said = str(shortage).partition("\n")[0].rstrip(".") or "it is full"
        raise UserError(f"env.count={config.env.count} does not fit into the memory of {device}: {said}. Set "
                        f"env.count={_fewer(config, device)}, which is expected to fit, or close other programs that use "
                        "it") from error


def _shortage(error: BaseException | None) -> BaseException | None:
    """The error by which torch or Warp has said that memory is too small, where that is the cause of this one."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or "Failed to allocate" in str(error):
            return error
        error = error.__cause__
    return None


def _fewer(config: RunConfig, device: torch.device) -> int:
    """The number that would be chosen, where it is less than the one that does not fit; else half of that."""
    half = max(1, config.env.count // 2)
    try:
        auto = config.model_copy(update={"env": config.env.model_copy(update={"count": AUTO})})
        return min(half, choose(auto, hardware_of(device), shapes_for(config, device)).config.env.count)
    except Exception:  # the message matters more than its number
        return half
