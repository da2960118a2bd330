"""The state of several ranks in one checkpoint.

Weights, optimiser, statistics and the state of listeners are the same on all ranks and are saved once. Environments, memory,
random streams and stored rollouts are each rank's own: those of rank 0 are saved as in a run by one process, those of rank 1 in
`rank1-env`, `rank1-learner` and so on.
"""
from __future__ import annotations

from torch import Tensor

Groups = dict[str, dict[str, Tensor]]
"""Tensors by group and name, as `Learner.state` gives them."""


def own_part(tensors: Groups) -> Groups:
    """What only this rank has, copied to the host."""
    return _chosen({group: {name: x.detach().to("cpu", copy=True) for name, x in part.items() if not _is_shared(group, name)}
                    for group, part in tensors.items()})


def with_parts(tensors: Groups, parts: list[Groups]) -> Groups:
    """The state of rank 0 together with the own parts of ranks 1, 2, ..."""
    others = {f"{_prefix(rank)}{group}": part for rank, own in enumerate(parts, 1) for group, part in own.items()}
    return {**tensors, **others}


def seen_by(rank: int, size: int, tensors: Groups, saved_size: int) -> Groups:
    """A checkpoint of `saved_size` ranks as `rank` of now `size` ranks goes on from it: with another number of ranks, only from
    what all share."""
    plain = {group: part for group, part in tensors.items() if not group.startswith("rank")}
    shared = {group: {name: x for name, x in part.items() if _is_shared(group, name)} for group, part in plain.items()}
    if saved_size != size:
        return _chosen(shared)
    own = plain if rank == 0 else {group: tensors.get(_prefix(rank) + group, {}) for group in plain}
    return _chosen({group: {**part, **own[group]} for group, part in shared.items()})


def _is_shared(group: str, name: str) -> bool:
    if group == "optimizer":
        return name != "minibatches"
    return group in ("policy", "listeners") or name.startswith("return_moments.")


def _prefix(rank: int) -> str:
    return f"rank{rank}-"


def _chosen(tensors: Groups) -> Groups:
    return {group: part for group, part in tensors.items() if part}
