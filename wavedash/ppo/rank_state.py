"""One checkpoint holds the state of several ranks.

Weights, optimiser, statistics and the state of listeners are the same on all ranks and are saved once. Environments, memory,
random streams and stored rollouts are each rank's own: those of rank 0 are saved as in a run by one process, those of rank 1 in
`rank1-env`, `rank1-learner` and so on.
"""
from __future__ import annotations

from torch import Tensor

StateTensors = dict[str, dict[str, Tensor]]
"""Tensors by file and name, as `Learner.state` returns them."""


def rank_part(tensors: StateTensors) -> StateTensors:
    """Copies what only this rank has to the host."""
    return _non_empty({file: {name: x.detach().to("cpu", copy=True) for name, x in part.items() if not _is_shared(file, name)}
                       for file, part in tensors.items()})


def with_rank_parts(tensors: StateTensors, parts: list[StateTensors]) -> StateTensors:
    """Joins the state of rank 0 with the parts of ranks 1, 2, ..."""
    others = {f"{_prefix(rank)}{file}": part for rank, own in enumerate(parts, 1) for file, part in own.items()}
    return {**tensors, **others}


def state_of_rank(rank: int, size: int, tensors: StateTensors, saved_size: int) -> StateTensors:
    """Returns what `rank` of `size` ranks goes on from, of a checkpoint of `saved_size` ranks. If their number has changed,
    that is only what all share."""
    if saved_size != size:
        return shared_part(tensors)
    plain = _of_first(tensors)
    own = plain if rank == 0 else {file: tensors.get(_prefix(rank) + file, {}) for file in plain}
    return _non_empty({file: {**_shared(file, part), **own[file]} for file, part in plain.items()})


def shared_part(tensors: StateTensors) -> StateTensors:
    """Returns what all ranks share: all but environments, memory, random streams and stored rollouts."""
    return _non_empty({file: _shared(file, part) for file, part in _of_first(tensors).items()})


def _of_first(tensors: StateTensors) -> StateTensors:
    return {file: part for file, part in tensors.items() if not file.startswith("rank")}


def _shared(file: str, part: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: x for name, x in part.items() if _is_shared(file, name)}


def _is_shared(file: str, name: str) -> bool:
    if file == "optimizer":
        return name != "minibatches"
    return file in ("policy", "listeners") or name.startswith("return_moments.")


def _prefix(rank: int) -> str:
    return f"rank{rank}-"


def _non_empty(tensors: StateTensors) -> StateTensors:
    return {file: part for file, part in tensors.items() if part}
