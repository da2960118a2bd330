"""Fixtures of the environment tests."""
from __future__ import annotations

import pytest

from wavedash.envs.pool import WorkerPool


@pytest.fixture
def pool(request):
    """Makes pools that are closed at the end of the test."""
    def make(*args, **kwargs):
        env = WorkerPool(*args, **kwargs)
        request.addfinalizer(env.close)
        return env
    return make
