"""The table of `wavedash doctor`: what `auto` chooses for GPUs of several sizes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.memory.choice import Choice, choose, shapes_for
from wavedash.memory.hardware import GIB, Hardware, gpu, hardware_of

PRESET = "rocket-1v1-gpu"
CARDS = (4, 8, 16, 24, 80)
"""Gibibytes of memory of common GPUs"""


class Row(NamedTuple):
    """A GPU, what is chosen for it, and its name if it is one of this machine."""

    hardware: Hardware
    choice: Choice
    here: str = ""


def rows(config: RunConfig | None = None) -> list[Row]:
    """Returns what a configuration, or the preset, chooses for common GPUs and for those of this machine, by memory."""
    config = config or load_config(PRESET)
    shapes = shapes_for(config, torch.device("cpu"))
    cards = [(gpu(size), "") for size in CARDS]
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        device = torch.device("cuda", index)
        cards.append((hardware_of(device), f"cuda:{index} {torch.cuda.get_device_name(index)}"))
    return [Row(card, choose(config, card, shapes), here) for card, here in sorted(cards, key=lambda card: card[0].total)]


def lines(found: list[Row]) -> Iterator[str]:
    """The table as text."""
    yield f"{'GPU memory':>10} {'arenas':>8} {'minibatch':>10} {'precision':>10} {'in use, about':>14}"
    for hardware, choice, here in found:
        made = choice.config
        minibatch = f"{made.ppo.minibatch_size:,}"
        mark = f"  <- this machine: {here}" if here else ""
        parts = f", in parts of {made.ppo.microbatch_size:,}" if made.ppo.microbatch_size else ""
        yield (f"{hardware.total / GIB:>7.0f} GB {made.env.count:>8,} {minibatch:>10} {made.precision:>10} "
               f"{choice.total / GIB:>11.1f} GB{parts}{mark}")
