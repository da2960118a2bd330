"""DirectModule behaves as nn.Module does, and finds buffers and submodules without `__getattr__`."""
from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from wavedash.tasks.direct import DirectModule


@pytest.fixture
def direct() -> DirectModule:
    module = DirectModule()
    module.register_buffer("count", torch.zeros(2))
    module.register_buffer("work", torch.ones(2), persistent=False)
    module.inner = nn.Linear(2, 2)
    return module


def agree(module: DirectModule) -> None:
    """The attributes are the buffers that the module moves, saves and loads."""
    for name, x in module._buffers.items():
        assert getattr(module, name) is x
    for name, inner in module._modules.items():
        assert getattr(module, name) is inner


def test_buffers_and_submodules_are_found_without_getattr(direct: DirectModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Module, "__getattr__", lambda self, name: pytest.fail(f"{name} was not found directly"))
    assert direct.count is not None and direct.work is not None and direct.inner is not None


def test_the_replacement_of_a_buffer_or_module_is_found(direct: DirectModule) -> None:
    direct.count = torch.full((2,), 3.0)
    direct.inner = nn.Linear(2, 4)
    agree(direct)
    assert direct.state_dict()["count"].tolist() == [3.0, 3.0] and direct.state_dict()["inner.weight"].shape == (4, 2)


def test_a_moved_buffer_is_found(direct: DirectModule) -> None:
    outer = DirectModule()
    outer.direct = direct
    outer.double()
    agree(direct)
    assert direct.count.dtype == torch.float64
    outer.to("meta")
    agree(direct)
    assert direct.work.device.type == "meta"


def test_a_copy_has_memory_of_its_own(direct: DirectModule) -> None:
    twin = copy.deepcopy(direct)
    agree(twin)
    twin.count += 1
    assert direct.count.tolist() == [0.0, 0.0] and twin.state_dict()["count"].tolist() == [1.0, 1.0]


def test_a_loaded_buffer_is_found(direct: DirectModule) -> None:
    direct.load_state_dict({**direct.state_dict(), "count": torch.tensor([5.0, 6.0])})
    assert direct.count.tolist() == [5.0, 6.0] and list(direct.state_dict()) == ["count", "inner.weight", "inner.bias"]


def test_a_deleted_buffer_is_gone(direct: DirectModule) -> None:
    del direct.count, direct.inner
    assert not hasattr(direct, "count") and not hasattr(direct, "inner") and list(direct.state_dict()) == []
