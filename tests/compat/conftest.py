"""Fixtures of the compatibility tests."""
from tests.envs.conftest import pool as pool
