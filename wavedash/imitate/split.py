"""Which episodes of a file are learned from, in which order, and which are held out."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.imitate.samples import Samples
from wavedash.seeding import stream_seed


class Split(NamedTuple):
    """Numbers of samples, whole episodes one after another in an order drawn by the seed."""

    learned: Tensor
    held_out: Tensor
    """Empty where nothing is held out"""


def split_episodes(path: Path, samples: Samples, share: float, seed: int) -> Split:
    """Draws the episodes that are held out: the same ones for the same file and seed. UserError: there are too few."""
    first, count = samples.first, samples.count
    order = torch.randperm(len(first), generator=torch.Generator().manual_seed(stream_seed(seed, "held out")))
    out = min(max(1, round(share * len(order))), len(order) - 1) if share else 0
    if share and not out:
        raise UserError(f"{path} has one episode, and episodes are held out as a whole: record more, or set imitate.held_out=0")
    return Split(_samples_in(order[out:], first, count), _samples_in(order[:out], first, count))


def _samples_in(episodes: Tensor, first: Tensor, count: int) -> Tensor:
    """The numbers of the samples in these episodes, in their order."""
    ends = torch.cat([first[1:], torch.tensor([count])])
    lengths = (ends - first)[episodes]
    before = lengths.cumsum(0) - lengths  # samples of the episodes that come before
    return torch.arange(int(lengths.sum())) + (first[episodes] - before).repeat_interleave(lengths)
