"""Fixtures of the compatibility tests."""
import pytest

from tests.envs.conftest import pool as pool


@pytest.fixture(autouse=True)
def _runs_of_the_test(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
