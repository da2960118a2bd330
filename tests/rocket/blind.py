"""Shows on a CPU what would stop a CUDA graph: looking at a tensor from Python, or shapes that depend on what is in one."""
from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode

LOOKS = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "item", "unique")


class Blind(TorchDispatchMode):
    """Refuses them while it is active; indexing by a mask and tensors made of Python's numbers (a copy from the host) too."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        assert name not in LOOKS, f"{name} looks at a tensor"
        assert name != "lift_fresh", "a tensor of Python's numbers is a copy from the host: make it in bind"
        if name in ("index", "index_put_"):
            assert all(i is None or not str(i.dtype).endswith("bool") for i in args[1]), "a mask as index has no fixed shape"
        return func(*args, **kwargs or {})
