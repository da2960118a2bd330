"""Code as a run folder may name it; calling it leaves a mark, which is how tests see that it ran."""
from __future__ import annotations

import os
from pathlib import Path

import gymnasium

MARK = "WAVEDASH_TEST_MARK"


def make(**kwargs):
    if os.environ.get(MARK):
        Path(os.environ[MARK]).touch()
    return gymnasium.make("CartPole-v1")
