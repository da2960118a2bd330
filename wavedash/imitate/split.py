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
    """Draws what is held out: the same for the same file and seed. Whole recordings, or where this would be more than the share
    of them, whole episodes with all their cars. UserError: there are too few."""
    first, count = samples.first, samples.count
    group, groups = _numbered(samples.recording)
    if share * groups < 1.0:
        group, groups = _numbered(samples.together)
    generator = torch.Generator().manual_seed(stream_seed(seed, "held out"))
    drawn = torch.randperm(groups, generator=generator)
    out = min(max(1, round(share * groups)), groups - 1) if share else 0
    if share and not out:
        raise UserError(f"{path} has one episode, and episodes are held out as a whole: record more, or set imitate.held_out=0")
    held = torch.isin(group, drawn[:out])  # [E]
    # Episodes are mixed one by one, so that two views of a game are not learned one after the other.
    episodes = torch.randperm(len(first), generator=generator)
    return Split(*(_samples_in(episodes[chosen[episodes]], first, count) for chosen in (~held, held)))


def _numbered(of_episodes: Tensor) -> tuple[Tensor, int]:
    """[E] numbers from 0 in the place of these ones, and how many there are."""
    found, number = torch.unique(of_episodes, return_inverse=True)
    return number, len(found)


def _samples_in(episodes: Tensor, first: Tensor, count: int) -> Tensor:
    """The numbers of the samples in these episodes, in their order."""
    ends = torch.cat([first[1:], torch.tensor([count])])
    lengths = (ends - first)[episodes]
    before = lengths.cumsum(0) - lengths  # samples of the episodes that come before
    return torch.arange(int(lengths.sum())) + (first[episodes] - before).repeat_interleave(lengths)
