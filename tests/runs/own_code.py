"""Code that a run folder may name; calling it touches a file, by which tests see that it ran."""
from __future__ import annotations

import os
from pathlib import Path

import gymnasium

MARK = "WAVEDASH_TEST_MARK"


def make(**kwargs):
    if os.environ.get(MARK):
        Path(os.environ[MARK]).touch()
    return gymnasium.make("CartPole-v1")
