"""Set-up of all tests."""
from __future__ import annotations

import os
import tempfile

import pytest

from wavedash.threads import allowed_cores

# The variable of the user would change where runs of tests go.
os.environ.pop("WAVEDASH_RUNS", None)
# Run folders are signed with a secret of the user: tests, and the processes that they start, have one of their own.
_home = tempfile.TemporaryDirectory(prefix="wavedash-home-")
os.environ["WAVEDASH_HOME"] = _home.name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """As many processes as cores."""
    return allowed_cores()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no process is left alone with a long one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
