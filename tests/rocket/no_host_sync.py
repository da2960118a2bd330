"""Finds on a CPU what cannot be captured in a CUDA graph: host syncs, and shapes that depend on data."""
from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode

SYNCS = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "item", "unique")


class NoHostSync(TorchDispatchMode):
    """While it is active, host syncs, indexing by a mask and tensors made of Python's numbers (a copy from the host) fail."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        assert name not in SYNCS, f"{name} reads a tensor on the host"
        assert name != "lift_fresh", "a tensor of Python's numbers is a copy from the host: make it in bind"
        if name in ("index", "index_put_"):
            assert all(i is None or not str(i.dtype).endswith("bool") for i in args[1]), "indexing by a mask has no fixed shape"
        return func(*args, **kwargs or {})
